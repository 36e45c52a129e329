# SPDX-License-Identifier: Apache-2.0
"""Images that a pipeline made, one file each in a folder: `<index>_<stem>.png`, or `.jpg`.

The field holds an image, the bytes of an encoded one (so that the workers encode, not the sink), or a list of either:
then the files are `<index>_<stem>_<number>.png`. A record that failed is `<index>_<stem>.error.json`.

Law: a file appears whole or not at all; no input chooses its name beyond a cleaned stem.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, ClassVar

from nndeploy.errors import DataError
from nndeploy.files.image_files import ImageFormat, bytes_from_pixels, require_pillow
from nndeploy.processors.arrays import image_from_value
from nndeploy.stream.sinks.resumable import Resumables
from nndeploy.stream.sinks.sinks import FolderSink
from nndeploy.values.types import Value

SUFFIX_OF: Mapping[ImageFormat, str] = {"png": ".png", "jpeg": ".jpg"}
MAGIC = {b"\x89PNG\r\n\x1a\n": ".png", b"\xff\xd8\xff": ".jpg"}


class ImageSink(FolderSink):
    """A folder with one image a record, or several."""

    SUFFIXES: ClassVar[tuple[str, ...]] = tuple(SUFFIX_OF.values())

    def __init__(
        self,
        path: Path,
        field: str = "image",
        kind: ImageFormat = "png",
        quality: int = 90,
        resumables: Resumables | None = None,
    ) -> None:
        """Opens or makes the folder; with `resumables` it may be resumed, and is appended to them.

        Raises:
            CannotCreateError: it cannot be made or written to.
            UnavailableError: Pillow is not installed.
        """
        require_pillow()
        self._field = field
        self._kind: ImageFormat = kind
        self._quality = quality
        super().__init__(path, resumables)

    def _files(self, outputs: Mapping[str, Value]) -> Iterator[tuple[str, Callable[[BinaryIO], object]]]:
        value = _value(outputs, self._field)
        elements = enumerate(value) if isinstance(value, list | tuple) else [("", value)]
        for number, element in elements:
            data, suffix = self._encoded(element)
            yield f"_{number}{suffix}" if number != "" else suffix, _writer(data)

    def _encoded(self, value: Value) -> tuple[bytes, str]:
        if not isinstance(value, bytes):
            return bytes_from_pixels(image_from_value(value), self._kind, self._quality), SUFFIX_OF[self._kind]
        for magic, suffix in MAGIC.items():
            if value.startswith(magic):
                return value, suffix
        raise DataError(f"the field {self._field!r} holds bytes that are no PNG or JPEG")


def _value(fields: Mapping[str, Value], name: str) -> Value:
    if name not in fields:
        raise DataError(f"the record has no field {name!r}", where="sink of images")
    return fields[name]


def _writer(data: bytes) -> Callable[[BinaryIO], object]:
    return lambda file: file.write(data)
