# SPDX-License-Identifier: Apache-2.0
"""Stage 6: how fast one problem is on each tier, beside torch and ONNX Runtime on CUDA, and beside the floor.

Two kinds of figures. A *call* is what a user waits for on average, back to back: `Session.run` of arrays that are on
the GPU, torch eager. A *graph* is the GPU's work alone: each recorded as a CUDA graph. A tier's outputs are compared
with ONNX Runtime's on the CPU first. Triton's tiles are measured here, as a compile on this machine would.

The floor is the time for moving inputs, weights and outputs once at the peak of the memory, or for the operations at
the peak of the units, whichever is more; problems smaller than the L2 cache may go below it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from gpucheck.agreement import agreement, on_host
from gpucheck.child import reason_of
from gpucheck.kernel_models import Plain, Separable, problems
from gpucheck.options import Options
from gpucheck.peaks import Peaks, peaks_of
from gpucheck.reference import cuda_session, outputs_of, random_inputs, session_of
from gpucheck.rows import DIFFERS, NOT_RUN, OK, REFUSED, WRONG, Row, with_ratios
from gpucheck.tiers import RefusedError, built, opened, target_of, why_unusable
from gpucheck.timing import Contestant, medians_ms
from gpucheck.torch_peers import TorchMissingError, TorchPeers, load_cudnn_first
from nndeploy.cuda import CudaError, Device, device
from nndeploy.errors import UnavailableError
from nndeploy.target.target import host_target

STAGE = "kernels"
SECONDS = 0.5
COPY = "copy 1 GiB on the GPU"
COPY_BYTES = 1 << 30


def items(options: Options) -> list[str]:
    """Returns the names of the problems, the copy first: it says what the memory really gives."""
    return [name for name in (COPY, *problems()) if re.search(options.match, name)]


def run(item: str, options: Options) -> Iterator[Row]:
    """Yields a row for each contestant of one problem."""
    gpu = device(0)
    if item == COPY:
        yield _copy(gpu)
        return
    problem = problems()[item]
    proto = problem.proto()
    reference = session_of(proto)
    inputs = random_inputs(reference)
    want = outputs_of(reference, inputs)
    load_cudnn_first()
    sessions, rows = _sessions(item, proto, options)
    yield from rows
    errors: dict[str, float | None] = {}
    for tier in list(sessions):
        found = agreement(on_host(sessions[tier].run(inputs)), want)
        errors[tier] = errors[f"{tier} graph"] = found.max_abs
        if not found.ok:
            yield Row(STAGE, item, tier, WRONG, found.reason, max_abs=found.max_abs)
            sessions.pop(tier).close()
    arrays = {name: gpu.to_device(value) for name, value in inputs.items()}
    calls: Group = {tier: Contestant(_call(one, arrays), gpu.synchronize) for tier, one in sessions.items()}
    graphs: Group = {}
    others: Group = {}
    yield from _add_graphs(item, gpu, sessions, arrays, graphs)
    yield from _add_onnxruntime(item, proto, inputs, calls)
    yield from _add_torch(item, problem, proto, inputs, want, options, (calls, graphs, others))
    peaks = peaks_of(gpu.compute_capability, dict(host_target().gpus[0].cudnn))
    for group in (calls, graphs):
        yield from _timed(item, problem, group, others if group is graphs else {}, errors, peaks)
    for session in sessions.values():
        session.close()


def _sessions(item: str, proto: Any, options: Options) -> tuple[dict[str, Any], list[Row]]:
    """Returns the open sessions by tier, and the rows of the tiers that refuse."""
    sessions, rows = {}, []
    for tier in options.tiers:
        if why := why_unusable(tier):
            rows.append(Row(STAGE, item, tier, REFUSED, why))
            continue
        try:
            sessions[tier] = opened(tier, built(tier, proto, target_of(options, tuned=True)))
        except RefusedError as err:
            rows.append(Row(STAGE, item, tier, REFUSED, str(err)))
    return sessions, rows


Group = dict[str, Contestant]


def _add_graphs(
    item: str, gpu: Device, sessions: Mapping[str, Any], arrays: Mapping[str, Any], graphs: Group
) -> Iterator[Row]:
    """Adds the tiers' graphs; work that cannot be captured is a row."""
    for tier, session in sessions.items():
        try:
            launch = graph_of(gpu, session, arrays)
        except UnavailableError as err:  # of the driver, too: a capture that fails leaves the context alone
            yield Row(STAGE, item, f"{tier} graph", NOT_RUN, f"not captured: {err}")
            continue
        if launch is not None:
            graphs[f"{tier} graph"] = Contestant(launch, gpu.synchronize)


def _call(session: Any, arrays: Mapping[str, Any]) -> Callable[[], object]:
    return lambda: session.run(arrays)


def graph_of(gpu: Device, session: Any, arrays: Mapping[str, Any]) -> Callable[[], object] | None:
    """Returns a launch of a session's work alone: its own graph, or its queueing, captured; None where it has neither.

    This looks behind `Session`, which has no such thing: what is measured is the kernels.
    """
    made = list(session.run(arrays).values())  # a session may record its graph at its first runs
    recorded = [*getattr(session, "_calls", {}).values(), getattr(session, "_call", None)]
    if (own := next((call for call in recorded if call is not None), None)) is not None:
        return _Replay(own._graph.launch, own)
    if not hasattr(session, "enqueue"):
        return None
    ordered = list(arrays.values())
    captured = gpu.capture(lambda: session.enqueue(ordered, made))
    return _Replay(captured.launch, (made, ordered))


class _Replay:
    """A launch that keeps alive what its graph reads and writes."""

    def __init__(self, launch: Callable[[], None], kept: object) -> None:
        self._launch, self._kept = launch, kept

    def __call__(self) -> None:
        self._launch()


def _add_onnxruntime(item: str, proto: Any, inputs: Mapping[str, Any], calls: Group) -> Iterator[Row]:
    import onnxruntime

    session, why = cuda_session(proto)
    if session is None:
        yield Row(STAGE, item, "onnxruntime CUDA", NOT_RUN, why)
        return
    binding = session.io_binding()
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(value, "cuda", 0))
    for output in session.get_outputs():
        binding.bind_output(output.name, "cuda")
    calls["onnxruntime CUDA"] = Contestant(lambda: session.run_with_iobinding(binding))


def _add_torch(
    item: str,
    problem: "Separable | Plain",
    proto: Any,
    inputs: Mapping[str, Any],
    want: Mapping[str, Any],
    options: Options,
    groups: tuple[Group, Group, Group],
) -> Iterator[Row]:
    """Adds torch to the groups; whatever it raises is its own row and no failure of ours."""
    try:
        peers = TorchPeers(problem, proto, inputs)
        found = agreement({"y": peers.output()}, want)
        if not found.ok:
            yield Row(STAGE, item, "torch", DIFFERS, found.reason, max_abs=found.max_abs)
        for group, added in zip(
            groups,
            (peers.calls(options.torch_compile), peers.graphs(options.torch_compile), peers.less_exact_graphs()),
            strict=True,
        ):
            group.update(added)
    except TorchMissingError as err:
        yield Row(STAGE, item, "torch", NOT_RUN, str(err))
    except CudaError:
        raise
    except Exception as err:
        yield Row(STAGE, item, "torch", NOT_RUN, reason_of(err))


def _timed(
    item: str,
    problem: "Separable | Plain",
    group: Group,
    others: Group,
    errors: Mapping[str, float | None],
    peaks: Peaks,
) -> list[Row]:
    """Returns a row a contestant; `others` are timed in the same turns, and are no peers."""
    if not group:
        return []
    times = medians_ms({**group, **others}, SECONDS)
    rows = [
        Row(STAGE, item, name, OK, max_abs=errors.get(name), ms=ms, facts=facts_of(problem, ms, peaks))
        for name, ms in times.items()
    ]
    peers = {name: times[name] for name in group if name not in errors}
    ours = with_ratios([row for row in rows if row.backend in errors], peers)
    return [*ours, *(row for row in rows if row.backend not in errors)]


def facts_of(problem: "Separable | Plain", ms: float, peaks: Peaks) -> dict[str, Any]:
    """Returns the floor, how much of it was reached, and the rate of what bounds the problem."""
    floor = peaks.floor_ms(problem.num_bytes, problem.num_operations, problem.dtype)
    bytes_alone = peaks.floor_ms(problem.num_bytes, 0.0, problem.dtype)
    facts: dict[str, Any] = {"floor ms": float(f"{floor:.3g}"), "of floor": f"{floor / ms:.0%}"}
    if bytes_alone >= floor:
        facts["GB/s"] = round(problem.num_bytes / ms / 1e6, 1)
    else:
        facts["TFLOP/s"] = round(problem.num_operations / ms / 1e9, 2)
    if 0 < problem.num_bytes < peaks.l2_bytes:
        facts["in"] = "L2"
    return facts


def _copy(gpu: Device) -> Row:
    source, target = (gpu.empty((COPY_BYTES,), "uint8") for _ in range(2))
    source.write(np.zeros(COPY_BYTES, np.uint8))
    ms = medians_ms({"copy": Contestant(lambda: gpu.copy(target, source), gpu.synchronize)}, SECONDS)["copy"]
    both_ways = 2
    gb_a_second = both_ways * COPY_BYTES / ms / 1e6
    peak = peaks_of(gpu.compute_capability, dict(host_target().gpus[0].cudnn)).bytes_per_s / 1e9
    facts = {"GB/s": round(gb_a_second), "peak GB/s": round(peak)}
    return Row(STAGE, COPY, "cuda", OK, ms=ms, facts=facts)
