# SPDX-License-Identifier: Apache-2.0
"""`nndeploy compile` as a user meets it: one line for each mistake, the right exit code, nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

SMALL = '<ir_version: 8, opset_import: ["": 18]> small (float[N,4] x) => (float[N,4] y) { a = Relu(x) y = Tanh(a) }'
ENDLESS = """<ir_version: 9, opset_import: ["": 17]>
endless (float[1] x) => (float[1] y) {
  n = Constant<value_int = 1099511627776>() t = Constant<value = bool {1}>()
  y = Loop<body = b (int64 i, bool c, float[1] v) => (bool d, float[1] w) { d = Identity(c) w = Add(v, v) }>(n, t, x)
}"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Returns the path of a small model."""
    path = tmp_path / "small.onnx"
    onnx.save(onnx.parser.parse_model(SMALL), path)
    return path


def assert_refused(result: "subprocess.CompletedProcess[str]", exit_code: int, *words: str) -> None:
    """Checks one error line on standard error that holds `words`, no traceback, nothing on standard output."""
    lines = [line for line in result.stderr.splitlines() if line.startswith("nndeploy: error")]
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.stderr
    assert all(word in lines[0] for word in words), lines[0]
    assert result.returncode == exit_code, result.stderr
    assert result.stdout == ""


def test_compile_prints_the_partition_and_writes_a_bundle_that_runs(nndeploy_command, small) -> None:
    out = small.with_suffix(".nnd")
    result = nndeploy_command("compile", small, "-o", out, "--without", "openvino")
    assert result.returncode == 0, result.stderr
    assert "onnxruntime" in result.stdout
    assert "100.0%" in result.stdout
    assert "error against the original" in result.stdout
    assert "optimise" in result.stderr
    np.savez(small.with_suffix(".npz"), x=np.ones((2, 4), np.float32))
    assert nndeploy_command("run", out, "--input", small.with_suffix(".npz")).returncode == 0


def test_without_a_name_the_bundle_is_called_like_the_model_and_is_written_where_one_stands(
    nndeploy_command, small, tmp_path
) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()
    asked = ("compile", small, "--backends", "onnxruntime", "--objective", "priority")
    result = nndeploy_command(*asked, cwd=elsewhere)
    assert result.returncode == 0, result.stderr
    assert "wrote small.nnd" in result.stdout
    assert [path.name for path in elsewhere.iterdir()] == ["small.nnd"]
    assert json.loads(nndeploy_command(*asked, "--json", cwd=elsewhere).stdout)["bundle"] == "small.nnd"


def test_a_bundle_may_have_any_name_and_it_is_said_that_others_end_in_nnd(nndeploy_command, small, tmp_path) -> None:
    asked = ("compile", "small.onnx", "-o", "x", "--backends", "onnxruntime", "--objective", "priority")
    result = nndeploy_command(*asked, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "warning: x does not end in .nnd" in result.stderr
    assert nndeploy_command("verify", "x", cwd=tmp_path).returncode == 0
    assert "onnxruntime" in nndeploy_command("inspect", "x", cwd=tmp_path).stdout


def test_shapes_become_ranges_of_the_bundle(nndeploy_command, small) -> None:
    out = small.with_suffix(".nnd")
    arguments = ("compile", small, "-o", out, "--backends", "onnxruntime")
    assert nndeploy_command(*arguments, "--shape", "x=1..8,4:2,4").returncode == 0
    manifest = json.loads(nndeploy_command("inspect", out, "--json").stdout)["manifest"]
    assert manifest["ranges"] == {"N": {"min": 1, "max": 8, "best": 2}}
    trtexec = ("--min-shapes", "x:1x4", "--opt-shapes", "x:4x4", "--max-shapes", "x:8x4")
    assert nndeploy_command(*arguments, *trtexec).returncode == 0
    manifest = json.loads(nndeploy_command("inspect", out, "--json").stdout)["manifest"]
    assert manifest["ranges"] == {"N": {"min": 1, "max": 8, "best": 4}}


@pytest.mark.parametrize(("arguments", "exit_code", "words"), [
    (("nowhere.onnx", "-o", "m.nnd"), 66, ("no such file", "nowhere.onnx")),
    (("{small}", "-o", "m.nnd", "--backends", "openvimo"), 2, ("did you mean 'openvino'",)),
    (("{small}", "-o", "m.nnd", "--pin", "Relu"), 2, ("not GLOB=BACKEND",)),
    (("{small}", "-o", "m.nnd", "--require", "onnxruntime=most"), 2, ("is not a share",)),
    (("{small}", "-o", "m.nnd", "--shape", "x=1,5"), 2, ("x", "4", "5")),
    (("{small}", "-o", "m.nnd", "--shape", "y=1,4"), 2, ("no input 'y'",)),
    (("{small}", "-o", "m.nnd", "--target", "nowhere.toml"), 66, ("nowhere.toml",)),
    (("{small}", "-o", "m.nnd", "--image", "nowhere.toml"), 66, ("nowhere.toml",)),
    (("{small}", "-o", "m.nnd", "--config", "nowhere.toml"), 66, ("nowhere.toml",)),
    (("{small}", "-o", "m.nnd", "--custom-ops", "nowhere.so"), 66, ("nowhere.so",)),
    (("{small}", "-o", "m.nnd", "--samples", "nowhere"), 66, ("nowhere",)),
    (("{small}", "-o", "no/such/folder/m.nnd", "--backends", "onnxruntime"), 73, ("no/such/folder",)),
])  # fmt: skip
def test_a_mistake_is_one_line_with_its_exit_code(nndeploy_command, small, arguments, exit_code, words) -> None:
    before = sorted(path.name for path in small.parent.iterdir())
    filled = [argument.format(small=small) for argument in arguments]
    assert_refused(nndeploy_command("compile", *filled, cwd=small.parent), exit_code, *words)
    assert sorted(path.name for path in small.parent.iterdir()) == before


def test_a_configuration_file_gives_defaults_and_the_command_line_wins(nndeploy_command, small) -> None:
    config = small.with_name("config.toml")
    config.write_text('backends = "onnxruntime"\ngoldens = 2\nwithout = ["openvino"]\n')
    result = nndeploy_command("compile", small, "--config", config, "--goldens", "3", "--dump-config")
    assert result.returncode == 0, result.stderr
    assert {'backends = "onnxruntime"', 'without = ["openvino"]', "goldens = 3"} <= set(result.stdout.splitlines())
    config.write_text("backend = 1\n")
    assert_refused(nndeploy_command("compile", small, "--config", config), 65, "did you mean 'backends'")


def test_the_hostile_models_are_refused_in_one_line(nndeploy_command, models_folder, tmp_path) -> None:
    hostile = sorted((models_folder / "hostile").glob("*.onnx"))
    assert hostile
    for model in hostile:
        done = nndeploy_command("compile", model, "-o", tmp_path / "m.nnd", "--memory-limit", "2GiB")
        assert_refused(done, 65, "error[bad-model]")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_compile_and_leaves_nothing(tmp_path, number, exit_code) -> None:
    endless, temporary = tmp_path / "endless.onnx", tmp_path / "temporary"
    onnx.save(onnx.parser.parse_model(ENDLESS), endless)
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "nndeploy", "compile", str(endless), "-o", str(tmp_path / "m.nnd")],
        stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(temporary)},
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while not list(temporary.glob("nndeploy-compile-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == exit_code, errors
    assert "Traceback" not in errors
    assert not (tmp_path / "m.nnd").exists()
    assert list(temporary.iterdir()) == []
