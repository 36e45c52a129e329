# SPDX-License-Identifier: Apache-2.0
"""The cases of the cost table, measured: every engine in one process, one thread, in interleaved rounds."""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import native_engines
import numpy as np
import onnx
from cost_cases import FOLLOWED, LONG, SHORT, Array, Case, cases, chain_of_small, followed
from interleaved import EngineRefusedError, Ready, largest_error

from nndeploy.errors import NndeployError
from nndeploy.frontend.load import load_model
from nndeploy.partition.cost import estimate_costs
from nndeploy.partition.kinds import FREE
from nndeploy.target.target import X86_64_LEVELS, host_target

ENGINES = ("native", "onnxruntime", "openvino")
REFERENCE = "reference"
MOST_OF_REFERENCE = 30e-6
"""Largest estimate at which onnx's own evaluator is measured: it is hundreds of times slower."""
TOLERANCE, TOLERANCE_OF_BYTES = 1e-3, 1e-1
"""Largest differences of floats and of quantised values, whose roundings add up, in parts of the largest value."""
SMALL_COPIES = 16
REPEATS = 5
MOST_ITERATIONS = 400


@dataclass
class Measurements:
    """Seconds by engine: `points` by kind as (estimate, measured), calls, nodes, and parts left of fused operators."""

    points: dict[str, dict[str, list[tuple[float, float]]]] = field(default_factory=dict)
    call: dict[str, float] = field(default_factory=dict)
    node: dict[str, float] = field(default_factory=dict)
    node_of_any_size: dict[str, float] = field(default_factory=dict)
    fused: dict[str, dict[str, float]] = field(default_factory=dict)


class Clock:
    """Seconds of the process on a core, freed of how fast that core was in a round."""

    def __init__(self) -> None:
        self._left = np.random.default_rng(0).standard_normal((192, 192)).astype(np.float32)
        self.least = min(self.reference() for _ in range(50))

    def reference(self) -> float:
        """Returns the seconds of the fixed product."""
        start = time.process_time()
        for _ in range(4):
            self._left @ self._left
        return time.process_time() - start

    def seconds(self, call: Callable[[], Any], iterations: int) -> float:
        """Returns the seconds of one call, the average of `iterations`."""
        start = time.process_time()
        for _ in range(iterations):
            call()
        return (time.process_time() - start) / iterations


def measured(level: str, only: str, rounds: int, seconds: float) -> Measurements:
    """Returns what was measured at a level; a line on standard error a case."""
    limit_native(level)
    found, clock = Measurements(), Clock()
    _measure_fixed(found, clock, rounds, seconds)
    for case in cases():
        if only in case.kind:
            _measure_case(case, found, clock, rounds, seconds)
    return found


def limit_native(level: str) -> None:
    """Lets our kernels see no features beyond those of a level."""
    import nndeploy_native.kernel_library as library

    names = list(X86_64_LEVELS)
    known = {feature for name in names[: names.index(level) + 1] for feature in X86_64_LEVELS[name]}
    features = tuple(sorted(known.intersection(host_target().cpu_features)))
    target = replace(host_target(), cpu_features=features)
    library.host_target = lambda: target  # type: ignore[assignment]


def _measure_fixed(found: Measurements, clock: Clock, rounds: int, seconds: float) -> None:
    def small(copies: int, any_size: bool) -> dict[str, float]:
        made = chain_of_small(copies, any_size=any_size)
        return times(made, clock, rounds, seconds, (*ENGINES, REFERENCE), knows_sizes=not any_size)

    one, many, any_one, any_many = (
        small(1, False),
        small(SMALL_COPIES, False),
        small(1, True),
        small(SMALL_COPIES, True),
    )
    for engine in one:
        found.node[engine] = max(1e-8, (many[engine] - one[engine]) / (SMALL_COPIES - 1))
        found.node_of_any_size[engine] = max(1e-8, (any_many[engine] - any_one[engine]) / (SMALL_COPIES - 1))
        found.call[engine] = max(1e-7, one[engine] - found.node[engine])
    for head in FOLLOWED:
        extra = [_extra_of_follower(head, clock, rounds, seconds) for _ in range(REPEATS)]
        for engine in ENGINES:
            found.fused.setdefault(engine, {})[head] = statistics.median(one[engine] for one in extra)
    _say(f"calls {found.call}\nnodes {found.node}\nof any size {found.node_of_any_size}\nfused {found.fused}")


def _extra_of_follower(head: str, clock: Clock, rounds: int, seconds: float) -> dict[str, float]:
    alone = times(followed(head, LONG, with_follower=False), clock, rounds, seconds, ENGINES)
    both = times(followed(head, LONG, with_follower=True), clock, rounds, seconds, ENGINES)
    return {engine: (both[engine] - alone[engine]) / LONG for engine in ENGINES}


def _measure_case(case: Case, found: Measurements, clock: Clock, rounds: int, seconds: float) -> None:
    made = case.build(SHORT)
    estimate = estimate_of(made[0], case.kind)
    engines = (*ENGINES, REFERENCE) if estimate < MOST_OF_REFERENCE else ENGINES
    short = times(made, clock, rounds, seconds, engines)
    long = times(case.build(LONG), clock, rounds, seconds, engines) if case.chained else {}
    shown = []
    for engine in [name for name in short if name in long or not case.chained]:
        net = (long[engine] - short[engine]) / (LONG - SHORT) if case.chained else short[engine] - found.call[engine]
        net = max(net, found.node[engine])
        found.points.setdefault(engine, {}).setdefault(case.kind, []).append((estimate, net))
        shown.append(f"{engine} {net * 1e6:.2f}")
    _say(f"{case.kind:24} {case.size:16} estimate {estimate * 1e6:.2f}: {'  '.join(shown)} us")


def estimate_of(model: onnx.ModelProto, kind: str) -> float:
    """Returns the estimate of the one node of a kind in a model.

    Raises:
        SystemExit: it has none; the case measures something else than it says.
    """
    loaded = load_model(model.SerializeToString())
    costs = estimate_costs(loaded.model, {})
    found = [costs.seconds[name] for name, one in costs.kinds.items() if one == kind and one != FREE]
    if not found:
        sys.exit(f"no node of the case is a {kind}: {sorted(set(costs.kinds.values()))}")
    return max(found)


def times(
    made: tuple[onnx.ModelProto, Mapping[str, Array]],
    clock: Clock,
    rounds: int,
    seconds: float,
    engines: Sequence[str],
    *,
    knows_sizes: bool = True,
) -> dict[str, float]:
    """Returns the seconds of a call by engine, of those that agree with ONNX Runtime."""
    model, inputs = made
    is_quantised = any(node.op_type == "QuantizeLinear" for node in model.graph.node)
    tolerance = TOLERANCE_OF_BYTES if is_quantised else TOLERANCE
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        Path(file.name).write_bytes(model.SerializeToString())
        return times_of_file(file.name, inputs, clock, rounds, seconds, tolerance, engines, knows_sizes=knows_sizes)


def times_of_file(
    path: str,
    inputs: Mapping[str, Array],
    clock: Clock,
    rounds: int,
    seconds: float,
    tolerance: float,
    engines: Sequence[str] = ENGINES,
    *,
    knows_sizes: bool = True,
) -> dict[str, float]:
    """Returns the seconds of a call of a model by engine, of those that compute what the model says."""
    ready = _agreeing(_ready(path, inputs, engines, knows_sizes), _as_written(path, inputs), tolerance)
    iterations = {name: _iterations(one, clock, seconds) for name, one in ready.items()}
    each: dict[str, list[float]] = {name: [] for name in ready}
    for number in range(rounds):
        reference = min(clock.reference() for _ in range(2)) / clock.least
        for name in list(ready)[number % len(ready) :] + list(ready)[: number % len(ready)]:
            ready[name].call()
            each[name].append(clock.seconds(ready[name].call, iterations[name]) / max(1.0, reference))
    return {name: statistics.median(found) for name, found in each.items()}


def _ready(path: str, inputs: Mapping[str, Array], engines: Sequence[str], knows_sizes: bool) -> dict[str, Ready]:
    makers: dict[str, Callable[[], Ready]] = {
        "onnxruntime": lambda: _onnxruntime(path, inputs, knows_sizes),
        "native": lambda: native_engines.native(inputs, path, 1, knows_sizes=knows_sizes),
        "openvino": lambda: native_engines.openvino(inputs, path, 1, knows_sizes=knows_sizes),
        REFERENCE: lambda: _reference(path, inputs),
    }
    found = {}
    for name in sorted(engines, key=list(makers).index):
        try:
            found[name] = makers[name]()
        except (EngineRefusedError, NndeployError, RuntimeError, TypeError, ValueError) as err:
            _say(f"{name} refuses: {' '.join(str(err).split())[:200]}")
    return found


def _reference(path: str, inputs: Mapping[str, Array]) -> Ready:
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(path)
    return Ready(lambda: evaluator.run(None, dict(inputs)), list)


def _onnxruntime(path: str, inputs: Mapping[str, Array], knows_sizes: bool) -> Ready:
    try:
        return native_engines.onnxruntime(inputs, path, 1, knows_sizes, exact=True)
    except Exception:  # ONNX Runtime's own kinds; it would have to replace a tensor that several nodes share
        return native_engines.onnxruntime(inputs, path, 1, knows_sizes)


def _as_written(path: str, inputs: Mapping[str, Array]) -> Ready:
    """Returns ONNX Runtime without optimisations."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    return Ready(lambda: session.run(None, dict(inputs)), list)


def _agreeing(ready: Mapping[str, Ready], truth: Ready, tolerance: float) -> dict[str, Ready]:
    """Returns those that are as near to the model as written as ONNX Runtime's optimisations are, or near enough."""
    want = _numbers(truth)
    errors = {name: largest_error(_numbers(one), want) for name, one in ready.items()}
    allowed = max(tolerance, errors["onnxruntime"])
    for name in sorted(name for name, error in errors.items() if error > allowed):
        _say(f"{name} differs by {errors[name]:.2g} and does not count")
    return {name: one for name, one in ready.items() if errors[name] <= allowed}


def _numbers(ready: Ready) -> list[Array]:
    arrays = [np.asarray(one) for one in ready.arrays_of(ready.call()) if isinstance(one, np.ndarray | np.generic)]
    return [one for one in arrays if one.dtype.kind in "fiub"]


def _iterations(ready: Ready, clock: Clock, seconds: float) -> int:
    once = min(clock.seconds(ready.call, 3) for _ in range(2))
    return max(1, min(MOST_ITERATIONS, round(seconds / max(once, 1e-6))))


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
