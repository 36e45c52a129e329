# SPDX-License-Identifier: Apache-2.0
"""How bundles tell where their points are, and what a submodel on a GPU waits for when it is paced."""

import json
from collections.abc import Iterator
from pathlib import Path

import layers_in_a_line
import numpy as np
import onnx.parser
import pytest
from compile_with import compile_with
from pretended_gpus import box, gpu_backend, machine_with
from separable_model import needs_native

import nndeploy
from nndeploy.cli.main import run_command
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.runtime.gpu_stream import GpuStreams
from nndeploy.target.place_limits import places_in

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[4,4] x) => (float[4,4] y) {
    [enter] a = Exp(x)
    [middle] b = MatMul(a, x)
    [leave] c = Tanh(b)
    y = Neg(c)
}"""
PINS = [("enter", "onnxruntime"), ("middle", "gpu"), ("leave", "onnxruntime")]
INPUT = {"x": np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)}
GOAL = PaceGoal(20_000_000)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    needs_native()
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(TEXT), path)
    return path


def test_commands_tell_where_points_stand(model, capsys) -> None:
    bundle = model.with_suffix(".nnd")
    compile_with(model, bundle, backends=("onnxruntime",), pace=True)
    note = "submodel s0 (onnxruntime): points behind 0 of "
    assert run_command(["pace", str(bundle), "--max-latency", "20ms", "--runs", "1"]) == 0
    assert note in capsys.readouterr().out
    np.savez(model.with_suffix(".npz"), **INPUT)
    arguments = ["run", str(bundle), "--input", str(model.with_suffix(".npz")), "--pace", "--max-latency", "20ms"]
    assert run_command([*arguments, "-v"]) == 0
    assert note in capsys.readouterr().err
    assert run_command([*arguments, "--json"]) == 0
    notes = json.loads(capsys.readouterr().out)["pacing"]["notes"]  # one may tell of waits for a core
    assert [one.startswith(note) for one in notes].count(True) == 1


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What happens, in order: points that are passed, and waits for a GPU."""
    events, wait = list[str](), GpuStreams.wait
    monkeypatch.setattr(GpuStreams, "wait", lambda gpu_streams: (events.append("wait"), wait(gpu_streams))[1])
    return events


def test_paced_runs_over_places_go_one_by_one_and_give_what_others_give(tmp_path, install, capsys) -> None:
    needs_native()
    install(gpu_backend("gpu", "MatMul", "Tanh"))
    bundle, given = tmp_path / "l.nnd", tmp_path / "l.npz"
    np.savez(given, **layers_in_a_line.INPUT)
    with machine_with("8.9"):
        compile_with(
            layers_in_a_line.network(), bundle, backends=("gpu", "onnxruntime"), targets=(box("box", "8.9"),),
            places=places_in("cuda:0=512KiB,cpu"), pace=True,
        )  # fmt: skip
        with nndeploy.load_bundle(bundle) as program:
            assert (program.stages, program.calls_at_once) == (("cuda:0", "cpu"), 3)
            plain = program.run(layers_in_a_line.INPUT)
        with nndeploy.load_bundle(bundle, pace=GOAL) as program:
            assert program.calls_at_once == 1
            paced = program.run(layers_in_a_line.INPUT)
        arguments = ["run", str(bundle), "--input", str(given), "--pace", "--max-latency", "20ms", "-v"]
        assert run_command(arguments) == 0
        assert "one call at a time on cuda:0, cpu: runs are paced" in capsys.readouterr().err
    np.testing.assert_array_equal(paced["v6"], plain["v6"])


def test_a_submodel_on_a_gpu_ends_when_its_work_is_done(model, waits, monkeypatch, install) -> None:
    install(gpu_backend("gpu", "MatMul"))
    bundle = model.with_suffix(".nnd")
    with machine_with("8.9") as driver:
        compile_with(
            model, bundle, backends=("gpu", "onnxruntime"), targets=(box("box", "8.9"),), pins=PINS, pace=True,
            objective="priority",
        )  # fmt: skip
        with nndeploy.load_bundle(bundle, pace=GOAL) as program:
            library, choices = program.pacing.pacer._library, program.choices
            assert [choice.device == "cpu" for choice in choices] == [True, False, True]
            point = library.point
            monkeypatch.setattr(library, "point", lambda number: (waits.append("point"), point(number))[1])
            waits.clear()
            before = driver.num_synchronized
            paced = program.run(INPUT)
            assert waits == ["wait", "point"]
            assert driver.num_synchronized > before
        with nndeploy.load_bundle(bundle) as program:
            waits.clear()
            plain = program.run(INPUT)
            assert waits == []
    np.testing.assert_array_equal(paced["y"], plain["y"])
