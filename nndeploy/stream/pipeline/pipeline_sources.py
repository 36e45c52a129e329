# SPDX-License-Identifier: Apache-2.0
"""The items of a pipeline: `[source] kind` and the texts of `run --input` become a source.

Most kinds have fixed fields and are those of `record_sources.py`. Arrays and JSON lines have those that `fields`
names, else the inputs of the first models; values that go straight into a model are read as the model's type.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from nndeploy.errors import DataError, InputError, UsageError, did_you_mean
from nndeploy.runtime.plain_data import value_from_plain
from nndeploy.stream.formats.json_lines import object_from_line
from nndeploy.stream.formats.npz import read_npy_file, read_npz_file
from nndeploy.stream.items import Item
from nndeploy.stream.pipeline.pipeline_file import SourceTable
from nndeploy.stream.sources.input_paths import paths_from_texts
from nndeploy.stream.sources.line_items import ReadLine, items_of_each, items_of_line_file, items_of_lines
from nndeploy.stream.sources.record_sources import FIELDS, SUFFIXES, record_source
from nndeploy.stream.sources.sources import Source, source_of_files
from nndeploy.values.types import Value, ValueType

Types = Mapping[str, ValueType]
Stdin = Callable[[], BinaryIO]


def source_fields(table: SourceTable, types: Types, where: str) -> tuple[str, ...]:
    """Returns the fields of the items; `types` are the inputs of the first models, by field.

    Raises:
        DataError: the kind is unknown, or has no such fields or settings.
    """
    kind, place = table.kind or "files", f"{where}: source"
    if kind not in FIELDS:
        raise DataError(f"unknown kind {kind!r}", where=place, hint=did_you_mean(kind, FIELDS))
    if table.settings:
        raise DataError(f"unknown key {next(iter(table.settings))!r}", where=place, hint="known: 'kind', 'fields'")
    fixed = FIELDS[kind]
    if fixed is None:
        return table.fields or tuple(types)
    if table.fields:
        raise DataError(f"a source of {kind} has the fields {', '.join(fixed)}", where=place, hint="leave out fields")
    return fixed


def pipeline_source(
    table: SourceTable, texts: Sequence[str], types: Types, stdin: Stdin, *, allow_nan: bool = False
) -> Source:
    """Returns the source of a pipeline whose kind and fields have been checked.

    Raises:
        UsageError: a text does not go with the kind of the source.
        MissingInputError: a file or folder is missing, or holds nothing to read.
        UnavailableError: the kind needs a package that is not installed.
    """
    kind, names = table.kind or "files", table.fields or tuple(types)
    if kind == "arrays":
        return _arrays(texts, names, types)
    if kind == "json-lines":
        return _json_lines(texts, partial(_json_fields, names, types, allow_nan), stdin)
    return record_source(kind, texts, stdin)


def _arrays(texts: Sequence[str], names: Sequence[str], types: Types) -> Source:
    if "-" in texts:
        raise UsageError("this pipeline reads files, not standard input")
    paths = paths_from_texts(texts, SUFFIXES["arrays"])
    items = [Item(i, str(path), path.stem, _array_loader(path, names, types)) for i, path in enumerate(paths)]
    return source_of_files(items, paths, texts)


def _array_loader(path: Path, names: Sequence[str], types: Types) -> Callable[[], dict[str, Value]]:
    if path.suffix.lower() != ".npy":
        return lambda: _only(read_npz_file(path, {name: types[name] for name in names if name in types}), names)
    if len(names) != 1 or names[0] not in types:
        raise UsageError(f"{str(path)!r} is one array, but a record has the fields {', '.join(names)}", hint="use .npz")
    return lambda: {names[0]: read_npy_file(path, types[names[0]])}


def _only(values: Mapping[str, Value], names: Sequence[str]) -> dict[str, Value]:
    for name in names:
        if name not in values:
            raise InputError(f"the field {name!r} is missing", hint=did_you_mean(name, values))
    return {name: values[name] for name in names}


def _json_lines(texts: Sequence[str], read: ReadLine, stdin: Stdin) -> Source:
    if "-" in texts:
        if len(texts) > 1:
            raise UsageError("--input - takes everything from stdin; it goes with no other --input")
        return Source(items_of_lines(stdin(), "stdin", 0, read), None, is_one=False)
    paths = tuple(paths_from_texts(texts, SUFFIXES["json-lines"]))
    return Source(items_of_each(paths, partial(items_of_line_file, read=read)), None, is_one=False, paths=paths)


def _json_fields(names: Sequence[str], types: Types, allow_nan: bool, line: bytes | None) -> dict[str, Value]:
    found = object_from_line(line, allow_nan=allow_nan)
    for name in found:
        if name not in names:
            raise InputError(f"no field is called {name!r}", hint=did_you_mean(name, names))
    return {name: _typed(name, value, types) for name, value in _only(found, names).items()}


def _typed(name: str, data: object, types: Types) -> Value:
    return value_from_plain(data, types[name], f"field {name!r}") if name in types else data
