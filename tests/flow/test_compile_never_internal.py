# SPDX-License-Identifier: Apache-2.0
"""A mistake of ours in any stage costs speed, never a model: the bundle is right, and a warning names the stage."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from compile_with import compile_with
from faulty_backends import good_backend

import nndeploy
from nndeploy.errors import ModelError
from nndeploy.passes import OPTIMISATIONS

TEXT = """<ir_version: 10, opset_import: ["" : 21]> g (float[N,3] x) => (float[N,3] z) <float[3] w = {1, 2, 3}> {
  a = Identity(x)
  b = Mul(a, w)
  c = Relu(b)
  z = Sigmoid(c)
}"""


def model() -> onnx.ModelProto:
    return onnx.parser.parse_model(TEXT)


def planted(*_: object, **__: object) -> None:
    raise KeyError("a planted mistake")


def assert_right(bundle: Path) -> None:
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    with nndeploy.load_bundle(bundle) as program:
        got = program.run({"x": x})["z"]
    np.testing.assert_allclose(got, 1 / (1 + np.exp(-np.maximum(x * [1, 2, 3], 0))), rtol=1e-5)


STAGES = {
    "build": (
        "nndeploy.partition.placement._first_that_takes", "nndeploy.compiler.chains.chain_plan.merge_islands",
        "nndeploy.compiler.chains.chain_plan.estimate_costs", "nndeploy.compiler.chains.lower.pieces_of",
        "nndeploy.partition.placement._keep_groups_together", "nndeploy.partition.islands.regions_of",
    ),
    "fallback": ("nndeploy.compiler.flow.with_fallbacks",),
}  # fmt: skip
PLANTED = [(stage, place) for stage, places in STAGES.items() for place in places]


@pytest.mark.parametrize(("stage", "place"), PLANTED, ids=lambda text: text.rpartition(".")[2])
def test_the_whole_model_goes_on_as_it_is(stage, place, tmp_path, monkeypatch) -> None:
    original: Callable[..., object] = _named(place)
    calls = []

    def once(*arguments: object, **named: object) -> object:
        calls.append(1)
        if len(calls) == 1:
            raise KeyError("a planted mistake")
        return original(*arguments, **named)

    monkeypatch.setattr(place, once)
    report = compile_with(model(), tmp_path / "m.nnd", backends=("onnxruntime", "reference"))
    assert calls
    assert [submodel.backend for submodel in report.submodels] == ["onnxruntime"]
    warning = next(line for line in report.warnings if "unoptimised" in line)
    assert f"the stage {stage!r} failed" in warning
    assert "KeyError: 'a planted mistake' at test_compile_never_internal.py" in warning
    assert any(check.scope == "whole" and check.ok and not check.note for check in report.checks)
    assert_right(tmp_path / "m.nnd")


def _named(place: str) -> Callable[..., object]:
    import importlib

    module, _, name = place.rpartition(".")
    found: Callable[..., object] = getattr(importlib.import_module(module), name)
    return found


def test_a_pass_that_fails_is_left_out(tmp_path, monkeypatch) -> None:
    broken = next(each for each in OPTIMISATIONS if each.name == "eliminate-no-ops")
    monkeypatch.setattr(type(broken), "rewrite", planted)
    report = compile_with(model(), tmp_path / "m.nnd", backends=("onnxruntime",))
    assert any("eliminate-no-ops failed: KeyError: 'a planted mistake'" in line for line in report.warnings)
    assert "eliminate-no-ops" not in {each.name for each in report.passes}
    assert "eliminate-dead-code" in {each.name for each in report.passes}
    assert_right(tmp_path / "m.nnd")


def test_types_that_cannot_be_inferred_are_those_that_are_declared(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("nndeploy.frontend.internal_model.infer_types", planted)
    report = compile_with(model(), tmp_path / "m.nnd", backends=("onnxruntime", "reference"))
    assert any("the types of values are not known: KeyError" in line for line in report.warnings)
    assert_right(tmp_path / "m.nnd")


@pytest.mark.parametrize(
    "place", ["affordable_sizes", "original_outputs", "incomparable_values", "_election", "Election.verdict"]
)
def test_inputs_that_cannot_be_made_up_are_said_and_no_more(place, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(f"nndeploy.compiler.ground_truth.{place}", planted)
    report = compile_with(model(), tmp_path / "m.nnd", backends=("onnxruntime",), allow_uncompared=True)
    assert any("KeyError: 'a planted mistake'" in line for line in report.warnings)
    assert_right(tmp_path / "m.nnd")


@pytest.mark.parametrize("method", ["supports", "build", "open", "transforms"])
def test_a_plugin_that_fails_gives_its_nodes_to_the_next_tier(method, tmp_path, install) -> None:
    broken = type("Broken", (good_backend(),), {method: planted, "name": "broken", "tier": 1})
    install(broken)
    report = compile_with(model(), tmp_path / "m.nnd", backends=("broken", "onnxruntime"), objective="priority")
    assert {submodel.backend for submodel in report.submodels} == {
        "broken" if method == "transforms" else "onnxruntime"
    }
    said = (*report.dropped, *report.warnings, *(text for node in report.nodes for text in node.refusals.values()))
    assert any("a planted mistake" in line for line in said)
    assert_right(tmp_path / "m.nnd")


def test_where_nobody_takes_any_model_the_stage_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("nndeploy.compiler.chains.lower.pieces_of", planted)
    with pytest.raises(ModelError, match=r"the stage 'build' failed: KeyError.*; and without optimisation: KeyError"):
        compile_with(model(), tmp_path / "m.nnd", backends=("onnxruntime",))
    assert not (tmp_path / "m.nnd").exists()


def test_a_mistake_while_a_model_is_loaded_is_one_line(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("nndeploy.frontend.load.name_nodes", planted)
    with pytest.raises(ModelError, match=r"the stage 'load' failed: KeyError: 'a planted mistake' at .*please report"):
        compile_with(model(), tmp_path / "m.nnd", backends=("onnxruntime",))
