# SPDX-License-Identifier: Apache-2.0
"""Bundles without Python: `nndeploy export`, its programs, and the C library give the bits that Python gives."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from nndeploy_kernels import build_runtime
from nndeploy_kernels.build import level_here

import nndeploy
from nndeploy.bundle.container import encode_container, parse_container
from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.writer import sealed_bundle

sys.path.append(str(Path(__file__).parents[1] / "fuzz"))

from c_runtime import CRuntime

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
Values = Mapping[str, Any]

SEVERAL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[n,3,H,W] x, int64[k] which, uint8[k] byte, bool[k] mask, float16[2] half,
   double[k] wide) =>
  (float[n,4,H,W] y, int64[k] rows, uint8[k] bytes, bool[k] masks, float16[2] halves, float[n,3,H,W] same,
   float[2] fixed, double[k] wider, float[k] narrow)
<float[4,3,3,3] w> {
  a = Conv<pads = [1,1,1,1]>(x, w) y = Relu(a) rows = Add(which, which) bytes = Identity(byte) masks = Not(mask)
  halves = Neg(half) same = Identity(x) wider = Exp(wide)
  narrow = Cast<to = 1>(wide) fixed = Constant<value = float[2] {1.5, -2.0}>()
}"""
"""Several inputs and outputs of all types, open sizes, what passes through, and what depends on no input."""

REPEATED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[1,512] x) => (float[1,512] y) <float[512,512] w> { y = MatMul(x, w) }"""
"""Weights that are stored deflated."""


CHOICE = """<ir_version: 10, opset_import: ["" : 21]>
g (float[n,3] x, bool first) => (float[n,k] y) <float[3,4] w> {
  y = If(first) <then_branch = t () => (float[n,4] a) { p = MatMul(x, w) a = Relu(p) },
                 else_branch = e () => (float[n,3] b) { q = Neg(x) b = Exp(q) }> }"""
"""Two branches, of other sizes."""


def model_of(text: str, weights: Any) -> onnx.ModelProto:
    model = onnx.parser.parse_model(text)
    del model.graph.initializer[:]
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return model


def ran(command: list[Any], inputs: Values, folder: Path, *more: str) -> dict[str, Any]:
    """Returns the outputs that a program of one bundle writes."""
    for name, array in inputs.items():
        np.save(folder / f"{name}.npy", array)
    given = [word for name in inputs for word in ("-i", f"{name}=@{folder / name}.npy")]
    done = subprocess.run([*command, *given, "-o", folder / "out", *more], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return {path.stem: np.load(path) for path in (folder / "out").iterdir()}


def by_python(bundle: Path, inputs: Values) -> dict[str, Any]:
    with nndeploy.load_bundle(bundle, threads=1) as program:
        assert {choice.backend for choice in program.choices} <= {"native"}
        return program.run(dict(inputs))


def several(compiled):
    """Returns a bundle with inputs of several types and open sizes, and such inputs."""
    draw = np.random.default_rng(2)
    bundle = compiled(model_of(SEVERAL, draw.standard_normal((4, 3, 3, 3)).astype(np.float32)))
    inputs = {
        "x": draw.standard_normal((2, 3, 9, 11)).astype(np.float32), "which": np.arange(5), "mask": np.arange(5) > 2,
        "byte": np.arange(5, dtype=np.uint8), "half": np.array([0.5, -3.0], np.float16),
        "wide": draw.standard_normal(5),
    }  # fmt: skip
    return bundle, inputs


def assert_same_bits(found: Values, wanted: Values) -> None:
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape), name
        assert found[name].tobytes() == value.tobytes(), name


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("batch", [1, 5])
def test_an_exported_program_gives_the_bits_of_python(nndeploy_command, digits, tmp_path, batch, threads) -> None:
    done = nndeploy_command("export", digits, "-o", tmp_path / "digits")
    assert done.returncode == 0, done.stderr
    images = np.random.default_rng(batch).uniform(0, 16, (batch, 1, 8, 8)).astype(np.float32)
    found = ran([tmp_path / "digits"], {"image": images}, tmp_path, "--threads", threads)
    assert_same_bits(found, by_python(digits, {"image": images}))


def test_values_of_all_types_and_open_sizes_pass_as_in_python(runner, compiled, tmp_path) -> None:
    bundle, inputs = several(compiled)
    assert_same_bits(ran([runner, bundle], inputs, tmp_path), by_python(bundle, inputs))


def test_what_a_bundle_holds_compressed_is_expanded(runner, compiled, tmp_path) -> None:
    weights = np.tile(np.random.default_rng(3).standard_normal(8).astype(np.float32), (512, 64))
    bundle = compiled(model_of(REPEATED, weights))
    with nndeploy.load_bundle(bundle) as program:
        assert any(name.endswith("weights.bin") for name in program.manifest.compressed)
    inputs = {"x": np.random.default_rng(4).standard_normal((1, 512)).astype(np.float32)}
    assert_same_bits(ran([runner, bundle], inputs, tmp_path), by_python(bundle, inputs))


@pytest.mark.parametrize("first", [True, False])
def test_the_branch_that_is_chosen_is_the_one_of_python(runner, compiled, tmp_path, first) -> None:
    weights = np.random.default_rng(6).standard_normal((3, 4)).astype(np.float32)
    bundle = compiled(model_of(CHOICE, weights))
    inputs = {"x": np.random.default_rng(7).standard_normal((5, 3)).astype(np.float32), "first": np.array(first)}
    wanted = by_python(bundle, inputs)
    assert wanted["y"].shape == (5, 4 if first else 3)
    assert_same_bits(ran([runner, bundle], inputs, tmp_path), wanted)


DECODER = """<ir_version: 10, opset_import: ["" : 21]>
g (float[b,t,8] x, float[b,past,8] before, float[b,8] state) =>
  (float[b,t,8] y, float[b,all,8] after, float[b,8] next) <float[8,8] w> {
    after = Concat<axis=1>(before, x) turned = Transpose<perm=[0,2,1]>(after) a = MatMul(x, turned)
    s = Softmax<axis=-1>(a) y = MatMul(s, after) m = MatMul(state, w) next = Tanh(m) }"""
"""A cache that grows, and a state."""


@pytest.mark.parametrize("batch", [1, 3])
def test_caches_and_states_go_from_run_to_run_as_in_python(compiled, batch) -> None:
    draw = np.random.default_rng(8)
    model = model_of(DECODER, draw.standard_normal((8, 8)).astype(np.float32))
    model.graph.output[1].type.tensor_type.shape.dim[1].dim_param = "past + t"
    bundle = compiled(model)
    parts = [draw.standard_normal((batch, tokens, 8)).astype(np.float32) for tokens in (4, 1, 1, 3, 1)]
    begin = {"before": np.zeros((batch, 0, 8), np.float32), "state": draw.standard_normal((batch, 8), np.float32)}
    library = CRuntime(build_runtime.build_libraries(level_here().arch)[1])
    each = [{"x": parts[0], **begin}, *({"x": part} for part in parts[1:])]
    found = list(library.runs(bundle.read_bytes(), each, {"before": "after", "state": "next"}))
    with nndeploy.load_bundle(bundle, threads=1) as program:
        carried = begin
        for part, outputs in zip(parts, found, strict=True):
            wanted = program.run({"x": part, **carried})
            assert_same_bits(outputs, wanted)
            carried = {"before": wanted["after"], "state": wanted["next"]}


@pytest.mark.parametrize("name", ["fsmn_vad_online", "micro_kws_qdq", "nnsplit_en", "silero_vad_v5"])
def test_real_models_give_the_bits_of_python(runner, compiled, real_models, models_folder, tmp_path, name) -> None:
    assert name in real_models
    bundle = compiled(models_folder / f"{name}.onnx")
    with nndeploy.load_bundle(bundle, threads=1) as program:
        inputs = program.bundle.values(program.manifest.goldens[0].inputs)
        wanted = program.run(inputs)
    found = ran([runner, bundle], inputs, tmp_path)
    plain = {"".join(c if c.isalnum() or c in "._-" else "_" for c in key): value for key, value in wanted.items()}
    assert_same_bits(found, plain)


def test_an_array_comes_by_standard_input_too(runner, digits, tmp_path) -> None:
    np.save(tmp_path / "image.npy", np.zeros((1, 1, 8, 8), np.float32))
    command, data = [runner, digits, "-i", "-"], (tmp_path / "image.npy").read_bytes()
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"probabilities: float32[1,10]")


def test_a_runner_may_be_given_and_what_stays_behind_is_listed(nndeploy_command, runner, tmp_path) -> None:
    bundle, given = tmp_path / "m.nnd", ("--runner", tmp_path / "nndeploy-run")
    options = ("--backends", "native", "--objective", "priority")
    assert nndeploy_command("compile", DIGITS, "-o", bundle, *options).returncode == 0
    command = ("export", bundle, "-o", tmp_path / "program", *given)
    assert nndeploy_command(*command).returncode == 66
    given[1].write_text("no program")
    assert nndeploy_command(*command).returncode == 65
    shutil.copyfile(runner, given[1])
    done = nndeploy_command(*command, "--json")
    assert done.returncode == 0, done.stderr
    assert any("--verify" in one for one in json.loads(done.stdout)["left_out"])


@pytest.mark.slow
def test_a_program_for_aarch64_gives_the_same_but_for_rounding(nndeploy_command, digits, tmp_path) -> None:
    qemu = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64") or pytest.skip("no qemu for aarch64")
    build_runtime.build_runner("aarch64")
    assert nndeploy_command("export", digits, "-o", tmp_path / "digits", "--for", "aarch64").returncode == 0
    images = np.random.default_rng(1).uniform(0, 16, (3, 1, 8, 8)).astype(np.float32)
    found = ran([qemu, tmp_path / "digits"], {"image": images}, tmp_path)["probabilities"]
    wanted = by_python(digits, {"image": images})["probabilities"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["-i", "image.npy"], 0), ([], 65), (["-i", "nowhere.npy"], 66), (["--threads", "0"], 2), (["--wrong"], 2),
        (["-i", "other=@image.npy"], 65), (["-i", "large.npy"], 65), (["-i", "whole.npy"], 65), (["--input"], 2),
        (["-i", "text.npy"], 65), (["-i", "wide.npy"], 65), (["-i", "columns.npy"], 65), (["-i", "."], 66),
        (["--input=image.npy"], 0), (["-i", "image=image.npy"], 2), (["-i", "image.npy", "-i", "image.npy"], 2),
        (["-i", "image.npy", "-o", "image.npy"], 73), (["--info"], 0), (["--help"], 0),
        (["-i", "image.npy", "--bench", "0.01"], 0),
    ],
)  # fmt: skip
def test_a_program_ends_with_the_code_of_what_went_wrong(nndeploy_command, digits, tmp_path, words, code) -> None:
    np.save(tmp_path / "image.npy", np.zeros((1, 1, 8, 8), np.float32))
    np.save(tmp_path / "large.npy", np.zeros((1, 1, 9, 8), np.float32))
    np.save(tmp_path / "whole.npy", np.zeros((1, 1, 8, 8), np.int64))
    np.save(tmp_path / "wide.npy", np.zeros((1, 1, 8, 8)))
    np.save(tmp_path / "columns.npy", np.asfortranarray(np.zeros((2, 1, 8, 8), np.float32)))
    (tmp_path / "text.npy").write_text("no array")
    assert nndeploy_command("export", digits, "-o", tmp_path / "digits").returncode == 0
    done = subprocess.run([tmp_path / "digits", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert len(done.stderr.splitlines()) == (code != 0)


@pytest.mark.parametrize(
    ("content", "code"), [(None, 66), (b"", 65), (b"PK" + bytes(200), 65), ("cut", 65), ("damaged", 65)]
)
def test_what_is_no_whole_bundle_is_refused(runner, digits, tmp_path, content, code) -> None:
    data = digits.read_bytes()
    if content == "cut":
        content = data[: len(data) // 2]
    if content == "damaged":
        at = parse_container(memoryview(data))["submodels/s0/v0-native/weights.bin"].offset + 100
        content = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    if content is not None:
        (tmp_path / "m.nnd").write_bytes(content)
    done = subprocess.run([runner, tmp_path / "m.nnd", "--info"], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("precision", "has_all_levels"), [("fp32", False), ("bf16", True)])
def test_a_program_has_the_kernels_that_its_bundle_needs(nndeploy_command, tmp_path, precision, has_all_levels) -> None:
    if has_all_levels and "avx512_bf16" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        pytest.skip("no kernels for bfloat16 are for this processor")
    bundle, program = tmp_path / "m.nnd", tmp_path / "program"
    options: dict[str, Any] = {"backends": ("native",), "objective": "priority", "threads": 1, "precision": precision}
    nndeploy.compile_model(DIGITS, bundle, **options)
    build_runtime.build_runners(level_here().arch)
    assert nndeploy_command("export", bundle, "-o", program).returncode == 0
    assert (b"x86-64-v4-bf16" in program.read_bytes()) == has_all_levels
    images = np.random.default_rng(1).uniform(0, 16, (3, 1, 8, 8)).astype(np.float32)
    assert_same_bits(ran([program], {"image": images}, tmp_path), by_python(bundle, {"image": images}))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_runner_that_is_not_installed_is_named(nndeploy_command, monkeypatch, digits, tmp_path, precision) -> None:
    with open_bundle(digits) as opened:
        (submodel,) = opened.manifest.submodels
        metadata = {**submodel.variants[0].metadata, "precision": precision}
        variant = dataclasses.replace(submodel.variants[0], metadata=metadata)
        changed = dataclasses.replace(submodel, variants=(variant,))
        manifest = dataclasses.replace(opened.manifest, submodels=(changed,), goldens=(), compressed={})
        members = {name: bytes(opened.member(name)) for name in variant.files.values()}
        contents, _ = sealed_bundle(manifest, members, {})
    (tmp_path / "m.nnd").write_bytes(b"".join(encode_container(contents)))
    monkeypatch.setattr("nndeploy_kernels.loading.LIBRARIES", tmp_path)
    done = nndeploy_command("export", tmp_path / "m.nnd", "-o", tmp_path / "program")
    assert done.returncode == 69
    assert "--runner" in done.stderr
    assert ("bfloat16" in done.stderr) == (precision == "bf16")


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_program_of_which_the_end_was_not_copied_is_damaged(nndeploy_command, digits, tmp_path, share) -> None:
    program = tmp_path / "digits"
    told = json.loads(nndeploy_command("export", digits, "-o", program, "--json").stdout)
    os.truncate(program, told["num_bytes"] - 1 - int(share * told["bundle_bytes"]))
    done = subprocess.run([program, "--info"], capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (65, 1)


def test_a_program_in_which_a_weight_was_changed_is_damaged(nndeploy_command, digits, tmp_path) -> None:
    program = tmp_path / "digits"
    assert nndeploy_command("export", digits, "-o", program).returncode == 0
    with open_bundle(digits) as opened:
        (name,) = (name for name in opened.manifest.members if name.endswith("weights.bin"))
        weights = bytes(opened.member(name))
    data = bytearray(program.read_bytes())
    data[data.index(weights) + len(weights) // 2] ^= 1
    program.write_bytes(data)
    done = subprocess.run([program, "--info"], capture_output=True, text=True, check=False)
    assert (done.returncode, "weights.bin: damaged" in done.stderr) == (65, True)


@pytest.mark.parametrize("header_bytes", [80, 128, 4096])
def test_an_array_may_lie_anywhere_in_its_file(runner, digits, tmp_path, header_bytes) -> None:
    image = np.random.default_rng(3).uniform(0, 16, (2, 1, 8, 8)).astype(np.float32)
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 8, 8), }".ljust(header_bytes - 11) + "\n"
    written = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode() + image.tobytes()
    (tmp_path / "image.npy").write_bytes(written)
    command = [runner, digits, "-i", tmp_path / "image.npy", "-o", tmp_path / "out"]
    assert subprocess.run(command, check=False).returncode == 0
    found = {"probabilities": np.load(tmp_path / "out" / "probabilities.npy")}
    assert_same_bits(found, by_python(digits, {"image": image}))


@pytest.mark.parametrize(("said", "meant"), [("AMD64", "x86_64"), ("arm64", "aarch64")])
def test_an_architecture_has_other_names(nndeploy_command, runner, digits, tmp_path, said, meant) -> None:
    command = ("export", digits, "-o", tmp_path / "digits", "--runner", runner, "--for", said, "--json")
    done = nndeploy_command(*command)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["architecture"] == meant


def test_a_submodel_of_another_backend_is_named_with_the_option_that_helps(nndeploy_command, runner, tmp_path) -> None:
    bundle = tmp_path / "m.nnd"
    nndeploy.compile_model(DIGITS, bundle, backends=("onnxruntime",), objective="priority")
    done = nndeploy_command("export", bundle, "-o", tmp_path / "digits")
    assert done.returncode == 69
    assert "s0" in done.stderr
    assert "--backends native" in done.stderr
    assert not (tmp_path / "digits").exists()
    alone = subprocess.run([runner, bundle, "--info"], capture_output=True, text=True, check=False)
    assert alone.returncode == 69
    assert "--backends native" in alone.stderr


@pytest.mark.parametrize(("library", "source", "compiler", "standard"), [
    ("libnndeploy.a", "c/digits.c", "cc", "-std=c99"), ("libnndeploy.so", "cpp/digits.cc", "c++", "-std=c++17"),
])  # fmt: skip
def test_the_examples_in_c_and_cpp_read_a_digit(digits, tmp_path, library, source, compiler, standard) -> None:
    built = next(path for path in build_runtime.build_libraries(level_here().arch) if path.name == library)
    program = tmp_path / "digits"
    flags = [shutil.which(compiler) or pytest.skip(f"no {compiler}"), standard, "-Wall", "-Wextra", "-Werror"]
    links = [built, "-lpthread", "-lm", f"-Wl,-rpath,{built.parent}"]
    source_file = ROOT / "examples" / source
    subprocess.run([*flags, "-I", build_runtime.RUNTIME, source_file, *links, "-o", program], check=True)
    assert_reads_a_digit(program, digits)


def test_the_example_in_cpp_takes_decisions_where_they_count(nndeploy_command, digits, tmp_path) -> None:
    built = build_runtime.build_libraries(level_here().arch)[1]
    compiler = shutil.which("c++") or pytest.skip("no c++")
    source, program = ROOT / "examples" / "cpp" / "digits.cc", tmp_path / "digits"
    flags, links = ["-std=c++17", "-I", build_runtime.RUNTIME], [built, f"-Wl,-rpath,{built.parent}"]
    subprocess.run([compiler, *flags, source, *links, "-o", program], check=True)
    tune = ("tune", digits, "--seconds", "0.1", "--cache", tmp_path / "cache")
    found = []
    for name, threads in (("here", ()), ("elsewhere", ("--threads", "61"))):
        assert nndeploy_command(*tune, *threads, "--decisions", tmp_path / name).returncode == 0
        found.append(subprocess.run([program, digits, tmp_path / name], capture_output=True, text=True, check=True))
    assert [len(done.stderr.splitlines()) for done in found] == [0, 1]
    assert found[0].stdout == found[1].stdout
    (tmp_path / "none").write_text("{}")
    done = subprocess.run([program, digits, tmp_path / "none"], capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (65, 1)


@pytest.mark.skipif(shutil.which("cargo") is None, reason="no cargo")
def test_the_example_in_rust_reads_a_digit(digits, tmp_path) -> None:
    library = build_runtime.build_libraries(level_here().arch)[0].parent
    paths = {"NNDEPLOY_LIB": str(library), "CARGO_TARGET_DIR": str(tmp_path), "RUSTFLAGS": "-D warnings"}
    command = ["cargo", "build", "--offline", "--locked", "--quiet", "--manifest-path"]
    subprocess.run([*command, ROOT / "examples/rust/Cargo.toml"], env=os.environ | paths, check=True)
    assert_reads_a_digit(tmp_path / "debug" / "digits", digits)


@pytest.mark.skipif(shutil.which("go") is None, reason="no go")
def test_the_example_in_go_reads_a_digit(digits, tmp_path) -> None:
    shutil.which("cc") or pytest.skip("no cc, which cgo calls")
    library = build_runtime.build_libraries(level_here().arch)[0].parent
    paths = {
        "CGO_ENABLED": "1", "CGO_CFLAGS": f"-I{build_runtime.RUNTIME}", "CGO_LDFLAGS": f"-L{library}", "CC": "cc",
        "GOCACHE": str(tmp_path / "cache"), "GOPROXY": "off", "GOTOOLCHAIN": "local", "GOTELEMETRY": "off",
    }  # fmt: skip
    for words in (["vet", "."], ["build", "-o", tmp_path / "digits", "."]):
        subprocess.run(["go", *words], cwd=ROOT / "examples" / "go", env=os.environ | paths, check=True)
    assert_reads_a_digit(tmp_path / "digits", digits)


def assert_reads_a_digit(program: Path, digits: Path) -> None:
    done = subprocess.run([program, digits], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    digit, probability = done.stdout.split(", probability ")
    stroke = np.zeros((1, 1, 8, 8), np.float32)
    stroke[..., 3:5] = 16
    wanted = by_python(digits, {"image": stroke})["probabilities"]
    assert int(digit) == wanted.argmax()
    assert float(probability) == pytest.approx(wanted.max(), abs=1e-4)
    missing = subprocess.run([program, "nowhere.nnd"], capture_output=True, text=True, check=False)
    assert (missing.returncode, len(missing.stderr.splitlines())) == (66, 1)


@pytest.mark.parametrize(("library", "compiler"), [
    ("libnndeploy.so", ("cc", "-std=c99")), ("libnndeploy.a", ("c++", "-std=c++17", "-x", "c++")),
])  # fmt: skip
def test_a_program_with_the_bundle_inside_reads_a_digit(nndeploy_command, digits, tmp_path, library, compiler) -> None:
    built = next(path for path in build_runtime.build_libraries(level_here().arch) if path.name == library)
    found = shutil.which(compiler[0]) or pytest.skip(f"no {compiler[0]}")
    assert nndeploy_command("export", digits, "-o", tmp_path / "digits.a", "--library").returncode == 0
    source, includes = ROOT / "examples" / "c" / "embedded_digits.c", ["-I", build_runtime.RUNTIME, "-I", tmp_path]
    flags = [*compiler[1:], "-Wall", "-Wextra", "-Werror", *includes]
    links = [tmp_path / "digits.a", built, "-lpthread", "-lm", f"-Wl,-rpath,{built.parent}"]
    subprocess.run([found, *flags, "-c", source, "-o", tmp_path / "main.o"], check=True)
    subprocess.run([found, tmp_path / "main.o", *links, "-o", tmp_path / "program"], check=True)
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    stroke = np.zeros((1, 1, 8, 8), np.float32)
    stroke[..., 3:5] = 16
    (wanted,) = by_python(digits, {"image": stroke})["probabilities"]
    assert [float(line.split()[1]) for line in done.stdout.splitlines()] == pytest.approx(wanted, abs=1e-4)


COUNTED = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "nndeploy.h"

static long taken; /* pieces of memory */
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void *malloc(size_t size) { return __atomic_add_fetch(&taken, 1, 5), __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return __atomic_add_fetch(&taken, 1, 5), __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return __atomic_add_fetch(&taken, 1, 5), __libc_realloc(old, size); }
int posix_memalign(void **to, size_t at, size_t size) {
  return __atomic_add_fetch(&taken, 1, 5), (*to = __libc_memalign(at, size)) ? 0 : ENOMEM;
}
void *aligned_alloc(size_t at, size_t size) { return __atomic_add_fetch(&taken, 1, 5), __libc_memalign(at, size); }
void *mmap(void *at, size_t size, int use, int flags, int file, off_t from) {
  return __atomic_add_fetch(&taken, 1, 5), (void *)syscall(SYS_mmap, at, size, use, flags, file, from);
}

static float zeros[4096];

static void run(nnd_program *program, nnd_call *call, int batch) {
  nnd_error error;
  int64_t shape[NND_MAX_RANK];
  for (int i = 0; i < nnd_num_inputs(program); i++) {
    const nnd_info *input = nnd_input(program, i);
    for (int axis = 0; axis < input->rank; axis++) shape[axis] = input->shape[axis] < 0 ? batch : input->shape[axis];
    const nnd_tensor value = {input->dtype, input->rank, shape, zeros};
    if (!nnd_set_input(call, input->name, &value, &error)) exit(error.code);
  }
  if (!nnd_run(call, &error)) exit(error.code);
  for (int i = 0; i < nnd_num_outputs(program); i++) {
    nnd_tensor value;
    if (!nnd_get_output(call, nnd_output(program, i)->name, &value, &error)) exit(error.code);
  }
}

int main(int count, char **words) {
  nnd_error error;
  const nnd_options options = {atoi(words[2])};
  nnd_program *program = nnd_open(words[1], &options, &error);
  nnd_call *call = program ? nnd_call_new(program, &error) : NULL;
  if (!call) return error.code;
  for (int batch = 1; batch <= 4; batch++) run(program, call, batch);
  const long before = taken;
  for (int i = 0; i < 100; i++) run(program, call, 1 + i % 4);
  printf("%ld %ld\n", before, taken - before);
  return count < 3;
}
"""
"""Runs a bundle with four batches, and again: how many pieces of memory both took."""


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("text", ["digits", SEVERAL, CHOICE], ids=["digits", "several", "choice"])
def test_calls_with_shapes_that_were_there_take_no_memory(digits, compiled, tmp_path, text, threads) -> None:
    compiler = shutil.which("cc") or pytest.skip("no cc")
    (tmp_path / "main.c").write_text(COUNTED)
    built = build_runtime.build_libraries(level_here().arch)[1]
    flags = ["-O1", "-Wall", "-Werror", "-I", build_runtime.RUNTIME, f"-Wl,-rpath,{built.parent}"]
    made = subprocess.run([compiler, *flags, tmp_path / "main.c", built, "-o", tmp_path / "main"], capture_output=True)
    if b"__libc_" in made.stderr:
        pytest.skip("no glibc, whose memory is counted")
    assert made.returncode == 0, made.stderr
    draw = np.random.default_rng(2)
    weights = {SEVERAL: (4, 3, 3, 3), CHOICE: (3, 4)}
    bundle = digits if text == "digits" else compiled(model_of(text, draw.standard_normal(weights[text], np.float32)))
    done = subprocess.run([tmp_path / "main", bundle, threads], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    first, again = map(int, done.stdout.split())
    assert first > 10
    assert again == 0


def test_the_library_writes_to_no_memory_of_its_own_but_what_it_finds_out_of_the_processor() -> None:
    nm = shutil.which("nm") or pytest.skip("no nm")
    archive = build_runtime.build_libraries(level_here().arch)[0]
    listed = subprocess.run([nm, archive], capture_output=True, text=True, check=True).stdout
    symbols = [line.split()[1:] for line in listed.splitlines() if len(line.split()) == 3]
    assert len(symbols) > 500
    written = {name for kind, name in symbols if kind in "bBC"}
    facts = ("tile", "int8", "amx", "has_byte_tables", "begin")
    assert {name for name in written if not any(fact in name for fact in facts)} == set()


@pytest.mark.parametrize(("name", "function"), [("libdigits-2.a", "digits_2_open"), ("7.a", "_7_open")])
@pytest.mark.parametrize(("arch", "machine"), [("x86_64", 62), ("aarch64", 183)])
def test_a_library_is_named_as_its_file_and_of_one_architecture(
    nndeploy_command, digits, tmp_path, name, function, arch, machine
) -> None:
    command = ("export", digits, "-o", tmp_path / name, "--library", "--for", arch, "--json")
    told = json.loads(nndeploy_command(*command).stdout)
    archive = (tmp_path / name).read_bytes()
    assert told["num_bytes"] == len(archive) > told["bundle_bytes"]
    begin = archive.index(b"\x7fELF")
    assert int.from_bytes(archive[begin + 18 : begin + 20], "little") == machine
    assert f" *{function}(" in (tmp_path / name).with_suffix(".h").read_text()
    assert nndeploy_command(*command).returncode == 0
    assert (tmp_path / name).read_bytes() == archive


@pytest.mark.parametrize("words", [("-o", "digits"), ("-o", "digits.a", "--runner", "nndeploy-run")])
def test_what_is_no_library_is_not_written(nndeploy_command, digits, tmp_path, words) -> None:
    assert nndeploy_command("export", digits, *words, "--library", cwd=tmp_path).returncode == 2
    assert not [*tmp_path.iterdir()]


def test_a_program_that_was_built_twice_is_the_same(nndeploy_command, digits, tmp_path) -> None:
    for name in ("one", "two"):
        done = nndeploy_command("export", digits, "-o", tmp_path / name, "--json")
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["num_bytes"] == (tmp_path / name).stat().st_size > told["bundle_bytes"] > 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (tmp_path / "one").stat().st_mode & 0o111
