# SPDX-License-Identifier: Apache-2.0
"""The items of a pipeline's source: `[source] kind` and the texts of `run --input` become a source.

| kind | items | fields |
| --- | --- | --- |
| files | every file | data (its bytes), path |
| images | every .png, .jpg, .jpeg | data, path |
| wav | every .wav | data, path |
| lines | every line of text files or `-` that is not blank | line |
| arrays | every .npz, or .npy where there is one field | what `fields` names, else the inputs of the first models |
| json-lines | every line of JSON, of files or `-` | the same |

What is missing is found before anything runs; a file is read when its turn comes, by whoever needs it first.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from nndeploy.errors import DataError, InputError, UsageError, did_you_mean
from nndeploy.processors.image_files import SUFFIXES as IMAGE_SUFFIXES
from nndeploy.processors.image_files import require_pillow
from nndeploy.runtime.plain_data import value_from_plain
from nndeploy.stream.files import open_regular, read_regular, safe_stem
from nndeploy.stream.items import Item
from nndeploy.stream.json_lines import object_from_line, read_lines
from nndeploy.stream.npz import read_npy_file, read_npz_file
from nndeploy.stream.pipeline_file import SourceTable
from nndeploy.stream.sources import JSON_SUFFIXES, Source, paths_of
from nndeploy.value_types import Value, ValueType

FILE_FIELDS = ("data", "path")
FILE_KINDS = {"files": (), "images": IMAGE_SUFFIXES, "wav": (".wav",)}
KINDS = (*FILE_KINDS, "lines", "arrays", "json-lines")

Types = Mapping[str, ValueType]


def source_fields(table: SourceTable, types: Types, where: str) -> tuple[str, ...]:
    """Returns the fields of the items; `types` are the inputs of the first models, by field.

    Raises:
        DataError: the kind is unknown, or has no such fields or settings.
    """
    kind = table.kind or "files"
    if kind not in KINDS:
        raise DataError(f"unknown kind {kind!r}", where=f"{where}: source", hint=did_you_mean(kind, KINDS))
    if table.settings:
        key = next(iter(table.settings))
        raise DataError(f"unknown key {key!r}", where=f"{where}: source", hint="known: 'kind', 'fields'")
    if kind in ("arrays", "json-lines"):
        return table.fields or tuple(types)
    if table.fields:
        raise DataError(f"a source of {kind} has the fields it has", where=f"{where}: source", hint="leave out fields")
    return ("line",) if kind == "lines" else FILE_FIELDS


def pipeline_source(
    table: SourceTable,
    texts: Sequence[str],
    types: Types,
    stdin: Callable[[], BinaryIO],
    *,
    allow_nan: bool = False,
) -> Source:
    """Returns the source of a pipeline whose kind and fields have been checked.

    Raises:
        UsageError: a text does not go with the kind of the source.
        MissingInputError: a file or folder is missing, or holds nothing to read.
        UnavailableError: images need a package that is not installed.
    """
    kind = table.kind or "files"
    if kind == "images":
        require_pillow()
    if kind in FILE_KINDS:
        return _of_files(texts, lambda path: partial(_file_fields, path), FILE_KINDS[kind])
    names = table.fields or tuple(types)
    if kind == "arrays":
        return _of_files(texts, lambda path: _array_loader(path, names, types), (".npz", ".npy"))
    fields_of = _line_fields if kind == "lines" else partial(_json_fields, names, types, allow_nan)
    suffixes = (".txt",) if kind == "lines" else JSON_SUFFIXES
    return _of_lines(texts, fields_of, suffixes, stdin)


def _of_files(
    texts: Sequence[str], loader: Callable[[Path], Callable[[], dict[str, Value]]], suffixes: Sequence[str]
) -> Source:
    _refuse_stdin(texts)
    paths = [path for text in texts for path in paths_of(text, suffixes, ())]
    for path in paths:
        if suffixes and path.suffix.lower() not in suffixes:
            raise UsageError(f"{str(path)!r} is not what this source reads", hint=f"known: {', '.join(suffixes)}")
    is_one = len(paths) == 1 and str(paths[0]) == str(Path(texts[0]))
    items = [Item(index, str(path), path.stem, loader(path)) for index, path in enumerate(paths)]
    return Source(items, len(items), is_one, tuple(paths))


def _refuse_stdin(texts: Sequence[str]) -> None:
    if "-" in texts:
        raise UsageError("this pipeline reads files, not standard input")


def _file_fields(path: Path) -> dict[str, Value]:
    return {"data": read_regular(path), "path": str(path)}


def _array_loader(path: Path, names: Sequence[str], types: Types) -> Callable[[], dict[str, Value]]:
    if path.suffix.lower() == ".npz":
        return lambda: _only(read_npz_file(path, {name: types[name] for name in names if name in types}), names)
    if len(names) != 1:
        raise UsageError(f"{str(path)!r} is one array, but a record has the fields {', '.join(names)}", hint="use .npz")
    name = names[0]
    if name not in types:
        raise UsageError(f"the type of {name!r} is not known, so it cannot come from an .npy", hint="use .npz")
    return lambda: {name: read_npy_file(path, types[name])}


def _only(values: dict[str, Value], names: Sequence[str]) -> dict[str, Value]:
    for name in names:
        if name not in values:
            raise InputError(f"the field {name!r} is missing", hint=did_you_mean(name, values))
    return {name: values[name] for name in names}


def _of_lines(
    texts: Sequence[str],
    fields_of: Callable[[bytes | None], dict[str, Value]],
    suffixes: Sequence[str],
    stdin: Callable[[], BinaryIO],
) -> Source:
    if "-" in texts:
        if len(texts) > 1:
            raise UsageError("--input - takes everything from stdin; it goes with no other --input")
        return Source(_items_of_lines(stdin(), "stdin", 0, fields_of), None, is_one=False)
    paths = [path for text in texts for path in paths_of(text, suffixes, ())]
    return Source(_items_of_files(paths, fields_of), None, is_one=False, paths=tuple(paths))


def _items_of_files(paths: Sequence[Path], fields_of: Callable[[bytes | None], dict[str, Value]]) -> Iterator[Item]:
    index = 0
    for path in paths:
        with open_regular(path, max_bytes=1 << 62) as file:
            for item in _items_of_lines(file, str(path), index, fields_of):
                yield item
                index = item.index + 1


def _items_of_lines(
    file: BinaryIO, origin: str, start: int, fields_of: Callable[[bytes | None], dict[str, Value]]
) -> Iterator[Item]:
    stem = safe_stem(Path(origin).stem)
    for index, (number, line) in enumerate(read_lines(file), start):
        yield Item(index, f"{origin}, line {number}", f"{stem}-{number}", partial(fields_of, line))


def _line_fields(line: bytes | None) -> dict[str, Value]:
    if line is None:
        raise InputError("the line is too long")
    try:
        return {"line": line.decode("utf-8")}
    except UnicodeDecodeError as err:
        raise InputError(f"the line is not UTF-8: byte {err.start} is 0x{line[err.start]:02x}") from err


def _json_fields(names: Sequence[str], types: Types, allow_nan: bool, line: bytes | None) -> dict[str, Value]:
    found = object_from_line(line, allow_nan=allow_nan)
    values: dict[str, Value] = {}
    for name, data in found.items():
        if name not in names:
            raise InputError(f"no field is called {name!r}", hint=did_you_mean(name, names))
        values[name] = value_from_plain(data, types[name], f"field {name!r}") if name in types else data
    return _only(values, names)
