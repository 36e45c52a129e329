# SPDX-License-Identifier: Apache-2.0
"""Compares what LoadGen logged in accuracy mode with the program called directly, sample by sample.

The log holds the bytes that each answer pointed to, so the whole way is checked: batching and taking apart, which
answer belongs to which sample, and that the bytes lived until LoadGen had them.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nndeploy.bundle.values import decode_values
from nndeploy.comparison.compare import Comparison, compare_values, tolerance_for
from nndeploy.errors import DataError, InputOutputError
from nndeploy.loadgen.samples import NamedSample
from nndeploy.runtime.batching import JoinedCalls
from nndeploy.values.types import Value


@dataclass(frozen=True, slots=True)
class OutputAccuracy:
    """One output over all samples: how many differed, and the worst comparison."""

    output: str
    num_failed: int
    worst: Comparison


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The outcome: how many answers were compared, and each output."""

    num_answers: int
    outputs: tuple[OutputAccuracy, ...]

    @property
    def ok(self) -> bool:
        """Whether every output of every sample agrees."""
        return not any(output.num_failed for output in self.outputs)


def accuracy_from_log(folder: Path, calls: JoinedCalls, samples: Sequence[NamedSample]) -> Accuracy:
    """Returns how the logged answers compare with calls of one sample, within the bundle's tolerances.

    Raises:
        InputOutputError: the log cannot be read, or a sample is not in it.
    """
    logged = _answers(folder / "mlperf_log_accuracy.json")
    worst: dict[str, OutputAccuracy] = {}
    num_answers, seen = 0, set()
    for index, got in logged:
        (want,) = calls.run([samples[index].values])
        num_answers += 1
        seen.add(index)
        for item in calls.manifest.outputs:
            tolerance = tolerance_for(item.type, calls.manifest.tolerances)
            comparison = compare_values(got.get(item.name), want[item.name], tolerance)
            worst[item.name] = _worse(worst.get(item.name), item.name, samples[index].origin, comparison)
    if missing := sorted(set(range(len(samples))) - seen):
        raise InputOutputError(f"LoadGen's log has no answer for {samples[missing[0]].origin}", where=str(folder))
    return Accuracy(num_answers, tuple(worst.values()))


def _answers(path: Path) -> Iterator[tuple[int, dict[str, Value]]]:
    """Yields (index of the sample, its outputs); the log has one answer a line, too many to hold at once."""
    try:
        with path.open(encoding="ascii") as file:
            for line in file:
                if text := line.strip(" \n,[]"):
                    entry = json.loads(text)
                    yield entry["qsl_idx"], decode_values(bytes.fromhex(entry["data"]))
    except (OSError, ValueError, KeyError, DataError) as err:
        raise InputOutputError(f"LoadGen's log cannot be read: {err}", where=str(path)) from err


def _worse(before: OutputAccuracy | None, name: str, origin: str, comparison: Comparison) -> OutputAccuracy:
    if before is None:
        before = OutputAccuracy(name, 0, comparison)
    is_worse = (not comparison.ok, comparison.max_abs or 0.0) > (not before.worst.ok, before.worst.max_abs or 0.0)
    if is_worse and comparison.note:
        comparison = replace(comparison, note=f"{origin}: {comparison.note}")
    return OutputAccuracy(name, before.num_failed + (not comparison.ok), comparison if is_worse else before.worst)
