# SPDX-License-Identifier: Apache-2.0
"""Bundles in Node by WebAssembly: the bits of Python at the level x86-64-v2, whose arithmetic is the same."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nndeploy_kernels import loading
from nndeploy_kernels.levels import WASM_LEVELS, wasm_module
from node_runs import NodeRefusalError, in_node, node, outputs_of, package, ran, relaxed_flags
from test_without_python import CHOICE, DECODER, DIGITS, REPEATED, assert_same_bits, by_python, model_of, several

import nndeploy
from nndeploy.bundle.reader import open_bundle
from nndeploy.errors import UnavailableError
from nndeploy.runtime.exported_web import export_module
from nndeploy.version import __version__

pytestmark = pytest.mark.usefixtures("python_at_v2")

ROOT = Path(__file__).parents[2]
MOST_MODULE_BYTES = 1_500_000
SMALL = ("fsmn_vad_online", "micro_kws_qdq", "nnsplit_en", "silero_vad_v2_mini", "unsw_nb15_mlp_w2a2")
LARGE = (
    "basic_pitch", "fastestdet", "magika_standard_v3_3", "mobilenet_v2_quant", "ppocr_det_mobile_v2",
    "ppocr_rec_en_mobile_v2", "silero_vad_v5", "ultraface_rfb320", "unet_stress_field",
)  # fmt: skip


def images(batch: int) -> Any:
    return np.random.default_rng(batch).uniform(0, 16, (batch, 1, 8, 8)).astype(np.float32)


@pytest.mark.parametrize("batch", [1, 5])
def test_digits_gives_the_bits_of_python(digits, batch) -> None:
    inputs = {"image": images(batch)}
    assert_same_bits(ran(digits, inputs), by_python(digits, inputs))


def test_a_program_says_what_it_takes_and_gives(digits) -> None:
    found = in_node([digits], [])[0]
    assert found["level"] == "wasm32-simd128"
    assert found["inputs"] == [{"name": "image", "dtype": "float32", "shape": [-1, 1, 8, 8]}]
    assert found["outputs"] == [{"name": "probabilities", "dtype": "float32", "shape": [-1, 10]}]


def test_values_of_all_types_and_open_sizes_pass_as_in_python(compiled) -> None:
    bundle, inputs = several(compiled)
    assert_same_bits(ran(bundle, inputs), by_python(bundle, inputs))


def test_what_a_bundle_holds_compressed_is_expanded(compiled) -> None:
    weights = np.tile(np.random.default_rng(3).standard_normal(8).astype(np.float32), (512, 64))
    bundle = compiled(model_of(REPEATED, weights))
    inputs = {"x": np.random.default_rng(4).standard_normal((1, 512)).astype(np.float32)}
    assert_same_bits(ran(bundle, inputs), by_python(bundle, inputs))


@pytest.mark.parametrize("first", [True, False])
def test_the_branch_that_is_chosen_is_the_one_of_python(compiled, first) -> None:
    bundle = compiled(model_of(CHOICE, np.random.default_rng(6).standard_normal((3, 4)).astype(np.float32)))
    inputs = {"x": np.random.default_rng(7).standard_normal((5, 3)).astype(np.float32), "first": np.array(first)}
    assert_same_bits(ran(bundle, inputs), by_python(bundle, inputs))


def test_outputs_are_inputs_of_the_next_run(compiled) -> None:
    draw = np.random.default_rng(8)
    model = model_of(DECODER, draw.standard_normal((8, 8)).astype(np.float32))
    model.graph.output[1].type.tensor_type.shape.dim[1].dim_param = "past + t"
    bundle = compiled(model)
    parts = [draw.standard_normal((1, tokens, 8)).astype(np.float32) for tokens in (4, 1, 3)]
    carried = {"before": np.zeros((1, 0, 8), np.float32), "state": draw.standard_normal((1, 8)).astype(np.float32)}
    runs = [{"x": parts[0], **carried}, *({"x": part} for part in parts[1:])]
    found = in_node([bundle], runs, states={"before": "after", "state": "next"})[0]["runs"]
    with nndeploy.load_bundle(bundle, threads=1) as program:
        for part, outputs in zip(parts, found, strict=True):
            wanted = program.run({"x": part, **carried})
            assert_same_bits(outputs_of(outputs), wanted)
            carried = {"before": wanted["after"], "state": wanted["next"]}


@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)])
def test_real_models_give_the_bits_of_python(compiled, models_folder, name) -> None:
    bundle = compiled(models_folder / f"{name}.onnx")
    with nndeploy.load_bundle(bundle, threads=1) as program:
        inputs = program.bundle.values(program.manifest.goldens[0].inputs)
        wanted = program.run(inputs)
    assert_same_bits(ran(bundle, inputs), wanted)


def test_relaxed_simd_gives_the_same_but_for_rounding(digits) -> None:
    inputs = {"image": images(3)}
    found = in_node([digits], [inputs], relaxed=True, flags=relaxed_flags())[0]
    assert found["level"] == "wasm32-relaxed-simd"
    wanted = by_python(digits, inputs)["probabilities"]
    np.testing.assert_allclose(outputs_of(found["runs"][0])["probabilities"], wanted, rtol=1e-5, atol=1e-6)


WRONG = [
    ({}, 65), ({"other": images(1)}, 65), ({"image": images(1).astype(np.int32)}, 65), ({"image": images(1)[0]}, 65),
    ({"image": np.zeros((1, 1, 9, 8), np.float32)}, 65), ({"image": images(1).view(np.uint8)}, 65),
]  # fmt: skip


def test_memory_does_not_grow_with_calls_right_or_wrong(digits) -> None:
    runs = [{"image": images(batch)} for batch in (1, 4, 2)]
    found = in_node([digits], [*runs, *(inputs for inputs, _ in WRONG)], repeat=1000)[0]
    assert found["memory_bytes_at_end"] == found["memory_bytes"]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_value_that_does_not_fit_is_refused_and_the_program_goes_on(digits, number) -> None:
    inputs, code = WRONG[number]
    wrong, right = in_node([digits], [inputs, {"image": images(1)}])[0]["runs"]
    assert (wrong["error"]["kind"], wrong["error"]["code"]) == ("NndeployError", code)
    assert_same_bits(outputs_of(right), by_python(digits, {"image": images(1)}))


def test_an_input_that_was_given_before_is_not_given_to_the_next_run(digits) -> None:
    first, second = in_node([digits], [{"image": images(1)}, {}])[0]["runs"]
    assert "error" not in first
    assert second["error"]["code"] == 65


def test_programs_that_were_closed_leave_room_for_others(digits) -> None:
    found = in_node([digits] * 100, [{"image": images(1)}])
    assert all("probabilities" in one["runs"][0] for one in found)


@pytest.mark.parametrize("content", ["", "PK", "cut", "damaged"])
def test_what_is_no_whole_bundle_is_refused(digits, tmp_path, content) -> None:
    data = digits.read_bytes()
    changed = bytes([*data[:9000], data[9000] ^ 1, *data[9001:]])
    named = {"cut": data[: len(data) // 2], "damaged": changed}
    (tmp_path / "m.nnd").write_bytes(named.get(content, content.encode()))
    with pytest.raises(NodeRefusalError) as caught:
        ran(tmp_path / "m.nnd", {})
    assert (caught.value.kind, caught.value.code) == ("NndeployError", 65)


def test_a_submodel_of_another_backend_is_named_with_the_option_that_helps(tmp_path) -> None:
    nndeploy.compile_model(DIGITS, tmp_path / "m.nnd", backends=("onnxruntime",), objective="priority")
    with pytest.raises(NodeRefusalError, match=r"s0.*--backends native") as caught:
        ran(tmp_path / "m.nnd", {})
    assert caught.value.code == 69


def test_an_exported_module_has_its_bundle_inside(nndeploy_command, digits, tmp_path) -> None:
    out = tmp_path / "digits.mjs"
    done = nndeploy_command("export", digits, "-o", out, "--for", "wasm", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["num_bytes"] == out.stat().st_size
    assert told["left_out"] == ["reference outputs"]
    inputs = {"image": images(2)}
    assert_same_bits(ran(None, inputs, module=out), by_python(digits, inputs))
    assert_same_bits(ran(digits, inputs, module=out), by_python(digits, inputs))
    again = tmp_path / "again.mjs"
    assert nndeploy_command("export", digits, "-o", again, "--for", "wasm").returncode == 0
    assert again.read_bytes() == out.read_bytes()


@pytest.mark.parametrize("form", ["wasm", "html"])
def test_a_runner_is_of_no_use_for_other_forms_than_programs(nndeploy_command, digits, tmp_path, form) -> None:
    words = ("export", digits, "-o", tmp_path / "out", "--for", form)
    assert nndeploy_command(*words, "--runner", digits).returncode == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["wasm", "html"])
def test_what_needs_python_is_not_exported(nndeploy_command, tmp_path, form) -> None:
    nndeploy.compile_model(DIGITS, tmp_path / "m.nnd", backends=("onnxruntime",), objective="priority")
    done = nndeploy_command("export", tmp_path / "m.nnd", "-o", tmp_path / "out", "--for", form)
    assert done.returncode == 69
    assert "--backends native" in done.stderr


def test_without_the_package_the_command_that_makes_it_is_named(digits, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(loading, "LIBRARIES", tmp_path)
    with open_bundle(digits) as bundle, pytest.raises(UnavailableError) as caught:
        export_module(bundle, tmp_path / "m.mjs")
    assert caught.value.hint == "in a checkout, make runtime ARGS=wasm32"
    assert not (tmp_path / "m.mjs").exists()


@pytest.mark.parametrize("name", ["digits", "fsmn_vad_online", "nnsplit_en"])
def test_threads_give_the_bits_of_as_many_threads_of_python(digits, compiled, models_folder, name) -> None:
    bundle = digits if name == "digits" else compiled(models_folder / f"{name}.onnx")
    with nndeploy.load_bundle(bundle, threads=2) as program:
        inputs = program.bundle.values(program.manifest.goldens[0].inputs)
        wanted = program.run(inputs)
    found = in_node([bundle], [inputs], threads=2, repeat=20)[0]
    assert found["threads"] == 2
    assert_same_bits(outputs_of(found["runs"][0]), wanted)


def test_where_memory_cannot_be_shared_one_thread_runs_it(digits, tmp_path) -> None:
    module = f'"{package()}/nndeploy.mjs"'
    code = f"""delete globalThis.SharedArrayBuffer;
      import({module}).then(({{ open }}) => open(fs.readFileSync("{digits}"), {{ threads: 2, relaxed: false }}))
        .then((program) => console.log(program.threads, program.run({{ image: new Float32Array(64) }})
          .probabilities.length))"""
    done = subprocess.run([node(), "-e", code], capture_output=True, check=True, cwd=tmp_path)
    assert done.stdout == b"1 10\n"


def test_a_module_is_small_and_imports_nothing() -> None:
    for level in WASM_LEVELS:
        path = package() / wasm_module(level)
        assert path.stat().st_size <= MOST_MODULE_BYTES
        code = f'console.log(WebAssembly.Module.imports(new WebAssembly.Module(fs.readFileSync("{path}"))).length)'
        flags = relaxed_flags() if "relaxed" in level.name else []
        assert subprocess.run([node(), *flags, "-e", code], capture_output=True, check=True).stdout == b"0\n"


def test_the_npm_package_holds_its_files_alone_and_packs_to_the_same_bytes(tmp_path) -> None:
    npm = shutil.which("npm") or pytest.skip("there is no npm")
    about = json.loads((package() / "package.json").read_text())
    assert about["version"] == __version__
    assert not about.keys() & {"dependencies", "peerDependencies", "optionalDependencies", "scripts"}
    packed = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        command = [npm, "pack", "--json", "--pack-destination", folder, "--cache", tmp_path / "cache", package()]
        listed = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)[0]["files"]
        packed.append(next(folder.iterdir()).read_bytes())
    assert {one["path"] for one in listed} == {path.name for path in package().iterdir() if path.name[0] != "."}
    assert packed[0] == packed[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(package(), folder / "node_modules/@nndeploy/run")
    return folder


def test_the_example_reads_a_digit_with_the_package_by_its_name(installed, digits) -> None:
    script = shutil.copy(ROOT / "examples" / "node" / "digits.mjs", installed)
    done = subprocess.run([node(), script, digits], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    stroke = np.zeros((1, 1, 8, 8), np.float32)
    stroke[..., 3:5] = 16
    wanted = by_python(digits, {"image": stroke})["probabilities"]
    assert done.stdout == f"{wanted.argmax()}, probability {wanted.max():.4f}\n"


USE = """
import { open, NndeployError, type Input, type Program } from "@nndeploy/run";
const program: Program = await open(new ArrayBuffer(8), { relaxed: false });
const states: Record<string, Input> = { x: new Float32Array(3), n: { data: new BigInt64Array(1), shape: [1] } };
states.text = ["a"];
const { y } = program.run(states);
const size: number = y.shape[0] + y.length;
program.run({ before: y });
try { program.close(); } catch (err) { if (err instanceof NndeployError) console.log(err.code + size); }
"""


@pytest.mark.slow
@pytest.mark.parametrize(("text", "is_right"), [(USE, True), (USE.replace("{ y }", "{ y }: number"), False)])
def test_the_types_hold_of_what_the_package_is_called_with(installed, text, is_right) -> None:
    compiler = ROOT / "build" / "web-tools" / "node_modules" / "typescript" / "bin" / "tsc"
    if not compiler.exists():
        pytest.skip("there is no TypeScript: make web-tools")
    (installed / "use.mts").write_text(text)
    flags = ["--strict", "--noEmit", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom"]
    done = subprocess.run(
        [node(), compiler, *flags, "use.mts"], cwd=installed, capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) == is_right, done.stdout
