# SPDX-License-Identifier: Apache-2.0
"""The parameter of a step that names a folder: relative to the file of the pipeline, or to the bundle that carries it.

Law: a pipeline that came in a bundle names no folder but one beside that bundle.
"""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar, Self

from nndeploy.errors import DataError, MissingInputError, PolicyError, UsageError
from nndeploy.processors.parameters import FilesBeside, ReadFile


@dataclass(frozen=True, slots=True)
class ReadFolder:
    """A folder that files are read from."""

    written_as: ClassVar[str] = "the name of a folder"

    path: Path

    @classmethod
    def from_parameter(cls, value: object, read_file: ReadFile) -> Self:
        """Returns the folder of that name.

        Raises:
            DataError: it is no name of a folder.
            PolicyError: a bundle carries the table, and the folder does not stand beside it.
            MissingInputError: there is no such folder.
            UsageError: the table comes without a folder.
        """
        if not isinstance(value, str) or not value or "\0" in value:
            raise DataError(f"must be {cls.written_as}, is {value!r:.60}")
        if not isinstance(read_file, FilesBeside):
            raise UsageError(f"the folder {value!r:.60} cannot be found here", hint="write a pipeline into a file")
        named = PurePosixPath(value)
        if read_file.is_carried and (named.is_absolute() or ".." in named.parts):
            raise PolicyError(
                f"the folder {value!r:.60} lies elsewhere", hint="a bundle's pipeline names one that stands beside it"
            )
        path = read_file.folder / value
        if read_file.is_here and not path.is_dir():
            raise MissingInputError("no such folder", where=str(path))
        return cls(path)
