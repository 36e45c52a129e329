# SPDX-License-Identifier: Apache-2.0
"""A Sigmoid far from 0: engines that round it otherwise are right, and an error before it is found all the same."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from nndeploy_onnxruntime.evaluate import evaluate

from nndeploy.checking.saturation import model_before_saturation, saturated_outputs
from nndeploy.compiler import ground_truth
from nndeploy.compiler.flow import compile_model
from nndeploy.compiler.options import CompileOptions
from nndeploy.jobs import tasks
from nndeploy.jobs.workers import InProcessWorkers
from nndeploy.runtime.program import load_bundle

NATIVE, ORT = "native", "onnxruntime"
X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
FAR = -30.0


def model_with(shift: float) -> onnx.ModelProto:
    """Returns gates inside, then a product, and a Sigmoid of what is `shift` away from 0."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[4, 4] x) => (float[16] y, float[4, 4] gated)'
        f" <float b = {{{shift}}}, int64[1] flat = {{-1}}>"
        " { gate = Sigmoid(x) gated = Mul(gate, x) m = MatMul(gated, w) z = Add(m, b) s = Sigmoid(z)"
        " y = Reshape(s, flat) }"
    )
    weights = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return model


def by_definition(x: Any, shift: float) -> Any:
    wide = x.astype(np.float64)
    weights = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32).astype(np.float64)
    return (1 / (1 + np.exp(-(wide / (1 + np.exp(-wide)) @ weights + shift)))).ravel()


@pytest.mark.parametrize(("body", "header"), [
    ("{ y = Sigmoid(x) }", ""),
    (" <bool c = {1}> { y = If(c) <then_branch = a () => (float[n] p) { p = Sigmoid(x) },"
     " else_branch = b () => (float[n] q) { q = Neg(x) }> }", ""),
])  # fmt: skip
def test_the_reference_keeps_every_digit_of_a_sigmoid(body: str, header: str) -> None:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[n] x) => (float[n] y) {header}{body}'
    )
    x = np.append(np.linspace(-87, 20, 1000), [-np.inf, np.inf, np.nan]).astype(np.float32)
    (found,) = evaluate(model.SerializeToString(), [{"x": x}], ())
    np.testing.assert_allclose(found["y"], 1 / (1 + np.exp(-x.astype(np.float64))), rtol=1e-6)


@pytest.mark.parametrize(("value", "found"), [
    ([1e-13, 0, 1], (False, True)), ([1, 1 - 1e-7], (True, True)), ([1e-13, 1e-3], (False, False)),
    ([0.5], (False, False)), ([], (False, False)),
])  # fmt: skip
def test_an_output_of_which_rounding_is_left_is_saturated(value: list[float], found: tuple[bool, bool]) -> None:
    model, want = ir.from_proto(model_with(FAR)), {"y": np.float32(value), "gated": np.float32([1])}
    by_rules = tuple(saturated_outputs(model, [want], by_limits) == ["y"] for by_limits in ((), ("y", "gated")))
    assert by_rules == found
    assert saturated_outputs(model, [want, {**want, "y": np.float32([0.5])}], ("y",)) == []


def test_what_is_given_to_the_last_sigmoid_is_compared_and_no_gate_before_it() -> None:
    before = model_before_saturation(ir.from_proto(model_with(FAR)), ["y"])
    assert before is not None
    assert [value.name for value in before.graph.outputs] == ["z"]
    assert [node.op_type for node in before.graph] == ["Sigmoid", "Mul", "MatMul", "Add"]
    onnx.checker.check_model(ir.to_proto(before))
    assert model_before_saturation(ir.from_proto(model_with(FAR)), ["gated"]) is None


class PlantingWorkers(InProcessWorkers):
    """Workers under which one engine builds another model than it is given: with a product turned around."""

    def __init__(self, wrong: str) -> None:
        self.wrong = wrong

    def build(  # type: ignore[override]
        self, name: str, submodel: ir.Model, target: Any, options: Any, samples: Sequence[Any]
    ) -> tasks.Built:
        if name == self.wrong:
            submodel = submodel.clone()
            weights = submodel.graph.initializers["w"]
            assert weights.const_value is not None
            weights.const_value = ir.tensor(np.ascontiguousarray(weights.const_value.numpy().T), name="w")
        return tasks.build(name, submodel, target, options, samples)


@pytest.mark.parametrize("wrong", ["", NATIVE, ORT])
@pytest.mark.parametrize("shift", [FAR, -FAR, 0.0])
def test_engines_that_are_right_pass_and_an_error_before_the_sigmoid_is_found(
    shift: float, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ground_truth, "SMALL_NODES", 0)  # ONNX Runtime is the reference
    out, options = tmp_path / "m.nnd", CompileOptions(backends=(NATIVE, ORT), samples=[{"x": X}])
    report = compile_model(model_with(shift), out, options, workers=PlantingWorkers(wrong))
    assert not any("not a reference" in warning for warning in report.warnings)
    builders = {variant.backend for submodel in _manifest(out).submodels for variant in submodel.variants}
    assert wrong not in builders
    assert builders == {NATIVE, ORT} - {wrong}
    with load_bundle(out, trusted=True) as program:
        golden = program.manifest.goldens[0]
        np.testing.assert_allclose(program.bundle.values(golden.outputs)["y"], by_definition(X, shift), rtol=1e-4)
        np.testing.assert_allclose(program.run({"x": X})["y"], by_definition(X, shift), rtol=1e-4, atol=2e-7)


def _manifest(bundle: Path) -> Any:
    with load_bundle(bundle, trusted=True) as program:
        return program.manifest
