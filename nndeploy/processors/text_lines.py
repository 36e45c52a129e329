# SPDX-License-Identifier: Apache-2.0
"""Parameters that are lists of texts: class names, the characters that a recogniser knows.

In TOML they are a list, or the name of a UTF-8 file with one text a line. Such files may have been written by anybody.

Law: line n of a file is text n; nothing is stripped but the end of the line, so a line may be one space.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

from nndeploy.errors import DataError
from nndeploy.processors.parameters import ReadFile

MAX_FILE_BYTES = 16 << 20
MAX_LINES = 1 << 20
MAX_LINE_LENGTH = 1000
BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class TextLines:
    """Texts by number."""

    written_as: ClassVar[str] = "the name of a file with one text a line, or a list of texts"

    texts: tuple[str, ...]

    @classmethod
    def from_parameter(cls, value: object, read_file: ReadFile) -> Self:
        """Returns the texts that a list holds, or the file of that name.

        Raises:
            DataError: it is neither, or the file is no UTF-8 text of that kind.
        """
        if isinstance(value, str):
            try:
                return cls(_texts_from_bytes(read_file(value)))
            except DataError as err:
                if value not in err.where:
                    err.within(value)
                raise
        if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
            return cls(tuple(value))
        raise DataError(f"must be {cls.written_as}, is {value!r:.60}")

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> str:
        """Returns text `index`, or the number itself where there is none."""
        return self.texts[index] if 0 <= index < len(self.texts) else str(index)


def _texts_from_bytes(data: bytes) -> tuple[str, ...]:
    if len(data) > MAX_FILE_BYTES:
        raise DataError(f"has {len(data)} bytes, more than {MAX_FILE_BYTES}")
    try:
        text = data.decode("utf-8").removeprefix(BOM)
    except UnicodeDecodeError as err:
        raise DataError(f"is not UTF-8: byte {err.start} is 0x{data[err.start]:02x}") from err
    lines = text.removesuffix("\n").split("\n")
    if lines == [""]:
        raise DataError("is empty")
    if len(lines) > MAX_LINES:
        raise DataError(f"has {len(lines)} lines, more than {MAX_LINES}")
    texts = tuple(line.removesuffix("\r") for line in lines)
    for number, line in enumerate(texts, 1):
        if not line or len(line) > MAX_LINE_LENGTH:
            what = "is empty" if not line else f"has {len(line)} characters, more than {MAX_LINE_LENGTH}"
            raise DataError(f"line {number} {what}")
    return texts
