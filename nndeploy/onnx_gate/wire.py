# SPDX-License-Identifier: Apache-2.0
"""Protobuf's wire format, read without protobuf: where each field of a message lies in the file.

In come the bytes of a file and the span of one message in it; out go its names as text, its numbers, and the spans of
its inner messages. Nothing large is copied, and nothing is believed: a length must lie inside its parent, a field must
be one that the message has, and a field that may stand once stands once (protobuf itself would take the last one, so
that two readers could see two different models). Law: protobuf reads what this module accepts in the same way.

Source: protobuf.dev, "Encoding".
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property
from typing import TypeAlias, TypeVar

from nndeploy.errors import ModelError

Span: TypeAlias = tuple[int, int]
"""Begin and end of a message's content, in bytes from the start of the file; the end is not included."""

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_WIDTH_BYTES = {FIXED32: 4, FIXED64: 8}
_MAX_VARINT_BYTES = 10
_VARINTS = re.compile(rb"(?:[\x80-\xff]{0,9}+[\x00-\x7f])*+")
_CONTINUED = bytes(range(0x80, 0x100))
_COUNT_CHUNK_BYTES = 1 << 20
_Kept = TypeVar("_Kept", int, str, Span)


class Kind(Enum):
    """What is kept of a field: a number, a name (short text), a text, a span, or only how many entries there are."""

    NUMBER = 0
    NAME = 1
    TEXT = 2
    MESSAGE = 3
    COUNT = 4


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message type; `wire` is the wire type of one entry, `message` the type of an inner message."""

    number: int
    name: str
    kind: Kind
    wire: int
    repeated: bool = False
    message: str = ""


@dataclass(frozen=True)
class Message:
    """A message type; at most one of the fields named in `oneof` may be there."""

    name: str
    fields: tuple[Field, ...]
    oneof: frozenset[str] = frozenset()

    @cached_property
    def by_tag(self) -> Mapping[int, tuple[Field, bool]]:
        """Tag -> the field, and whether the tag is that of its packed form."""
        tags = {f.number << 3 | f.wire: (f, False) for f in self.fields}
        packable = (f for f in self.fields if f.repeated and f.wire != LENGTH)
        return tags | {f.number << 3 | LENGTH: (f, True) for f in packable}

    @cached_property
    def inner(self) -> Mapping[str, str]:
        """Field -> the type of its message."""
        return {f.name: f.message for f in self.fields if f.message}


@dataclass(slots=True)
class Fields:
    """What one message holds, by field name; `counts` has the number of entries, for one bytes field its length."""

    numbers: dict[str, list[int]] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)
    spans: dict[str, list[Span]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int | None:
        """Returns the number of a field that may stand once, None where it is missing."""
        found = self.numbers.get(name)
        return found[0] if found else None

    def text(self, name: str) -> str:
        """Returns the text of a field that may stand once, "" where it is missing."""
        found = self.texts.get(name)
        return found[0] if found else ""


@dataclass(slots=True)
class Budget:
    """How many fields may still be read, how often one may stand in one message, how long a name may be."""

    fields: int
    max_entries: int
    max_name_bytes: int


def fields_of(data: bytes, span: Span, message: Message, budget: Budget) -> Fields:
    """Returns what the message of type `message` at `span` holds; inner messages are not opened.

    Raises:
        ModelError: it is no such message, holds a field twice, or holds more than `budget` allows.
    """
    found = Fields()
    left = budget.fields
    for entry, packed, begin, end in _entries(data, span, message):
        left -= 1
        if left < 0:
            raise ModelError("the model has more fields than the gate reads", hint="is it meant to be this large?")
        kind = entry.kind
        if kind is Kind.COUNT:
            _count(found.counts, entry, message, _num_entries(data, entry, packed, begin, end))
        elif kind is Kind.MESSAGE:
            _keep(found.spans, (begin, end), entry, message, budget)
        elif kind is Kind.NUMBER:
            for number in _packed_numbers(data, begin, end) if packed else (begin,):
                _keep(found.numbers, _signed(number), entry, message, budget)
        else:
            _keep(found.texts, _text(data, begin, end, entry, message, budget), entry, message, budget)
    budget.fields = left
    if message.oneof:
        _check_oneof(found, message)
    return found


def _entries(data: bytes, span: Span, message: Message) -> Iterator[tuple[Field, bool, int, int]]:
    """Yields (field, packed?, begin, end) of each entry; for a single varint `begin` is its value instead.

    A run of unpacked scalars that are only counted comes as one entry, tags included.
    """
    position, stop = span
    by_tag = message.by_tag
    try:
        while position < stop:
            begin = position
            tag, position = data[position], position + 1
            if tag > 0x7F:
                tag, position = _long_tag(data, begin)
            entry, packed = by_tag.get(tag) or _no_such_field(message, tag)
            if packed or entry.wire == LENGTH:
                size, position = data[position], position + 1
                if size > 0x7F:
                    size, position = _varint(data, position - 1)
                begin, position = position, position + size
            elif entry.repeated and entry.kind is Kind.COUNT:
                position = _end_of_run(data, begin, stop, tag)
            elif entry.wire == VARINT:
                begin, position = _varint(data, position)
            else:
                begin, position = position, position + _WIDTH_BYTES[entry.wire]
            if position > stop:
                raise ModelError(f"{message.name}.{entry.name} ends {position - stop} bytes after what it lies in")
            yield entry, packed, begin, position
    except IndexError as err:
        raise ModelError(f"the file ends inside a {message.name}") from err


def _long_tag(data: bytes, position: int) -> tuple[int, int]:
    tag, end = _varint(data, position)
    if data[end - 1] == 0:
        raise ModelError("a field number is written with more bytes than it needs")
    return tag, end


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Returns (value, position after it).

    Raises:
        IndexError: the file ends inside the number.
    """
    value = 0
    for shift in range(0, 7 * _MAX_VARINT_BYTES, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80 and value < 1 << 64:
            return value, position
    raise ModelError("a number in the wire format is longer than 64 bits")


def _signed(number: int) -> int:
    return number if number < 1 << 63 else number - (1 << 64)


def _end_of_run(data: bytes, begin: int, stop: int, tag: int) -> int:
    """Returns where a run of scalars with this one-byte tag ends; a run that is cut reaches beyond `stop`."""
    if (width := _WIDTH_BYTES.get(tag & 7)) is not None:
        tags = data[begin : stop : 1 + width]
        return begin + (len(tags) - len(tags.lstrip(bytes([tag])))) * (1 + width)
    run = _varint_run(tag).match(data, begin, stop)
    return run.end() if run else stop + 1


@cache
def _varint_run(tag: int) -> re.Pattern[bytes]:
    return re.compile(rb"(?:" + re.escape(bytes([tag])) + rb"[\x80-\xff]{0,9}+[\x00-\x7f])++")


def _num_entries(data: bytes, entry: Field, packed: bool, begin: int, end: int) -> int:
    """Returns how many scalars an entry of `_entries` has; for a bytes field that may stand once, its length."""
    if entry.wire == LENGTH:
        return 1 if entry.repeated else end - begin
    if not entry.repeated:
        return 1
    if entry.wire == VARINT:
        return _num_varints(data, begin, end) if packed else _num_final_bytes(data, begin, end) // 2
    width = _WIDTH_BYTES[entry.wire] + (0 if packed else 1)
    if (end - begin) % width:
        raise ModelError(f"{entry.name} has {end - begin} bytes, no multiple of {width}")
    return (end - begin) // width


def _num_varints(data: bytes, begin: int, end: int) -> int:
    found = _VARINTS.match(data, begin, end)
    if found is None or found.end() != end:
        raise ModelError("a packed list of numbers is malformed")
    return _num_final_bytes(data, begin, end)


def _num_final_bytes(data: bytes, begin: int, end: int) -> int:
    """Returns how many bytes are below 0x80: one for each varint, and one for each one-byte tag."""
    chunks = range(begin, end, _COUNT_CHUNK_BYTES)
    return sum(len(data[at : min(at + _COUNT_CHUNK_BYTES, end)].translate(None, _CONTINUED)) for at in chunks)


def _packed_numbers(data: bytes, begin: int, end: int) -> Iterator[int]:
    while begin < end:
        number, begin = _varint(data, begin)
        if begin > end:
            raise ModelError("a packed list of numbers is malformed")
        yield number


def _text(data: bytes, begin: int, end: int, entry: Field, message: Message, budget: Budget) -> str:
    if entry.kind is Kind.NAME and end - begin > budget.max_name_bytes:
        raise ModelError(
            f"{message.name}.{entry.name} is a name of {end - begin} bytes", hint=f"at most {budget.max_name_bytes}"
        )
    try:
        return data[begin:end].decode()
    except UnicodeDecodeError as err:
        raise ModelError(f"{message.name}.{entry.name} is not UTF-8") from err


def _keep(store: dict[str, list[_Kept]], value: _Kept, entry: Field, message: Message, budget: Budget) -> None:
    known = store.get(entry.name)
    if known is None:
        store[entry.name] = [value]
    elif not entry.repeated:
        raise _twice(entry, message)
    elif len(known) < budget.max_entries:
        known.append(value)
    else:
        raise ModelError(f"more than {budget.max_entries} entries of {message.name}.{entry.name}")


def _count(store: dict[str, int], entry: Field, message: Message, num_entries: int) -> None:
    if entry.name in store and not entry.repeated:
        raise _twice(entry, message)
    store[entry.name] = store.get(entry.name, 0) + num_entries


def _check_oneof(found: Fields, message: Message) -> None:
    kept = found.numbers.keys() | found.texts.keys() | found.spans.keys()
    if len(both := sorted(kept & message.oneof)) > 1:
        raise ModelError(f"{message.name} holds {' and '.join(both)}, but only one of them may be there")


def _twice(entry: Field, message: Message) -> ModelError:
    return ModelError(f"{message.name}.{entry.name} is there twice")


def _no_such_field(message: Message, tag: int) -> tuple[Field, bool]:
    number, wire = tag >> 3, tag & 7
    known = {f.number: f.name for f in message.fields}
    if number in known:
        raise ModelError(f"{message.name}.{known[number]} has wire type {wire}, which it cannot have")
    raise ModelError(
        f"{message.name} has no field {number}", hint="the file is damaged, or of an ONNX newer than this nndeploy"
    )
