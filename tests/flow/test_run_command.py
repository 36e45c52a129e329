# SPDX-License-Identifier: Apache-2.0
"""`nndeploy run` from files to files, in process: what comes out, and which exit code."""

import io
import json

import numpy as np
import pytest
from tests_flow_bundles import write_double

from nndeploy.cli.main import run_command


@pytest.fixture
def double(here):
    return write_double(here / "m.nnd")


def run(*arguments) -> int:
    return run_command(["run", "m.nnd", *map(str, arguments)])


def one(path, value=1.0, shape=(1, 3)):
    np.savez(path, image=np.full(shape, value, np.float32))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_one_file_to_one_file(double, here, capsys) -> None:
    one("x.npz", 3)
    assert run("--input", "x.npz", "--output", "y.npz") == 0
    assert np.load("y.npz")["y"].tolist() == [[6, 6, 6]]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "1 item in " in captured.err
    assert ", first " in captured.err
    assert "p50" not in captured.err  # of the one run, which was cold


def test_named_inputs(double, here) -> None:
    np.save("x.npy", np.ones((1, 3), np.float32))
    assert run("--input", "image=@x.npy", "--output", "y.npz") == 0
    assert run("--input", "image=[[1, 2, 3]]", "--output", "z.npz") == 0
    assert np.load("z.npz")["y"].tolist() == [[2, 4, 6]]


def test_a_folder_to_a_folder_with_bad_items(double, here, capsys) -> None:
    (here / "in").mkdir()
    for i in (10, 9):
        one(f"in/a{i}.npz", i)
    one("in/b.npz", shape=(1, 4))
    (here / "in" / "c.npz").write_bytes(b"no")
    assert run("--input", "in", "--output", "out") == 1
    assert names(here / "out") == ["000000_a9.npz", "000001_a10.npz", "000002_b.error.json", "000003_c.error.json"]
    assert np.load("out/000001_a10.npz")["y"].tolist() == [[20, 20, 20]]
    error = capsys.readouterr().err
    assert "nndeploy: item 2: error[bad-input]: in/b.npz: input 'image' must be float32[N,3], got [1,4]" in error
    assert "nndeploy: item 3: error[bad-input]: in/c.npz: is no npz archive" in error
    assert "4 items, 2 failed" in error
    assert error.endswith("nndeploy: error[check-failed]: 2 of 4 items failed\n")


def test_stops_at_the_first_error_where_asked(double, here) -> None:
    (here / "in").mkdir()
    (here / "in" / "a.npz").write_bytes(b"no")
    one("in/b.npz")
    assert run("--input", "in", "--output", "out", "--on-error", "stop") == 1
    assert names(here / "out") == ["000000_a.error.json"]


def test_json_lines_in_and_out(double, here, capsys, monkeypatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b'{"image": [[1, 2, 3]]}\n{"imag": 1}\n{"image": [["Infinity", 0, 0]]}\n')

    monkeypatch.setattr("sys.stdin", Stdin)
    assert run("--input", "-", "--output", "-") == 1
    captured = capsys.readouterr()
    first, second, third = map(json.loads, captured.out.splitlines())
    assert first == {"index": 0, "origin": "stdin, line 1", "outputs": {"y": [[2, 4, 6]]}}
    assert second["error"] == {
        "code": "bad-input",
        "message": "stdin, line 2: no input is named 'imag' (hint: did you mean 'image'?)",
    }
    assert third["non_finite"] == ["image"]
    assert third["outputs"] == {"y": [["Infinity", 0, 0]]}


def test_json_tells_the_summary_alone_on_stdout(double, here, capsys) -> None:
    (here / "in").mkdir()
    one("in/a.npz")
    one("in/b.npz", np.nan)
    one("in/c.npz", shape=(9, 3))
    assert run("--input", "in", "--output", "out", "--json") == 1
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert (report["items"], report["failed"], report["non_finite"]) == (3, 1, 1)
    assert report["first_ms"] > 0
    assert sorted(report["latency_ms"]) == ["p50", "p90", "p99"]
    assert report["choices"][0]["backend"] == "onnxruntime"
    assert "(N) is 9, outside 1..8" in report["records"][2]["error"]["message"]
    assert "nndeploy: warning: in/b.npz: NaN or infinity in 'image'" in captured.err


def test_without_an_output_the_values_are_shown(double, here, capsys) -> None:
    one("x.npz", 0.5)
    assert run("--input", "x.npz", "-v") == 0
    captured = capsys.readouterr()
    assert captured.out == "x.npz\n  y  float32[1,3] [[1., 1., 1.]]\n"
    assert "nndeploy: submodel s0: onnxruntime (v0-onnxruntime)" in captured.err


@pytest.mark.parametrize(
    ("prepare", "arguments", "code", "message"),
    [
        (lambda: np.savez("x.npz", imag=np.ones((1, 3), np.float32)), ["--input", "x.npz"], 65,
         "error[bad-input]: x.npz: no input is named 'imag' (hint: did you mean 'image'?)"),
        (lambda: np.savez("x.npz", image=np.ones((1, 3))), ["--input", "x.npz"], 65,
         "error[bad-input]: x.npz: input 'image' must be float32, got float64"),
        (lambda: one("x.npz", shape=(3,)), ["--input", "x.npz"], 65,
         "error[bad-input]: x.npz: input 'image' must have rank 2 (float32[N,3]), got [3]"),
        (lambda: one("x.npz", shape=(9, 3)), ["--input", "x.npz"], 65,
         "error[bad-input]: x.npz: input 'image': axis 0 (N) is 9, outside 1..8"),
        (lambda: np.savez("x.npz", image=np.array([{}], object)), ["--input", "x.npz"], 65, "Python objects"),
        (lambda: one("x.npz", np.nan), ["--input", "x.npz", "--nan", "reject"], 65, "holds NaN or infinity"),
        (lambda: None, ["--input", "nowhere.npz"], 66, "error[no-input]: nowhere.npz: no such file"),
        (lambda: None, [], 2, "no input was given (hint: for example --input image=@image.npy)"),
        (lambda: None, ["--input", "x=@y.npy"], 2, "no input is named 'x'"),
        (lambda: one("x.npz"), ["--input", "x.npz", "--output", "m.nnd/y.npz"], 73, "error[cannot-create]: "),
        (lambda: one("x.npz"), ["--input", "x.npz", "--output", "y.txt"], 2, "cannot tell what 'y.txt' should be"),
        (lambda: one("x.npz"), ["--input", "x.npz", "--output", "-", "--json"], 2, "both want standard output"),
        (lambda: one("x.npz"), ["--input", "x.npz", "--device", "tpu"], 2, "unknown device 'tpu'"),
        (lambda: one("x.npz"), ["--input", "x.npz", "--device", "cuda:0"], 69, "the bundle has no chain for GPUs"),
        (lambda: one("x.npz"), ["--input", "x.npz", "--custom-ops", "no.so"], 66, "no such library of operators"),
        (lambda: one("x.npz"), ["--input", "x.npz", "--threads", "0"], 2, "error[usage]"),
    ],
)  # fmt: skip
def test_bad_calls_are_one_line_and_leave_nothing(double, here, capsys, prepare, arguments, code, message) -> None:
    prepare()
    before = names(here)
    assert run(*arguments) == code
    captured = capsys.readouterr()
    assert captured.out == "" or "--json" in arguments
    assert message in captured.err
    assert captured.err.startswith("nndeploy: error[")
    assert captured.err.count("\n") == 1
    assert names(here) == before
