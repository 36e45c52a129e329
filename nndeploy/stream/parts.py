# SPDX-License-Identifier: Apache-2.0
"""Takes records apart into the parts of a list, and puts what became of the parts together again.

`Splitter` stands before the first stage of a pipeline with `each`, `Gatherer` behind its last one; `Keeper` lets
fields end where nobody needs them any more. Laws: the results of parts come back as lists in the parts' order; a
record without parts goes on with empty lists; one part that fails makes the record fail, once. Only so many parts are
on their way at once, however many a record has.
"""

from collections.abc import Sequence
from threading import Lock

from nndeploy.errors import InputError
from nndeploy.stream.queues import Outlet, Producers, Tokens
from nndeploy.stream.records import Record
from nndeploy.value_types import Value


class Gatherer:
    """Collects the parts of records and hands each record on when its last part has come."""

    def __init__(self, names: Sequence[str], outlet: Outlet[Record], tokens: Tokens, num_producers: int) -> None:
        """Gathers the fields of these names; one of `tokens` is given back for each part."""
        self._names = tuple(names)
        self._outlet = outlet
        self._tokens = tokens
        self._lock = Lock()
        self._producers = Producers(num_producers)
        self._gathered: dict[int, list[Record]] = {}

    def put(self, part: Record) -> None:
        """Takes one part."""
        record = part.parent
        assert record is not None
        part.fields = {}  # what the part was made of is not needed any more
        part.made = {name: part.made[name] for name in self._names} if part.error is None else {}
        with self._lock:
            parts = self._gathered.setdefault(id(record), [])
            parts.append(part)
            is_last = len(parts) == part.num_places
            if is_last:
                del self._gathered[id(record)]
        self._tokens.give_back()
        if is_last:
            parts.sort(key=lambda other: other.place)
            self.put_whole(record, parts)

    def put_whole(self, record: Record, parts: Sequence[Record]) -> None:
        """Hands on a record of which all parts have come."""
        failed = next((part for part in parts if part.error is not None), None)
        if failed is not None and failed.error is not None:
            record.fail(failed.error, failed.stage)
        elif record.error is None:
            record.add({name: [part.made[name] for part in parts] for name in self._names})
        for part in parts:
            record.take_notes(part)
        self._outlet.put(record)

    def close(self) -> None:
        """Says that one producer will put no more."""
        if self._producers.close():
            self._outlet.close()


class Splitter:
    """Takes each record apart into the elements of one of its fields."""

    def __init__(
        self, each: str, part: str, outlet: Outlet[Record], gatherer: Gatherer, tokens: Tokens, num_producers: int
    ) -> None:
        """Splits the field `each`; in a part, `part` is the name of the element."""
        self._each = each
        self._part = part
        self._outlet = outlet
        self._gatherer = gatherer
        self._tokens = tokens
        self._producers = Producers(num_producers)

    def put(self, record: Record) -> None:
        """Hands on the parts of a record, or the record itself where it has none."""
        record.load()
        values = record.fields.get(self._each)
        if record.error is None and (not isinstance(values, Sequence) or isinstance(values, str | bytes)):
            record.fail(InputError(f"the field {self._each!r} is no list but {type(values).__name__}"), self._each)
        if record.error is not None or not values:
            self._gatherer.put_whole(record, ())
            return
        for place, value in enumerate(values):
            self._tokens.take()
            self._outlet.put(self._made_part(record, place, len(values), value))

    def _made_part(self, record: Record, place: int, count: int, value: Value) -> Record:
        fields = {**record.fields, self._part: value}
        origin = f"{record.origin}, part {place}"
        return Record(record.index, origin, record.stem, None, fields, parent=record, place=place, num_places=count)

    def close(self) -> None:
        """Says that one producer will put no more."""
        if self._producers.close():
            self._outlet.close()


class Keeper:
    """Drops the fields of a record that nobody needs any more."""

    def __init__(self, names: Sequence[str], outlet: Outlet[Record]) -> None:
        """Keeps the fields of these names."""
        self._names = tuple(names)
        self._outlet = outlet
        self.close = outlet.close

    def put(self, record: Record) -> None:
        """Hands the record on."""
        fields, made = record.fields, record.made
        record.fields = {name: fields[name] for name in self._names if name in fields}
        record.made = {name: made[name] for name in self._names if name in made}
        self._outlet.put(record)
