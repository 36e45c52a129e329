# SPDX-License-Identifier: Apache-2.0
"""Lets a model go over to the bundle that becomes current under its installed name.

The name's state is looked at a few times a second; a new bundle is loaded and checked by a thread of this, beside the
calls that go on. One that cannot be loaded, or whose goldens are wrong, is told once and left; the old one stays.
"""

import threading
from pathlib import Path

from nndeploy.errors import NndeployError
from nndeploy.installed.bundle_store import GONE, State, followed_name, name_of
from nndeploy.serve.infer_request import Say
from nndeploy.serve.served_model import ServedModel

LOOK_SECONDS = 0.25


class InstalledName:
    """Follows one name from `start` to `close`."""

    def __init__(self, model: ServedModel, path: Path, say: Say) -> None:
        """Takes a model whose bundle is at a path.

        Raises:
            UsageError: it is none of an installed bundle.
        """
        self._model, self._say = model, say
        self._store, self._name = followed_name(path)
        self._mark: tuple[int, int] | None = None
        self._sha256 = path.stem  # of the bundle that answers
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"nndeploy follow {self._name}", daemon=True)

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def close(self) -> None:
        """Looks no more; a bundle that is being loaded is not waited for."""
        self._is_over.set()

    def look(self) -> None:
        """Goes over to the bundle that is current, where it is another one than when this was last called."""
        mark = self._store.mark(self._name)
        if mark == self._mark:
            return
        self._mark = mark
        if mark == GONE:
            self._say(f"{self._name}@ was uninstalled; its bundle is served until this service ends")
            return
        try:
            state = self._store.state(self._name)
            if state.current.sha256 != self._sha256:
                self._model.replace(self._store.file(self._name, state.current), version_of(state))
                self._sha256 = state.current.sha256
                self._say(f"{self._name}@ switched to {version_of(state)}")
        except NndeployError as err:
            self._say(f"{self._name}@ was not switched to its new version: {err}")

    def _work(self) -> None:
        while not self._is_over.wait(LOOK_SECONDS):
            self.look()


def followed_path(path: Path) -> Path:
    """Returns the path of a bundle that is followed: where it was updated away, that of the one that is current.

    Raises:
        MissingInputError, DataError: nothing is installed under its name any more, or its state is damaged.
    """
    if path.exists():
        return path
    store, name = followed_name(path)
    return store.bundle(name)


def version_of(state: State) -> str:
    """Returns the version of an installed bundle as clients see it: its signed release, else how its SHA-256 begins."""
    return state.current.release or f"{state.current.sha256:.12}"


def version_at(path: Path) -> str:
    """Returns the version of a bundle as clients see it: as above where it is installed, else "1".

    Raises:
        DataError: the state of its name is damaged.
    """
    installed = name_of(path)
    if installed is None:
        return "1"
    store, name = installed
    state = store.state(name)
    return version_of(state) if state.current.sha256 == path.stem else f"{path.stem:.12}"
