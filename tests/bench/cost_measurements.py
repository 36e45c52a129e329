# SPDX-License-Identifier: Apache-2.0
"""The cases of the cost table, and whole models, timed: every engine in one process, one thread, interleaved rounds.

What counts is the time of the process on a core, so that others on the machine do not, over that of a fixed product of
the same round, times the least time of that product: a core that is slow in a round is slow for both. Outputs are
compared with ONNX Runtime's before anything is timed; who differs or refuses has no time.

`python tests/bench/cost_measurements.py NAME ZOO MODELS` prints the seconds of a whole model by engine as JSON.
"""

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import onnx
from cost_cases import FOLLOWED, LONG, SHORT, Case, Made, cases, chain_of_small, followed
from engines import arrays, opened
from interleaved import Array, EngineRefusedError, Ready, cpu_seconds, largest_error, rotated
from model_sets import subject

from nndeploy.errors import NndeployError
from nndeploy.frontend.load import load_model
from nndeploy.partition.cost import estimate_costs
from nndeploy.partition.kinds import FREE
from nndeploy.target.target import X86_64_LEVELS, host_target

ENGINES = ("onnxruntime", "native", "openvino")
REFERENCE, MOST_OF_REFERENCE = "reference", 30e-6
"""ONNX's own evaluator, and the largest estimate at which it is measured: it is hundreds of times slower."""
TOLERANCE, TOLERANCE_OF_BYTES, TOLERANCE_OF_MODELS = 1e-3, 1e-1, 5e-2
"""Of the largest value; of quantised values roundings add up, and who differs by more computes another model."""
SMALL_COPIES, REPEATS, MOST_ITERATIONS = 16, 5, 400
Seconds = dict[str, float]


@dataclass
class Measurements:
    """Seconds by engine: `points` by kind as (estimate, measured), calls, nodes, and parts left of fused operators."""

    points: dict[str, dict[str, list[tuple[float, float]]]] = field(default_factory=dict)
    call: Seconds = field(default_factory=dict)
    node: Seconds = field(default_factory=dict)
    node_of_any_size: Seconds = field(default_factory=dict)
    fused: dict[str, Seconds] = field(default_factory=dict)


class Clock:
    """Seconds of the process on a core, freed of how fast that core was in a round."""

    def __init__(self, rounds: int, seconds: float) -> None:
        self._left = np.random.default_rng(0).standard_normal((192, 192)).astype(np.float32)
        self._least = min(self._product() for _ in range(50))
        self._rounds, self._seconds = rounds, seconds

    def of(self, calls: Mapping[str, Callable[[], Any]]) -> Seconds:
        iterations = {name: self._iterations(call) for name, call in calls.items()}
        each: dict[str, list[float]] = {name: [] for name in calls}
        for number in range(self._rounds):
            slowness = max(1.0, min(self._product() for _ in range(2)) / self._least)
            for name in rotated(list(calls), number):
                calls[name]()
                each[name].append(cpu_seconds(calls[name], iterations[name]) / slowness)
        return {name: statistics.median(found) for name, found in each.items()}

    def _product(self) -> float:
        return 4 * cpu_seconds(lambda: self._left @ self._left, 4)

    def _iterations(self, call: Callable[[], Any]) -> int:
        once = min(cpu_seconds(call, 3) for _ in range(2))
        return max(1, min(MOST_ITERATIONS, round(self._seconds / max(once, 1e-6))))


def measured(level: str, only: str, rounds: int, seconds: float) -> Measurements:
    """Returns what was measured at a level; a line on standard error a case."""
    _limit_native(level)
    found, clock = Measurements(), Clock(rounds, seconds)
    _measure_fixed(found, clock)
    for case in cases():
        if only in case.kind:
            _measure_case(case, found, clock)
    return found


def _limit_native(level: str) -> None:
    import nndeploy_native.kernel_library as library

    names = list(X86_64_LEVELS)
    known = {feature for name in names[: names.index(level) + 1] for feature in X86_64_LEVELS[name]}
    target = replace(host_target(), cpu_features=tuple(sorted(known.intersection(host_target().cpu_features))))
    library.host_target = lambda: target  # type: ignore[assignment]


def _measure_fixed(found: Measurements, clock: Clock) -> None:
    def small(copies: int, any_size: bool) -> Seconds:
        made = chain_of_small(copies, any_size=any_size)
        return _times(made, clock, (*ENGINES, REFERENCE), knows_sizes=not any_size)

    one, many, any_one, any_many = (small(n, any_size) for any_size in (False, True) for n in (1, SMALL_COPIES))
    for engine in one:
        found.node[engine] = max(1e-8, (many[engine] - one[engine]) / (SMALL_COPIES - 1))
        found.node_of_any_size[engine] = max(1e-8, (any_many[engine] - any_one[engine]) / (SMALL_COPIES - 1))
        found.call[engine] = max(1e-7, one[engine] - found.node[engine])
    for head in FOLLOWED:
        extra = [_extra_of_follower(head, clock) for _ in range(REPEATS)]
        for engine in ENGINES:
            found.fused.setdefault(engine, {})[head] = statistics.median(one[engine] for one in extra)
    _say(f"calls {found.call}\nnodes {found.node}\nof any size {found.node_of_any_size}\nfused {found.fused}")


def _extra_of_follower(head: str, clock: Clock) -> Seconds:
    alone, both = (_times(followed(head, LONG, with_follower=one), clock, ENGINES) for one in (False, True))
    return {engine: (both[engine] - alone[engine]) / LONG for engine in ENGINES}


def _measure_case(case: Case, found: Measurements, clock: Clock) -> None:
    made = case.build(SHORT)
    estimate = _estimate_of(made[0], case.kind)
    engines = (*ENGINES, REFERENCE) if estimate < MOST_OF_REFERENCE else ENGINES
    short = _times(made, clock, engines)
    long = _times(case.build(LONG), clock, engines) if case.chained else {}
    shown = []
    for engine in [name for name in short if name in long or not case.chained]:
        net = (long[engine] - short[engine]) / (LONG - SHORT) if case.chained else short[engine] - found.call[engine]
        net = max(net, found.node[engine])
        found.points.setdefault(engine, {}).setdefault(case.kind, []).append((estimate, net))
        shown.append(f"{engine} {net * 1e6:.2f}")
    _say(f"{case.kind:24} {case.size:16} estimate {estimate * 1e6:.2f}: {'  '.join(shown)} us")


def _estimate_of(model: onnx.ModelProto, kind: str) -> float:
    """Returns the estimate of the one node of a kind in a model."""
    costs = estimate_costs(load_model(model.SerializeToString()).model, {})
    found = [costs.seconds[name] for name, one in costs.kinds.items() if one == kind and one != FREE]
    if not found:
        sys.exit(f"no node of the case is a {kind}: {sorted(set(costs.kinds.values()))}")
    return max(found)


def _times(made: Made, clock: Clock, engines: Sequence[str], *, knows_sizes: bool = True) -> Seconds:
    model, inputs = made
    is_quantised = any(node.op_type == "QuantizeLinear" for node in model.graph.node)
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        Path(file.name).write_bytes(model.SerializeToString())
        tolerance = TOLERANCE_OF_BYTES if is_quantised else TOLERANCE
        return times_of_file(file.name, inputs, clock, tolerance, engines, knows_sizes=knows_sizes)


def times_of_file(
    path: str, inputs: Mapping[str, Array], clock: Clock, tolerance: float, engines: Sequence[str] = ENGINES, *,
    knows_sizes: bool = True,
) -> Seconds:  # fmt: skip
    """Returns the seconds of a call of a model by engine, of those that compute what the model says.

    Those are as near to the model as written as ONNX Runtime's optimisations are, or near enough.
    """
    found = {}
    for name in engines:
        how = {} if name == REFERENCE else {"threads": 1, "knows_sizes": knows_sizes, "exact": True}
        try:
            session = opened(name, inputs, model=path, **how)
        except (EngineRefusedError, NndeployError, RuntimeError, TypeError, ValueError) as err:
            _say(f"{name} refuses: {' '.join(str(err).split())[:200]}")
        else:
            found[name] = Ready(lambda run=session.run: run(dict(inputs)), session.arrays_of)
    truth = _numbers(opened("as written", inputs, model=path).run(dict(inputs)))
    errors = {name: largest_error(_numbers(one.arrays_of(one.call())), truth) for name, one in found.items()}
    for name in [name for name, error in errors.items() if error > max(tolerance, errors["onnxruntime"])]:
        _say(f"{name} differs by {errors[name]:.2g} and does not count")
        del found[name]
    return clock.of({name: one.call for name, one in found.items()})


def _numbers(values: Sequence[Any]) -> list[Array]:
    return [one for one in arrays(values) if one.dtype.kind in "fiub"]


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    one = subject(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
    print(json.dumps(times_of_file(str(one.path), one.inputs, Clock(5, 0.02), TOLERANCE_OF_MODELS)))
