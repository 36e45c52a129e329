# SPDX-License-Identifier: Apache-2.0
"""Takes records apart into the parts of a list, and puts what became of the parts together again.

`Splitter` stands before the first stage of a pipeline with `each`, `Gatherer` behind its last one; `Keeper` lets
fields end where nobody needs them any more. Laws: the results of parts come back as lists in the parts' order; a
record without parts goes on with empty lists; one part that fails makes the record fail, once. Only so many parts are
on their way at once, however many a record has; the others wait in the splitter as elements of their list.
"""

from collections import deque
from collections.abc import Sequence
from threading import Lock

from nndeploy.errors import InputError
from nndeploy.stream.engine.queues import Outlet, Siblings
from nndeploy.stream.records import Record
from nndeploy.values.types import Value


class Gatherer:
    """Collects the parts of records and hands each record on when its last part has come."""

    splitter: "Splitter"

    def __init__(self, names: Sequence[str], outlet: Outlet) -> None:
        """Gathers the fields of these names."""
        self._names = tuple(names)
        self._outlet = outlet
        self._siblings = Siblings()

    def put(self, part: Record) -> None:
        """Takes one part."""
        part.fields = {}  # what the part was made of is not needed any more
        part.made = {name: part.made[name] for name in self._names} if part.error is None else {}
        parts = self._siblings.add(part)
        if parts is not None:
            assert part.parent is not None
            self.put_whole(part.parent, parts)
        self.splitter.go_on()

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


class Splitter:
    """Takes each record apart into the elements of one of its fields."""

    def __init__(self, each: str, part: str, outlet: Outlet, gatherer: Gatherer, most: int) -> None:
        """Splits the field `each`; in a part, `part` is the name of the element. `most` are on their way at once."""
        assert most > 0
        self._each = each
        self._part = part
        self._outlet = outlet
        self._gatherer = gatherer
        self._lock = Lock()
        self._num_free = most
        self._waiting: deque[Record] = deque()
        self._next_place = 0  # of the first record that waits
        gatherer.splitter = self

    def put(self, record: Record) -> None:
        """Hands on the parts of a record, or the record itself where it has none."""
        record.load()
        values = record.fields.get(self._each)
        if record.error is None and (not isinstance(values, Sequence) or isinstance(values, str | bytes)):
            record.fail(InputError(f"the field {self._each!r} is no list but {type(values).__name__}"), self._each)
        if record.error is not None or not values:
            self._gatherer.put_whole(record, ())
            return
        with self._lock:
            self._waiting.append(record)
            self._put_parts()

    def go_on(self) -> None:
        """Hands on the next part: one has come back."""
        with self._lock:
            self._num_free += 1
            self._put_parts()

    def _put_parts(self) -> None:
        while self._num_free and self._waiting:
            record, place = self._waiting[0], self._next_place
            values = record.fields[self._each]
            assert isinstance(values, Sequence)
            self._num_free -= 1
            self._next_place += 1
            if self._next_place == len(values):
                self._waiting.popleft()
                self._next_place = 0
            self._outlet.put(self._made_part(record, place, len(values), values[place]))

    def _made_part(self, record: Record, place: int, count: int, value: Value) -> Record:
        fields = {**record.fields, self._part: value}
        origin = f"{record.origin}, part {place}"
        return Record(
            record.index, origin, record.stem, None, fields, parent=record, place=place, num_places=count,
            paced=record.paced, source=record.source,
        )  # fmt: skip


class Keeper:
    """Drops the fields of a record that nobody needs any more."""

    def __init__(self, names: Sequence[str], outlet: Outlet) -> None:
        """Keeps the fields of these names."""
        self._names = tuple(names)
        self._outlet = outlet

    def put(self, record: Record) -> None:
        """Hands the record on."""
        fields, made = record.fields, record.made
        record.fields = {name: fields[name] for name in self._names if name in fields}
        record.made = {name: made[name] for name in self._names if name in made}
        self._outlet.put(record)
