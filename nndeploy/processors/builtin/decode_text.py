# SPDX-License-Identifier: Apache-2.0
"""decode-text: the bytes of a UTF-8 file -> the text."""

from dataclasses import dataclass
from typing import ClassVar

from nndeploy.errors import InputError
from nndeploy.processors.text_lines import BOM


@dataclass(frozen=True)
class DecodeText:
    """Decodes the bytes of a UTF-8 file, without a byte order mark; with `strip` also without white space around it."""

    name: ClassVar[str] = "decode-text"
    takes: ClassVar[tuple[str, ...]] = ("data",)
    gives: ClassVar[tuple[str, ...]] = ("text",)

    strip: bool = False

    def __call__(self, data: bytes) -> str:
        """Returns the text.

        Raises:
            InputError: the bytes are no UTF-8.
        """
        if not isinstance(data, bytes):
            raise InputError(f"data must be bytes, this is a {type(data).__name__}")
        try:
            text = data.decode("utf-8").removeprefix(BOM)
        except UnicodeDecodeError as err:
            raise InputError(f"the text is not UTF-8: byte {err.start} is 0x{data[err.start]:02x}") from err
        return text.strip() if self.strip else text
