# SPDX-License-Identifier: Apache-2.0
"""The backend openvino: nothing goes home, wrong numbers are refused beforehand, blob and IR give the same."""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest
from nndeploy_openvino import build as builder
from nndeploy_openvino import session as sessions
from nndeploy_openvino.conversion import convert
from nndeploy_openvino.library import configuration, core, openvino
from nndeploy_openvino.plugin import Plugin
from nndeploy_openvino.reason import reason_of
from nndeploy_openvino.rules import Rules, narrowing
from nndeploy_reference.session import EvaluatorSession

from nndeploy.errors import BuildRefusedError, BundleError, DataError, UsageError
from nndeploy.plugin.interface import Artifact, BuildOptions, OpenOptions
from nndeploy.target.target import BF16_FEATURE, Target, has_bf16, host_target
from nndeploy.values.types import DimRange, TensorType

PLUGIN = Plugin()
SMALL = "g (float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> { t = Add(x, w) y = Relu(t) }"


def model_of(text: str, opset: int = 21) -> ir.Model:
    header = f'<ir_version: 10, opset_import: ["" : {opset}, "com.microsoft" : 1]>'
    return ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(header + text), data_prop=True))


def built(model: ir.Model, folder: Path, target: Target | None = None, precision: str = "fp32") -> Artifact:
    folder.mkdir(exist_ok=True)
    return PLUGIN.build(model, target or host_target(), BuildOptions(precision=precision), folder)


def opened(files: Mapping[str, bytes], metadata: Mapping[str, Any]) -> Any:
    return PLUGIN.open({name: memoryview(data) for name, data in files.items()}, metadata, OpenOptions())


def deep() -> ir.Model:
    """Returns a network that is large enough for a blob."""
    rng = np.random.default_rng(0)
    layers = [f"c{i} = Conv<pads=[1,1,1,1]>({f'r{i - 1}' if i else 'x'}, w{i}) r{i} = Tanh(c{i})" for i in range(24)]
    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[1,16,8,8] x) => (float[1,16,8,8] y) '
        f"{{ {' '.join(layers)} y = Identity(r23) }}"
    )
    for i in range(24):
        weight = rng.standard_normal((16, 16, 3, 3)).astype(np.float32) / 12
        proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, f"w{i}"))
    return ir.from_proto(onnx.shape_inference.infer_shapes(proto))


@pytest.fixture(scope="module")
def with_blob(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return built(deep(), tmp_path_factory.mktemp("deep"))


# the library


def test_nothing_is_written_or_sent_when_the_library_is_loaded(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    script = (
        "import socket, sys\n" "def refuse(*_): raise AssertionError('a socket was opened')\n"
        "socket.socket.connect = refuse; socket.getaddrinfo = refuse\n" "from nndeploy_openvino.library import core\n"
        "core().available_devices\n" "assert not [name for name in sys.modules if 'telemetry' in name]\n"
    )  # fmt: skip
    environment = {**os.environ, "HOME": str(home)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, cwd=tmp_path)
    assert list(home.rglob("*")) == []


def test_model_converter_can_still_be_imported_afterwards() -> None:
    script = (
        "import sys\nfrom nndeploy_openvino.library import openvino\nopenvino()\n"
        "assert 'openvino.tools.ovc' not in sys.modules\n"
        "sys.modules['openvino_telemetry'] = None\n"
        "import openvino.tools.ovc\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_missing_library_names_the_extra() -> None:
    script = (
        "import sys; sys.modules['openvino'] = None\n"
        "from nndeploy.errors import UnavailableError\n"
        "from nndeploy_openvino.library import openvino\n"
        "try: openvino()\nexcept UnavailableError as err: print(err.hint)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "pip install --no-index --find-links FOLDER 'nndeploy-toolchain[openvino]'"


def test_models_are_computed_in_float32_on_the_threads_asked_for() -> None:
    compiled = core().compile_model(convert(model_of(SMALL), {}).model, "CPU", configuration(1))
    assert compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name() == "f32"
    assert compiled.get_property("INFERENCE_NUM_THREADS") == 1
    assert compiled.get_property("NUM_STREAMS") == 1


@pytest.mark.skipif(not has_bf16(host_target()), reason=f"this machine lacks {BF16_FEATURE}")
def test_bfloat16_is_computed_where_it_was_asked_for(with_blob: Artifact, tmp_path: Path) -> None:
    artifact = built(deep(), tmp_path, precision="bf16")
    assert (with_blob.precision, artifact.precision) == ("fp32", "bf16")
    x = {"x": np.random.default_rng(1).standard_normal((1, 16, 8, 8)).astype(np.float32)}
    ir_only = {name: data for name, data in artifact.files.items() if name != "model.blob"}
    assert len(ir_only) < len(artifact.files)
    exact = opened(with_blob.files, with_blob.metadata).run(x)["y"]
    got = opened(artifact.files, artifact.metadata).run(x)["y"]
    np.testing.assert_array_equal(got, opened(ir_only, artifact.metadata).run(x)["y"])
    assert 1e-4 < np.abs(got - exact).max() < 0.1


def test_cpu_without_bfloat16_computes_such_an_artifact_in_float32(
    with_blob: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = built(deep(), tmp_path, precision="bf16")
    monkeypatch.setattr(sessions, "host_target", lambda: Target("old", "x86_64"))
    x = {"x": np.random.default_rng(1).standard_normal((1, 16, 8, 8)).astype(np.float32)}
    exact = opened(with_blob.files, with_blob.metadata).run(x)["y"]
    np.testing.assert_allclose(opened(artifact.files, artifact.metadata).run(x)["y"], exact, rtol=1e-5, atol=1e-6)


def test_architecture_without_openvino_is_a_reason() -> None:
    probe = PLUGIN.probe(Target("box", "riscv64"))
    assert (probe.can_build, probe.can_run) == (False, False)
    assert "riscv64" in probe.reason


# rules


def reasons(text: str, opset: int = 21) -> list[str]:
    return [answer.reason for answer in PLUGIN.supports(model_of(text, opset), host_target(), BuildOptions())]


def test_library_says_which_types_it_narrows() -> None:
    assert narrowing().keys() <= {"float64", "int64", "uint64", "uint32"}
    assert set(narrowing().values()) <= {"f32", "i32"}


REFUSED = {
    "float64": ("g (double[2] x) => (double[2] y) { y = Neg(x) }", "float64 would be computed as f32"),
    "uint32": ("g (uint32[2] x) => (uint32[2] y) { y = Identity(x) }", "uint32 would be computed as i32"),
    "int64 data": ("g (int64[2] x) => (int64[2] y) { y = Add(x, x) }", "int64 'y' is data"),
    "int64 made of reals": ("g (float[2] x) => (int64[2] y) { y = Cast<to=7>(x) }", "int64 'y' is data"),
    "int64 clipped to more": ("""g (float[2] x) => (int64[2] y) <float a = {0.0}, float b = {3000000000.0}>
        { c = Clip(x, a, b) y = Cast<to=7>(c) }""", "int64 'y' is data"),
    "int64 clipped on one side": (
        "g (float[2] x) => (int64[2] y) <float b = {3.0}> { c = Clip(x, , b) y = Cast<to=7>(c) }", "int64 'y' is data",
    ),
    "end that may be beyond": ("""g (float[5] x, float[1] f) => (float[A] y) <int64[1] b = {1}>
        { e = Cast<to=7>(f) y = Slice(x, b, e) }""", "int64 'e' is data"),
    "int64 constant too large": (
        "g (float[3] x) => (int64[1] y) <int64[1] c = {1099511627776}> { s = Shape(x) y = Add(s, c) }",
        "int64 'c' is data",
    ),
    "int64 in a body": (
        """g (bool c, int64[2] x) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] p) { d = Add(x, x) p = Cast<to=1>(d) },
                    else_branch = e () => (float[2] q) { q = Constant<value = float[2] {1.0, 2.0}>() }> }""",
        "int64 'd' is data",
    ),
    "index of reals": ("""g (float[2] x, float[5,2] w) => (float[2,2] y)
        { a = Abs(x) i = Cast<to=7>(a) y = Gather<axis=0>(w, i) }""", "which index of Gather is out of range"),
    "index in an axis of any size": (
        "g (float[N,2] w, int64[2] i) => (float[2,2] y) { y = Gather<axis=0>(w, i) }",
        "which index of Gather is out of range",
    ),
    "constant index out of range": (
        "g (float[5,2] w) => (float[2,2] y) <int64[2] i = {0, 5}> { y = Gather<axis=0>(w, i) }",
        "which index of Gather is out of range",
    ),
    "integers divided by what may be 0": (
        "g (int32[N] a, int32[N] b) => (int32[N] y) { y = Div(a, b) }", "integers in float32",
    ),
    "large integers divided": (
        "g (int32[N] a) => (int32[N] y) <int32 b = {3}> { y = Mod(a, b) }", "integers in float32",
    ),
    "integers above 0": ("g (int32[N] a) => (int32[N] y) { y = Relu(a) }", "integers in float32"),
    "even sums over channels": (
        "g (float[1,4,2,2] x) => (float[1,4,2,2] y) { y = LRN<size=2>(x) }", "LRN of even size",
    ),
    "weights that a call tells": ("""g (float[2,1,3] x, float[1,4,3] w, float[1,4,2] r) => (float[2,1,1,2] y)
        { y = GRU<hidden_size=2>(x, w, r) }""", "divides by the sizes of a GRU"),
    "text": ("g (string[2] x) => (string[2] y) { y = Identity(x) }", "tensors of string do not cross"),
    "float8": ("g (float[2] x) => (float8e5m2[2] y) { y = Cast<to=19>(x) }", "float8_e5m2 do not cross"),
    "lists": ("g (float[2] x) => (seq(float[2]) y) { y = SequenceConstruct(x) }", "'y' is not a tensor"),
    "8-bit sums": ("g (int8[2] x) => (int8[2] y) { y = Add(x, x) }", "saturates"),
    "shifts": ('g (int32[2] x) => (int32[2] y) { y = BitShift<direction="RIGHT">(x, x) }', "shifts"),
    "peepholes": (
        """g (float[2,1,1] x, float[1,3] p) => (float[2,1,1,1] y)
        <float[1,4,1] w = {1,1,1,1}, float[1,4,1] r = {1,1,1,1}> { y = LSTM<hidden_size=1>(x, w, r, , , , , p) }""",
        "passes over the peepholes",
    ),
    "antialias": (
        "g (float[1,1,4,4] x) => (float[1,1,2,2] y) <float[4] s = {1.0, 1.0, 0.5, 0.5}> "
        '{ y = Resize<mode="linear", antialias=1>(x, , s) }',
        "passes over antialias",
    ),
    "step that may be zero": (
        "g (int32 a, int32 b, int32 c) => (int32[K] y) { y = Range(a, b, c) }",
        "divides by a step of Range that may be zero",
    ),
    "index that may be out": (
        "g (float[7,2] x, int64[N,2] i) => (float[N] y) { y = GatherND(x, i) }", "reads beyond the tensor",
    ),
    "index that may be out and is written to": (
        "g (float[7,2] x, int64[3,2] i, float[3,2] u) => (float[7,2] y) { y = ScatterElements(x, i, u) }",
        "writes beyond the tensor",
    ),
    "sizes that may be zero": (
        "g (float[1,5,5] x, int64[2] s, int64[2] k) => (float[1,A,B,C] y) { y = Col2Im(x, s, k) }",
        "divides by sizes of Col2Im",
    ),
    "pads that a call tells": (
        "g (float[5] x, int64[2] p) => (float[K] y) { y = Pad(x, p) }",
        "nobody bounds how many elements Pad makes of numbers of a call",
    ),
    "cut by more than there is, and padded": (
        "g (float[5] x) => (float[5] y) <int64[2] p = {-100, 100}> { y = Pad(x, p) }",
        "an axis cut at one end and padded at the other, by -100 and 100",
    ),
    "pads that the library makes of sizes": (
        "g (float[5,6] x, int64[2] s) => (float[A,B] y) { y = CenterCropPad(x, s) }",
        "nobody bounds how many elements CenterCropPad makes of numbers of a call",
    ),
    "computed tiles": (
        "g (float[1,2,3,4] x, float[2,2,2,2] like) => (float[A,B,C,D] y) { r = Shape(like) y = Tile(x, r) }",
        "a repeat of Tile that only a call tells",
    ),
    "loop that may not run": ("""g (int64 n, float[2] x) => (float[2] y, float[K,2] all) {
        y, all = Loop (n, , x) <body = b (int64 i, bool c, float[2] a) => (bool d, float[2] e, float[2] f)
        { d = Identity(c) e = Neg(a) f = Identity(a) }> }""", "does not run"),
    "quantised of com.microsoft": ("""g (uint8[4] a, float s, uint8 z) => (uint8[4] c)
        { c = com.microsoft.QLinearAdd(a, s, z, a, s, z, s, z) }""", "without rounding and saturation"),
    "unknown operator": ("g (float[2] x) => (float[2] y) { y = com.microsoft.Nonsense(x) }", "No conversion rule"),
    "rank that is not known": ("g (float[N] x, int64[R] s) => (float[A,B] y) { y = Reshape(x, s) }", "dynamic rank"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_is_refused_with_a_reason(text: str, reason: str) -> None:
    assert any(reason in said for said in reasons(text)), reasons(text)


TAKEN = {
    "sizes": """g (float[N,4] x) => (float[A,B] y) <int64[1] m = {-1}, int64[1] f = {0}>
        { s = Shape(x) n = Gather<axis=0>(s, f) t = Concat<axis=0>(n, m) y = Reshape(x, t) }""",
    "sizes by way of reals": """g (float[1,1,H,W] x) => (float[1,1,A,B] y)
        <float[4] k = {1.0, 1.0, 2.0, 2.0}> { s = Shape(x) f = Cast<to=1>(s) m = Mul(f, k) c = Cast<to=7>(m)
        y = Resize<mode="nearest">(x, , , c) }""",
    "look-up": "g (int64[N] i, float[5,2] w) => (float[N,2] y) { y = Gather<axis=0>(w, i) }",
    "mask": """g (int64[N,8] mask) => (float[N,1,1,8] y)
        <int64[2] a = {1, 2}, float one = {1.0}, float low = {-10000.0}>
        { u = Unsqueeze(mask, a) f = Cast<to=1>(u) i = Sub(one, f) y = Mul(i, low) }""",
    "shape of words": """g (int64[N,L] words) => (float[N,L] y)
        { s = Shape(words) y = ConstantOfShape<value = float[1] {1.0}>(s) }""",
    "position": "g (float[2,5] x) => (int64[2] y) { y = ArgMax<axis=1, keepdims=0>(x) }",
    "computed positions": """g (float[2,5] x) => (int64[2] y) <int64 w = {5}>
        { a = ArgMax<axis=1, keepdims=0>(x) m = Mul(a, w) y = Add(m, a) }""",
    "count of flags": "g (bool[2,5] x) => (int64[2,5] y) <int64 a = {1}> { c = Cast<to=7>(x) y = CumSum(c, a) }",
    "end of everything": """g (float[5] x) => (float[A] y)
        <int64[1] b = {1}, int64[1] e = {9223372036854775807}, int64[1] a = {0}> { y = Slice(x, b, e, a) }""",
    "clipped reals": """g (float[2] x) => (int64[2] y) <float a = {0.0}, float b = {9.0}>
        { c = Clip(x, a, b) y = Cast<to=7>(c) }""",
    "index within limits": """g (int64[N] x, float[5,9] w) => (float[N,9] y, float[5,1] z)
        <int64 a = {4}, int64 b = {-5}> { l = Min(x, a) i = Max(l, b) y = Gather<axis=0>(w, i)
        m = ArgMax<axis=1>(w) z = GatherElements<axis=1>(w, m) }""",
    "8-bit moved": "g (int8[2,3] x) => (int8[3,2] y) { y = Transpose<perm=[1,0]>(x) }",
    "loop that runs": """g (float[2] x) => (float[2] y, float[K,2] all) <int64 n = {3}> {
        y, all = Loop (n, , x) <body = b (int64 i, bool c, float[2] a) => (bool d, float[2] e, float[2] f)
        { d = Identity(c) e = Neg(a) f = Identity(a) }> }""",
}


@pytest.mark.parametrize("text", TAKEN.values(), ids=TAKEN.keys())
def test_is_taken(text: str) -> None:
    assert reasons(text) == [""] * len(reasons(text))


RUN = [
    "sizes by way of reals", "computed positions", "count of flags", "loop that runs", "clipped reals",
    "index within limits",
]  # fmt: skip


@pytest.mark.parametrize("name", RUN)
def test_what_the_rules_let_through_is_right(name: str, tmp_path: Path) -> None:
    model = model_of(TAKEN[name])
    rng = np.random.default_rng(0)
    inputs = {}
    for value in model.graph.inputs:
        shape = [dim if isinstance(dim, int) else 3 for dim in value.shape or ()]
        inputs[value.name or ""] = (rng.random(shape) * 4 - 2).astype(value.dtype.numpy() if value.dtype else None)
    artifact = built(model, tmp_path)
    got = opened(artifact.files, artifact.metadata).run(inputs)
    for output, want in EvaluatorSession(ir.to_proto(model)).run(inputs).items():
        np.testing.assert_allclose(got[output], want, rtol=1e-5, atol=1e-5)


def test_integer_beyond_32_bits_is_an_error_and_no_other_number(tmp_path: Path) -> None:
    artifact = built(model_of(TAKEN["mask"]), tmp_path)
    session = opened(artifact.files, artifact.metadata)
    mask = np.ones((2, 8), np.int64)
    np.testing.assert_array_equal(session.run({"mask": mask})["y"], np.zeros((2, 1, 1, 8), np.float32))
    for beyond in (2**31, -(2**31) - 1):
        mask[1, 7] = beyond
        with pytest.raises(DataError, match="'mask' holds an integer outside of"):
            session.run({"mask": mask})


def test_rules_look_at_each_model_anew() -> None:
    first, second = model_of(REFUSED["int64 data"][0]), model_of(TAKEN["position"])
    rules = Rules({})
    assert [bool(rules(node)) for node in (*first.graph, *second.graph)] == [True, False]


def test_output_of_another_shape_than_declared_is_refused() -> None:
    model = model_of("g (float[1,1,4,4] x) => (float[1,1,2,2] y) { y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) }")
    model.graph.outputs[0].shape = ir.Shape([1, 1, 9, 9])
    with pytest.raises(BuildRefusedError, match="OpenVINO makes it"):
        convert(model, {})


# declared ranges


def deep_of_any_size() -> ir.Model:
    """Returns the network that is large enough for a blob, for images of N x H x W."""
    model = deep()
    for value in (*model.graph.inputs, *model.graph.outputs, *(node.outputs[0] for node in model.graph)):
        value.shape = ir.Shape(["N", 16, "H", "W"])
    return model


def test_sizes_with_a_range_are_bounded_and_others_stay_open(tmp_path: Path) -> None:
    ranges = {"N": DimRange(1, 2, 1), "H": DimRange(8, 64, 16, step=8)}
    model = deep_of_any_size()
    shape = convert(model, ranges).model.inputs[0].get_partial_shape()
    assert [(dim.get_min_length(), dim.get_max_length()) for dim in shape][:3] == [(1, 2), (16, 16), (8, 64)]
    assert shape[3].to_string() == "?"
    options = BuildOptions(ranges=ranges)
    assert all(answer.ok for answer in PLUGIN.supports(model, host_target(), options))
    artifact = PLUGIN.build(model, host_target(), options, tmp_path)
    assert "model.blob" in artifact.files
    assert artifact.files == PLUGIN.build(model, host_target(), options, tmp_path).files
    exact = EvaluatorSession(ir.to_proto(model))
    session = opened(artifact.files, artifact.metadata)
    for rows, height, width in ((1, 8, 1), (2, 64, 3), (1, 24, 17)):
        x = {"x": np.random.default_rng(height).standard_normal((rows, 16, height, width)).astype(np.float32)}
        np.testing.assert_allclose(session.run(x)["y"], exact.run(x)["y"], rtol=1e-4, atol=1e-4)
    with pytest.raises(RuntimeError):
        session.run({"x": np.zeros((3, 16, 8, 8), np.float32)})


def test_a_range_that_the_network_cannot_have_is_a_refusal() -> None:
    model = model_of("g (float[1,N,8,8] x, float[1,3,3,3] w) => (float[1,1,6,6] y) { y = Conv(x, w) }")
    with pytest.raises(BuildRefusedError, match=r"channel count \(4..20\)"):
        convert(model, {"N": DimRange(4, 20, 9)})


# artifacts


def test_the_blob_is_code_and_the_ir_does_without_it(with_blob: Artifact, tmp_path: Path) -> None:
    files = {name: memoryview(data) for name, data in with_blob.files.items()}
    code = PLUGIN.code_files(files)
    assert (code.names, code.is_needed, with_blob.native_code) == ({"model.blob"}, False, True)
    del files["model.blob"]
    assert not PLUGIN.code_files(files).names
    assert not built(model_of(SMALL), tmp_path).native_code


_EXPORTS = """
import subprocess, sys
from pathlib import Path
from nndeploy_openvino.export_process import export, stand_by
from nndeploy_openvino.library import core
copy, folder = stand_by(), Path(sys.argv[1])
assert copy is not None
core()
blobs = []
for _ in range(2):
    assert export(folder, "fp32", 60.0) == 0
    blobs.append((folder / "model.blob").read_bytes())
    (folder / "model.blob").unlink()
assert export(folder / "none", "fp32", 60.0) == 1
try:
    export(folder, "fp32", 0.0)
except subprocess.TimeoutExpired:
    blobs.append(b"late")
assert export(folder, "fp32", 60.0) == 0
assert blobs == [(folder / "model.blob").read_bytes()] * 2 + [b"late"]
"""


def test_a_process_that_is_forked_leaves_the_blob_of_one_that_is_started_anew(
    with_blob: Artifact, tmp_path: Path
) -> None:
    """NumPy has one thread there, so a copy of the process is kept; one that runs too long is ended."""
    for name in ("model.xml", "model.bin"):
        (tmp_path / name).write_bytes(with_blob.files[name])
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", _EXPORTS, str(tmp_path)], env=environment, check=True, timeout=120)
    assert (tmp_path / "model.blob").read_bytes() == bytes(with_blob.files["model.blob"])


def test_no_copy_is_kept_of_a_process_that_has_used_the_library() -> None:
    script = (
        "from nndeploy_openvino.export_process import stand_by; from nndeploy_openvino.library import core; "
        "core(); assert stand_by() is None"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)


def test_small_model_has_no_blob(tmp_path: Path) -> None:
    artifact = built(model_of(SMALL), tmp_path)
    assert set(artifact.files) == {"model.xml", "model.bin"}
    assert artifact.metadata["inputs"] == ["x"]
    assert artifact.metadata["outputs"] == ["y"]


def test_blob_and_ir_give_the_same(with_blob: Artifact) -> None:
    assert set(with_blob.files) == {"model.xml", "model.bin", "model.blob"}
    x = np.random.default_rng(1).standard_normal((1, 16, 8, 8)).astype(np.float32)
    ir_only = {name: data for name, data in with_blob.files.items() if name != "model.blob"}
    got = opened(with_blob.files, with_blob.metadata).run({"x": x})["y"]
    np.testing.assert_array_equal(got, opened(ir_only, with_blob.metadata).run({"x": x})["y"])


def test_blob_of_another_kind_of_cpu_is_not_used(with_blob: Artifact) -> None:
    blob = with_blob.files["model.blob"]
    isa = blob.index(b";isa=") + 5
    other = blob[:isa] + b"XXXX" + blob[isa + 4 :]
    with pytest.raises(RuntimeError):
        core().import_model(openvino().Tensor(np.frombuffer(other, np.uint8)), "CPU", configuration(1))
    x = np.ones((1, 16, 8, 8), np.float32)
    want = opened(with_blob.files, with_blob.metadata).run({"x": x})["y"]
    got = opened({**with_blob.files, "model.blob": other}, with_blob.metadata).run({"x": x})["y"]
    np.testing.assert_array_equal(got, want)


def test_blob_of_another_version_is_not_opened(with_blob: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the blob was opened")

    monkeypatch.setattr(type(core()), "import_model", refuse)
    session = opened(with_blob.files, {**with_blob.metadata, "openvino": "2020.1"})
    assert session.run({"x": np.zeros((1, 16, 8, 8), np.float32)})["y"].shape == (1, 16, 8, 8)


def test_blob_is_made_for_this_machine_alone(tmp_path: Path) -> None:
    assert "model.blob" not in built(deep(), tmp_path, Target("box", "x86_64")).files


def test_large_weights_are_not_repeated_in_a_blob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "MAX_BLOB_WEIGHTS", builder.MIN_BLOB_WEIGHTS)
    assert "model.blob" not in built(deep(), tmp_path).files


def test_ir_keeps_no_name_of_the_model(tmp_path: Path) -> None:
    model = model_of(
        "g (float[2] secret_in) => (float[2] secret_out) { secret = Exp(secret_in) secret_out = Neg(secret) }"
    )
    assert b"secret" not in built(model, tmp_path).files["model.xml"]


def test_crash_of_the_compiler_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "fake"
    fake.mkdir()
    (fake / "sitecustomize.py").write_text("import os, sys\nif '-m' in sys.orig_argv: os.kill(os.getpid(), 11)\n")
    monkeypatch.syspath_prepend(str(fake))
    with pytest.raises(BuildRefusedError, match="ended with status -11"):
        built(deep(), tmp_path / "work")


def test_reason_of_a_failed_export_is_handed_back(tmp_path: Path) -> None:
    from nndeploy_openvino.export_blob import main

    (tmp_path / "model.xml").write_text("not xml")
    (tmp_path / "model.bin").write_bytes(b"")
    main(tmp_path, "fp32")
    assert "\n" not in (tmp_path / "reason.txt").read_text()
    assert not (tmp_path / "model.blob").exists()


def test_inputs_and_outputs_keep_their_names_in_any_order(tmp_path: Path) -> None:
    model = model_of(
        'g (float[2] "z,9", float[2] "a:0", float[2] unused) => (float[2] "m/n", float[2] "b") '
        '{ "b" = Neg("a:0") "m/n" = Sub("z,9", "b") }'
    )
    artifact = built(model, tmp_path)
    assert artifact.metadata["outputs"] == ["m/n", "b"]
    ones, twos = np.ones(2, np.float32), np.full(2, 2, np.float32)
    got = opened(artifact.files, artifact.metadata).run({"z,9": ones, "a:0": twos, "unused": ones})
    assert {name: value.tolist() for name, value in got.items()} == {"b": [-2, -2], "m/n": [3, 3]}


# sessions


@pytest.mark.parametrize(("change", "message"), [
    (lambda files, metadata: ({}, metadata), "has no model.xml"),
    (lambda files, metadata: (files, {**metadata, "inputs": None}), "no list of inputs"),
    (lambda files, metadata: (files, {**metadata, "outputs": [1]}), "no list of outputs"),
    (lambda files, metadata: (files, {**metadata, "inputs": ["x", "y"]}), "has 1 inputs, the metadata names 2"),
    (lambda files, metadata: (files, {**metadata, "outputs": []}), "has 1 outputs, the metadata names 0"),
])  # fmt: skip
def test_artifact_that_does_not_fit_is_a_damaged_bundle(change: Any, message: str, tmp_path: Path) -> None:
    artifact = built(model_of(SMALL), tmp_path)
    with pytest.raises(BundleError, match=message):
        opened(*change(artifact.files, json.loads(json.dumps(artifact.metadata))))


def test_session_that_is_closed_says_so(tmp_path: Path) -> None:
    artifact = built(model_of(SMALL), tmp_path)
    session = opened(artifact.files, artifact.metadata)
    session.run({"x": np.zeros(2, np.float32)})
    session.close()
    with pytest.raises(UsageError, match="closed"):
        session.run({"x": np.zeros(2, np.float32)})


@pytest.mark.parametrize("threads", [1, 2, None])
def test_sizes_that_do_not_fit_are_an_error_and_never_the_call_before(threads: int | None, tmp_path: Path) -> None:
    artifact = built(model_of("g (float[N] a, float[M] b) => (float[K] y) { y = Add(a, b) }"), tmp_path)
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    session = PLUGIN.open(files, artifact.metadata, OpenOptions(threads=threads))
    for first in (1, 2):
        fitting = {"a": np.full(3, first, np.float32), "b": np.ones(3, np.float32)}
        assert session.run(fitting)["y"].tolist() == [first + 1] * 3
        with pytest.raises(RuntimeError):
            session.run({**fitting, "b": np.ones(4, np.float32)})


FLOAT = TensorType("float32", ("n",))


@pytest.mark.parametrize(("inputs", "outputs", "message"), [
    ({"x": FLOAT}, {"y": TensorType("float32", (2,))}, ""), ({"x": FLOAT, "unused": FLOAT}, {"y": FLOAT}, ""),
    ({"z": FLOAT}, {"y": FLOAT}, "names other inputs than the bundle: x"),
    ({"x": FLOAT}, {"y": FLOAT, "z": FLOAT}, "names other outputs than the bundle: y"),
    ({"x": TensorType("int32", ("n",))}, {"y": FLOAT}, "input 'x' is f32 in the model, the bundle says int32"),
    ({"x": FLOAT}, {"y": TensorType("float32", (2, 1))}, "is f32[2] in the model, the bundle says float32[2,1]"),
    ({"x": FLOAT}, {"y": TensorType("float32", (3,))}, "is f32[2] in the model, the bundle says float32[3]"),
])  # fmt: skip
def test_model_that_is_not_what_the_bundle_says_is_not_opened(
    inputs: dict[str, TensorType], outputs: dict[str, TensorType], message: str, tmp_path: Path
) -> None:
    artifact = built(model_of(SMALL), tmp_path)
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    with pytest.raises(BundleError, match=re.escape(message)) if message else contextlib.nullcontext():
        PLUGIN.open(files, artifact.metadata, OpenOptions(inputs=inputs, outputs=outputs))


def test_output_whose_size_only_a_call_tells_is_compared_in_each(tmp_path: Path) -> None:
    artifact = built(model_of("g (float[N,2] x) => (float[M,2] y) { y = Concat<axis=0>(x, x) }"), tmp_path)
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    types = {"inputs": {"x": TensorType("float32", ("N", 2))}, "outputs": {"y": TensorType("float32", (4, 2))}}
    session = PLUGIN.open(files, artifact.metadata, OpenOptions(**types))
    for size in (2, 3, 2):
        x = {"x": np.ones((size, 2), np.float32)}
        if size == 2:
            assert session.run(x)["y"].shape == (4, 2)
        else:
            with pytest.raises(BundleError, match=re.escape("has the shape (6, 2), the bundle says float32[4,2]")):
                session.run(x)


def test_bfloat16_crosses_with_its_bits(tmp_path: Path) -> None:
    model = model_of("g (bfloat16[N] x) => (bfloat16[N] y) { y = Mul(x, x) }")
    artifact = built(model, tmp_path)
    got = opened(artifact.files, artifact.metadata).run({"x": np.array([1.5, -3, 0], ml_dtypes.bfloat16)})["y"]
    assert got.dtype == ml_dtypes.bfloat16
    assert got.astype(np.float32).tolist() == [2.25, 9, 0]


# reasons


@pytest.mark.parametrize(("message", "reason"), [
    ("Exception from src/inference/src/cpp/core.cpp:105:\n"
     "Check 'false' failed at src/frontends/common_translators/src/unconverted_ops_report.cpp:151:\n"
     "FrontEnd API failed with OpConversionFailure:\nModel wasn't fully converted.\nSummary:\n"
     "-- No conversion rule found for operations: com.microsoft.QLinearAdd\n"
     "To facilitate the conversion of unsupported operations, refer to documentation",
     "No conversion rule found for operations: com.microsoft.QLinearAdd"),
    ("Exception from src/inference/src/cpp/core.cpp:84:\n"
     "Model wasn't fully converted. Failed operations detailed log:\n-- Conv-16 with a message:\n"
     "While validating ONNX node '<Node(Conv): y>': Check 'a.rank()' failed at src/x/conv.cpp:38:\n"
     "FrontEnd API failed with GeneralFailure:\nThe input data tensor's rank has to be known (static)\n\n"
     "Summary:\n-- Conversion is failed for: Conv-16",
     "The input data tensor's rank has to be known (static)"),
    ("Exception from src/inference/src/dev/plugin.cpp:54:\n"
     "Check '!shape.rank().is_dynamic()' failed at src/plugins/intel_cpu/src/node.cpp:108:\n"
     "Unexpected: CPU plug-in doesn't support Reshape operation with dynamic rank. Operation name: z",
     "CPU plug-in doesn't support Reshape operation with dynamic rank"),
    ("Exception from src/inference/src/dev/plugin.cpp:54:\n"
     "Check 'gpr_pool.size() > 0' failed at src/a/emitter.cpp:7:\n",
     "the check 'gpr_pool.size() > 0' failed in a/emitter.cpp:7"),
    ("", "RuntimeError"),
])  # fmt: skip
def test_reason_is_what_the_message_says(message: str, reason: str) -> None:
    assert reason_of(RuntimeError(message)) == reason
