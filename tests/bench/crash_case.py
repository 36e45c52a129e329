# SPDX-License-Identifier: Apache-2.0
"""What is killed and made to fail by bench_crash_points.py, and what must hold afterwards.

A case has a folder as it is before, a command, and two checks: what holds whatever happened, and what holds when the
same command was called again.
"""

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "flow"))

STORE = Path("store")
STATE = "store/faces/state.json"
TRUST = "config/nndeploy/trust.json"
TEMPORARY = ".nndeploy-"
Content = dict[str, bytes]


@dataclass(frozen=True)
class Case:
    """`before` makes the folder, `act` is the command, both in the current folder; checks raise AssertionError.

    `switch` is the file that the whole work ends with, "" where there is none; `holds(old, new, now)` gets the files as
    they were, as a whole run leaves them, and as they are. `code` is the exit code of a whole run, and `repeats` says
    that a second one changes nothing.
    """

    name: str
    before: Callable[[], None]
    act: Callable[[], int]
    switch: str
    holds: Callable[[Content, Content, Content], None]
    code: int = 0
    repeats: bool = True


def content(folder: Path) -> Content:
    """Returns every file below a folder; a folder is named with a / at the end."""
    return {
        f"{path.relative_to(folder)}{'/' if path.is_dir() else ''}": b"" if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Sends what is printed nowhere."""
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
    """Runs a command that does not fail."""
    assert command(*arguments)() == 0, arguments


def only_temporary(old: Content, new: Content, now: Content) -> None:
    """Checks that whatever is there besides is called as temporary files are."""
    more = {name for name in now.keys() - old.keys() - new.keys() if not Path(name).name.startswith(TEMPORARY)}
    assert not more, f"left behind: {sorted(more)}"


# ---- bundles that are written and signed


def _write(path: str, note: bytes) -> None:
    from tests_flow_bundles import write_double

    write_double(Path(path), members={"note": note * 3000})


def _rewrite() -> int:
    from nndeploy.errors import NndeployError

    try:
        _write("m.nnd", b"new")
    except NndeployError as err:
        return err.exit_code
    return 0


def _before_sign() -> None:
    _write("m.nnd", b"old")
    say("key", "new", "farm")


# ---- trust


def _trusting(*more: tuple[str, ...]) -> Callable[[], None]:
    def before() -> None:
        for name in ("farm", "other"):
            say("key", "new", name)
        for words in more:
            say(*words)

    return before


_OTHER, _FLOOR = ("key", "trust", "other.pub"), ("key", "floor", "faces", "1.0")


# ---- installed bundles


def _installed(*sources: str) -> Callable[[], None]:
    def before() -> None:
        for name in ("one", "two", "three"):
            _write(f"{name}.nnd", name.encode())
        for source in sources:
            say("install", "faces", f"{source}.nnd")

    return before


def a_whole_bundle(old: Content, new: Content, now: Content) -> None:
    """Checks that the name stands for the bundle that it had or was to get, and that every byte of it is there."""
    from nndeploy.bundle.reader import open_bundle
    from nndeploy.errors import MissingInputError
    from nndeploy.installed.bundle_store import BundleStore

    store = BundleStore(STORE)
    try:
        state = store.state("faces")
    except MissingInputError:
        assert STATE not in old, "nothing is installed any more"
        return
    for one in (state.current, state.previous):
        if one is None:
            continue
        path = store.file("faces", one)
        assert hashlib.sha256(path.read_bytes()).hexdigest() == one.sha256, "a bundle of the name is damaged"
        with open_bundle(path) as bundle:
            bundle.verify()
    named = {f"{one.sha256}.nnd" for one in (state.current, state.previous) if one is not None}
    known = {Path(name).name for name in {*old, *new}} | named | {"incoming.nnd"}
    left = {Path(name).name for name in now} - known
    assert not {name for name in left if not name.startswith(TEMPORARY)}, f"left behind: {left}"


# ---- streams that go on

SEVERAL = """
[source]
kind = "json-lines"
[[level]]
[[level.pipeline]]
name = "double"
[[sink]]
kind = "json-lines"
[[sink]]
kind = "csv"
[[sink]]
kind = "statistics"
"""


def _stream(num_records: int, *more: str) -> Case:
    output = "y" if more else "y.jsonl"
    run = command("run", "m.nnd", "--threads", "1", *more, "-i", "x.jsonl", "-o", output, "--resume")

    def before() -> None:
        from resumed_runs import lines

        _write("m.nnd", b"x")
        Path("x.jsonl").write_text(lines(num_records, bad={1}))
        Path("p.toml").write_text(SEVERAL)

    def act() -> int:
        from nndeploy.stream.sinks import resume

        resume.CHECKPOINT_SECONDS = 0.0  # after every record
        return run()

    def holds(old: Content, new: Content, now: Content) -> None:
        results = {name for name in new if name not in old and not name.endswith("/")}
        for name in results & now.keys():
            assert now[name] == new[name], f"{name} has its name and is not whole"

    name = f"run --resume, {'three outputs' if more else 'JSON lines'}"
    return Case(name, before, act, "", holds, code=1)


def _trust_case(name: str, *words: str, before: tuple[tuple[str, ...], ...] = (_OTHER, _FLOOR)) -> Case:
    return Case(name, _trusting(*before), command("key", *words), TRUST, only_temporary)


def _install_case(name: str, before: tuple[str, ...], *words: str, repeats: bool = True) -> Case:
    return Case(name, _installed(*before), command(*words), STATE, a_whole_bundle, repeats=repeats)


ALL = (
    Case("a bundle written", lambda: None, _rewrite, "m.nnd", only_temporary),
    Case("a bundle written over another", lambda: _write("m.nnd", b"old"), _rewrite, "m.nnd", only_temporary),
    Case(
        "sign", _before_sign, command("sign", "m.nnd", "--key", "farm.key", "--release", "1.4.0"), "m.nnd",
        only_temporary,
    ),
    _trust_case("key trust, no store yet", "trust", "farm.pub", before=()),
    _trust_case("key trust", "trust", "farm.pub"),
    _trust_case("key revoke", "revoke", "other"),
    _trust_case("key floor", "floor", "faces", "1.4"),
    _install_case("install, the first", (), "install", "faces", "one.nnd"),
    _install_case("install, a third", ("one", "two"), "install", "faces", "three.nnd"),
    _install_case("rollback", ("one", "two"), "rollback", "faces", repeats=False),
    _stream(200),
    _stream(100, "--pipeline", "p.toml"),
)  # fmt: skip
