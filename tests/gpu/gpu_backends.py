# SPDX-License-Identifier: Apache-2.0
"""A model on one backend for GPUs and on ONNX Runtime, which is the reference on the CPU and a peer on CUDA; timing.

Nothing of the core stands between a test and a backend, so what is seen is the backend's.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime

from nndeploy.checking.check import compare_outputs, describe_failure, tolerances
from nndeploy.errors import BuildRefusedError
from nndeploy.plugin.interface import Artifact, Backend, BuildOptions, OpenOptions, Session
from nndeploy.plugin.registry import backend, is_installed
from nndeploy.target.target import Target, host_target
from nndeploy.values.types import type_of_value

TIERS: tuple[str, ...] = ("tensorrt", "cudnn", "triton")
DEVICE, CUDA_PROVIDER, QUIET = "cuda:0", "CUDAExecutionProvider", 3
BATCH_MS, MAX_BATCH, NUM_WARM, MIN_ROUNDS = 3.0, 2000, 3, 5


def why_unusable(tier: str) -> str:
    """Returns why a backend can neither build for nor run on this machine, or ""."""
    if not is_installed(tier):
        return f"{tier} is not installed"
    probe = backend(tier).probe(host_target())
    return "" if probe.can_build and probe.can_run else f"{probe.reason} {probe.hint}".strip()


class RefusedError(Exception):
    """The backend does not take the model; `str(error)` is its reason."""


def built(tier: str, proto: onnx.ModelProto, target: Target, folder: Path) -> Artifact:
    """Returns the artifact of a whole model.

    Raises:
        RefusedError: the backend refuses a node, even after its transforms, or the build.
    """
    model, plugin = ir.from_proto(onnx.shape_inference.infer_shapes(proto, data_prop=True)), backend(tier)
    _name_nodes(model)
    refused = _refusals(plugin, model, target)
    if refused and sum(rewrite(model, lambda node: node.name in refused) for rewrite in plugin.transforms(target)):
        _name_nodes(model)
        refused = refused if _refusals(plugin, model, target) else {}
    if refused:
        raise RefusedError(next(iter(refused.values())))
    try:
        return plugin.build(model, target, BuildOptions(), folder)
    except BuildRefusedError as err:
        raise RefusedError(f"build: {err}") from err


def _refusals(plugin: Backend, model: ir.Model, target: Target) -> dict[str, str]:
    """Returns the operator and the reason of each node that a backend does not take, by name."""
    pairs = zip(model.graph, plugin.supports(model, target, BuildOptions()), strict=True)
    return {node.name or "": f"{node.op_type}: {answer.reason}" for node, answer in pairs if not answer.ok}


def _name_nodes(model: ir.Model) -> None:
    for number, node in enumerate(model.graph):
        node.name = f"node{number}"


def opened(tier: str, artifact: Artifact) -> Session:
    """Returns a session over an artifact on the GPU."""
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    return backend(tier).open(files, artifact.metadata, OpenOptions(device=DEVICE))


# Numbers


def on_host(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the outputs with arrays of a GPU copied to the host."""
    return {name: value.numpy() if hasattr(value, "ptr") else value for name, value in outputs.items()}


def check_alike(got: Mapping[str, Any], want: Mapping[str, Any], *, quantised: bool = False) -> float:
    """Returns the largest absolute difference.

    Raises:
        AssertionError: it is beyond the tolerances of a compile.
    """
    types = {name: type_of_value(value) for name, value in want.items()}
    checks = compare_outputs("whole", "", [got], [want], types, tolerances(None, None, quantised), {})
    wrong = [describe_failure(check) for check in checks if not check.ok]
    assert not wrong, wrong[0]
    return max((check.max_abs for check in checks if check.max_abs is not None), default=0.0)


# ONNX Runtime


def ort_session(model: "onnx.ModelProto | str", *, on_cuda: bool = False, threads: int = 0) -> Any:
    """Returns a session of ONNX Runtime; on CUDA without TF32.

    Raises:
        RefusedError: there is no CUDA provider, or it does not load here.
    """
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = threads, QUIET
    source = model if isinstance(model, str) else model.SerializeToString()
    providers: list[Any] = [(CUDA_PROVIDER, {"use_tf32": "0"})] if on_cuda else []
    if on_cuda and CUDA_PROVIDER not in onnxruntime.get_available_providers():
        raise RefusedError("this ONNX Runtime has no CUDA provider")
    session = onnxruntime.InferenceSession(source, settings, providers=[*providers, "CPUExecutionProvider"])
    if on_cuda and CUDA_PROVIDER not in session.get_providers():  # it falls back to the CPU without a word
        raise RefusedError("the CUDA provider does not load here")
    return session


def ort_outputs(session: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a session's outputs by name."""
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(inputs)), strict=True))


_TYPES = {
    "tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8,
    "tensor(bool)": np.bool_,
}  # fmt: skip


def random_inputs(session: Any, seed: int = 0) -> dict[str, Any]:
    """Returns values for a session's inputs: standard normal or small integers; a free size is 1."""
    random, found = np.random.default_rng(seed), {}
    for wanted in session.get_inputs():
        shape = [size if isinstance(size, int) else 1 for size in wanted.shape]
        dtype = np.dtype(_TYPES[wanted.type])
        integers = random.integers(0, 2 if dtype.kind == "b" else 9, shape)
        found[wanted.name] = (random.standard_normal(shape) if dtype.kind == "f" else integers).astype(dtype)
    return found


# Timing


@dataclass(frozen=True, slots=True)
class Contestant:
    """`call` does the work or queues it, `wait` returns when all queued work is done."""

    call: Callable[[], object]
    wait: Callable[[], object] = lambda: None


def medians_ms(contestants: Mapping[str, Contestant], seconds: float) -> dict[str, float]:
    """Returns the median milliseconds of a call, back to back; they take turns for about `seconds` in all.

    A turn is a batch of calls that together take at least `BATCH_MS`, then one wait for the GPU.
    """
    batches = {name: _batch_size(one) for name, one in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    end, rounds = time.perf_counter() + seconds, 0
    while rounds < MIN_ROUNDS or time.perf_counter() < end:
        for name, one in contestants.items():
            times[name].append(_ms_a_call(one, batches[name]))
        rounds += 1
    return {name: statistics.median(found) for name, found in times.items()}


def _batch_size(one: Contestant) -> int:
    _ms_a_call(one, NUM_WARM)
    return max(1, min(MAX_BATCH, round(BATCH_MS / max(_ms_a_call(one, NUM_WARM), 1e-4))))


def _ms_a_call(one: Contestant, count: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(count):
        one.call()
    one.wait()
    return (time.perf_counter_ns() - start) / count / 1e6
