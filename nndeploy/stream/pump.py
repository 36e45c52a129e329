# SPDX-License-Identifier: Apache-2.0
"""Runs the items of a source through a program into a sink: exactly one outcome for each item, in order.

An item that cannot be read or does not fit becomes an error record and the stream goes on; what would hit every item
alike (a damaged bundle, a full disk) ends the stream.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from nndeploy.errors import BundleError, DataError, InputError, InputOutputError, MissingInputError, NndeployError
from nndeploy.runtime.latency import Latencies
from nndeploy.runtime.program import Program
from nndeploy.stream.items import Item, Outcome
from nndeploy.stream.sinks import Sink
from nndeploy.value_types import ML_DTYPES, Value

NanPolicy = Literal["pass", "flag", "reject"]
"""What becomes of NaN and infinities in inputs: nothing is said, the outcome says so, the item is refused."""


@dataclass(slots=True)
class Summary:
    """What a stream did. `seconds` is from the first item to the end."""

    num_items: int = 0
    num_failed: int = 0
    num_non_finite: int = 0
    seconds: float = 0.0
    latencies: Latencies = field(default_factory=Latencies)

    @property
    def rate_hz(self) -> float:
        """Items a second, reading and writing included."""
        return self.num_items / self.seconds if self.seconds else 0.0


def pump(
    program: Program,
    items: Iterable[Item],
    sink: Sink,
    *,
    nan: NanPolicy = "flag",
    stop_on_error: bool = False,
    on_outcome: Callable[[Outcome], None] | None = None,
) -> Summary:
    """Returns what was done; `on_outcome` sees each outcome after the sink took it. The sink is finished.

    Raises:
        BundleError: a submodel is not what the manifest says.
        InputOutputError: an outcome could not be written.
    """
    summary = Summary()
    start_ns = time.perf_counter_ns()
    try:
        for item in items:
            outcome = outcome_of(program, item, nan)
            sink.write(outcome)
            _count(summary, outcome)
            summary.seconds = (time.perf_counter_ns() - start_ns) / 1e9
            if on_outcome is not None:
                on_outcome(outcome)
            if outcome.error is not None and stop_on_error:
                break
        sink.finish()
    except BaseException:
        sink.discard()
        raise
    return summary


def outcome_of(program: Program, item: Item, nan: NanPolicy) -> Outcome:
    """Returns what becomes of one item."""
    try:
        inputs = item.load()
        odd = non_finite_names(inputs) if nan != "pass" else ()
        if odd and nan == "reject":
            raise InputError(f"holds NaN or infinity in {', '.join(map(repr, odd))}", hint="allow it with --nan flag")
        start_ns = time.perf_counter_ns()
        outputs = program.run(inputs)
        run_ns = time.perf_counter_ns() - start_ns
    except BundleError:
        raise
    except (DataError, MissingInputError, InputOutputError) as err:
        return _failure(item, err)
    return Outcome(item.index, item.origin, item.stem, outputs, None, odd, run_ns)


def _failure(item: Item, error: NndeployError) -> Outcome:
    if item.origin not in error.where:
        error.within(item.origin)
    return Outcome(item.index, item.origin, item.stem, None, error)


def _count(summary: Summary, outcome: Outcome) -> None:
    summary.num_items += 1
    summary.num_non_finite += bool(outcome.non_finite)
    if outcome.error is not None:
        summary.num_failed += 1
    else:
        summary.latencies.add(outcome.run_ns)


def non_finite_names(values: Mapping[str, Value]) -> tuple[str, ...]:
    """Returns the names of the values that hold NaN or an infinity."""
    return tuple(name for name, value in values.items() if _has_non_finite(value))


def _has_non_finite(value: Value) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_non_finite, value))
    if isinstance(value, Mapping):
        return any(map(_has_non_finite, value.values()))
    array = np.asarray(value)
    if array.dtype.kind not in "fc" and not (array.dtype.name in ML_DTYPES and "float" in array.dtype.name):
        return False
    return not bool(np.isfinite(array).all())
