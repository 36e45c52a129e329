# SPDX-License-Identifier: Apache-2.0
"""Fields of records as a CSV file, for spreadsheets and scripts: one row a record, or one an element of lists.

Columns are `index`, `origin`, `part` where rows are elements, the fields, and `error`, which is empty unless the
record failed. Numbers stand as the shortest text that gives them back; what is no single number or text (a box, an
array) is JSON. Rows end as RFC 4180 says, in UTF-8.

Law: a record has one row, or as many as its lists have elements, or one with its error: none is left out unsaid,
except one whose lists are empty.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from nndeploy.errors import DataError, UsageError
from nndeploy.files.whole_files import wrapped_io
from nndeploy.stream.items import Outcome
from nndeploy.stream.sinks.resumable import Resumables, output_file
from nndeploy.values.types import Value


class CsvSink:
    """A CSV file that appears when the stream ends."""

    def __init__(
        self, path: Path, fields: Sequence[str], each: Sequence[str] = (), resumables: Resumables | None = None
    ) -> None:
        """Begins the file; `each` names those of `fields` whose elements make rows, side by side.

        With `resumables` it may be resumed, and is appended to them.

        Raises:
            UsageError: `each` names what is not among the fields.
            CannotCreateError: it cannot be made.
        """
        if others := sorted(set(each) - set(fields)):
            raise UsageError(f"each names {', '.join(others)}, which is not among the fields of the csv")
        self._fields = tuple(fields)
        self._each = frozenset(each)
        part = ("part",) if self._each else ()
        head = _text_of([("index", "origin", *part, *self._fields, "error")])
        self._output = output_file(path, resumables, head)
        self.finish = self._output.finish
        self.discard = self._output.discard

    def write(self, outcome: Outcome) -> None:
        """Writes the rows of one record.

        Raises:
            DataError: a field is missing, or lists that stand side by side differ in length.
        """
        text = _text_of(self._rows(outcome))
        with wrapped_io(self._output.path):
            self._output.file.write(text)

    def _rows(self, outcome: Outcome) -> Iterator[Sequence[object]]:
        if outcome.outputs is None:
            empty = [""] * (len(self._fields) + bool(self._each))
            yield outcome.index, outcome.origin, *empty, str(outcome.error)
            return
        for cells in self._cells(outcome.outputs):
            yield outcome.index, outcome.origin, *cells, ""

    def _cells(self, outputs: Mapping[str, Value]) -> Iterator[Sequence[object]]:
        values = {}
        for name in self._fields:
            if name not in outputs:
                raise DataError(f"the record has no field {name!r}", where="sink of csv")
            values[name] = outputs[name]
        if not self._each:
            yield [_cell(value) for value in values.values()]
            return
        for part in range(self._num_parts(values)):
            yield [part, *(_cell(v[part] if name in self._each else v) for name, v in values.items())]

    def _num_parts(self, values: Mapping[str, Value]) -> int:
        lengths = {name: _length(value) for name, value in values.items() if name in self._each}
        if None in lengths.values() or len(set(lengths.values())) > 1:
            text = ", ".join(f"{name}: {'no list' if n is None else n}" for name, n in lengths.items())
            raise DataError(f"fields that make rows must be lists of one length ({text})", where="sink of csv")
        return next(iter(lengths.values())) or 0


def _text_of(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _length(value: Value) -> int | None:
    if isinstance(value, list | tuple):
        return len(value)
    return len(value) if isinstance(value, np.ndarray) and value.ndim else None


def _cell(value: Value) -> object:
    """Returns what stands in one cell."""
    if value is None:
        return ""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]
    if isinstance(value, np.generic):
        return str(value)
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, str | int | float):
        return value
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Value) -> object:
    """Returns a value as JSON can write it; numbers keep their shortest text, NaN is null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(element) for element in value]
    if isinstance(value, np.ndarray):
        return [_plain(element) for element in value] if value.ndim else _plain(value[()])
    if isinstance(value, np.floating | float):
        return float(str(value)) if np.isfinite(value) else None
    if isinstance(value, np.generic):
        return value.item()
    return f"{len(value)} bytes" if isinstance(value, bytes) else value
