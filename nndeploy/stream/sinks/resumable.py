# SPDX-License-Identifier: Apache-2.0
"""What `run --resume` cuts back to a checkpoint, and the file that grows; the protocol is in resume.py.

A sink of one file takes it from `output_file`: one that is only there at the end, or one that grows and is resumed.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeAlias

from nndeploy.errors import CannotCreateError, DataError
from nndeploy.files.named_outputs import ClaimedFile, PipedFile, new_output
from nndeploy.files.whole_files import open_growing, sync_folder, wrapped_io


class Resumable(Protocol):
    """An output that can be cut back to a checkpoint. `resume` or `finish_again` comes before all else."""

    def resume(self, state: Mapping[str, Any]) -> None:
        """Cuts the output back to a state that `checkpoint` returned; an empty one is the beginning.

        Raises:
            DataError: the output is not what the state says.
        """

    def checkpoint(self) -> Mapping[str, Any]:
        """Forces what was written to the disk, and returns what `resume` needs, as plain data.

        Raises:
            InputOutputError: it could not be forced.
        """

    def finish_again(self, state: Mapping[str, Any]) -> None:
        """Does what is left of `finish` after a kill in the middle of it; `state` is the last one.

        Raises:
            DataError: the output is not what the state says.
        """


Resumables: TypeAlias = list[Resumable]
"""Takes the outputs that are made so that they may be resumed; None in its place: they are not."""


class GrowingFile:
    """A file that grows as `NAME.part` and may be resumed; `finish` gives it its name."""

    def __init__(self, path: Path, head: bytes = b"") -> None:
        """Opens the file that grows; it will begin with `head`.

        Raises:
            CannotCreateError: it cannot be made.
        """
        self._claim = new_output(path)
        self.path = path = self._claim.path
        self._head = head
        self._part = path.with_name(f"{path.name}.part")
        try:
            self.file: BinaryIO = os.fdopen(open_growing(self._part), "r+b")
        except OSError as err:
            self._claim.discard()
            raise CannotCreateError(f"cannot be created: {err.strerror}", where=str(self._part)) from err

    def resume(self, state: Mapping[str, Any]) -> None:
        """Cuts the file back to the bytes of a checkpoint, or begins it.

        Raises:
            DataError: it is shorter than that.
        """
        num_bytes = int(state.get("bytes", 0))
        with wrapped_io(self._part):
            if self.file.seek(0, os.SEEK_END) < num_bytes:
                raise self._too_short(num_bytes)
            self.file.truncate(num_bytes)
            self.file.seek(num_bytes)
            if not num_bytes:
                self.file.write(self._head)
            sync_folder(self._part.parent)  # a journal that counts its bytes is of no use where its name is gone

    def checkpoint(self) -> Mapping[str, Any]:
        """Forces what was written to the disk."""
        with wrapped_io(self._part):
            self.file.flush()
            os.fsync(self.file.fileno())
            return {"bytes": self.file.tell()}

    def finish(self) -> None:
        """Gives the file its name."""
        self.checkpoint()
        with wrapped_io(self.path):
            self.file.close()
            self._part.replace(self.path)
            sync_folder(self.path.parent)
        self._claim.discard()

    def finish_again(self, state: Mapping[str, Any]) -> None:
        """Gives the file its name, unless it has it; then what opening it again made goes.

        Raises:
            DataError: under neither name is it as long as the state says.
        """
        num_bytes = int(state["bytes"])
        if _num_bytes(self._part) == num_bytes:
            self.finish()
        elif _num_bytes(self.path) == num_bytes:
            with wrapped_io(self._part):
                self.file.close()
                self._part.unlink()
            self._claim.discard()
        else:
            raise self._too_short(num_bytes)

    def discard(self) -> None:
        """Keeps the file for a run that goes on; an empty one is no use to it."""
        with contextlib.suppress(OSError):  # the disk may be full; what was buffered is not durable anyway
            self.file.close()
        if _num_bytes(self._part) == 0:
            with contextlib.suppress(OSError):
                self._part.unlink()
        self._claim.discard()

    def _too_short(self, num_bytes: int) -> DataError:
        return DataError(
            f"has {_num_bytes(self._part)} bytes, but {num_bytes} were written",
            where=str(self._part), hint="remove its .resume file to start again",
        )  # fmt: skip


def _num_bytes(path: Path) -> int | None:
    """Returns the size of a file, None where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return None


def output_file(
    path: Path, resumables: Resumables | None, head: bytes = b""
) -> "ClaimedFile | PipedFile | GrowingFile":
    """Returns a file of lines that gets its name when it is finished and begins with `head`, or a pipe.

    With `resumables` it is one that grows and may be resumed, and is appended to them.

    Raises:
        CannotCreateError: it cannot be made.
        BusyError: another run writes it.
    """
    if resumables is not None:
        resumables.append(growing := GrowingFile(path, head))
        return growing
    new = new_output(path, at_once=True)
    with wrapped_io(path):
        new.file.write(head)
    return new
