# SPDX-License-Identifier: Apache-2.0
"""How fast one problem is on each backend, beside torch and ONNX Runtime on CUDA, and beside the floor.

A call is what a user waits for on average, back to back: `Session.run` of arrays that are on the GPU, torch eager. A
graph is the GPU's work alone, recorded as a CUDA graph. Outputs are compared with ONNX Runtime's on the CPU first.
Triton's tiles are measured here, as a compile on this machine would. The floor is the time for moving inputs, weights
and outputs once at the peak of the memory, or for the operations at the peak of the units, whichever is more; problems
smaller than the L2 cache may go below it.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import gpu_problems
import numpy as np
import onnxruntime
import pytest
from gpu_backends import (
    TIERS,
    Contestant,
    RefusedError,
    built,
    check_alike,
    medians_ms,
    on_host,
    opened,
    ort_outputs,
    ort_session,
    random_inputs,
    why_unusable,
)
from gpu_torch import TorchPeers, load_cudnn_first

from nndeploy.cuda import CudaError, Device, device
from nndeploy.errors import UnavailableError
from nndeploy.target.target import host_target

SECONDS, COPY_BYTES = 0.5, 1 << 30
Record = Callable[[str, object], None]
Group = dict[str, Contestant]
pytestmark = pytest.mark.serial


def test_a_copy_on_the_gpu(record_property: Record) -> None:
    gpu = device(0)
    source, target = (gpu.empty((COPY_BYTES,), "uint8") for _ in range(2))
    source.write(np.zeros(COPY_BYTES, np.uint8))
    ms = medians_ms({"copy": Contestant(lambda: gpu.copy(target, source), gpu.synchronize)}, SECONDS)["copy"]
    record_property("GB/s", f"{2 * COPY_BYTES / ms / 1e6:.0f}")


@pytest.mark.parametrize("problem", gpu_problems.problems().values(), ids=lambda problem: problem.name)
def test_a_problem_is_right_and_timed(problem: gpu_problems.Problem, tmp_path: Path, record_property: Record) -> None:
    gpu, proto = device(0), problem.proto()
    reference = ort_session(proto)
    inputs = random_inputs(reference)
    want = ort_outputs(reference, inputs)
    load_cudnn_first()
    arrays = {name: gpu.to_device(value) for name, value in inputs.items()}
    calls, graphs, wrong = Group(), Group(), list[str]()
    with ExitStack() as stack:
        for tier in TIERS:
            try:
                session = _session(tier, proto, tmp_path / tier)
            except RefusedError as err:
                record_property(f"{tier} refused", err)
                continue
            stack.callback(session.close)
            try:
                check_alike(on_host(session.run(inputs)), want)
            except AssertionError as err:
                wrong.append(f"{tier}: {err}")
                continue
            calls[tier] = Contestant(lambda session=session: session.run(arrays), gpu.synchronize)
            try:
                graphs |= _graph(gpu, tier, session, arrays)
            except UnavailableError as err:  # of the driver, too: a capture that fails leaves the context alone
                record_property(f"{tier} not captured", err)
        for add in (_add_onnxruntime, _add_torch):
            try:
                add(problem, proto, inputs, want, calls, graphs)
            except CudaError:
                raise
            except Exception as err:  # whatever a peer raises is no failure of ours
                record_property(add.__name__.removeprefix("_add_"), f"{type(err).__name__}: {err}"[:200])
        for group in (calls, graphs):
            for name, ms in medians_ms(group, SECONDS).items() if group else ():
                record_property(f"{name} ms", f"{ms:.4g}")
    peaks = gpu_problems.peaks_of(gpu.compute_capability, dict(host_target().gpus[0].cudnn))
    record_property("floor ms", f"{peaks.floor_ms(problem.num_bytes, problem.num_operations, problem.dtype):.3g}")
    if problem.num_bytes < peaks.l2_bytes:
        record_property("in", "L2")
    assert not wrong


def _session(tier: str, proto: Any, folder: Path) -> Any:
    """Returns a session of a backend.

    Raises:
        RefusedError: it is not usable here, or does not take the model.
    """
    if why := why_unusable(tier):
        raise RefusedError(why)
    folder.mkdir()
    return opened(tier, built(tier, proto, host_target(), folder))


def _graph(gpu: Device, tier: str, session: Any, arrays: Mapping[str, Any]) -> Group:
    """Returns a launch of a session's work alone: its own graph, or its queueing, captured; none where it has neither.

    This looks behind `Session`, which has no such thing: what is measured is the kernels.
    """
    made = list(session.run(arrays).values())  # a session may record its graph at its first runs
    recorded = [*getattr(session, "_calls", {}).values(), getattr(session, "_call", None)]
    if (own := next((call for call in recorded if call is not None), None)) is not None:
        return {f"{tier} graph": Contestant(lambda: own._graph.launch(), gpu.synchronize)}
    if not hasattr(session, "enqueue"):
        return {}
    ordered = list(arrays.values())
    captured = gpu.capture(lambda: session.enqueue(ordered, made))
    kept = (made, ordered)  # what the graph reads and writes
    return {f"{tier} graph": Contestant(lambda kept=kept: captured.launch(), gpu.synchronize)}


def _add_onnxruntime(problem: Any, proto: Any, inputs: Any, want: Any, calls: Group, graphs: Group) -> None:
    session = ort_session(proto, on_cuda=True)
    binding = session.io_binding()
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(value, "cuda", 0))
    for output in session.get_outputs():
        binding.bind_output(output.name, "cuda")
    calls["onnxruntime CUDA"] = Contestant(lambda: session.run_with_iobinding(binding))


def _add_torch(problem: Any, proto: Any, inputs: Any, want: Any, calls: Group, graphs: Group) -> None:
    peers = TorchPeers(problem, proto, inputs)
    check_alike({"y": peers.output()}, want)
    calls.update(peers.calls())
    graphs.update(peers.graphs())
