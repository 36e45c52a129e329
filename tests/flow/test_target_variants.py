# SPDX-License-Identifier: Apache-2.0
"""Boxes without a GPU that are named: each has a variant that needs our own runtime alone, or nothing is written."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx.reference
import pytest
from compile_with import compile_with
from nndeploy_native.plan_session import PlanSession
from separable_model import needs_native, separable_model

import nndeploy
from nndeploy.bundle.reader import open_bundle
from nndeploy.cli.main import run_command
from nndeploy.errors import CheckError
from nndeploy.jobs.workers import InProcessWorkers
from nndeploy.plugin.interface import CodeFiles, Probe
from nndeploy.plugin.registry import backend
from nndeploy.runtime.select import LoadOptions, choose
from nndeploy.target.known_targets import target_of
from nndeploy.target.target import host_target

BOXES = ("x86-64-v3", "raspberry-pi-5")
INPUT = {"x": np.linspace(-1, 1, 32 * 24 * 24, dtype=np.float32).reshape(1, 32, 24, 24)}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs_native()
    return separable_model(tmp_path_factory.mktemp("targets") / "separable.onnx")


@pytest.fixture(scope="module")
def compiled(model: Path) -> tuple[Path, Any]:
    """A bundle in which ONNX Runtime stands before our own kernels, for two boxes; and its report."""
    bundle = model.with_suffix(".nnd")
    report = compile_with(
        model, bundle, backends=("onnxruntime", "native"), objective="priority", targets=tuple(map(target_of, BOXES))
    )
    return bundle, report


def test_each_box_has_a_variant_that_needs_nothing_else(compiled) -> None:
    _, report = compiled
    assert [(one.target, one.submodel, one.backend, one.needs) for one in report.targets] == [
        (box, "s0", "native", "") for box in BOXES
    ]


def test_shares_and_gates_are_those_of_the_boxes(compiled: tuple[Path, Any], model: Path, tmp_path: Path) -> None:
    _, report = compiled
    assert report.shares() == {box: {"native": pytest.approx(1.0)} for box in BOXES}
    boxes = tuple(map(target_of, BOXES))
    options = nndeploy.CompileOptions(backends=("onnxruntime", "native"), objective="priority", targets=boxes)
    nndeploy.compile_model(model, tmp_path / "a.nnd", options, require={"native": 1.0}, max_fallback=0.0)
    with pytest.raises(CheckError, match="on x86-64-v3"):
        nndeploy.compile_model(model, tmp_path / "b.nnd", options, require={"onnxruntime": 0.5})
    assert not (tmp_path / "b.nnd").exists()


@pytest.mark.parametrize("box", BOXES)
def test_a_box_takes_its_own_variant_and_misses_no_library(compiled, box, monkeypatch) -> None:
    monkeypatch.setattr(backend("onnxruntime"), "probe", lambda _: Probe(False, False, reason="not there"))
    target = target_of(box)
    monkeypatch.setattr(backend("native"), "probe", lambda _: Probe(False, True))
    with open_bundle(compiled[0]) as bundle:
        (submodel,) = bundle.manifest.submodels
        choice = choose(submodel, LoadOptions(strict=True), target)
    assert choice.backend == "native"
    assert choice.passed_over[0].backend == "onnxruntime"
    assert choice.losses == ()


def test_plans_hold_no_native_code_and_run_where_none_is_allowed(model, tmp_path) -> None:
    bundle = tmp_path / "native.nnd"
    compile_with(model, bundle, backends=("native",))
    (want,) = onnx.reference.ReferenceEvaluator(str(model)).run(None, INPUT)
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(allow_native_code=False)) as program:
        assert [choice.backend for choice in program.choices] == ["native"]
        np.testing.assert_allclose(program.run(INPUT)["y"], want, rtol=1e-4, atol=1e-5)


@pytest.fixture
def plans_are_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets plans count as native code, as the artifacts of backends for GPUs do."""
    plugin, build = backend("native"), backend("native").build
    monkeypatch.setattr(plugin, "build", lambda *given: replace(build(*given), native_code=True))
    monkeypatch.setattr(plugin, "code_files", lambda files: CodeFiles(frozenset({"plan.bin"}) & files.keys()))


@pytest.mark.usefixtures("plans_are_code")
def test_the_last_fallback_has_no_code_in_it(model, tmp_path) -> None:
    compile_with(
        model, tmp_path / "m.nnd", backends=("native", "openvino", "onnxruntime"), objective="priority",
        workers=InProcessWorkers(),
    )  # fmt: skip
    with open_bundle(tmp_path / "m.nnd") as bundle:
        (submodel,) = bundle.manifest.submodels
    assert len(submodel.variants) > 1
    assert submodel.variants[0].native_code
    assert not submodel.variants[-1].native_code


@pytest.fixture
def not_ours(tmp_path: Path) -> Path:
    """A model whose second operator our own kernels lack."""
    path = tmp_path / "det.onnx"
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[2,4,4] x) => (float[2] y) { a = Relu(x) y = Det(a) }'
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def test_a_box_without_a_variant_is_named_with_the_reason_and_nothing_is_written(not_ours, capsys) -> None:
    needs_native()
    bundle = not_ours.with_suffix(".nnd")
    boxes = [word for box in BOXES for word in ("--target", box)]
    assert run_command(["compile", str(not_ours), "-o", str(bundle), *boxes]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("nndeploy: error[check-failed]: ")
    assert all(f"{box} lacks s0" in error for box in BOXES)
    assert "native: node" in error
    assert "--target x86-64-v3+onnxruntime" in error
    assert not bundle.exists()


def test_a_library_that_the_box_has_is_enough_and_the_table_says_so(not_ours, capsys) -> None:
    bundle = not_ours.with_suffix(".nnd")
    assert run_command(["compile", str(not_ours), "-o", str(bundle), "--target", "x86-64-v3+onnxruntime"]) == 0
    (row,) = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("x86-64-v3")]
    assert row[:5] == ["x86-64-v3", "s0", row[2], "onnxruntime", "onnxruntime"]
    assert run_command(["inspect", str(bundle)]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("x86-64-v3")] == [row]


def test_wrong_numbers_for_a_box_that_can_be_tried_here_leave_it_without_a_variant(
    model, tmp_path, monkeypatch
) -> None:
    if host_target().arch != "x86_64" or "avx2" not in host_target().cpu_features:
        pytest.skip("this machine does not run x86-64-v3")
    run = PlanSession.run
    monkeypatch.setattr(PlanSession, "run", lambda self, inputs: {k: v + 1 for k, v in run(self, inputs).items()})
    options = nndeploy.CompileOptions(
        backends=("onnxruntime", "native"), keep_fallback=False, objective="priority", targets=(target_of("x86-64-v3"),)
    )
    with pytest.raises(CheckError, match=r"x86-64-v3 lacks s0 \(native: wrong numbers"):
        nndeploy.compile_model(model, tmp_path / "m.nnd", options, workers=InProcessWorkers())
