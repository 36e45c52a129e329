# SPDX-License-Identifier: Apache-2.0
"""The items of a pipeline: what it says of its sources and the texts of `run --input` become one source.

Most kinds have fixed fields and are those of `record_sources.py`. Arrays and JSON lines have those that `fields`
names, else the inputs of the first models; values that go straight into a model are read as the model's type. A single
source of files is read by the stream itself; several, and those that are live, each by a thread of its own.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from nndeploy.errors import DataError, InputError, UsageError, did_you_mean
from nndeploy.runtime.plain_data import value_from_plain
from nndeploy.stream.formats.json_lines import object_from_line
from nndeploy.stream.formats.npz import read_npy_file, read_npz_file
from nndeploy.stream.items import Item
from nndeploy.stream.pipeline.pipeline_file import PipelineFile
from nndeploy.stream.pipeline.source_tables import SourceTable
from nndeploy.stream.sources.addresses import Address, Scheme, address_from_text
from nndeploy.stream.sources.input_paths import paths_from_texts
from nndeploy.stream.sources.line_items import ReadLine, items_of_each, items_of_line_file, items_of_lines
from nndeploy.stream.sources.live_items import live_lines
from nndeploy.stream.sources.live_video import live_frames
from nndeploy.stream.sources.merging import joined_items, merged_items, renamed
from nndeploy.stream.sources.readers import Feed, Readers, SourceFigures
from nndeploy.stream.sources.record_sources import FIELDS, SUFFIXES, line_reader, record_source
from nndeploy.stream.sources.source_rules import DropRule
from nndeploy.stream.sources.sources import Source, source_of_files, to_read_again
from nndeploy.stream.sources.video_source import require_av
from nndeploy.stream.stopping import Stop
from nndeploy.values.types import Value, ValueType

Types = Mapping[str, ValueType]
Stdin = Callable[[Stop], BinaryIO]
"""Opens the standard input, so that waiting for it ends where that stop is asked for."""

_LINES: tuple[Scheme, ...] = ("unix", "unix-listen", "tcp", "tcp-listen", "tail", "fifo")
LIVE: Mapping[str, tuple[Scheme, ...]] = {
    "json-lines": _LINES,
    "lines": _LINES,
    "video": ("rtsp", "http", "unix", "unix-listen", "tcp", "tcp-listen", "fifo"),
}
"""What each kind reads besides files."""


def source_fields(table: SourceTable, types: Types, where: str, *, is_joined: bool = False) -> tuple[str, ...]:
    """Returns the fields of the items; `types` are the inputs of the first models, by field.

    Raises:
        DataError: the kind is unknown, or has no such fields.
    """
    kind, place = table.kind or "files", f"{where}: {table.place}"
    if kind not in FIELDS:
        raise DataError(f"unknown kind {kind!r}", where=place, hint=did_you_mean(kind, FIELDS))
    fixed = FIELDS[kind]
    if fixed is None and not table.fields and (table.out or (is_joined and not types)):
        hint = "those that a line or file has" if kind == "json-lines" else "those that a file has"
        raise DataError("needs fields", where=place, hint=hint)
    if fixed is not None and table.fields:
        raise DataError(f"a source of {kind} has the fields {', '.join(fixed)}", where=place, hint="leave out fields")
    own = table.fields or fixed or tuple(types)
    if table.out and len(table.out) != len(own):
        raise DataError(f"out names {len(table.out)} fields, but it gives {len(own)}: {', '.join(own)}", where=place)
    return table.out or own


def check_join(file: PipelineFile, fields: Mapping[str, Sequence[str]]) -> None:
    """Checks that joined sources, whose fields are given, have what they are joined by, and nothing else in common.

    Raises:
        DataError: one lacks its field, or two give the same.
    """
    if file.join is None:
        return
    givers: dict[str, str] = {}
    for source, names in fields.items():
        by = file.join.fields.get(source, "")
        if by and by not in names:
            where = f"{file.where}: join, source {source!r}"
            raise DataError(f"the source has no field {by!r}", where=where, hint=did_you_mean(by, names))
        for name in names:
            is_common = by == name == file.join.fields.get(givers.get(name, ""), "")
            if name in givers and not is_common:
                raise DataError(
                    f"the field {name!r} is given by the sources {givers[name]!r} and {source!r}, which are joined",
                    where=f"{file.where}: source {source!r}", hint=f'rename its fields: out = ["{source}-{name}", ...]',
                )  # fmt: skip
            givers.setdefault(name, source)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a run says of how sources are read: the standard input, the wish to end, whether NaN is taken in JSON.

    `drop` and `max_age_ns` go for every source, in place of what the pipeline says; None and 0 leave that as it is.
    """

    stdin: Stdin
    stop: Stop
    allow_nan: bool = False
    drop: DropRule | None = None
    max_age_ns: int = 0


def pipeline_source(file: PipelineFile, texts: Sequence[str], types: Mapping[str, Types], reading: Reading) -> Source:
    """Returns the source of a pipeline whose kinds and fields have been checked; `types` are by source.

    Raises:
        UsageError: a text does not go with the kind of its source, or names none.
        MissingInputError: a file or folder is missing, or holds nothing to read.
        UnavailableError: the kind needs a package that is not installed.
    """
    by_source = texts_of_sources([table.name for table in file.sources], texts)
    optional = frozenset[str]() if file.join is not None else file.optional_fields
    opened = [_Opened(table, by_source[table.name], types[table.name], reading, optional) for table in file.sources]
    (first, *others) = opened
    if not others and not first.has_own_thread:
        return first.source()
    readers = Readers([one.feed() for one in opened], reading.stop)
    names = [table.name for table in file.sources]
    items = joined_items(readers, names, file.join) if file.join is not None else merged_items(readers, names)
    return Source(
        items, None, is_one=False, readers=readers, is_live=any(one.is_live for one in opened),
        passed_over=sum((one.passed_over for one in opened), Counter()),
    )  # fmt: skip


def texts_of_sources(names: Sequence[str], texts: Sequence[str]) -> dict[str, list[str]]:
    """Returns the texts of `--input` for each source: NAME=TEXT, or the text alone where there is one source.

    Raises:
        UsageError: a text names no source, or a source has none.
    """
    found: dict[str, list[str]] = {name: [] for name in names}
    for text in texts:
        name, equals, rest = text.partition("=")
        if equals and name and name in found:
            found[name].append(rest)
        elif len(names) == 1:
            found[names[0]].append(text)
        else:
            shown = address.shown if (address := address_from_text(text)) is not None else text
            hint = did_you_mean(name, names) if equals and shown == text else f"for example --input {names[0]}={shown}"
            raise UsageError(f"{shown!r} does not say which source it is for", hint=hint)
    for name, own in found.items():
        if not own:
            raise UsageError(f"there is no input for the source {name!r}", hint=f"--input {name}=...")
    if len(names) > 1 and sum(own.count("-") for own in found.values()) > 1:
        raise UsageError("only one source can read standard input")
    return found


class _Opened:
    """One source with what it is to read."""

    def __init__(
        self, table: SourceTable, texts: Sequence[str], types: Types, reading: Reading, optional: Collection[str]
    ) -> None:
        self._table = table
        self._optional = optional
        self._texts = texts
        self._types = types
        self._reading = reading
        self._kind = table.kind or "files"
        self._rules = table.rules
        if reading.drop is not None:
            max_age_ns = reading.max_age_ns or table.rules.max_age_ns if reading.drop == "oldest" else 0
            self._rules = replace(table.rules, drop=reading.drop, max_age_ns=max_age_ns)
        own = table.fields or FIELDS[self._kind] or tuple(types)
        self._names = dict(zip(own, table.out or own, strict=True))
        self._address = self._address_of(texts)
        self.passed_over = Counter[str]()

    @property
    def is_live(self) -> bool:
        """Whether it may never end by itself."""
        return self._address is not None

    @property
    def has_own_thread(self) -> bool:
        """Whether it needs a thread of its own, also where it is the only one."""
        return self.is_live or self._rules.needs_thread

    def _address_of(self, texts: Sequence[str]) -> Address | None:
        found = [address for text in texts if (address := address_from_text(text)) is not None]
        if not found or (self._kind not in LIVE and all(address.scheme == "fifo" for address in found)):
            return None
        if len(texts) > 1:
            hint = "name several sources, each with an address of its own"
            raise UsageError(f"{found[0].shown!r} goes alone: it may never end", hint=hint)
        if found[0].scheme not in LIVE.get(self._kind, ()):
            kinds = ", ".join(kind for kind, schemes in LIVE.items() if found[0].scheme in schemes)
            raise UsageError(
                f"a source of {self._kind} does not read {found[0].shown!r}", hint=f"[source] kind = ...: {kinds}"
            )
        if self._kind == "video":
            require_av()
        return found[0]

    def source(self) -> Source:
        """Returns it as the only one, which the stream itself reads."""
        return self._renamed(self._files(self._reading.stop))

    def feed(self) -> Feed:
        """Returns it as one that a thread of its own reads."""
        name = self._table.name or (self._address.shown if self._address is not None else "source")
        if self._address is None:
            # what is missing is found before anything runs
            source = None if "-" in self._texts else self._files(self._reading.stop)
            self.passed_over = source.passed_over if source is not None else self.passed_over

            def of_files(stop: Stop, _: SourceFigures) -> Iterator[Item]:
                return iter(self._renamed(source or self._files(stop)).items)

            return Feed(name, of_files, self._rules)
        return Feed(name, partial(self._live, self._address), self._rules)

    def _live(self, address: Address, stop: Stop, figures: SourceFigures) -> Iterator[Item]:
        if self._kind == "video":
            items = live_frames(address, self._rules, stop, figures)
        else:
            items = live_lines(address, self._read_line(), self._rules, stop, figures)
        return (renamed(item, self._names) for item in items)

    def _renamed(self, source: Source) -> Source:
        if not self._table.out:
            return source
        names = self._names
        items = source.items
        if isinstance(items, Sequence):
            return replace(source, items=[renamed(item, names) for item in items])
        return replace(source, items=(renamed(item, names) for item in items))

    def _files(self, stop: Stop) -> Source:
        stdin = partial(self._reading.stdin, stop)
        if self._kind == "arrays":
            return _arrays(self._texts, tuple(self._names), self._own_types())
        if self._kind == "json-lines":
            return _json_lines(self._texts, self._read_line(), stdin)
        return record_source(self._kind, self._texts, stdin)

    def _read_line(self) -> ReadLine:
        if self._kind == "json-lines":
            names, optional = tuple(self._names), tuple(self._optional)
            return partial(_json_fields, names, optional, self._own_types(), self._reading.allow_nan)
        return line_reader(self._kind)

    def _own_types(self) -> dict[str, ValueType]:
        """Returns the types of the fields under the names that they have in a file."""
        return {own: self._types[name] for own, name in self._names.items() if name in self._types}


def _arrays(texts: Sequence[str], names: Sequence[str], types: Types) -> Source:
    if "-" in texts:
        raise UsageError("this pipeline reads files, not standard input")
    paths, passed_over = paths_from_texts(texts, SUFFIXES["arrays"])
    items = [Item(i, str(path), path.stem, _array_loader(path, names, types)) for i, path in enumerate(paths)]
    return source_of_files(items, paths, texts, passed_over)


def _array_loader(path: Path, names: Sequence[str], types: Types) -> Callable[[], dict[str, Value]]:
    if path.suffix.lower() != ".npy":
        return lambda: _only(read_npz_file(path, {name: types[name] for name in names if name in types}), names)
    if len(names) != 1 or names[0] not in types:
        raise UsageError(f"{str(path)!r} is one array, but a record has the fields {', '.join(names)}", hint="use .npz")
    return lambda: {names[0]: read_npy_file(path, types[names[0]])}


def _only(values: Mapping[str, Value], names: Sequence[str]) -> dict[str, Value]:
    _check_has(values, names)
    return {name: values[name] for name in names}


def _check_has(values: Mapping[str, Value], names: Sequence[str]) -> None:
    for name in names:
        if name not in values:
            raise InputError(f"the field {name!r} is missing", hint=did_you_mean(name, values))


def _json_lines(texts: Sequence[str], read: ReadLine, stdin: Callable[[], BinaryIO]) -> Source:
    if "-" in texts:
        if len(texts) > 1:
            raise UsageError("--input - takes everything from stdin; it goes with no other --input")
        return Source(items_of_lines(stdin(), "stdin", 0, read), None, is_one=False)
    paths, passed_over = paths_from_texts(texts, SUFFIXES["json-lines"])
    items = items_of_each(paths, partial(items_of_line_file, read=read))
    return Source(items, None, is_one=False, paths=to_read_again(paths), passed_over=passed_over)


def _json_fields(
    names: Sequence[str], optional: Sequence[str], types: Types, allow_nan: bool, line: bytes | None
) -> dict[str, Value]:
    found, known = object_from_line(line, allow_nan=allow_nan), (*names, *optional)
    for name in found:
        if name not in known:
            raise InputError(f"no field is called {name!r}", hint=did_you_mean(name, known))
    _check_has(found, names)
    return {name: _typed(name, value, types) for name, value in found.items()}


def _typed(name: str, data: object, types: Types) -> Value:
    return value_from_plain(data, types[name], f"field {name!r}") if name in types else data
