# SPDX-License-Identifier: Apache-2.0
"""A case of bench_crash_points.py: the folder as it is before, a command, and what must hold whatever happened."""

import contextlib
import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path += [str(TESTS), str(TESTS / "flow"), str(TESTS / "unit" / "registry"), str(TESTS / "unit" / "wheelhouse")]

STORE = Path("store")
TEMPORARY = (".nndeploy-", "nndeploy-")
Content = dict[str, bytes]


@dataclass(frozen=True)
class Case:
    """`before` makes the folder, `act` is the command, both in the current folder; checks raise AssertionError.

    `switch` is the file that the whole work ends with, "" where there is none; `holds(old, new, now)` gets the files as
    they were, as a whole run leaves them, and as they are; after a loss of power, where less is promised,
    `holds_without_power` does. `leaves` are files that whoever ends well leaves otherwise than they were, where all
    that a whole run leaves is more than it promises. `code` is the exit code of a whole run. Afterwards `then` is
    called, None for `act` again, after one point of `then_every`, and ends with one of `then_codes`; `repeats` says
    that all is then as a whole run leaves it. `beside` is there all the time; `is_failed` says that calls are killed
    and failed, and power is not lost alone. `parts` says into how many parts its calls are divided, for processes that
    work at once.
    """

    name: str
    before: Callable[[], None]
    act: Callable[[], int]
    switch: str
    holds: Callable[[Content, Content, Content], None]
    holds_without_power: Callable[[Content, Content, Content], None] | None = None
    leaves: tuple[str, ...] = ()
    code: int = 0
    repeats: bool = True
    then: Callable[[], int] | None = None
    then_codes: tuple[int, ...] = (0,)
    then_every: int = 1
    beside: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    is_failed: bool = True
    parts: int = 1


def content(folder: Path) -> Content:
    """Returns every file below a folder; a folder is named with a / at the end."""
    return {
        f"{path.relative_to(folder)}{'/' if path.is_dir() else ''}": b"" if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


@contextlib.contextmanager
def shared_memory_folder() -> Iterator[Path]:
    """Yields a folder whose files are synced at once."""
    memory = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


def command(*arguments: str) -> Callable[[], int]:
    """Returns a function that runs a command here and returns its exit code."""

    def act() -> int:
        from nndeploy.cli.main import run_command

        with quiet():
            return run_command(list(arguments))

    return act


def say(*arguments: str) -> None:
    assert command(*arguments)() == 0, arguments


def is_temporary(name: str) -> bool:
    """Returns whether a file is called as temporary ones are, or lies in such a folder."""
    return any(part.startswith(TEMPORARY) for part in Path(name).parts)


def only_temporary(old: Content, new: Content, now: Content) -> None:
    """Checks that whatever is there besides is called as temporary files are."""
    more = {name for name in now.keys() - old.keys() - new.keys() if not is_temporary(name)}
    assert not more, f"left behind: {sorted(more)}"


def write_bundle(path: str, note: bytes) -> None:
    from tests_flow_bundles import write_double

    write_double(Path(path), members={"note": note * 3000})


def imported_by(act: Callable[[], int]) -> None:
    """Imports here what `act` imports, which runs in a child: threads of a library would not survive a fork."""
    start, end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            act()
            with os.fdopen(end, "w") as file:
                file.write("\n".join(sys.modules))
        finally:
            os._exit(0)
    os.close(end)
    with os.fdopen(start) as file:
        names = file.read().splitlines()
    os.waitpid(child, 0)
    assert names, "what was to be imported ended in the middle"
    for name in names:
        with contextlib.suppress(Exception):  # an alias, or one that is made by another
            importlib.import_module(name)
