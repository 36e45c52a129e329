# SPDX-License-Identifier: Apache-2.0
"""What the plugin says: probe, and for each node whether it is taken, with a reason for every refusal."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from nndeploy_triton.library import HINT
from nndeploy_triton.plugin import Plugin
from onnx import shape_inference

from nndeploy.cuda.current_driver import injected_driver
from nndeploy.errors import BuildRefusedError
from nndeploy.plugin.interface import BuildOptions, Support
from nndeploy.plugin.registry import backend
from nndeploy.target.target import Gpu, Target
from nndeploy.testing.host_driver import HostDriver
from nndeploy.values.types import DimRange

ADA = Target("box", "x86_64", gpus=(Gpu("RTX 4090", "8.9"),))
NO_GPU = Target("plain", "x86_64")


def parsed(text: str, opset: int = 20, constants: dict[str, np.ndarray] | None = None) -> ir.Model:
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}, "com.microsoft": 1]> {text}')
    found = constants or {}
    for value in list(proto.graph.input):
        if value.name in found:
            proto.graph.input.remove(value)
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in found.items())
    return ir.from_proto(shape_inference.infer_shapes(proto))


def answers(model: ir.Model, target: Target = ADA, **options: object) -> list[Support]:
    return Plugin().supports(model, target, BuildOptions(**options))  # type: ignore[arg-type]


def test_the_plugin_is_found_by_its_entry_point() -> None:
    plugin = backend("triton")
    assert (plugin.name, plugin.tier, plugin.device_kind) == ("triton", 3, "cuda")
    assert [transform.name for transform in plugin.transforms(ADA)] == ["decompose-qlinear"]


def test_importing_the_plugin_loads_nothing_heavy() -> None:
    program = (
        "import sys; before = set(sys.modules)\n"  # a .pth file of cuda-bindings 12.9 loads some at the start
        "import nndeploy_triton.plugin\n"
        "heavy = {'triton', 'onnx', 'onnx_ir', 'torch', 'cuda'}\n"
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before} & heavy))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "\n"


def test_the_session_loads_neither_triton_nor_onnx() -> None:
    program = (
        "import sys, nndeploy_triton.session\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules} & {'triton', 'onnx', 'onnx_ir', 'torch'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "\n"


def test_a_target_without_a_gpu_can_neither_be_built_for_nor_run() -> None:
    probe = Plugin().probe(NO_GPU)
    assert (probe.can_build, probe.can_run, probe.hint, probe.absent_hardware) == (False, False, "", "NVIDIA GPU")
    model = parsed("g (float[4] x) => (float[4] y) { a = Relu (x) y = Neg (a) }")
    assert answers(model, NO_GPU) == [Support(False, "the target has no NVIDIA GPU")] * 2
    with pytest.raises(BuildRefusedError, match="the target has no NVIDIA GPU"):
        Plugin().build(model, NO_GPU, BuildOptions(), Path())


def test_a_gpu_that_is_too_old_is_named() -> None:
    probe = Plugin().probe(Target("box", "x86_64", gpus=(Gpu("Tesla V100", "7.0"),)))
    assert not probe.can_build
    assert probe.reason == "Tesla V100 has compute capability 7.0, Triton needs 7.5 or later"


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
def test_building_needs_no_gpu_and_running_needs_one() -> None:
    with injected_driver(HostDriver(gpus=())):
        probe = Plugin().probe(ADA)
    assert (probe.can_build, probe.can_run, probe.hint, probe.absent_hardware) == (True, False, "", "NVIDIA GPU")
    assert probe.reason
    with injected_driver(HostDriver()):
        probe = Plugin().probe(ADA)
    assert (probe.can_build, probe.can_run, probe.reason) == (True, True, "")
    assert probe.version


def test_without_triton_the_probe_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nndeploy_triton.library.find_spec", lambda name: None)
    probe = Plugin().probe(ADA)
    assert (probe.can_build, probe.hint, probe.absent_hardware) == (False, HINT, "")
    assert probe.reason


TAKEN = Support(True)


@pytest.mark.parametrize(("text", "reason"), [
    ("g (float[N,4] x) => (float[N,4] y) { y = Relu (x) }", "nothing is known of the size 'N': --shape"),
    ("g (double[4] x) => (double[4] y) { y = Relu (x) }", "kernels compute with float16 or float32, not float64"),
    ("g (int64[4] x, int64[4] z) => (int64[4] y) { y = Div (x, z) }", "float16 or float32, not int64"),
    ("g (string[4] x) => (string[4] y) { y = Identity (x) }", "no kernel for elements of type string"),
    ("g (float[4] x) => (float[4] y) { y = Hardmax (x) }", "no kernel for Hardmax"),
    ("g (float[4] x) => (float[4] y) { y = com.microsoft.Gelu (x) }", "no kernel for com.microsoft::Gelu"),
    ("g (float[4] x, float[4] e) => (float[4] y) { y = Pow (x, e) }", "the exponent of Pow is no constant"),
    ("g (float[4] x, float m) => (float[4] y) { y = Clip (x, m) }", "the bounds of Clip are not constant"),
    ("g (float[2,3] x, int64[1] a) => (float[2,1] y) { y = ReduceSum (x, a) }",
     "the axes of ReduceSum are not constant"),
    ("g (float[1,2,4,4,4] x, float[2,2,3,3,3] w) => (float[1,2,2,2,2] y) { y = Conv (x, w) }",
     "one or two spatial axes, not 3"),
    ("g (float[1,1,4,4] x) => (float[1,1,2,2] y, int64[1,1,2,2] i) {" " y, i = MaxPool <kernel_shape = [3,3]> (x) }",
     "the indices of MaxPool are asked for"),
    ("g (float[1,2,4,4] x, float[2,2,2,2] w) => (float[1,2,5,5] y) { y = ConvTranspose (x, w) }",
     "a ConvTranspose whose weights are not constant"),
    ("g (int64[4] x) => (int64[2] y) { y = Slice (x, x, x) }", "the bounds of Slice are not constant"),
    ("g (float[4] x, int64[1] r) => (float[8] y) { y = Tile (x, r) }", "the repeats of Tile are not constant"),
    ("g (float[4] x, int64[2] p) => (float[6] y) { y = Pad (x, p) }", "the padding of Pad is not constant"),
    ("g (float[1,1,4,4] x, float[4] r) => (float[1,1,8,8] y) <float[4] s = {1.0, 1.0, 2.0, 2.0}> {"
     ' y = Resize <coordinate_transformation_mode = "tf_crop_and_resize"> (x, r, s) }',
     "a Resize with coordinates 'tf_crop_and_resize'"),
    ("g (float[2,3,4] x, float[4] s) => (float[2,3,4] y, float[2,3,1] m) { y, m = LayerNormalization (x, s) }",
     "the mean or deviation of LayerNormalization is asked for"),
    ("g (float[4] x, bool t) => (float[4] y) { y = Dropout (x, , t) }",
     "a Dropout that is trained, or whose mask is asked for"),
    ("g (float[4] x, int32[4] z) => (bool[4] y) { y = Less (x, z) }", ""),
    ("g (uint8[4] x, uint8[4] z) => (bool[4] y) { y = Less (x, z) }",
     "Less is taken on float16 and float32 and int32 and int64, not on uint8"),
])  # fmt: skip
def test_a_refusal_says_why(text: str, reason: str) -> None:
    (answer,) = answers(parsed(text))
    assert answer.ok == (not reason)
    assert reason in answer.reason


def test_a_size_in_a_range_is_taken() -> None:
    model = parsed("g (float[N,4] x) => (float[N,4] y) { y = Relu (x) }")
    assert answers(model, ranges={"N": DimRange(3, 3, 3)}) == [TAKEN]
    assert answers(model, ranges={"N": DimRange(1, 3, 2)}) == [TAKEN]


@pytest.mark.parametrize(("text", "reason"), [
    ("g (float[Z,4] x) => (float[Z,4] y) { y = Relu (x) }", "'x' may have no elements"),
    ("g (float[L,4] x) => (float[L,4] y) { y = Relu (x) }", "'x' may have more than 2147418112 elements"),
    ("g (float[N,4] x, float[M,4] z) => (float[N,4] y) { y = Add (x, z) }", "cannot be broadcast to"),
    ("g (float[N,4] x, float[K,4] z) => (float[N,K] y) { y = Gemm (x, z) }", "that do not fit together"),
    ("g (float[1,2,N,N] x, float[4,2,K,K] w) => (float[1,4,N,N] y) { y = Conv (x, w) }", "the size {K} is not fixed"),
    ('g (float[1,2,N,N] x, float[4] s) => (float[1,2,M,M] y) { y = Resize <mode = "cubic"> (x, , s) }',
     "a Resize that is cubic or smoothed, of a size that is not fixed"),
    ('g (float[N,4] x, int64[4] p) => (float[M,4] y) { y = Pad <mode = "reflect"> (x, p) }',
     "a Pad of mode 'reflect', or one that cuts, along an axis whose size is not fixed"),
    ("g (float[N,2,2] x, float[1,8,2] w, float[1,8,2] r, float[1,16] b, int32[2] l) => (float[N,1,2,2] y) {"
     " y = LSTM <hidden_size = 2> (x, w, r, b, l) }",
     "an LSTM over parts of its sequences"),
    ("g (float[N,4] x, int64[1] i) => (float[1,4] y) { y = Gather <axis = 0> (x, i) }", "whether {N} is less than"),
])  # fmt: skip
def test_what_depends_on_the_size_in_a_range_is_refused_with_the_reason(text: str, reason: str) -> None:
    constants = {
        "s": np.array([1, 1, 2, 2], np.float32), "p": np.array([1, 0, 1, 0]), "i": np.array([4]),
        "l": np.array([3, 3], np.int32),
    }  # fmt: skip
    ranges = {
        "N": DimRange(1, 9, 5), "M": DimRange(2, 18, 9), "K": DimRange(1, 3, 2), "Z": DimRange(0, 3, 2),
        "L": DimRange(1, 2**30, 2),
    }  # fmt: skip
    used = {name: array for name, array in constants.items() if f"] {name}" in text}
    (answer,) = answers(parsed(text, constants=used), ranges=ranges)
    assert reason in answer.reason


def test_each_node_is_answered_on_its_own_in_order() -> None:
    model = parsed("g (float[4] x) => (float[4] y) { a = Relu (x) b = Hardmax (a) y = Neg (b) }")
    assert [answer.ok for answer in answers(model)] == [True, False, True]


def test_a_node_with_a_size_of_its_own_output_that_the_model_does_not_know_is_taken() -> None:
    model = parsed("g (float[4] x) => (float[M] y) { y = Relu (x) }")
    assert answers(model) == [TAKEN]


def test_a_build_of_a_refused_node_names_the_node() -> None:
    model = parsed("g (float[4] x, float[4] e) => (float[4] y) { [power] y = Pow (x, e) }")
    with pytest.raises(BuildRefusedError, match=r"Pow 'power': the exponent of Pow is no constant"):
        Plugin().build(model, ADA, BuildOptions(), Path())


def test_a_temporary_value_never_takes_the_name_of_one_of_the_model() -> None:
    from nndeploy_triton.build import fused_submodel_of

    text = (
        'g (float[2,3] "copy.0", float[2,3] "copy.1") => (float[3,2] y, float[3,2] z) {'
        ' y = Transpose ("copy.0") z = Transpose ("copy.1") }'
    )
    program = fused_submodel_of(parsed(text), {})
    outputs = [step.output.name for step in program.steps]
    assert len(set(outputs)) == 2
    assert not {"copy.0", "copy.1"} & set(outputs)
