# SPDX-License-Identifier: Apache-2.0
"""The installed bundles of a box: for each name one that is current, and the one before it.

    STORE/NAME/state.json          which is current, which was before, and why
    STORE/NAME/<sha256>.nnd        bundles, named by the SHA-256 of the whole file

Law: `state.json` is replaced in one step, and names whole and synced files alone, so after every failure, kill and loss
of power a name has the bundle that it had or the one that it was to get. One process changes a name at a time; those
that run it only read.
"""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nndeploy.errors import (
    BusyError,
    CannotCreateError,
    DataError,
    MissingInputError,
    UsageError,
    did_you_mean,
)
from nndeploy.files.account_folders import data_folder
from nndeploy.files.strict_json import canonical_json, parse_json
from nndeploy.files.whole_files import (
    TEMPORARY,
    let_go,
    make_folders,
    read_regular,
    replace_durably,
    sync_folder,
    wrapped_io,
)

if TYPE_CHECKING:
    from nndeploy.bundle.json_fields import Fields

STORE_VARIABLE = "NNDEPLOY_STORE"
MACHINE_STORE = Path("/var/lib/nndeploy")
FORMAT, VERSION = "nndeploy-installed", (1, 0)
MAX_STATE_BYTES = 1 << 20
STATE, INCOMING, LOCK, SUFFIX = "state.json", "incoming.nnd", "lock", ".nnd"
CACHE_SUFFIX = ".cache"
"""What follows the name of a bundle in that of the folder of kernels that were compiled for it on this machine."""
GONE = (0, 0)
"""The mark of a name that stands for nothing."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class Installed:
    """A bundle that is or was current: the SHA-256 of its file, its signed release ("" where none is), its source."""

    sha256: str
    release: str
    source: str


@dataclass(frozen=True, slots=True)
class State:
    """What a name stands for. `note` says why it went back, "" where it did not.

    `max_latency_ns` is what a call may take at most, 0 where nobody said.
    """

    current: Installed
    previous: Installed | None = None
    max_latency_ns: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Removed:
    """The bundles that were removed with a name, by SHA-256, the current one first, and the bytes that they took."""

    sha256: tuple[str, ...]
    freed_bytes: int


class BundleStore:
    """A folder of installed bundles."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def names(self) -> list[str]:
        """Returns the names that stand for a bundle, sorted."""
        try:
            found = [one.name for one in self.path.iterdir() if _NAME.fullmatch(one.name) and (one / STATE).exists()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as err:
            raise MissingInputError(f"the store cannot be read: {err.strerror}", where=str(self.path)) from err
        return sorted(found)

    def state(self, name: str) -> State:
        """Returns what a name stands for.

        Raises:
            MissingInputError: nothing is installed under it.
            DataError: its state is damaged.
        """
        path = self.path / check_name(name) / STATE
        try:
            return _from_json(read_regular(path, MAX_STATE_BYTES))
        except MissingInputError as err:
            if not isinstance(err.__cause__, FileNotFoundError | NotADirectoryError):
                raise  # it is there, and this account may not read it
            hint = did_you_mean(name, self.names()) or f"nndeploy install {name} BUNDLE"
            raise MissingInputError(f"nothing is installed as {name!r}", where=str(self.path), hint=hint) from err
        except DataError as err:
            err.within(str(path))
            raise

    def mark(self, name: str) -> tuple[int, int]:
        """Returns what changes when the state of a name is replaced; `GONE` where there is none."""
        try:
            found = (self.path / name / STATE).stat()
        except OSError:
            return GONE
        return (found.st_ino, found.st_mtime_ns)

    def bundle(self, name: str) -> Path:
        """Returns the path of the current bundle of a name; raises as `state` does."""
        return self.file(name, self.state(name).current)

    def file(self, name: str, one: Installed) -> Path:
        """Returns the path of a bundle."""
        return self.path / name / f"{one.sha256}{SUFFIX}"

    @contextlib.contextmanager
    def changing(self, name: str) -> Iterator[Path]:
        """Holds the lock of a name, whose folder is made; yields where a bundle may be put that is to be checked.

        A folder of a name that stands for nothing in the end is removed.

        Raises:
            BusyError: another process changes it.
            CannotCreateError: nothing can be created there.
        """
        folder = self.path / check_name(name)
        try:
            make_folders(folder)
            descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as err:
            raise CannotCreateError(f"cannot be changed: {err.strerror}", where=str(folder)) from err
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as err:
                raise BusyError(f"another process is changing {name!r}", where=str(folder), hint="try again") from err
            if not _is_still(descriptor, folder / LOCK):
                raise BusyError(f"another process has just changed {name!r}", where=str(folder), hint="try again")
            for left in folder.glob(f"{TEMPORARY}*"):  # of processes that were killed: nobody else writes here now
                with contextlib.suppress(OSError):
                    left.unlink()
            try:
                yield folder / INCOMING
            finally:
                with contextlib.suppress(OSError):
                    (folder / INCOMING).unlink(missing_ok=True)
                    if not (folder / STATE).exists() and {one.name for one in folder.iterdir()} == {LOCK}:
                        (folder / LOCK).unlink()
                        folder.rmdir()
        finally:
            let_go(descriptor)

    def take(self, name: str, incoming: Path, new: Installed, max_latency_ns: int) -> State:
        """Makes the bundle in the file `incoming` the current one of a name, which `changing` holds.

        Raises:
            InputOutputError: the disk is full or failed; what was current still is.
        """
        state = State(new, None, max_latency_ns)
        with wrapped_io(self.path / name):
            is_update = (self.path / name / STATE).exists()
        if is_update:  # one that is there and cannot be read ends this: what was before must not be forgotten
            old = self.state(name)
            state = replace(state, previous=old.previous if old.current.sha256 == new.sha256 else old.current)
        with wrapped_io(self.path / name):
            incoming.replace(self.file(name, new))
            sync_folder(self.path / name)
        self._write(name, state)
        return state

    def go_back(self, name: str, note: str = "", *, only_from: str = "") -> State:
        """Makes the bundle before the current one the current one again, and the other way round.

        With `only_from` nothing is changed where another bundle than that is current by now.

        Raises:
            MissingInputError: nothing is installed, or there is none before it.
            BusyError, CannotCreateError, InputOutputError: it cannot be changed.
        """
        with self.changing(name):
            state = self.state(name)
            if only_from and state.current.sha256 != only_from:
                return state
            if state.previous is None:
                raise MissingInputError(f"nothing was installed as {name!r} before", where=str(self.path))
            if not self.file(name, state.previous).exists():
                raise MissingInputError("its previous bundle is gone", where=str(self.file(name, state.previous)))
            back = State(state.previous, state.current, state.max_latency_ns, note)
            self._write(name, back)
            return back

    def remove(self, name: str) -> Removed:
        """Makes a name stand for nothing, then removes its bundles; programs that have them open go on.

        A call that was cut off leaves bundles without a name, which the next one removes.

        Raises:
            MissingInputError: nothing is installed under it.
            BusyError, CannotCreateError, InputOutputError: it cannot be changed.
        """
        folder = self.path / check_name(name)
        if not folder.exists():  # else what a call that was cut off left of it goes too
            self._check_there(name)
        with self.changing(name):
            first = self._check_there(name)
            bundles = sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: (path.stem != first, path.name))
            with wrapped_io(folder):
                (folder / STATE).unlink(missing_ok=True)
                sync_folder(folder)
                freed = sum(map(_remove_bundle, bundles))
            return Removed(tuple(path.stem for path in bundles), freed)

    def _check_there(self, name: str) -> str:
        """Returns the SHA-256 of the current bundle of a name, "" where its state is damaged or gone and others remain.

        Raises:
            MissingInputError: nothing is installed under it, and nothing is left of what was.
        """
        try:
            return self.state(name).current.sha256
        except DataError:
            return ""
        except MissingInputError:
            if any((self.path / name).glob(f"*{SUFFIX}")):
                return ""
            raise

    def _write(self, name: str, state: State) -> None:
        """Replaces the state of a name in one step, then removes the bundles that it no longer speaks of."""
        folder = self.path / name
        replace_durably(folder / STATE, canonical_json(_to_json(state)))
        kept = {f"{one.sha256}{SUFFIX}" for one in (state.current, state.previous) if one is not None}
        for path in folder.glob(f"*{SUFFIX}"):
            if path.name not in kept:
                with contextlib.suppress(OSError):
                    _remove_bundle(path)


def _remove_bundle(path: Path) -> int:
    """Removes a bundle and what was compiled for it on this machine; returns the bytes that both took."""
    cache = path.with_name(path.name + CACHE_SUFFIX)
    files = [path, *(one for one in cache.rglob("*") if one.is_file())]
    size_bytes = sum(one.lstat().st_size for one in files)
    shutil.rmtree(cache, ignore_errors=True)
    path.unlink()
    return size_bytes


def store_at(path: str | None) -> BundleStore:
    """Returns the store in a folder, or the one of this account; that of the machine for root."""
    named = path or os.environ.get(STORE_VARIABLE, "")
    if named:
        return BundleStore(Path(named))
    return BundleStore(MACHINE_STORE if os.geteuid() == 0 else data_folder() / "nndeploy" / "installed")


def name_of(path: Path) -> tuple[BundleStore, str] | None:
    """Returns the store and the name under which a bundle is installed, None where it is not."""
    folder = path.parent
    return (BundleStore(folder.parent), folder.name) if (folder / STATE).exists() else None


def followed_name(path: Path) -> tuple[BundleStore, str]:
    """Returns the store and the name of a bundle that is to be followed.

    Raises:
        UsageError: it is none of an installed bundle.
    """
    found = name_of(path)
    if found is None:
        raise UsageError("only installed bundles are followed", where=str(path), hint="name it NAME@")
    return found


def find_name(name: str) -> tuple[BundleStore, State]:
    """Returns what a name stands for in this account's store, or else the machine's; raises as `state` does.

    A store in a home that is closed to this process, as services have it, has no names; one that is there and cannot be
    read is an error.
    """
    own, machine = store_at(None), BundleStore(MACHINE_STORE)
    store = machine if own.mark(name) == GONE and name in machine.names() else own
    return store, store.state(name)


def _is_still(descriptor: int, path: Path) -> bool:
    """Returns whether an open file is the one that has its name: who held it before may have removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def check_name(name: str) -> str:
    """Returns the name of an installed bundle.

    Raises:
        UsageError: nothing can be called so.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r:.80} is not a valid bundle name", hint="1 to 64 of a-z, 0-9, '_', '.', '-', as in faces"
        )
    return name


def _to_json(state: State) -> dict[str, Any]:
    return {
        "current": _installed_to_json(state.current),
        "format": {"major": VERSION[0], "minor": VERSION[1], "name": FORMAT},
        "max_latency_ns": state.max_latency_ns,
        "note": state.note,
        "previous": None if state.previous is None else _installed_to_json(state.previous),
    }


def _installed_to_json(one: Installed) -> dict[str, Any]:
    return {"release": one.release, "sha256": one.sha256, "source": one.source}


def _from_json(text: bytes) -> State:
    from nndeploy.bundle.json_fields import Fields, minor_version  # numpy comes with it; a press of TAB asks for names

    data = parse_json(text, MAX_STATE_BYTES)
    fields = Fields(data, "", ignore_unknown=minor_version(data, FORMAT, VERSION) > VERSION[1])
    fields.take("format")
    current = _installed(fields.fields("current"))
    previous = None if fields.is_null("previous") else _installed(fields.fields("previous"))
    state = State(current, previous, fields.integer("max_latency_ns"), fields.text("note"))
    fields.end()
    return state


def _installed(fields: "Fields") -> Installed:
    found = Installed(fields.sha256("sha256"), fields.text("release"), fields.text("source"))
    fields.end()
    return found
