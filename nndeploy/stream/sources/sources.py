# SPDX-License-Identifier: Apache-2.0
"""Where the items of a stream come from: the texts of `run --input` become a source.

A text is `-` (JSON lines on stdin), `NAME=@FILE` (one named input), `NAME=NUMBERS` (JSON), a file (.npz, .npy, .jsonl,
an image), a folder, a glob, or a pipe, of which the first bytes tell what comes where its name does not. Named inputs
make one item together; everything else is one item a file or line, in the order given, folders and globs sorted as
people count (a2 before a10).

What is missing is found before anything runs; what is inside a file is read when its turn comes.
"""

import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from nndeploy.bundle.manifest import Manifest
from nndeploy.errors import InputError, MissingInputError, UsageError, did_you_mean
from nndeploy.files.image_files import HEADS as IMAGE_HEADS
from nndeploy.files.whole_files import NamedPipe
from nndeploy.runtime.plain_data import value_from_plain
from nndeploy.stream.formats.images import SUFFIXES as IMAGE_SUFFIXES
from nndeploy.stream.formats.images import read_image, require_pillow
from nndeploy.stream.formats.json_lines import data_from_json, values_from_line
from nndeploy.stream.formats.npz import read_npy_file, read_npz_file
from nndeploy.stream.items import Item
from nndeploy.stream.sources.input_paths import named as named_path
from nndeploy.stream.sources.input_paths import paths_from_texts
from nndeploy.stream.sources.line_items import items_of_each, items_of_line_file, items_of_lines
from nndeploy.stream.sources.live_bytes import FifoInput
from nndeploy.stream.sources.readers import Readers, SourceFigures
from nndeploy.stream.stopping import Stop
from nndeploy.values.types import TensorType, Value, ValueType

JSON_SUFFIXES = (".jsonl", ".ndjson")
SUFFIXES = (".npz", ".npy", *IMAGE_SUFFIXES)
"""What is taken from a folder; other files in it are passed over."""
HEADS = {b"\x93NUMPY": ".npy", b"PK\3\4": ".npz", **IMAGE_HEADS}
HEAD_BYTES = max(map(len, HEADS))


@dataclass(frozen=True, slots=True)
class Source:
    """The items of a stream. `num_items` is None where it is not known before the end.

    `is_one` says that the user named one single item: its error is the error of the whole call. `paths` are the files
    that the items come from; None where they cannot be read again. One that `is_live` has no end that could be waited
    for: a camera, a socket, a file that grows.
    """

    items: Iterable[Item]
    num_items: int | None
    is_one: bool
    paths: tuple[Path, ...] | None = None
    readers: Readers | None = None
    """The threads that read, where these are not the stream's own."""
    is_live: bool = False
    passed_over: Counter[str] = field(default_factory=Counter)
    """How many files of folders and globs were not taken, by suffix."""

    def figures(self) -> list[SourceFigures]:
        """Returns what the sources did that have threads of their own."""
        return self.readers.figures() if self.readers is not None else []

    def close(self) -> None:
        """Ends the threads that read."""
        if self.readers is not None:
            self.readers.close()


def source_from_texts(
    texts: Sequence[str],
    manifest: Manifest,
    stdin: Callable[[], BinaryIO],
    *,
    allow_nan: bool = False,
    stop: Stop | None = None,
) -> Source:
    """Returns the source that the texts of `--input` describe; `stdin` gives the standard input when it is asked for.

    Waiting for a pipe ends where `stop` is asked for.

    Raises:
        UsageError: a text has no meaning, or they do not go together.
        MissingInputError: a file or folder is missing, or a folder or glob holds nothing to read.
        UnavailableError: images need a package that is not installed.
    """
    reader = _Reader(manifest, allow_nan, stop or Stop())
    named = {name: rest for name, rest in map(reader.split_name, texts) if name}
    if named:
        if len(named) != len(texts):
            raise UsageError("NAME=... names one input of one item; it goes with other NAME=... alone, each once")
        paths = [named_path(Path(text[1:])) for text in named.values() if text.startswith("@")]
        return Source([reader.named_item(named)], 1, is_one=True, paths=to_read_again(paths))
    if "-" in texts:
        if len(texts) > 1:
            raise UsageError("--input - takes everything from stdin; it goes with no other --input")
        return Source(items_of_lines(stdin(), "stdin", 0, reader.values_of_line), None, is_one=False)
    return _source_from_paths(texts, reader)


def source_of_files(
    items: Sequence[Item], paths: Sequence[Path], texts: Sequence[str], passed_over: Counter[str]
) -> Source:
    """Returns the source of items that are one file each; `texts` are what the user called the files."""
    is_one = len(paths) == 1 and str(paths[0]) == str(Path(texts[0]))
    return Source(items, len(items), is_one, to_read_again(paths), passed_over=passed_over)


def to_read_again(paths: Sequence[Path]) -> tuple[Path, ...] | None:
    """Returns the paths, None where one is a pipe, which can be read once."""
    return None if any(isinstance(path, NamedPipe) for path in paths) else tuple(paths)


def _source_from_paths(texts: Sequence[str], reader: "_Reader") -> Source:
    paths, passed_over = paths_from_texts(texts, SUFFIXES, JSON_SUFFIXES)
    for path in paths:
        reader.check_kind(path)
    if all(path.suffix.lower() in SUFFIXES for path in paths):
        return source_of_files([reader.file_item(i, path) for i, path in enumerate(paths)], paths, texts, passed_over)
    items = items_of_each(paths, reader.items_of)
    return Source(items, None, is_one=False, paths=to_read_again(paths), passed_over=passed_over)


def suffix_of(head: bytes) -> str:
    """Returns the suffix that files with such first bytes have, "" where none is known."""
    return next((suffix for known, suffix in HEADS.items() if head.startswith(known)), "")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, or not a path at all
        return False


class _Reader:
    """Makes items of files and lines, for the inputs of one program."""

    def __init__(self, manifest: Manifest, allow_nan: bool, stop: Stop) -> None:
        self._types: dict[str, ValueType] = {item.name: item.type for item in manifest.inputs}
        self._image = manifest.image_input
        self._allow_nan = allow_nan
        self._stop = stop

    def split_name(self, text: str) -> tuple[str, str]:
        """Returns ("x", "@a.npy") for "x=@a.npy", and ("", text) for what names no input."""
        name, equals, rest = text.partition("=@")
        if equals:
            rest = f"@{rest}"
        else:
            name, equals, rest = text.partition("=")
        if not equals or (name not in self._types and _exists(Path(text))):
            return "", text
        if name not in self._types:
            raise UsageError(f"no input is named {name!r}", hint=did_you_mean(name, self._types))
        return name, rest

    def named_item(self, texts: Mapping[str, str]) -> Item:
        """Returns the one item that is put together from named inputs."""
        for name, text in texts.items():
            if text.startswith("@"):
                self._check_named_file(name, named_path(Path(text[1:])))
        stem = next((Path(text[1:]).stem for text in texts.values() if text.startswith("@")), "item")
        load = {name: self._loader(name, text) for name, text in texts.items()}
        return Item(0, ", ".join(texts.values()), stem, lambda: {name: read() for name, read in load.items()})

    def check_kind(self, path: Path) -> None:
        """Refuses a file that cannot be an item, whatever is in it."""
        suffix = path.suffix.lower()
        if suffix not in (*SUFFIXES, *JSON_SUFFIXES):
            if isinstance(path, NamedPipe):
                return
            raise UsageError(f"cannot tell what {str(path)!r} is", hint=f"known: {', '.join(SUFFIXES + JSON_SUFFIXES)}")
        if suffix == ".npy" and len(self._types) != 1:
            names = ", ".join(f"{name}=@{path.name}" for name in list(self._types)[:2])
            raise UsageError(f"the program has {len(self._types)} inputs", hint=f"say which one: --input {names}")
        if suffix in IMAGE_SUFFIXES:
            self._check_images()

    def file_item(self, index: int, path: Path, suffix: str = "") -> Item:
        """Returns the item of one file, which is read as one of that suffix."""
        suffix = suffix or path.suffix.lower()
        if suffix in IMAGE_SUFFIXES:
            load = partial(self._load_image, path)
        elif suffix == ".npy":
            load = partial(self._load_npy, next(iter(self._types)), path)
        else:
            load = partial(read_npz_file, path, self._types)
        return Item(index, str(path), path.stem, load)

    def items_of(self, path: Path, start: int) -> Iterable[Item]:
        """Returns the items of a file, of which JSON lines hold many."""
        suffix = path.suffix.lower()
        if suffix in SUFFIXES:
            return [self.file_item(start, path)]
        if not isinstance(path, NamedPipe):
            return items_of_line_file(path, start, self.values_of_line)
        path.opened = file = io.BufferedReader(FifoInput(path, self._stop))
        if suffix not in JSON_SUFFIXES and (found := suffix_of(file.peek(HEAD_BYTES))):
            self.check_kind(path.with_suffix(found))
            return [self.file_item(start, path, found)]
        return items_of_lines(file, str(path), start, self.values_of_line)

    def values_of_line(self, line: bytes | None) -> dict[str, Value]:
        """Returns the values of the inputs that a line holds."""
        return values_from_line(line, self._types, allow_nan=self._allow_nan)

    def _check_images(self) -> None:
        if self._image is None:
            raise UsageError("this bundle does not say how an image becomes an input", hint="compile it with --image")
        require_pillow()

    def _check_named_file(self, name: str, path: Path) -> None:
        suffix = path.suffix.lower()
        if suffix in IMAGE_SUFFIXES:
            self._check_images()
            if self._image is not None and self._image.name != name:
                raise UsageError(f"images become the input {self._image.name!r}, not {name!r}")
        elif suffix != ".npy" and not isinstance(path, NamedPipe):
            raise UsageError(f"{name}=@{path} must be an .npy or image file")
        if not _exists(path):
            raise MissingInputError("no such file", where=str(path))

    def _loader(self, name: str, text: str) -> Callable[[], Value]:
        if not text.startswith("@"):
            return partial(self._load_text, name, text)
        path = named_path(Path(text[1:]))
        if path.suffix.lower() in IMAGE_SUFFIXES:
            return lambda: self._load_image(path)[name]
        return lambda: self._load_npy(name, path)[name]

    def _load_text(self, name: str, text: str) -> Value:
        try:
            data = data_from_json(os.fsencode(text), f"input {name!r}: {text!r:.40}", allow_nan=self._allow_nan)
        except InputError as err:
            err.hint = err.hint or f"a file is {name}=@FILE"
            raise
        return value_from_plain(data, self._types[name], f"input {name!r}")

    def _load_image(self, path: Path) -> dict[str, Value]:
        assert self._image is not None
        tensor = self._types[self._image.name]
        assert isinstance(tensor, TensorType)
        return {self._image.name: read_image(path, self._image, tensor)}

    def _load_npy(self, name: str, path: Path) -> dict[str, Value]:
        return {name: read_npy_file(path, self._types[name])}
