# SPDX-License-Identifier: Apache-2.0
"""What is built: how many steps, which of them copy, what the artifact requires, and what the build refuses."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cudnn_models import cudnn_target, inputs_of, model_from_text
from nndeploy_cudnn import build as build_module
from nndeploy_cudnn import planner as planner_module
from nndeploy_cudnn.library import CudnnError, Handle, cudnn_library
from nndeploy_cudnn.planner import child_environment
from nndeploy_cudnn.plugin import Plugin
from nndeploy_cudnn.program import Program, program_from_json

from nndeploy.errors import BuildRefusedError
from nndeploy.plugin.interface import Artifact, BuildOptions
from nndeploy.values.types import DimRange

pytestmark = pytest.mark.usefixtures("planners")


def built(text: str, dtype: str = "float", target: str = "rtx4090") -> Artifact:
    return Plugin().build(model_from_text(text, dtype), cudnn_target(target), BuildOptions(), Path())


def program_of(artifact: Artifact) -> Program:
    return program_from_json(artifact.files["program.json"])


def graphs_of(artifact: Artifact) -> list[dict[str, Any]]:
    """Returns the graph of each step, as cuDNN wrote it into the plan."""
    program, plans = program_of(artifact), artifact.files["plans.bin"]
    ranges = [program.plans[step.plan] for step in program.steps]
    return [json.loads(plans[offset : offset + size])["operationGraph"] for offset, size in ranges]


CONV_BLOCK = """(T[1,16,14,14] x, T[1,32,14,14] z) => (T[1,32,14,14] y)
    <T[32,16,3,3] w = {0.0}, T[32] b = {0.0}>
    { c = Conv<pads=[1,1,1,1]>(x,w,b)  d = Add(c,z)  y = Relu(d) }"""


def filled(text: str) -> str:
    """Returns a model's text whose constants written {0.0} have as many zeros as they need."""
    import math
    import re

    def zeros(found: "re.Match[str]") -> str:
        count = math.prod(int(size) for size in found[2].split(","))
        return f"{found[1]}[{found[2]}] {found[3]} = {{{','.join(['0.5'] * count)}}}"

    return re.sub(r"\b(T|float)\[([0-9,]+)\] (\w+) = \{0\.0\}", zeros, text)


@pytest.mark.parametrize("dtype", ["float", "float16"])
def test_conv_bias_residual_and_relu_are_one_precompiled_plan(dtype: str) -> None:
    artifact = built(filled(CONV_BLOCK), dtype)
    kinds = [[node["operation"].split("_")[3] for node in graph["nodes"]] for graph in graphs_of(artifact)]
    assert kinds == [["CONVOLUTION", "POINTWISE", "POINTWISE", "POINTWISE"]]
    assert artifact.deterministic


def test_halves_lie_with_channels_last_between_convolutions_and_row_major_outside() -> None:
    text = """(T[1,16,14,14] x) => (T[1,16,14,14] y) <T[16,16,3,3] w = {0.0}>
        { c = Conv<pads=[1,1,1,1]>(x,w)  y = Conv<pads=[1,1,1,1]>(c,w) }"""
    first, second = graphs_of(built(filled(text), "float16"))
    strides = [{t["name"]: t["stride"] for t in graph["tensors"]} for graph in (first, second)]
    row_major, channels_last = [3136, 196, 14, 1], [3136, 1, 224, 16]
    assert [strides[0]["1"], strides[0]["3"]] == [row_major, channels_last]
    assert [strides[1]["1"], strides[1]["3"]] == [channels_last, row_major]
    assert [t["stride"] for t in first["tensors"] if t["name"] == "2"] == [[144, 1, 48, 16]]


def test_floats_stay_row_major() -> None:
    text = """(T[1,16,14,14] x) => (T[1,16,14,14] y) <T[16,16,3,3] w = {0.0}>
        { c = Conv<pads=[1,1,1,1]>(x,w)  y = Conv<pads=[1,1,1,1]>(c,w) }"""
    for graph in graphs_of(built(filled(text))):
        assert all(tensor["stride"][-1] == 1 for tensor in graph["tensors"])


def test_parts_of_a_concat_are_written_to_their_places() -> None:
    text = """(T[1,16,14,14] x) => (T[1,32,14,14] y) <T[16,16,3,3] w = {0.0}>
        { a = Conv<pads=[1,1,1,1]>(x,w)  b = Conv<pads=[1,1,1,1]>(a,w)  y = Concat<axis=1>(a,b) }"""
    artifact = built(filled(text))
    assert "2 steps (0 copies)" in artifact.log
    outputs = [
        binding.offset for step in program_of(artifact).steps for binding in step.bindings if binding.kind == "output"
    ]
    assert sorted(set(outputs)) == [0, 16 * 14 * 14 * 4]


@pytest.mark.parametrize(
    ("text", "steps"),
    [("""(T[4,16,14,14] x) => (T[4,8,196] y)
            <int64[3] flat = {4,16,196}, int64[1] s = {4}, int64[1] e = {12}, int64[1] ax = {1}>
            { r = Reshape(x,flat)  t = Slice(r,s,e,ax)  y = Relu(t) }""", "1 steps (0 copies)"),
     ("""(T[1,8,5] x, T[8,1] s) => (T[1,8,5] y)
            { a = Mul(x,s)  b = Sigmoid(a)  c = Mul(a,b)  d = Add(c,x)  y = Tanh(d) }""", "1 steps (0 copies)"),
     ("(T[2,8,5] x, T[8,1] s) => (T[2,8,5] y) { y = Mul(x,s) }", "3 steps (2 copies)"),
     ("(T[2,8,5] x) => (T[2,8,5] y) <T[8,1] s = {0.0}> { y = Mul(x,s) }", "1 steps (0 copies)"),
     ("(T[2,8,5] x, T[8,5] s) => (T[2,8,5] y) { y = Mul(x,s) }", "1 steps (0 copies)"),
     ("(T[2,8,5] x, T[2,8,1] s) => (T[2,8,5] y) { y = Mul(x,s) }", "1 steps (0 copies)"),
     ("(T[4,32] x, T[32,5] w) => (T[4,5] y) { y = MatMul(x,w) }", "2 steps (1 copies)"),
     ("(T[4,32] x, T[5,32] v) => (T[4,5] y) { w = Transpose<perm=[1,0]>(v) y = MatMul(x,w) }", "1 steps (0 copies)")],
    ids=[
        "views", "elementwise", "once for each batch", "a constant", "along the batch alone", "along the row alone",
        "copied", "as they lie",
    ],
)  # fmt: skip
def test_only_what_cudnn_cannot_read_is_copied(text: str, steps: str) -> None:
    assert steps in built(filled(text)).log


def test_same_plan_serves_equal_steps() -> None:
    text = """(T[1,16,14,14] x) => (T[1,16,14,14] y) <T[16,16,3,3] w = {0.0}, T[16,16,3,3] v = {0.0}>
        { a = Conv<pads=[1,1,1,1]>(x,w)  b = Conv<pads=[1,1,1,1]>(a,v)  y = Conv<pads=[1,1,1,1]>(b,w) }"""
    program = program_of(built(filled(text)))
    assert (len(program.steps), len(program.plans)) == (3, 1)


def test_artifact_is_for_one_kind_of_gpu_and_says_what_it_is() -> None:
    artifact = built(filled(CONV_BLOCK), target="t4")
    assert artifact.requires == {"compute_capability": ["7.5"]}
    assert artifact.native_code
    assert artifact.metadata == {"cudnn_version": cudnn_library().version, "gpu": "Tesla T4"}
    assert set(artifact.files) == {"program.json", "plans.bin", "constants.safetensors"}


COMPILED = "(T[2,8,5] x) => (T[2,8,5] y, T[2,8,5] s) { y = Tanh(x) s = Softmax<axis=1>(y) }"


@pytest.fixture
def fresh_planners(planners: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes each build start a planner of its own, as in a compile."""
    monkeypatch.setattr(build_module, "planner_for", planner_module.planner_for)


@pytest.mark.slow  # cuDNN compiles four kernels anew
@pytest.mark.usefixtures("fresh_planners")
def test_compiled_code_has_the_same_bytes_in_every_process_or_says_that_it_has_not() -> None:
    first, second = built(COMPILED), built(COMPILED)
    assert first.files["plans.bin"] == second.files["plans.bin"] or not first.deterministic


@pytest.mark.usefixtures("fresh_planners")
def test_compiled_code_from_memory_that_is_laid_out_anew_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {**planner_module.child_environment(), "NNDEPLOY_FIXED_LAYOUT": "1"}  # as if it had been refused
    monkeypatch.setattr(planner_module, "child_environment", lambda: environment)
    assert not built(COMPILED).deterministic
    assert built(filled(CONV_BLOCK)).deterministic, "nothing was compiled for it"


def test_constants_are_stored_once_and_as_the_kernel_wants_them() -> None:
    from safetensors.numpy import load

    text = """(T[1,16,14,14] x) => (T[1,16,7,7] y) <T[16,16,3,3] w = {0.0}, T[16] b = {0.0}>
        { c = Conv<pads=[1,1,1,1]>(x,w,b)  d = Conv<pads=[1,1,1,1]>(c,w,b)
          y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(d) }"""
    artifact = built(filled(text), "float16")
    shapes = sorted(array.shape for array in load(artifact.files["constants.safetensors"]).values())
    of_the_last_copy = (16, 1, 1, 1)
    assert shapes == [(1, 1, 1, 16), of_the_last_copy, (16, 3, 3, 16)]
    program = program_of(artifact)
    assert all(offset % 256 == 0 for _, offset, _ in program.constants)


def test_every_tensor_of_every_step_lies_inside_its_memory() -> None:
    artifact = built(
        """(T[2,6,9,9] x) => (T[2,6,4,4] y) <T[6,6,3,3] w = {0.0}>
        { c = Conv<pads=[1,1,1,1]>(x,w)  r = Tanh(c)  y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(r) }""".replace(
            "T[6,6,3,3] w = {0.0}", filled("<T[6,6,3,3] w = {0.0}>")[1:-1]
        )
    )
    program = program_of(artifact)
    sizes = {"constant": program.constant_bytes, "arena": program.arena_bytes, "input": 2 * 6 * 81 * 4, "output": 768}
    for step, graph in zip(program.steps, graphs_of(artifact), strict=True):
        tensors = {int(tensor["name"]): tensor for tensor in graph["tensors"]}
        for binding in step.bindings:
            tensor = tensors[binding.uid]
            last = sum((n - 1) * stride for n, stride in zip(tensor["dim"], tensor["stride"], strict=True))
            assert binding.offset + (last + 1) * 4 <= sizes[binding.kind]


def test_range_of_one_size_is_that_size(run_built: Callable[..., dict[str, np.ndarray]]) -> None:
    model = model_from_text("(float[N,3] x) => (float[N,3] y) { y = Relu(x) }")
    x = np.array([[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]], np.float32)
    options = BuildOptions(ranges={"N": DimRange(2, 2, 2)})
    found = run_built(model, cudnn_target("t4"), {"x": x}, options)
    assert np.array_equal(found["y"], np.maximum(x, 0))


def test_input_that_is_only_a_shape_is_not_read(run_built: Callable[..., dict[str, np.ndarray]]) -> None:
    model = model_from_text("(float[2,3] x, int64[1] s) => (float[6] y) { y = Reshape(x,s) }")
    inputs = {"x": inputs_of(model_from_text("(float[2,3] x) => (float[2,3] y) { y = Relu(x) }"))["x"]}
    found = run_built(model, cudnn_target("t4"), {**inputs, "s": np.array([6])})
    assert np.array_equal(found["y"], inputs["x"].reshape(6))


@pytest.mark.parametrize(("text", "said"), [
    ("(float[N,3] x) => (float[N,3] y) { y = Relu(x) }", "the size N of 'x' is not fixed"),
    ("(float[2,3] x) => (float[2,3] y) { y = Sign(x) }", "no Sign"),
])  # fmt: skip
def test_model_that_is_not_taken_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(BuildRefusedError, match=said):
        built(text)


def test_target_without_gpu_is_refused() -> None:
    model = model_from_text("(float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    with pytest.raises(BuildRefusedError, match="no NVIDIA GPU"):
        Plugin().build(model, cudnn_target("x86-64-v3"), BuildOptions(), Path())


def test_model_that_is_larger_than_the_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    target = cudnn_target("t4")
    small = replace(target, gpus=(replace(target.gpus[0], memory_bytes=100),))
    with pytest.raises(BuildRefusedError, match=r"it needs \d+ bytes, Tesla T4 has 100"):
        Plugin().build(model_from_text(filled(CONV_BLOCK)), small, BuildOptions(), Path())


def test_machine_without_cudnn_refuses_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from nndeploy.errors import UnavailableError
    from nndeploy.version import install_command

    def missing(_gpu: object) -> None:
        raise UnavailableError("cuDNN cannot be loaded: no file", hint=install_command("cudnn"))

    monkeypatch.setattr(build_module, "planner_for", missing)
    with pytest.raises(BuildRefusedError, match=r"cannot be loaded.*\[cudnn\]"):
        built("(float[2,3] x) => (float[2,3] y) { y = Relu(x) }")


def test_handle_without_a_gpu_has_cudnns_words() -> None:
    from nndeploy.cuda import cuda_unavailable

    if not cuda_unavailable():
        pytest.skip("this machine has a GPU")
    with pytest.raises(CudnnError, match="cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED"):
        Handle(cudnn_library())


CALLS = """
import json, sys
from nndeploy_cudnn.library import CudnnError, Descriptor, Handle, cudnn_library
class HandleWithoutGpu:
    _library = cudnn_library()
said = {"packed": type(Handle.pack(HandleWithoutGpu(), [1, 2], [0x1000, 0x2000], 0x3000)).__name__}
try:
    Handle.pack(HandleWithoutGpu(), [1, 2], [0x1000], 0x3000)
except CudnnError as err:
    said["uneven"] = str(err)
try:
    Descriptor(cudnn_library(), 17).set(906, "int64", 1).finalized()
except CudnnError as err:
    said["error"] = str(err)
print(json.dumps(said))
"""


def test_calls_of_the_library_carry_what_they_should() -> None:
    command = [sys.executable, "-I", "-c", CALLS]  # where there is a libcuda.so.1, as on a box
    done = subprocess.run(command, env=child_environment(), capture_output=True, check=True, text=True)
    said = json.loads(done.stdout)
    assert said["packed"] == "Descriptor"
    assert said["uneven"].startswith("cudnnBackendFinalize: ")  # the library compares the counts itself
    assert said["error"].startswith("cudnnBackendFinalize: CUDNN_STATUS_BAD_PARAM")
