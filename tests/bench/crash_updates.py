# SPDX-License-Identifier: Apache-2.0
"""Cases of crashes: bundles are pulled, installed, followed and rolled back; a name always stands for a whole one."""

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from crash_case import STORE, Case, Content, command, is_temporary, only_temporary, say, write_bundle

STATE = "store/faces/state.json"
REGISTRY = "NNDEPLOY_BENCH_REGISTRY"
"""The variable with the reference into the registry, without the tag."""
SOURCES = ("one", "two", "three")
NUM_ROUNDS = 3


def _installed(*sources: str) -> Callable[[], None]:
    def before() -> None:
        for name in SOURCES:
            write_bundle(f"{name}.nnd", name.encode())
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
    releases = {f"{hashlib.sha256(Path(f'{name}.nnd').read_bytes()).hexdigest()}.nnd" for name in SOURCES}
    known = {Path(name).name for name in {*old, *new}} | named | releases | {"incoming.nnd"}  # the next update sweeps
    left = {name for name in now if Path(name).name not in known and not is_temporary(name)}
    assert not left, f"left behind: {left}"


def _a_whole_bundle_or_none(old: Content, new: Content, now: Content) -> None:
    """Checks that a name that is there stands for a whole bundle; of one that is gone, the next call takes the rest."""
    if STATE in now:
        a_whole_bundle(old, new, now)
    else:
        only_temporary(old, new, now)


# ---- a registry, in a process that nothing happens to


@contextlib.contextmanager
def _registry() -> Iterator[None]:
    from registry_server import RegistryServer

    server = RegistryServer()
    told, tell = os.pipe()
    hold, held = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(held)
            with server:
                os.write(tell, server.reference("").encode())
                os.read(hold, 1)  # until whoever asked for it is gone
        finally:
            os._exit(0)
    os.environ[REGISTRY] = os.read(told, 1000).decode()
    try:
        yield
    finally:
        for end in (told, tell, hold, held):
            os.close(end)
        os.waitpid(child, 0)


def _pushed(*installed: str) -> Callable[[], None]:
    def before() -> None:
        _installed(*installed)()
        for name in SOURCES:
            say("push", f"{name}.nnd", f"{os.environ[REGISTRY]}:{name}")

    return before


def _at_once() -> None:
    from nndeploy.registry import connection

    patched: Any = connection
    patched.FIRST_WAIT_SECONDS = 0.0


def _pulled() -> int:
    _at_once()
    return command("pull", f"{os.environ[REGISTRY]}:two", "-o", "m.nnd")()


def _pushed_over() -> None:
    _pushed()()
    write_bundle("m.nnd", b"one")


def _push() -> int:
    _at_once()
    return command("push", "three.nnd", f"{os.environ[REGISTRY]}:three")()


def _install_pulled() -> int:
    _at_once()
    return command("install", "faces", f"{os.environ[REGISTRY]}:three")()


# ---- a program that follows its name


class _Broken:
    def __init__(self, program: Any) -> None:
        self._program = program
        self.manifest = program.manifest
        self.path = program.path

    def run(self, _: Mapping[str, object]) -> Any:
        from nndeploy.errors import DataError

        raise DataError("broken")

    def close(self) -> None:
        self._program.close()


def _follow() -> int:
    """Follows a name to a bundle that fails on its first record, and back to the one before."""
    import numpy as np

    from nndeploy.errors import NndeployError
    from nndeploy.installed import followed
    from nndeploy.installed.bundle_store import BundleStore
    from nndeploy.runtime.program import load_bundle

    patched: Any = followed
    patched.LOOK_SECONDS = 0.0
    store, record = BundleStore(STORE), {"image": np.ones((2, 3), np.float32)}
    try:
        first = store.state("faces").current
        opened: Any = lambda path: _Broken(load_bundle(path))  # noqa: E731
        program = followed.FollowedProgram(load_bundle(store.file("faces", first)), opened, lambda _: None)
        with contextlib.closing(program):
            code = command("install", "faces", "two.nnd")()
            if code:
                return code
            program.run(record)  # begins to open the new one
            while program._loader is not None:
                time.sleep(0.001)
            assert program.run(record)["y"].tolist() == [[2, 2, 2]] * 2, "a record is lost"
            return 0 if store.state("faces").current == first else 74
    except NndeployError as err:
        return err.exit_code


# ---- a box that is updated again and again


def _updates() -> int:
    _at_once()
    for _ in range(NUM_ROUNDS):
        for words in (
            ("install", "faces", "two.nnd"),
            ("install", "faces", f"{os.environ[REGISTRY]}:three"),
            ("rollback", "faces"),
            ("pull", f"{os.environ[REGISTRY]}:one", "-o", "pulled.nnd"),
            ("install", "faces", "pulled.nnd"),
        ):
            say(*words)
    return 0


def _install_case(name: str, before: Callable[[], None], *words: str, repeats: bool = True) -> Case:
    return Case(name, before, command(*words), STATE, a_whole_bundle, repeats=repeats)


_AGAIN = command("install", "faces", "two.nnd")

ALL = (
    Case("pull", _pushed(), _pulled, "m.nnd", only_temporary, beside=_registry),
    Case("pull over another", _pushed_over, _pulled, "m.nnd", only_temporary, beside=_registry),
    Case("push", _pushed(), _push, "", only_temporary, beside=_registry),
    _install_case("install, the first", _installed(), "install", "faces", "one.nnd"),
    _install_case("install, a second", _installed("one"), "install", "faces", "two.nnd"),
    _install_case("install, a third", _installed("one", "two"), "install", "faces", "three.nnd"),
    Case(
        "install from a registry", _pushed("one", "two"), _install_pulled, STATE, a_whole_bundle, beside=_registry
    ),
    _install_case("rollback", _installed("one", "two"), "rollback", "faces", repeats=False),
    Case(
        "uninstall", _installed("one", "two"), command("uninstall", "faces"), STATE, _a_whole_bundle_or_none,
        then_codes=(0, 66),
    ),
    Case("follow, and back", _installed("one"), _follow, "", a_whole_bundle, repeats=False, then=_AGAIN),
    Case(
        f"{5 * NUM_ROUNDS} updates in a row", _pushed("one"), _updates, "", a_whole_bundle, repeats=False, then=_AGAIN,
        beside=_registry, is_failed=False,
    ),
)  # fmt: skip
