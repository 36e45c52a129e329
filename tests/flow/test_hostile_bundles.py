# SPDX-License-Identifier: Apache-2.0
"""Bundles from an attacker, with every hash made right: no code runs that was not allowed, nothing outside is read."""

import platform
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from hostile_bundles import Edit, library_with_canary, repacked, with_variant
from tests_flow_bundles import write_double

import nndeploy
from nndeploy.cli.main import run_command
from nndeploy.plugin.interface import BuildOptions
from nndeploy.runtime import code_policy
from nndeploy.target.target import host_target

MODEL = "submodels/s0/v0-onnxruntime/model.onnx"
EVIL = "submodels/s0/evil"
SECRET = b"S3CRET" * 4


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a bundle, an input and a secret."""
    monkeypatch.chdir(tmp_path)
    write_double(tmp_path / "good.nnd")
    np.savez(tmp_path / "x.npz", image=np.ones((2, 3), np.float32))
    (tmp_path / "secret.txt").write_bytes(SECRET)
    return tmp_path


def calls(bundle: str) -> list[list[str]]:
    """Returns the commands that load a bundle."""
    return [
        ["run", bundle, "--input", "x.npz", "--output", "y.npz"], ["verify", bundle], ["verify", bundle, "--no-run"],
        ["bench", bundle, "--iterations", "1"], ["bench", bundle, "--operators", "--iterations", "1"],
        ["pace", bundle, "--cpu-limit", "50%"],
    ]  # fmt: skip


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """Returns the one line of the error."""
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Path]:
    """A library that writes a file when it is loaded, and that file."""
    if find_spec("ziglang") is None:
        pytest.skip("ziglang is not installed")
    folder = tmp_path_factory.mktemp("canary")
    return library_with_canary(folder, folder / "sang"), folder / "sang"


def test_the_canary_sings_where_it_is_loaded(canary, tmp_path) -> None:
    library, song = canary
    (tmp_path / "canary.so").write_bytes(library)
    subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL('./canary.so')"], check=True, cwd=tmp_path)
    assert song.read_text() == "it ran"
    song.unlink()


@pytest.mark.parametrize("more", [[], ["--no-native-code"]], ids=["allowed", "no-native-code"])
def test_code_that_the_manifest_calls_data_is_never_loaded(here, canary, more, capsys) -> None:
    library, song = canary
    files = {"engine.trt": f"{EVIL}/engine.trt"}
    edit = with_variant("tensorrt", files, {}, native_code=False)
    repacked(here / "good.nnd", here / "evil.nnd", edit, {files["engine.trt"]: library})
    for call in calls("evil.nnd"):
        assert run_command(call + (more if call[-1] != "--no-run" else [])) == 77, call
        assert "engine.trt is code for tensorrt, and the manifest says it holds none" in said(capsys)
    assert not song.exists()
    assert not (here / "y.npz").exists()


@pytest.mark.parametrize(("backend", "name", "data", "is_said_to_be_code", "reason", "more"), [
    *((backend, name, b"\x7fELF", False, f"{name} is code for {backend}", ["--no-run"]) for backend, name in (
        ("tensorrt", "engine.trt"), ("cudnn", "plans.bin"), ("triton", "constants.bin"), ("openvino", "model.blob"),
    )),
    ("onnxruntime", "model.onnx", b"", True, "nothing in it is code for onnxruntime", []),
    ("onnxruntime", "model.onnx", b"\x20\0\0\0ORTM" + bytes(64), False, "a format of ONNX Runtime's own", []),
], ids=["tensorrt", "cudnn", "triton", "openvino", "data", "onnxruntime"])  # fmt: skip
def test_every_kind_of_code_is_told_from_data(
    here, backend, name, data, is_said_to_be_code, reason, more, capsys
) -> None:
    edit = with_variant(backend, {name: f"{EVIL}/x" if data else MODEL}, {}, native_code=is_said_to_be_code)
    repacked(here / "good.nnd", here / "evil.nnd", edit, {f"{EVIL}/x": data} if data else {})
    assert run_command(["verify", "evil.nnd", *more]) == 77
    assert reason in said(capsys)


def test_a_lie_in_a_variant_that_would_not_be_taken_is_refused(here, canary, capsys) -> None:
    library, song = canary

    def edit(manifest: dict) -> None:
        first = manifest["submodels"][0]["variants"][0]
        other = first | {"id": "z", "backend": "tensorrt", "files": {"engine.trt": f"{EVIL}/k"}, "native_code": False}
        manifest["submodels"][0]["variants"].append(other)

    repacked(here / "good.nnd", here / "evil.nnd", edit, {f"{EVIL}/k": library})
    assert run_command(calls("evil.nnd")[0]) == 77
    assert "s0/z: engine.trt is code" in said(capsys)
    assert not song.exists()


def test_a_library_of_delays_in_a_bundle_is_never_loaded(here, canary, capsys) -> None:
    library, song = canary

    def edit(manifest: dict) -> None:
        manifest["pace_libraries"] = {platform.machine(): "pacing/pace.so"}
        manifest["format"]["minor"] = 3
        manifest["target_chains"] = []
        for limits in manifest["ranges"].values():
            limits["step"] = 1

    repacked(here / "good.nnd", here / "evil.nnd", edit, {"pacing/pace.so": library})
    for call in (
        ["run", "evil.nnd", "--input", "x.npz", "--output", "y.npz", "--cpu-limit", "50%", "--pace"],
        ["bench", "evil.nnd", "--operators", "--iterations", "1"],
        ["pace", "evil.nnd", "--cpu-limit", "50%"],
        ["verify", "evil.nnd"],
    ):
        assert run_command(call) == 0, capsys.readouterr().err
    assert not song.exists()


def reading(file: str, *, in_attribute: bool) -> bytes:
    """Returns an ONNX model whose output holds a file."""
    tensor = onnx.TensorProto(
        name="w", data_type=onnx.TensorProto.UINT8, dims=[8], data_location=onnx.TensorProto.EXTERNAL
    )
    for key, value in (("location", file), ("offset", "0"), ("length", "8")):
        tensor.external_data.add(key=key, value=value)
    constants = [] if in_attribute else [tensor]
    nodes = [onnx.helper.make_node("Constant", [], ["w"], value=tensor)] if in_attribute else []
    nodes += [
        onnx.helper.make_node("Cast", ["w"], ["f"], to=onnx.TensorProto.FLOAT),
        onnx.helper.make_node("ReduceSum", ["f"], ["s"]),
        onnx.helper.make_node("Add", ["image", "s"], ["y"]),
    ]
    border = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in ("image", "y")]
    graph = onnx.helper.make_graph(nodes, "g", border[:1], border[1:], constants)
    opsets = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.mark.parametrize("in_attribute", [False, True], ids=["initializer", "attribute"])
@pytest.mark.parametrize("file", ["secret.txt", "/etc/passwd", "../x", "./secret.txt"])
@pytest.mark.parametrize("backend", ["onnxruntime", "reference"])
def test_a_model_in_a_bundle_reads_no_file(here, backend, file, in_attribute, capsys) -> None:
    edit = with_variant(backend, {"model.onnx": f"{EVIL}/model.onnx"}, {}, native_code=False)
    model = reading(file, in_attribute=in_attribute)
    repacked(here / "good.nnd", here / "evil.nnd", edit, {f"{EVIL}/model.onnx": model})
    assert run_command(calls("evil.nnd")[0]) == 77
    assert f"the model reads the file {file!r}" in said(capsys)
    assert not (here / "y.npz").exists()


def test_no_second_name_hides_behind_the_first(here, capsys) -> None:
    model = reading("w.bin", in_attribute=False).replace(b"\x12\x05w.bin", b"\x12\x00\x12\x03s.t")
    edit = with_variant("onnxruntime", {"model.onnx": f"{EVIL}/m", "weights.bin": f"{EVIL}/w"}, {}, native_code=False)
    repacked(here / "good.nnd", here / "evil.nnd", edit, {f"{EVIL}/m": model, f"{EVIL}/w": b"w"})
    assert run_command(calls("evil.nnd")[0]) in (65, 77)
    said(capsys)


def _openvino(member: bytes) -> tuple[Edit, dict[str, bytes]]:
    files = {"model.xml": f"{EVIL}/model.xml", "model.bin": f"{EVIL}/model.bin"}
    metadata = {"inputs": ["image"], "outputs": ["y"], "openvino": "0"}
    edit = with_variant("openvino", files, metadata, native_code=False)
    return edit, {files["model.xml"]: member, files["model.bin"]: b""}


@pytest.mark.skipif(find_spec("openvino") is None, reason="openvino is not installed")
@pytest.mark.parametrize("member", [
    reading("secret.txt", in_attribute=False), b"  " + reading("secret.txt", in_attribute=False),
    b'<?xml version="1.0"?>\n' + reading("secret.txt", in_attribute=False),
    b'<?xml version="1.0"?><!DOCTYPE net SYSTEM "/etc/passwd"><net name="m" version="11">\n</net>',
    b'<?xml version="1.0"?>\n<net name="m" version="7">\n</net>', b"",
], ids=["onnx", "space", "head", "doctype", "version", "empty"])  # fmt: skip
def test_openvino_reads_nothing_but_ir(here, member, capsys) -> None:
    repacked(here / "good.nnd", here / "evil.nnd", *_openvino(member))
    for call in calls("evil.nnd")[:2]:
        assert run_command(call) == 77
        assert "the graph is not OpenVINO's IR" in said(capsys)
    assert not (here / "y.npz").exists()


@pytest.mark.parametrize("model", ["/etc/passwd", "../good.nnd", "a/../../good.nnd", "x\\u0000.nnd", "a\\nb.nnd"])
def test_a_carried_pipeline_opens_no_bundle_elsewhere(here, model, capsys) -> None:
    (here / "box").mkdir()
    toml = f'[[level]]\n[[level.pipeline]]\nmodel = "{model}"\n[[level]]\n[[level.pipeline]]\n'
    members = {"pipeline/pipeline.toml": toml.encode(), "pipeline/files.json": b"{}"}
    repacked(here / "good.nnd", here / "box/evil.nnd", None, members)
    assert run_command(["run", "box/evil.nnd", "--input", "x.npz", "--output", "out.jsonl"]) == 77
    assert "lies elsewhere" in said(capsys)
    assert not (here / "out.jsonl").exists()


def large_enough_for_a_blob() -> onnx.ModelProto:
    """Returns a network that OpenVINO compiles ahead of time."""
    layers = "".join(f"m{i} = MatMul(r{i}, w{i}) r{i + 1} = Tanh(m{i}) " for i in range(34))
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2,3] image) => (float[2,3] y) '
        f"{{ r0 = Identity(image) {layers} y = Identity(r34) }}"
    )
    widths = [3, 4096, 3, *[3] * 32]
    for i in range(34):
        weight = np.full((widths[i], widths[i + 1]), 0.5 / widths[i], np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, f"w{i}"))
    return onnx.shape_inference.infer_shapes(model)


@pytest.mark.skipif(find_spec("openvino") is None, reason="openvino is not installed")
def test_code_is_left_out_where_the_rest_runs_without(here) -> None:
    import onnx_ir as ir
    from nndeploy_openvino.plugin import Plugin

    built = Plugin().build(ir.from_proto(large_enough_for_a_blob()), host_target(), BuildOptions(), here)
    names = {name: f"submodels/s0/ov/{name}" for name in built.files}
    edit = with_variant("openvino", names, built.metadata, native_code=True)
    members = {names[name]: data for name, data in built.files.items()}
    repacked(here / "good.nnd", here / "blob.nnd", edit, members)
    results = []
    for allowed in (True, False):
        with nndeploy.load_bundle(
            here / "blob.nnd", nndeploy.LoadOptions(threads=1, allow_native_code=allowed, allow_unsigned_code=True)
        ) as program:
            assert [choice.backend for choice in program.choices] == ["openvino"]
            assert program.warnings == ()
            assert (names["model.blob"] in program._bundle._checked) == allowed
            results.append(program.run({"image": np.ones((2, 3), np.float32)})["y"])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-6)


def test_a_backend_that_does_not_tell_counts_as_code(here, monkeypatch, capsys) -> None:
    class Silent:
        """A plugin that was written before there was `code_files`."""

    call = calls("good.nnd")[0]
    monkeypatch.setattr(code_policy, "backend", lambda _: Silent())
    assert run_command(call) == 77
    capsys.readouterr()
    assert run_command([*call, "--allow-unsigned-code"]) == 0
    capsys.readouterr()
    assert run_command([*call, "--no-native-code"]) == 69
    assert "holds native code, which is not allowed here" in said(capsys)
