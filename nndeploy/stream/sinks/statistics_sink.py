# SPDX-License-Identifier: Apache-2.0
"""What a whole stream came to, as one JSON file at its end: how many records, and of each field what was in it.

Texts (and lists of texts) are counted; numbers (and arrays and lists of them) have count, mean, smallest and largest.
Memory does not grow with the stream: sums are kept, not values; texts beyond `MAX_TEXTS` different ones, and those
longer than `MAX_TEXT_LENGTH`, are counted together.

Laws: the counts of a field's texts, with `others`, sum to its count. Sums that went through a journal and came back
are the same to the last bit, so a run that was resumed ends with the same bytes.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nndeploy.errors import DataError
from nndeploy.files.named_outputs import new_output
from nndeploy.files.whole_files import wrapped_io
from nndeploy.processors.arrays import shape_text
from nndeploy.stream.items import Outcome
from nndeploy.stream.sinks.resumable import GrowingFile, Resumables
from nndeploy.values.types import Value

MAX_TEXTS = 10_000
MAX_TEXT_LENGTH = 256


class _FieldStatistics:
    """Sums over the values of one field."""

    def __init__(self) -> None:
        self._texts: Counter[str] = Counter()
        self._num_other_texts = 0
        self._num_numbers = 0
        self._num_non_finite = 0
        self._sum = 0.0
        self._min = math.inf
        self._max = -math.inf

    def add(self, value: Value) -> None:
        """Adds one value.

        Raises:
            DataError: it is neither texts nor numbers.
        """
        if isinstance(value, str):
            self._add_text(value)
        elif isinstance(value, list | tuple):
            for element in value:
                self.add(element)
        else:
            self._add_numbers(value)

    def to_json(self) -> dict[str, object]:
        """Returns the sums as plain data; what there was none of is left out."""
        found: dict[str, object] = {}
        if self._texts or self._num_other_texts:
            found["count"] = self._texts.total() + self._num_other_texts
            found["texts"] = dict(sorted(self._texts.items(), key=lambda pair: (-pair[1], pair[0])))
            if self._num_other_texts:
                found["others"] = self._num_other_texts
        if self._num_numbers:
            mean = self._sum / self._num_numbers
            found["numbers"] = {"count": self._num_numbers, "mean": mean, "min": self._min, "max": self._max}
        if self._num_non_finite:
            found["non_finite"] = self._num_non_finite
        return found

    def state(self) -> dict[str, Any]:
        """Returns the sums as plain data, of which `restore` makes the same ones: floats are hexadecimal."""
        return {
            "texts": dict(self._texts),
            "others": self._num_other_texts,
            "numbers": self._num_numbers,
            "non_finite": self._num_non_finite,
            "sum_min_max": [number.hex() for number in (self._sum, self._min, self._max)],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes sums from what `state` returned."""
        self._texts = Counter(state["texts"])
        self._num_other_texts = state["others"]
        self._num_numbers = state["numbers"]
        self._num_non_finite = state["non_finite"]
        self._sum, self._min, self._max = map(float.fromhex, state["sum_min_max"])

    def _add_text(self, text: str) -> None:
        if text in self._texts or (len(self._texts) < MAX_TEXTS and len(text) <= MAX_TEXT_LENGTH):
            self._texts[text] += 1
        else:
            self._num_other_texts += 1

    def _add_numbers(self, value: Value) -> None:
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise DataError(f"statistics are of texts and numbers, this is {shape_text(value)}")
        numbers = array.astype(np.float64).ravel()
        finite = numbers[np.isfinite(numbers)]
        self._num_non_finite += numbers.size - finite.size
        if finite.size:
            self._num_numbers += finite.size
            try:
                self._sum = math.fsum((self._sum, *finite))
            except OverflowError as err:
                raise DataError("the sum of these numbers is too large for statistics") from err
            self._min = min(self._min, float(finite.min()))
            self._max = max(self._max, float(finite.max()))


class StatisticsSink:
    """A JSON file that appears when the stream ends."""

    def __init__(self, path: Path, fields: Sequence[str], resumables: Resumables | None = None) -> None:
        """Begins the file; with `resumables` it may be resumed, and is appended to them.

        Raises:
            CannotCreateError: it cannot be made.
        """
        self._fields = {name: _FieldStatistics() for name in fields}
        self._num_records = self._num_not_taken = 0
        self._errors: Counter[str] = Counter()
        self._output = new_output(path) if resumables is None else GrowingFile(path)
        if resumables is not None:
            resumables.append(self)  # not the file, which is empty until the end

    def write(self, outcome: Outcome) -> None:
        """Adds one record.

        Raises:
            DataError: a field is missing, or is neither texts nor numbers.
        """
        self._num_records += 1
        if not outcome.is_taken:
            self._num_not_taken += 1
            return
        if outcome.outputs is None:
            self._errors[outcome.error.code if outcome.error is not None else "internal"] += 1
            return
        for name, statistics in self._fields.items():
            if name not in outcome.outputs:
                raise DataError(f"the record has no field {name!r}", where="sink of statistics")
            statistics.add(outcome.outputs[name])

    def finish(self) -> None:
        """Writes the file and gives it its name."""
        found = {
            "records": self._num_records,
            "failed": self._errors.total(),
            "errors": dict(sorted(self._errors.items())),
            **({"not_taken": self._num_not_taken} if self._num_not_taken else {}),
            "fields": {name: statistics.to_json() for name, statistics in self._fields.items()},
        }
        text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
        with wrapped_io(self._output.path):
            self._output.file.truncate(0)  # a run that was killed here may have left some of it
            self._output.file.write(text.encode("utf-8", "backslashreplace"))
        self._output.finish()

    def discard(self) -> None:
        """Removes the file."""
        self._output.discard()

    def resume(self, state: Mapping[str, Any]) -> None:
        """Goes on with the sums of a checkpoint."""
        self._num_records = state.get("records", 0)
        self._num_not_taken = state.get("not_taken", 0)
        self._errors = Counter(state.get("errors", {}))
        for name, sums in state.get("fields", {}).items():
            self._fields[name].restore(sums)

    def checkpoint(self) -> Mapping[str, Any]:
        """Returns the sums."""
        return {
            "records": self._num_records,
            "not_taken": self._num_not_taken,
            "errors": dict(self._errors),
            "fields": {name: statistics.state() for name, statistics in self._fields.items()},
        }

    def finish_again(self, state: Mapping[str, Any]) -> None:
        """Writes the file once more."""
        self.resume(state)
        self.finish()
