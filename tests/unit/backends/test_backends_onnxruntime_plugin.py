# SPDX-License-Identifier: Apache-2.0
"""The backend onnxruntime: what it tells the library, what it refuses, that its bytes do not differ."""

import json
import os
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
from hypothesis import given
from hypothesis import strategies as st
from nndeploy_onnxruntime import build as builder
from nndeploy_onnxruntime.build import custom_domains
from nndeploy_onnxruntime.element_types import RAW_TYPES, array_from_raw, raw_from_array, raw_name
from nndeploy_onnxruntime.library import session_options
from nndeploy_onnxruntime.model_bytes import bytes_for_onnxruntime, newest_opsets
from nndeploy_onnxruntime.plugin import Plugin
from nndeploy_onnxruntime.reason import reason_of

from nndeploy.errors import BuildRefusedError, BundleError, PolicyError, UnavailableError, UsageError
from nndeploy.plugin.interface import BuildOptions, OpenOptions
from nndeploy.target.target import Target, host_target

PLUGIN = Plugin()
HEADER = '<ir_version: 10, opset_import: ["" : 21]>'
SMALL = "g (float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> { t = Add(x, w) y = Relu(t) }"


def proto_of(text: str, header: str = HEADER) -> onnx.ModelProto:
    return onnx.shape_inference.infer_shapes(onnx.parser.parse_model(header + text))


def model_of(text: str, header: str = HEADER) -> ir.Model:
    return ir.from_proto(proto_of(text, header))


def with_weights(size: int) -> onnx.ModelProto:
    """Returns y = x + w with a weight of `size` float32 values."""
    proto = proto_of(f"g (float[{size}] x) => (float[{size}] y) {{ y = Add(x, w) }}".replace("(x, w)", "(x, x)"))
    proto.graph.node[0].input[1] = "w"
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.arange(size, dtype=np.float32), "w"))
    return proto


def opened(files: Mapping[str, bytes], options: OpenOptions | None = None) -> Any:
    return PLUGIN.open({name: memoryview(data) for name, data in files.items()}, {}, options or OpenOptions())


def built(model: ir.Model, folder: Path) -> Any:
    return PLUGIN.build(model, host_target(), BuildOptions(), folder)


# the library


def test_telemetry_is_off_before_the_library_is_loaded() -> None:
    script = (
        "import os; os.environ.pop('ORT_DISABLE_TELEMETRY', None)\n"
        "from nndeploy_onnxruntime.library import onnxruntime\n"
        "assert onnxruntime().__version__; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"]


def test_missing_library_names_the_extra() -> None:
    script = (
        "import sys; sys.modules['onnxruntime'] = None\n"
        "from nndeploy.errors import UnavailableError\n"
        "from nndeploy_onnxruntime.library import onnxruntime\n"
        "try: onnxruntime()\nexcept UnavailableError as err: print(err.hint)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "pip install --no-index --find-links FOLDER 'nndeploy-toolchain[cpu]'"


def test_only_the_cpu_provider_is_used(tmp_path: Path) -> None:
    session = opened(built(model_of(SMALL), tmp_path).files)
    assert session._run.__self__.get_providers() == ["CPUExecutionProvider"]


def test_threads_are_what_was_asked_and_do_not_spin_after_a_run() -> None:
    options = session_options(3)
    assert options.intra_op_num_threads == 3
    assert options.get_session_config_entry("session.force_spinning_stop") == "1"
    assert session_options(None).intra_op_num_threads == 0


def test_operator_library_that_is_none_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "ops.so"
    path.write_bytes(b"not a library")
    files = built(model_of(SMALL), tmp_path).files
    with pytest.raises(UnavailableError, match="operator library cannot be loaded") as caught:
        opened(files, OpenOptions(custom_op_libraries=(str(path),)))
    assert caught.value.where == str(path)


@pytest.mark.parametrize("locale", ["", ', locale = "en_US"'])
def test_text_is_normalised_without_a_locale_that_systems_lack(locale: str, tmp_path: Path) -> None:
    attributes = f'case_change_action = "LOWER", is_case_sensitive = 0, stopwords = ["\u00c4PFEL"]{locale}'
    text = f"g (string[N] s) => (string[M] t) {{ t = StringNormalizer<{attributes}>(s) }}"
    model = model_of(text)
    assert all(answer.ok for answer in PLUGIN.supports(model, host_target(), BuildOptions()))
    given = np.array(["\u00c9COLE", "\u00e4pfel", "\u03a3OX"], object)
    found = opened(built(model, tmp_path).files).run({"s": given})["t"]
    assert found.tolist() == ["\u00e9cole", "\u03c3ox"]


# versions


def test_model_of_a_newer_opset_is_taken_where_its_operators_did_not_change(tmp_path: Path) -> None:
    newest = onnx.defs.onnx_opset_version()
    header = f'<ir_version: {onnx.IR_VERSION}, opset_import: ["" : {newest}]>'
    model = model_of(SMALL, header)
    assert all(answer.ok for answer in PLUGIN.supports(model, host_target(), BuildOptions()))
    outputs = opened(built(model, tmp_path).files).run({"x": np.array([-2, 0], np.float32)})
    assert outputs["y"].tolist() == [0, 2]


def test_operator_that_the_library_does_not_know_yet_is_refused_by_name() -> None:
    if newest_opsets()[""] >= 28:
        pytest.skip("this onnxruntime knows opset 28")
    header = '<ir_version: 10, opset_import: ["" : 28]>'
    model = model_of("g (float[2,4] x) => (float[2,4] y) { y = SwiGLU(x, x) }", header)
    with pytest.raises(BuildRefusedError, match="SwiGLU of opset 28 is newer than what this onnxruntime knows"):
        bytes_for_onnxruntime(model)


# artifacts


def test_small_constants_stay_in_the_model_and_large_ones_beside_it(tmp_path: Path) -> None:
    few, many = (builder.EXTERNAL_BYTES // 4 + extra for extra in (-1, 1))
    for size, names in ((few, {"model.onnx"}), (many, {"model.onnx", "weights.bin"})):
        folder = tmp_path / str(size)
        folder.mkdir()
        files = built(ir.from_proto(with_weights(size)), folder).files
        assert set(files) == names
        x = np.ones(size, np.float32)
        np.testing.assert_array_equal(opened(files).run({"x": x})["y"], np.arange(size, dtype=np.float32) + 1)


BUILDS = """
import hashlib, json, sys, tempfile
from pathlib import Path
import onnx, onnx_ir as ir
from nndeploy.plugin.interface import BuildOptions
from nndeploy.plugin.registry import backend
from nndeploy.target.target import host_target
model, found = ir.from_proto(onnx.load(sys.argv[1])), {}
for name in sys.argv[3:]:
    for _ in range(int(sys.argv[2])):
        with tempfile.TemporaryDirectory() as folder:
            artifact = backend(name).build(model, host_target(), BuildOptions(), Path(folder))
    found[name] = {name: hashlib.sha256(data).hexdigest() for name, data in artifact.files.items()}
print(json.dumps(found))
"""


def network() -> onnx.ModelProto:
    """Returns a network with enough nodes, branches and weights for an order to go wrong."""
    rng = np.random.default_rng(0)
    lines, names = [], ["x"]
    initializers = []
    for i in range(24):
        initializers.append(onnx.numpy_helper.from_array(rng.random((8, 8, 3, 3), np.float32), f"w{i}"))
        initializers.append(onnx.numpy_helper.from_array(rng.random(8, np.float32), f"b{i}"))
        lines += [f"c{i} = Conv<pads=[1,1,1,1]>({names[-1]}, w{i}, b{i})", f"r{i} = Relu(c{i})"]
        lines += [f"a{i} = Add(r{i}, {names[i // 2]})", f"s{i} = Sigmoid(a{i})", f"m{i} = Mul(a{i}, s{i})"]
        names.append(f"m{i}")
    proto = onnx.parser.parse_model(
        f"{HEADER} g (float[1,8,12,12] x) => (float[1,8,12,12] m23, float[1,8,12,12] m11) {{ {' '.join(lines)} }}"
    )
    proto.graph.initializer.extend(initializers)
    return onnx.shape_inference.infer_shapes(proto)


def test_same_model_gives_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    path, backends = tmp_path / "network.onnx", ["onnxruntime", "openvino", "reference"]
    onnx.save(network(), path)
    found = []
    for seed, num_builds in (("1", "1"), ("2", "3")):
        done = subprocess.run(
            [sys.executable, "-c", BUILDS, str(path), num_builds, *backends],
            env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True, cwd=tmp_path,
        )  # fmt: skip
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]
    assert all(found[0][name] for name in backends)


def test_operators_from_a_library_are_named_in_the_requirements() -> None:
    header = '<ir_version: 10, opset_import: ["" : 21, "my.ops" : 1, "com.microsoft" : 1, "local" : 1]>'
    text = """g (float[2] x) => (float[2] y) { a = my.ops.Thing(x) b = com.microsoft.Gelu(a) y = local.f(b) }
    <domain: "local", opset_import: ["" : 21]> f (p) => (q) { q = Relu(p) }"""
    assert custom_domains(ir.from_proto(onnx.parser.parse_model(header + text))) == ["my.ops"]


def test_model_without_such_operators_requires_nothing(tmp_path: Path) -> None:
    assert built(model_of(SMALL), tmp_path).requires == {}


def test_artifact_does_not_depend_on_the_target(tmp_path: Path) -> None:
    found = []
    for target in (host_target(), Target("box", "aarch64")):
        folder = tmp_path / target.name
        folder.mkdir()
        found.append(PLUGIN.build(model_of(SMALL), target, BuildOptions(), folder))
    assert found[0] == found[1]


# sessions and what they refuse


def test_session_that_is_closed_says_so(tmp_path: Path) -> None:
    session = opened(built(model_of(SMALL), tmp_path).files)
    session.close()
    with pytest.raises(UsageError, match="closed"):
        session.run({"x": np.zeros(2, np.float32)})


def test_artifact_without_a_model_is_a_damaged_bundle() -> None:
    with pytest.raises(BundleError, match=r"no model\.onnx"):
        opened({"weights.bin": b""})


def external(location: str, offset: int) -> bytes:
    proto = with_weights(4)
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", str(offset)), ("length", "16")):
        tensor.external_data.add(key=key, value=value)
    return bytes(proto.SerializeToString())


def test_model_that_names_an_address_in_memory_is_refused() -> None:
    secret = np.full(4, 7, np.float32)
    with pytest.raises(BundleError, match="address in memory"):
        opened({"model.onnx": external("*/_ORT_MEM_ADDR_/*", secret.ctypes.data)})


@pytest.mark.parametrize("location", ["secret.bin", "../secret.bin", "{folder}/secret.bin"])
def test_model_that_names_a_file_does_not_get_it(
    location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    for folder in (tmp_path, inside):
        (folder / "secret.bin").write_bytes(np.full(4, 7, np.float32).tobytes())
    monkeypatch.chdir(inside)
    model = external(location.format(folder=tmp_path), 0)
    with pytest.raises(PolicyError, match="reads the file"):
        opened({"model.onnx": model})
    with pytest.raises(BuildRefusedError, match="reads the file"):
        PLUGIN.evaluate(model, [{"x": np.zeros(4, np.float32)}], BuildOptions())


def test_weights_that_are_too_short_are_refused(tmp_path: Path) -> None:
    files = built(ir.from_proto(with_weights(builder.EXTERNAL_BYTES)), tmp_path).files
    with pytest.raises(Exception, match="External initializer"):
        opened({**files, "weights.bin": files["weights.bin"][:100]})


def test_errors_of_the_library_do_not_reach_standard_output(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    session = opened(built(model_of(SMALL), tmp_path).files)
    with pytest.raises(Exception, match="Got invalid dimensions"):
        session.run({"x": np.zeros(3, np.float32)})
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")


@pytest.mark.parametrize("text", [
    "(bfloat16[2] x, float[2] f) => (float[2] y, seq(float[2]) s) { y = Cast<to=1>(x) s = SequenceConstruct(f) }",
    "(bfloat16[2] x, string[2] f) => (float[2] y, string[2] s) { y = Cast<to=1>(x) s = Identity(f) }",
    "(bfloat16[2] x, optional(float[2]) f) => (float[2] y, bool s) { y = Cast<to=1>(x) s = OptionalHasElement(f) }",
])  # fmt: skip
def test_types_that_numpy_lacks_do_not_cross_beside_text_lists_and_optionals(text: str, tmp_path: Path) -> None:
    with pytest.raises(BuildRefusedError, match="cannot cross together"):
        built(model_of(f"g {text}"), tmp_path)


# element types


@pytest.mark.parametrize("name", RAW_TYPES)
@given(data=st.data())
def test_raw_memory_round_trip(name: str, data: st.DataObject) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    shape = data.draw(st.sampled_from([(), (0,), (1,), (3,), (2, 3), (5, 1, 3), (2, 0)]))
    size = int(np.prod(shape))
    bits = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}.get(name, 8 * dtype.itemsize)
    codes = np.array(data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=size, max_size=size)), np.uint64)
    if name in ("int4", "int2"):
        array = ((codes.astype(np.int64) + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)).astype(dtype).reshape(shape)
    else:
        array = codes.astype(f"u{dtype.itemsize}").view(dtype).reshape(shape)
    raw = raw_from_array(array)
    assert raw.nbytes == -(-size * bits // 8)
    back = array_from_raw(raw, name, shape)
    assert (back.dtype, back.shape) == (dtype, shape)
    assert back.tobytes() == array.tobytes()


def test_names_of_the_librarys_types() -> None:
    said = {
        "bfloat16": "bfloat16", "float8e4m3fn": "float8_e4m3fn", "float8e5m2fnuz": "float8_e5m2fnuz", "int4": "int4",
    }  # fmt: skip
    assert {text: raw_name(f"tensor({text})") for text in said} == said
    for plain in ("tensor(float)", "tensor(float16)", "tensor(int8)", "seq(tensor(float))", "optional(tensor(float))"):
        assert raw_name(plain) == ""


@pytest.mark.parametrize(("onnx_name", "dtype"), [
    ("bfloat16", ml_dtypes.bfloat16), ("float8e5m2", ml_dtypes.float8_e5m2), ("float8e4m3fn", ml_dtypes.float8_e4m3fn),
])  # fmt: skip
def test_tensors_of_types_that_numpy_lacks_cross(onnx_name: str, dtype: Any, tmp_path: Path) -> None:
    model = model_of(
        f"g ({onnx_name}[N] x, float[2] f) => ({onnx_name}[N] y, float[2] g) {{ y = Identity(x) g = Neg(f) }}"
    )
    session = opened(built(model, tmp_path).files)
    for values in ([0.5, -2.0, 1.5], []):
        x = np.array(values, np.float32).astype(dtype)
        outputs = session.run({"x": x, "f": np.ones(2, np.float32)})
        assert outputs["y"].dtype == dtype
        assert outputs["y"].tobytes() == x.tobytes()
        assert outputs["g"].tolist() == [-1, -1]


def test_packed_integers_cross_both_ways(tmp_path: Path) -> None:
    header = '<ir_version: 10, opset_import: ["" : 21]>'
    model = model_of(
        "g (float[5] x, int4 z) => (int4[5] q, float[5] y) <float s = {1.0}> "
        "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
        header,
    )
    session = opened(built(model, tmp_path).files)
    x = np.array([-9, -8, 0, 3, 7], np.float32)
    outputs = session.run({"x": x, "z": np.array(0).astype(ml_dtypes.int4)})
    assert outputs["q"].astype(np.int8).tolist() == [-8, -8, 0, 3, 7]
    assert outputs["y"].tolist() == [-8, -8, 0, 3, 7]


# reasons

RUNNING = (
    "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Non-zero status code returned while running Gather node. "
    "Name:'/model/Gather' Status Message: indices element out of data bounds, idx=64 must be within the range [-9,8]"
)
SIGNATURE = (
    "[ONNXRuntimeError] : 1 : FAIL : Exception during initialization: /onnxruntime_src/a/b.h:53 "
    "onnxruntime::LSTMBase::LSTMBase(const onnxruntime::OpKernelInfo&) layout_ == 0 was false. "
    "Batchwise recurrent operations (layout == 1) are not supported."
)


@pytest.mark.parametrize(("message", "reason"), [
    ("[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for Add(6) node with name ''",
     "Could not find an implementation for Add(6)"),
    ("[ONNXRuntimeError] : 1 : FAIL : Load model from m.onnx failed:Fatal error: "
     "foo:Bar(-1) is not a registered function/op",
     "foo:Bar is not a registered function/op"),
    (SIGNATURE, "Batchwise recurrent operations (layout == 1) are not supported"),
    ('[ONNXRuntimeError] : 10 : INVALID_GRAPH : This is an invalid model. In Node, ("", Attention, "", -1) : '
     '("a": tensor(float),) -> ("y": tensor(float),) , Error Unrecognized attribute: w for operator Attention',
     "Unrecognized attribute: w for operator Attention"),
    ("[ONNXRuntimeError] : 10 : INVALID_GRAPH : This is an invalid model. Type Error: Type 'tensor(int2)' of "
     "input parameter (x) of operator (Identity) in node () is invalid.",
     "Type Error: Type 'tensor(int2)' of input parameter (x) of operator (Identity) is invalid"),
    (RUNNING, "Gather '/model/Gather': indices element out of data bounds, idx=64 must be within the range [-9,8]"),
    ("something\nelse", "something else"), ("", "ValueError"),
])  # fmt: skip
def test_reason_is_what_the_message_says(message: str, reason: str) -> None:
    assert reason_of(ValueError(message)) == reason


def test_reference_evaluation_is_not_optimised_and_gives_all_outputs() -> None:
    proto = proto_of("g (float[2] x) => (float[2] y, float[2] z) { y = Relu(x) z = Neg(y) }")
    (outputs,) = PLUGIN.evaluate(proto.SerializeToString(), [{"x": np.array([-1, 2], np.float32)}], BuildOptions())
    assert {name: value.tolist() for name, value in outputs.items()} == {"y": [0, 2], "z": [0, -2]}


def test_reference_evaluation_refuses_with_a_reason() -> None:
    proto = proto_of("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    with pytest.raises(BuildRefusedError, match="invalid dimensions"):
        PLUGIN.evaluate(proto.SerializeToString(), [{"x": np.zeros(3, np.float32)}], BuildOptions())


def test_operators_of_a_library_are_taken_only_where_the_library_is_given(tmp_path: Path) -> None:
    extensions = pytest.importorskip("onnxruntime_extensions", reason="onnxruntime-extensions is not installed")
    library = (extensions.get_library_path(),)
    header = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.contrib" : 1]>'
    model = model_of("g (string[N] x) => (string[N] y) { y = ai.onnx.contrib.StringUpper(x) }", header)
    (without,) = PLUGIN.supports(model, host_target(), BuildOptions())
    assert "StringUpper" in without.reason
    options = BuildOptions(custom_op_libraries=library)
    assert [answer.ok for answer in PLUGIN.supports(model, host_target(), options)] == [True]
    artifact = PLUGIN.build(model, host_target(), options, tmp_path)
    assert artifact.requires == {"custom_ops": ["ai.onnx.contrib"]}
    session = opened(artifact.files, OpenOptions(custom_op_libraries=library))
    assert session.run({"x": np.array(["a"], object)})["y"].tolist() == ["A"]
    with pytest.raises(Exception, match="StringUpper"):
        opened(artifact.files)
