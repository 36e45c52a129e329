# SPDX-License-Identifier: Apache-2.0
"""`nndeploy tune`: what it measures is used by later loads on this machine, and no result changes."""

import json
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from separable_model import needs_native, separable_model
from tests_flow_bundles import write_double

from nndeploy import load_bundle
from nndeploy.cli.main import run_command
from nndeploy.runtime import tuned_meanwhile as tuned_meanwhile_module
from nndeploy.runtime.tuned_meanwhile import tuned_meanwhile
from nndeploy.serve.open_served import open_served
from nndeploy.serve.options import ServeOptions
from nndeploy.stream.records import Record

SHORT = ("--seconds", "0.3", "--threads", "1")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs_native()
    folder = tmp_path_factory.mktemp("tuned")
    model, out = separable_model(folder / "separable.onnx"), folder / "separable.nnd"
    assert run_command(["compile", str(model), "-o", str(out), "--backends", "native"]) == 0
    return out


def tuned(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> dict[str, object]:
    capsys.readouterr()
    assert run_command(["tune", *map(str, arguments), "--json"]) == code
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def output(bundle: Path, cache: Path) -> bytes:
    with load_bundle(bundle, threads=1, cache_dir=str(cache)) as program:
        x = np.random.default_rng(0).random((1, 32, 24, 24), np.float32)
        return np.asarray(program.run({"x": x})["y"]).tobytes()


def test_what_was_found_is_kept_and_taken(compiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = output(compiled, tmp_path / "none")
    found = tuned(capsys, compiled, "--cache", tmp_path / "cache", *SHORT)
    (one,) = found["tuned"]  # type: ignore[misc] # of JSON
    (table,) = one["tables"]  # type: ignore[index]
    assert table["shapes"] == [[1, 32, 24, 24]]
    (path,) = (tmp_path / "cache").iterdir()
    assert json.loads(path.read_text())["tables"] == [table]
    assert output(compiled, tmp_path / "cache") == before


def test_a_program_is_tuned_while_it_is_used_and_gives_the_same_bits(
    compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuned_meanwhile_module, "SHARE", 1.0)
    x = np.random.default_rng(0).random((1, 32, 24, 24), np.float32)
    with load_bundle(compiled, threads=1, cache_dir=str(tmp_path)) as program:
        want, is_done = np.asarray(program.run({"x": x})["y"]).tobytes(), threading.Event()
        with tuned_meanwhile([program], 0.1, pytest.fail, lambda now: is_done.set() if now.num_tuned else None) as now:
            until = time.monotonic() + 30
            while not is_done.is_set() and time.monotonic() < until:
                assert np.asarray(program.run({"x": x})["y"]).tobytes() == want
            assert (now.num_tuned, len(now.lines)) == (1, 1)
            assert now.seconds > 0
            (path,) = tmp_path.iterdir()  # kept at once: a service may be killed
            assert [table["shapes"] for table in json.loads(path.read_text())["tables"]] == [[[1, 32, 24, 24]]]
            assert np.asarray(program.run({"x": x})["y"]).tobytes() == want
    with load_bundle(compiled, threads=1, cache_dir=str(tmp_path)) as program:
        with tuned_meanwhile([program], 0.1, pytest.fail) as now:
            for _ in range(5):
                assert np.asarray(program.run({"x": x})["y"]).tobytes() == want
        assert now.num_tuned == 0  # what was found before is taken


def test_a_service_tunes_between_its_requests_and_counts_it(
    compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuned_meanwhile_module, "SHARE", 1.0)
    options = ServeOptions(tune_seconds=0.05, threads=1, cache_dir=str(tmp_path / "cache"), checks_goldens=False)
    x, numbers = np.random.default_rng(0).random((1, 32, 24, 24), np.float32), Counter[str](tuned_shapes=2)
    with closing(open_served("m", compiled, options, load_bundle, pytest.fail, numbers)) as served:
        outputs, until = set(), time.monotonic() + 30
        while numbers["tuned_shapes"] == 2 and time.monotonic() < until:
            record = Record(0, "", "", fields={"x": x})
            served.run([record])
            outputs.add(np.asarray(record.made["y"]).tobytes())
    assert numbers["tuned_shapes"] == 3  # those of a bundle that was served before go on
    assert numbers["tuning_seconds"] > 0
    assert len(outputs) == 1
    assert len([*(tmp_path / "cache").iterdir()]) == 1


def test_a_service_that_cannot_keep_what_it_finds_says_so_and_answers(compiled: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told, numbers = list[str](), Counter[str]()
    options = ServeOptions(tune_seconds=1.0, cache_dir=str(tmp_path / "file"), checks_goldens=False)
    with closing(open_served("m", compiled, options, load_bundle, told.append, numbers)) as served:
        records = [Record(0, "", "", fields={"x": np.ones((1, 32, 24, 24), np.float32)}) for _ in range(5)]
        for record in records:
            served.run([record])
    assert len(told) == 1
    assert all("y" in record.made for record in records)
    assert not any(numbers.values())


def test_a_run_tells_what_tuning_did(compiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros((1, 32, 24, 24), np.float32))
    command = ["run", str(compiled), "-i", str(tmp_path / "x.npz"), "-o", str(tmp_path / "y.npz"), "--tune", "60", "-v"]
    metrics = tmp_path / "metrics.json"
    assert run_command([*command, "--cache", str(tmp_path / "cache"), "--metrics", str(metrics)]) == 0
    assert "0 sets of shapes tuned" in capsys.readouterr().err
    assert json.loads(metrics.read_text())["tuning"]["tuned_shapes"] == 0


@pytest.mark.parametrize("is_writable", [True, False])
def test_a_run_too_short_to_tune_or_that_cannot_keep_it_goes_by_the_rules(
    compiled: Path, tmp_path: Path, is_writable: bool
) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros((1, 32, 24, 24), np.float32))
    cache = tmp_path / ("cache" if is_writable else "x.npz")  # no folder can be made of a file
    command = ["run", str(compiled), "--input", str(tmp_path / "x.npz"), "--output", str(tmp_path / "y.npz")]
    assert run_command([*command, "--tune", "60", "--cache", str(cache)]) == 0
    assert (tmp_path / "y.npz").exists()
    assert not [*(tmp_path / "cache").glob("*.json")]


def test_decisions_are_recorded_and_replayed(
    compiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decisions = tmp_path / "tuned.json"
    recorded = tuned(capsys, compiled, "--cache", tmp_path / "one", "--decisions", decisions, *SHORT)
    replayed = tuned(capsys, compiled, "--cache", tmp_path / "two", "--decisions", decisions, "--threads", "1")
    assert replayed["tuned"] == recorded["tuned"]
    assert (recorded["replayed"], replayed["replayed"]) == (False, True)
    one, two = ([path.read_text() for path in (tmp_path / name).iterdir()] for name in ("one", "two"))
    assert one == two
    tuned(capsys, compiled, "--cache", tmp_path / "two", "--decisions", decisions, "--threads", "2", code=65)
    decisions.write_text("{")
    tuned(capsys, compiled, "--cache", tmp_path / "two", "--decisions", decisions, code=65)


CONVOLUTION = """<ir_version: 8, opset_import: ["": 17]>
convolution (float[1,48,20,20] x) => (float[1,48,20,20] y) { h = Conv<pads=[1,1,1,1]>(x, w) y = Relu(h) }"""


def test_fast_tuning_may_take_the_other_way_of_a_convolution(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_native()
    model = onnx.parser.parse_model(CONVOLUTION)
    weights = np.random.default_rng(0).standard_normal((48, 48, 3, 3)).astype(np.float32) / 20
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "m.onnx")
    bundle, cache, decisions = tmp_path / "m.nnd", tmp_path / "cache", tmp_path / "tuned.json"
    assert run_command(["compile", str(tmp_path / "m.onnx"), "-o", str(bundle), "--backends", "native"]) == 0
    tuned(capsys, bundle, "--cache", cache, "--fast", "--decisions", decisions, *SHORT)
    with load_bundle(bundle, threads=1, cache_dir="") as program:
        (session,) = program.sessions.values()
        steps = session.steps_here({})  # type: ignore[attr-defined] # of native
    (number,) = (i for i, step in enumerate(steps) if "by Winograd" in str(step))
    data = json.loads(decisions.read_text())
    data["tuned"][0]["tables"][0]["steps"] = {str(number): {"way": 1}}  # as if it had been found
    decisions.write_text(json.dumps(data))
    tuned(capsys, bundle, "--cache", cache, "--decisions", decisions, "--threads", "1")
    with load_bundle(bundle, threads=1, cache_dir=str(cache)) as program:
        (session,) = program.sessions.values()
        assert "by Winograd" not in str(session.steps_here({}))  # type: ignore[attr-defined]
    assert run_command(["verify", str(bundle), "--cache", str(cache), "--threads", "1"]) == 0


def test_shapes_and_inputs_say_what_is_tuned(
    compiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = ("--cache", tmp_path / "cache")
    np.savez(tmp_path / "x.npz", x=np.ones((1, 32, 24, 24), np.float32))
    tuned(capsys, compiled, *cache, "--input", tmp_path / "x.npz", *SHORT)
    tuned(capsys, compiled, *cache, "--shape", "x=1,32,24,24", *SHORT)
    tuned(capsys, compiled, *cache, "--shape", "x=1,32,24,25", *SHORT, code=65)
    tuned(capsys, compiled, *cache, "--shape", "x=1,32,24,24", "--input", tmp_path / "x.npz", *SHORT, code=2)


def test_a_table_of_other_threads_is_told_with_verbose(
    compiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "x.npz", x=np.ones((1, 32, 24, 24), np.float32))
    tuned(capsys, compiled, "--cache", tmp_path / "cache", *SHORT)
    (path,) = (tmp_path / "cache").iterdir()
    run = ["run", str(compiled), "-i", str(tmp_path / "x.npz"), "-o", str(tmp_path / "y.npz")]
    run += ["--cache", str(tmp_path / "cache"), "-v"]
    assert run_command([*run, "--threads", "2"]) == 0
    assert str(path) in capsys.readouterr().err
    assert run_command([*run, "--threads", "1"]) == 0
    assert str(path) not in capsys.readouterr().err


def test_without_a_folder_tune_fails_and_run_does_not(
    compiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    np.savez(tmp_path / "x.npz", x=np.ones((1, 32, 24, 24), np.float32))
    for cache in ("", str(tmp_path / "file")):
        tuned(capsys, compiled, "--cache", cache, *SHORT, code=74)
        run = ["run", str(compiled), "-i", str(tmp_path / "x.npz"), "-o", str(tmp_path / "y.npz"), "--cache", cache]
        assert run_command(run) == 0


def test_what_no_session_can_tune_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_double(tmp_path / "m.nnd")
    answer = tuned(capsys, tmp_path / "m.nnd", code=69)
    assert "error" in answer


def test_a_compile_may_tune_what_it_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs_native()
    model, out = separable_model(tmp_path / "separable.onnx"), tmp_path / "separable.nnd"
    arguments = ["compile", str(model), "-o", str(out), "--backends", "native", "--threads", "1", "--tune", "0.3"]
    assert run_command([*arguments, "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["tuned"]
    (path,) = Path(f"{out}.cache").iterdir()
    assert json.loads(path.read_text())["tables"] == one["tables"]
    assert run_command([*arguments, "--dry-run"]) == 2
