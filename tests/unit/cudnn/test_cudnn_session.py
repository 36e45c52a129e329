# SPDX-License-Identifier: Apache-2.0
"""Sessions on a pretended GPU, and the load path of a machine that has none."""

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cudnn_models import cudnn_target, model_from_text
from nndeploy_cudnn import session as session_module
from nndeploy_cudnn.library import CudnnError
from nndeploy_cudnn.plugin import Plugin
from nndeploy_cudnn.session import CudnnSession

from nndeploy.cuda import device
from nndeploy.errors import BundleError, UnavailableError, UsageError
from nndeploy.plugin.interface import Artifact, BuildOptions, OpenOptions

MODEL = """(float[2,4,6,6] x, float[2,4,6,6] z) => (float[2,4,6,6] y, float[2,4] m)
    <float[1] half = {0.5}>
    { a = Mul(x,half)  b = Add(a,z)  y = Relu(b)  p = GlobalAveragePool(y)  m = Flatten(p) }"""


@pytest.fixture
def artifact(planners: None) -> Artifact:
    return Plugin().build(model_from_text(MODEL), cudnn_target("t4"), BuildOptions(), Path())


def opened(artifact: Artifact, host_gpu: SimpleNamespace, device_name: str = "cuda:0") -> CudnnSession:
    host_gpu.library.version = artifact.metadata["cudnn_version"]
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    session = Plugin().open(files, artifact.metadata, OpenOptions(device=device_name))
    assert isinstance(session, CudnnSession)
    return session


def inputs(seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {name: random.standard_normal((2, 4, 6, 6)).astype(np.float32) for name in "xz"}


def expected(values: dict[str, np.ndarray]) -> np.ndarray:
    return np.maximum(values["x"] * np.float32(0.5) + values["z"], 0)


def test_outputs_stay_on_the_device(artifact: Artifact, host_gpu: SimpleNamespace) -> None:
    session = opened(artifact, host_gpu)
    found = session.run(inputs())
    assert session.device == "cuda:0"
    assert [array.device.name for array in found.values()] == ["cuda:0", "cuda:0"]
    np.testing.assert_allclose(found["y"].numpy(), expected(inputs()), rtol=1e-6)
    np.testing.assert_allclose(found["m"].numpy(), expected(inputs()).mean(axis=(2, 3)), rtol=1e-5)
    session.close()


def test_inputs_on_the_device_are_used_where_they_are(artifact: Artifact, host_gpu: SimpleNamespace) -> None:
    session = opened(artifact, host_gpu)
    there = {name: device(0).to_device(array) for name, array in inputs().items()}
    before = host_gpu.driver.live_bytes
    found = session.run(there)
    assert host_gpu.driver.live_bytes - before == sum(array.nbytes for array in found.values())
    np.testing.assert_allclose(found["y"].numpy(), expected(inputs()), rtol=1e-6)
    session.close()


def test_input_at_an_odd_address_is_copied(artifact: Artifact, host_gpu: SimpleNamespace) -> None:
    session = opened(artifact, host_gpu)
    values = inputs()
    whole = device(0).to_device(np.concatenate([[np.float32(0)], values["x"].reshape(-1)]))
    odd = type(whole)(whole._allocation, (2, 4, 6, 6), whole.dtype, 4)
    found = session.run({"x": odd, "z": values["z"]})
    np.testing.assert_allclose(found["y"].numpy(), expected(values), rtol=1e-6)
    session.close()


def test_session_that_is_closed_holds_nothing(artifact: Artifact, host_gpu: SimpleNamespace) -> None:
    before = host_gpu.driver.live_bytes
    session = opened(artifact, host_gpu)
    assert host_gpu.driver.live_bytes > before
    session.close()
    session.close()
    assert host_gpu.driver.live_bytes == before
    assert host_gpu.handles[-1].is_closed
    with pytest.raises(UsageError, match="closed"):
        session.run(inputs())


def test_what_only_touches_the_sessions_memory_is_bound_once(artifact: Artifact, host_gpu: SimpleNamespace) -> None:
    session = opened(artifact, host_gpu)
    handle, num_steps = host_gpu.handles[-1], len(session._program.steps)
    bound = sum(pack is not None for pack in session._packs)
    for _ in range(3):
        session.run(inputs())
    assert handle.num_executed == 3 * num_steps
    assert handle.num_packs == bound + 3 * (num_steps - bound)
    session.close()


@pytest.fixture
def many_steps(artifact: Artifact, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    """The artifact, of which the session thinks that it has enough steps to be worth a graph."""
    monkeypatch.setattr(session_module, "STEPS_WORTH_A_GRAPH", 1)
    return artifact


def test_after_the_first_run_all_steps_are_one_graph(many_steps: Artifact, host_gpu: SimpleNamespace) -> None:
    session = opened(many_steps, host_gpu)
    handle, num_steps = host_gpu.handles[-1], len(session._program.steps)
    results = [session.run(inputs(seed)) for seed in range(4)]
    assert handle.num_executed == 2 * num_steps, "once by itself, once while it was recorded"
    for seed, found in enumerate(results):
        np.testing.assert_allclose(found["y"].numpy(), expected(inputs(seed)), rtol=1e-6)
        np.testing.assert_allclose(found["m"].numpy(), expected(inputs(seed)).mean(axis=(2, 3)), rtol=1e-5)
    session.close()
    assert host_gpu.driver.live_graphs == 0


def test_steps_that_cannot_be_recorded_are_queued_each_time(
    many_steps: Artifact, host_gpu: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = opened(many_steps, host_gpu)
    handle, execute = host_gpu.handles[-1], host_gpu.handles[-1].execute

    def refusing(plan: object, pack: object) -> None:
        if host_gpu.driver.is_capturing(handle.streams[-1]):
            raise CudnnError("CUDNN_STATUS_NOT_SUPPORTED")
        execute(plan, pack)

    monkeypatch.setattr(handle, "execute", refusing)
    for seed in range(3):
        np.testing.assert_allclose(session.run(inputs(seed))["y"].numpy(), expected(inputs(seed)), rtol=1e-6)
    session.close()


def test_threads_may_call_at_once(artifact: Artifact, host_gpu: SimpleNamespace) -> None:
    session = opened(artifact, host_gpu)
    wrong: list[int] = []

    def work(seed: int) -> None:
        for _ in range(5):
            found = session.run(inputs(seed))
            if not np.allclose(found["y"].numpy(), expected(inputs(seed)), rtol=1e-6):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    session.close()


def test_work_goes_to_the_stream_of_the_thread_so_it_can_be_captured(
    artifact: Artifact, host_gpu: SimpleNamespace
) -> None:
    session = opened(artifact, host_gpu)
    gpu = device(0)
    given = [gpu.to_device(inputs()[tensor.name]) for tensor in session._program.inputs]
    made = [gpu.empty(tensor.shape, tensor.dtype) for tensor in session._program.outputs]
    gpu.capture(lambda: session.enqueue(given, made))  # allocating or waiting would fail
    session.enqueue(given, made)
    captured, plain = host_gpu.handles[-1].streams[-2:]
    assert plain == gpu.stream.handle
    assert captured != plain
    session.close()


def test_failure_of_a_plan_names_the_value(artifact: Artifact, host_gpu: SimpleNamespace) -> None:
    session = opened(artifact, host_gpu)

    def fail(plan: object, pack: object) -> None:
        raise CudnnError("cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED")

    host_gpu.handles[-1].execute = fail
    with pytest.raises(UnavailableError, match="cuda:0: y: cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED"):
        session.run(inputs())
    session.close()


def test_plans_of_another_version_of_cudnn_are_refused(artifact: Artifact, host_gpu: SimpleNamespace) -> None:
    host_gpu.library.version = 91000
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    with pytest.raises(UnavailableError, match="this machine has 91000"):
        Plugin().open(files, artifact.metadata, OpenOptions(device="cuda:0"))


def raising(message: str) -> Callable[[object], None]:
    def call(_: object) -> None:
        raise CudnnError(message)

    return call


@pytest.mark.parametrize(("handle", "said"), [
    (lambda _: SimpleNamespace(load=raising("CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH")),
     r"made for Tesla T4, cuDNN does not load them on Pretended GPU.*ARCH"),
    (raising("cudnnCreate: no"), "cuda:0: cuDNN cannot use the GPU: cudnnCreate"),
])  # fmt: skip
def test_gpu_that_cudnn_cannot_use_is_one_line(
    artifact: Artifact, host_gpu: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, handle: object, said: str
) -> None:
    monkeypatch.setattr(session_module, "Handle", handle)
    with pytest.raises(UnavailableError, match=said):
        opened(artifact, host_gpu)


@pytest.mark.parametrize(("change", "said"), [
    (lambda files: files.pop("plans.bin"), "has no plans.bin"),
    (lambda files: files.update({"plans.bin": b"{}"}), "a plan reaches outside"),
    (lambda files: files.update({"constants.safetensors": b"x"}), "constants.safetensors"),
    (lambda files: files.update({"constants.safetensors": _other_constants()}), "expected 4"),
    (lambda files: files.update({"program.json": b"{}"}), "no program of format 1"),
])  # fmt: skip
def test_damaged_artifact_gets_one_line(
    artifact: Artifact, host_gpu: SimpleNamespace, change: Callable[[dict[str, bytes]], object], said: str
) -> None:
    files = dict(artifact.files)
    change(files)
    with pytest.raises(BundleError, match=said):
        opened(replace(artifact, files=files), host_gpu)


def _other_constants() -> bytes:
    from safetensors.numpy import save

    return bytes(save({"other": np.zeros(3, np.float32)}))


@pytest.mark.parametrize(
    ("name", "ok"), [("cuda:0", True), ("cuda", True), ("cpu", True), ("cuda:1", False), ("npu", False)]
)
def test_device_is_a_gpu_of_this_machine(artifact: Artifact, host_gpu: SimpleNamespace, name: str, ok: bool) -> None:
    if ok:
        opened(artifact, host_gpu, name).close()
    else:
        with pytest.raises(UnavailableError):
            opened(artifact, host_gpu, name)


def test_machine_without_a_gpu_gets_one_line(artifact: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "cuda_unavailable", lambda: "no NVIDIA driver on this machine")
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    with pytest.raises(UnavailableError, match="cuDNN needs an NVIDIA GPU: no NVIDIA driver on this machine") as caught:
        Plugin().open(files, artifact.metadata, OpenOptions())
    assert caught.value.exit_code == 69


def test_run_half_loads_no_onnx_and_plugin_nothing_heavy() -> None:
    code = (
        "import sys; before = set(sys.modules);"  # a .pth file of cuda-bindings 12.9 loads some at the start
        "import nndeploy_cudnn.plugin; heavy = {'onnx', 'onnx_ir', 'nndeploy.jobs', 'cuda'} - before;"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules);"
        "import nndeploy_cudnn.session; assert not {'onnx', 'onnx_ir'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
