# SPDX-License-Identifier: Apache-2.0
"""Images that a pipeline made, one file each in a folder: `<index>_<stem>.png`, or `.jpg`.

The field holds an image, the bytes of an encoded one (so that the workers encode, not the sink), or a list of either:
then the files are `<index>_<stem>_<number>.png`. A record that failed is `<index>_<stem>.error.json`.

Law: a file appears whole or not at all; no input chooses its name beyond a cleaned stem.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from nndeploy.errors import DataError
from nndeploy.processors.arrays import image_from_value
from nndeploy.processors.image_files import ImageFormat, bytes_from_pixels, require_pillow
from nndeploy.stream.files import OutputFolder, safe_stem
from nndeploy.stream.items import Outcome
from nndeploy.stream.json_lines import error_record
from nndeploy.value_types import Value

SUFFIXES: Mapping[ImageFormat, str] = {"png": ".png", "jpeg": ".jpg"}
MAGIC = {b"\x89PNG\r\n\x1a\n": ".png", b"\xff\xd8\xff": ".jpg"}


class ImageSink:
    """A folder with one image a record, or several."""

    def __init__(self, path: Path, field: str = "image", kind: ImageFormat = "png", quality: int = 90) -> None:
        """Opens or makes the folder.

        Raises:
            CannotCreateError: it cannot be made or written to.
            UnavailableError: Pillow is not installed.
        """
        require_pillow()
        self._field = field
        self._kind: ImageFormat = kind
        self._quality = quality
        self._folder = OutputFolder(path)
        self._folder.create("probe").discard()

    def write(self, outcome: Outcome) -> None:
        """Writes the images of one record, or its error, and removes what an earlier run left of the other kind."""
        name = f"{outcome.index:06d}_{safe_stem(outcome.stem)}"
        if outcome.outputs is None:
            record = {"index": outcome.index, "origin": outcome.origin, "error": error_record(outcome)}
            line = (json.dumps(record) + "\n").encode("ascii")
            self._folder.write(f"{name}.error.json", lambda file: file.write(line))
            for suffix in SUFFIXES.values():
                self._folder.remove(f"{name}{suffix}")
            return
        value = _value(outcome.outputs, self._field)
        if isinstance(value, list | tuple):
            for number, element in enumerate(value):
                self._write(f"{name}_{number}", element)
        else:
            self._write(name, value)
        self._folder.remove(f"{name}.error.json")

    def finish(self) -> None:
        """Lets go of the folder."""
        self._folder.close()

    def discard(self) -> None:
        """Lets go of the folder; every file in it is whole."""
        self._folder.close()

    def _write(self, name: str, value: Value) -> None:
        data, suffix = self._encoded(value)
        self._folder.write(name + suffix, lambda file: file.write(data))

    def _encoded(self, value: Value) -> tuple[bytes, str]:
        if not isinstance(value, bytes):
            return bytes_from_pixels(image_from_value(value), self._kind, self._quality), SUFFIXES[self._kind]
        for magic, suffix in MAGIC.items():
            if value.startswith(magic):
                return value, suffix
        raise DataError(f"the field {self._field!r} holds bytes that are no PNG or JPEG")


def _value(fields: Mapping[str, Value], name: str) -> Value:
    if name not in fields:
        raise DataError(f"the record has no field {name!r}", where="sink of images")
    return fields[name]
