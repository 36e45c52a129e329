# SPDX-License-Identifier: Apache-2.0
"""read: the name of a file -> its bytes, from below one folder and from nowhere else."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from nndeploy.errors import InputError
from nndeploy.files.confined_file import read_confined
from nndeploy.processors.parameters import Range
from nndeploy.processors.read_folder import ReadFolder


@dataclass(frozen=True)
class Read:
    """Reads the file that a field of the record names, below `folder`; a larger one than `max-bytes` is refused.

    The folder is relative to the pipeline's file, or to the bundle that carries it. Names are relative to the folder,
    with `/` between their parts. What leads out of it is refused: absolute names, `..`, links at any place; and so is
    what is not a regular file.
    """

    name: ClassVar[str] = "read"
    takes: ClassVar[tuple[str, ...]] = ("name",)
    gives: ClassVar[tuple[str, ...]] = ("data",)

    folder: ReadFolder
    max_bytes: Annotated[int, Range(1, 1 << 31)] = 1 << 28

    def __call__(self, name: object) -> bytes:
        """Returns the bytes.

        Raises:
            InputError: the name is no text, is outside the folder, or names no regular file of that size.
            MissingInputError: there is no such file.
        """
        if not isinstance(name, str):
            raise InputError(f"the name of a file is a text, this is a {type(name).__name__}")
        return read_confined(self.folder.path, name, self.max_bytes)
