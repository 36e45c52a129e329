# SPDX-License-Identifier: Apache-2.0
"""A file that another process writes, where this one must not let it write: into a folder of its own beside the place.

    <folder>/.nndeploy-out-<random>.held/<name>   ->   <folder>/<name>      one rename, when all is done

In comes the place of a file. What the other process left there is moved to it, if it is a regular file of ours; the
folder goes in any case, and one that a kill left goes with the next that is made there. This process finds the file by
the folder that it holds open, so whoever may rename folders there puts no other file in its place.
"""

import stat
from pathlib import Path
from types import TracebackType

from nndeploy.errors import CannotCreateError, InputOutputError, PolicyError
from nndeploy.files.held_folder import HIDDEN, HeldFolder
from nndeploy.files.whole_files import sync_folder


class HandedFile:
    """A place inside a `with` block for another process to write to; `deliver` moves what is there to its own.

    The other process writes to `path`, this one reads from `own_path`.
    """

    def __init__(self, place: Path) -> None:
        """Makes the folder beside `place`.

        Raises:
            CannotCreateError: none can be made there.
        """
        self._place = place
        try:
            self._folder = HeldFolder("out", str(place.parent), HIDDEN)
        except OSError as err:
            raise CannotCreateError(f"cannot be created: {err.strerror}", where=str(place)) from err
        self.folder = str(self._folder.path)
        self.path = self._folder.path / place.name
        self.own_path = Path(f"/proc/self/fd/{self._folder.descriptor}") / place.name

    def __enter__(self) -> "HandedFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.close()

    def own_names(self, text: str) -> str:
        """Returns a text of the other process with the places that it knows as the user knows them."""
        return text.replace(self.folder, str(self._place.parent))

    def check(self) -> bool:
        """Returns whether a file is there; the process that writes it has ended.

        Raises:
            PolicyError: what is there is no file of its own.
        """
        try:
            found = self.own_path.lstat()
        except FileNotFoundError:
            return False
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or stat.S_IMODE(found.st_mode) > 0o777:
            raise PolicyError("the process that was to write it left something else", where=str(self._place))
        return True

    def deliver(self) -> None:
        """Moves the file that is there to its place, in place of an older one; nothing where none is.

        Raises:
            PolicyError: what is there is no file of its own.
            InputOutputError: it cannot be moved.
        """
        if not self.check():
            return
        try:
            self.own_path.replace(self._place)
            sync_folder(self._place.parent)
        except OSError as err:
            raise InputOutputError(f"cannot be written: {err.strerror}", where=str(self._place)) from err
