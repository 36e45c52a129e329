# SPDX-License-Identifier: Apache-2.0
"""Where the records of a pipeline come from: `kind` in its `[source]` says what the texts of `run --input` are.

Each kind gives fixed fields (see `FIELDS`), whatever the model wants; the steps of the pipeline make its inputs. What
is missing is found before anything runs; what is inside a file is read when its turn comes, by the loader that takes
it, so several read at once.

Law: every file, line or frame is one record, or one error, whatever is in it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, Literal, get_args

from nndeploy.errors import DataError, InputError, UsageError, did_you_mean
from nndeploy.files.image_files import SUFFIXES as IMAGE_SUFFIXES
from nndeploy.files.image_files import require_pillow
from nndeploy.files.whole_files import read_regular
from nndeploy.processors.wav_files import mono, sound_from_bytes
from nndeploy.stream.formats.json_lines import MAX_LINE_BYTES, object_from_line
from nndeploy.stream.formats.npz import read_npy_file, read_npz_file
from nndeploy.stream.items import Item
from nndeploy.stream.sources.input_paths import paths_from_texts
from nndeploy.stream.sources.line_items import ReadLine, items_of_each, items_of_line_file, items_of_lines
from nndeploy.stream.sources.sources import JSON_SUFFIXES, Source, source_of_files, to_read_again
from nndeploy.stream.sources.video_source import SUFFIXES as VIDEO_SUFFIXES
from nndeploy.stream.sources.video_source import frames_of, require_av
from nndeploy.values.types import TensorType, Value

SourceKind = Literal["files", "images", "video", "wav", "arrays", "json-lines", "lines"]

FIELDS: Mapping[str, tuple[str, ...] | None] = {
    "files": ("data",),
    "images": ("data",),
    "video": ("image", "frame", "seconds"),
    "wav": ("samples", "rate"),
    "arrays": None,
    "json-lines": None,
    "lines": ("text",),
}
"""The fields of a record of each kind; None where the files themselves name them (an .npy file's is `array`)."""

SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "files": (),
    "images": IMAGE_SUFFIXES,
    "video": VIDEO_SUFFIXES,
    "wav": (".wav",),
    "arrays": (".npz", ".npy"),
    "json-lines": JSON_SUFFIXES,
    "lines": (".txt",),
}
"""What is taken from a folder or glob."""

MAX_FILE_BYTES = 1 << 30


def record_source(kind: str, texts: Sequence[str], stdin: Callable[[], BinaryIO]) -> Source:
    """Returns the source of `kind` that the texts of `--input` describe; `-` is stdin, for lines alone.

    Raises:
        UsageError: the kind is unknown, or there is nothing to read, or stdin is no source of that kind.
        MissingInputError: a file or folder is missing, or a folder or glob holds nothing to read.
        UnavailableError: the kind needs a package that is not installed.
    """
    if kind not in FIELDS:
        raise UsageError(f"no source is of the kind {kind!r}", hint=did_you_mean(kind, get_args(SourceKind)))
    if not texts:
        raise UsageError("there is no input", hint="give --input")
    if "-" in texts:
        if len(texts) > 1 or kind not in ("json-lines", "lines"):
            raise UsageError("--input - goes alone, with json-lines or lines")
        return Source(items_of_lines(stdin(), "stdin", 0, line_reader(kind)), None, is_one=False)
    if kind == "images":
        require_pillow()
    if kind == "video":
        require_av()
    paths, passed_over = paths_from_texts(texts, SUFFIXES[kind])
    if kind in ("json-lines", "lines", "video"):
        return Source(_of_many(kind, paths), None, is_one=False, paths=to_read_again(paths), passed_over=passed_over)
    return source_of_files(_of_files(kind, paths), paths, texts, passed_over)


def _of_files(kind: str, paths: Sequence[Path]) -> list[Item]:
    load = {"files": _bytes, "images": _bytes, "wav": _sound, "arrays": _arrays}[kind]
    return [Item(i, str(path), path.stem, partial(load, path)) for i, path in enumerate(paths)]


def _of_many(kind: str, paths: Sequence[Path]) -> Iterator[Item]:
    """Yields the records of files that hold many each."""
    return items_of_each(paths, frames_of if kind == "video" else partial(items_of_line_file, read=line_reader(kind)))


def line_reader(kind: str) -> ReadLine:
    """Returns how a line of a source of JSON lines or texts is read."""
    return partial(object_from_line, allow_nan=False) if kind == "json-lines" else _text


def _bytes(path: Path) -> dict[str, Value]:
    return {"data": read_regular(path, MAX_FILE_BYTES)}


def _sound(path: Path) -> dict[str, Value]:
    try:
        sound = sound_from_bytes(read_regular(path, MAX_FILE_BYTES))
    except DataError as err:
        if str(path) not in err.where:
            err.within(str(path))
        raise
    return {"samples": mono(sound.samples), "rate": sound.rate_hz}


def _arrays(path: Path) -> dict[str, Value]:
    if path.suffix.lower() == ".npy":
        return {"array": read_npy_file(path, TensorType("float32", None))}
    return read_npz_file(path, {})


def _text(line: bytes | None) -> dict[str, Value]:
    if line is None:
        raise InputError(f"the line is longer than {MAX_LINE_BYTES} bytes")
    try:
        return {"text": line.decode("utf-8")}
    except UnicodeDecodeError as err:
        raise InputError(f"the line is not UTF-8: byte {err.start} is 0x{line[err.start]:02x}") from err
