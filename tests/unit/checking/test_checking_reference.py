# SPDX-License-Identifier: Apache-2.0
"""The reference: the first engine that can, along the chain with its own values; and comparisons in words."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from nndeploy.bundle.manifest import Tolerance
from nndeploy.bundle.report import CheckReport
from nndeploy.checking.check import (
    compare_outputs,
    describe_failure,
    in_precision,
    is_quantised,
    not_compared,
    tolerances,
)
from nndeploy.checking.engines import Engines
from nndeploy.checking.incomparable import incomparable_values
from nndeploy.checking.reference import Reference
from nndeploy.errors import BuildRefusedError
from nndeploy.jobs.workers import InProcessWorkers
from nndeploy.plugin.interface import BuildOptions
from nndeploy.target.target import host_target
from nndeploy.values.types import TensorType

RELU = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[3] y) { y = Relu(x) }'
NEG = '<ir_version: 8, opset_import: ["": 18]> g (float[3] y) => (float[3] z) { z = Neg(y) }'
X = {"x": np.array([-1, 0, 2], np.float32)}


class CountingWorkers(InProcessWorkers):
    """Engines named here refuse; every call is noted."""

    def __init__(self, *refusing: str) -> None:
        self.refusing, self.asked = refusing, list[str]()

    def evaluate(  # type: ignore[override]
        self, name: str, model: bytes, samples: Sequence[Mapping[str, Any]], options: BuildOptions, *_late: float
    ) -> list[dict[str, Any]]:
        self.asked.append(name)
        if name in self.refusing:
            raise BuildRefusedError("will not")
        return InProcessWorkers.evaluate(name, model, samples, options)


def reference(*refusing: str) -> tuple[Reference, CountingWorkers]:
    workers = CountingWorkers(*refusing)
    return Reference(Engines(workers, host_target(), BuildOptions()), ("onnxruntime", "reference")), workers


def test_an_engine_that_refuses_hands_on_to_the_next() -> None:
    found, workers = reference("onnxruntime")
    (outputs,) = found.evaluate(onnx.parser.parse_model(RELU).SerializeToString(), [X])
    assert outputs["y"].tolist() == [0, 0, 2]
    assert workers.asked == ["onnxruntime", "reference"]


def test_where_no_engine_can_every_reason_is_given() -> None:
    found, _ = reference("reference", "onnxruntime")
    with pytest.raises(BuildRefusedError, match=r"onnxruntime: .*; reference: "):
        found.evaluate(onnx.parser.parse_model(RELU).SerializeToString(), [X])


def test_the_chain_is_fed_with_the_reference_s_own_values() -> None:
    found, _ = reference()
    submodels = [ir.from_proto(onnx.parser.parse_model(text)) for text in (RELU, NEG)]
    (values,) = found.along_chain(submodels, [X])
    assert {name: value.tolist() for name, value in values.items()} == {
        "x": [-1, 0, 2], "y": [0, 0, 2], "z": [0, 0, -2],
    }  # fmt: skip


@pytest.mark.parametrize(("node", "reasons"), [
    ("y = Relu(x)", {}), ("y = RandomNormalLike(x)", {"y": "random by definition"}),
    ("d = Bernoulli(x) y = Relu(d)", {"d": "random by definition", "y": "random by definition"}),
    ("d = Bernoulli(x) y = Relu(x)", {"d": "random by definition"}), ("y = Dropout(x)", {}),
    ("y = Dropout(x, r, t)", {"y": "random by definition"}),
    ("e = other.Encode(x) y = Relu(e)", {"e": "made by other::Encode"}),
    ("e = other.Encode(x) y = Identity(e)", {"e": "made by other::Encode", "y": "made by other::Encode"}),
])  # fmt: skip
def test_values_that_right_runs_differ_on_are_known(node: str, reasons: dict[str, str]) -> None:
    imports = '"": 18, "other": 1'
    text = f"<ir_version: 8, opset_import: [{imports}]> g (float[3] x, float r, bool t) => (float[3] y) {{ {node} }}"
    assert incomparable_values(ir.from_proto(onnx.parser.parse_model(text)).graph) == reasons


TYPES = {"y": TensorType("float32", (3,))}
LIMITS = {"float32": Tolerance(rtol=1e-3, atol=1e-3)}


def test_a_difference_is_reported_with_its_figures() -> None:
    got, want = {"y": np.array([1, 2, 3.5], np.float32)}, {"y": np.array([1, 2, 3], np.float32)}
    (check,) = compare_outputs("s0", "b", [got], [want], TYPES, LIMITS, incomparable={})
    assert (check.ok, check.scope, check.backend, check.sample, check.output) == (False, "s0", "b", 0, "y")
    assert (check.max_abs, check.max_rel) == (0.5, 0.167)
    assert describe_failure(check) == "output 'y' of sample 0 differs from the original: max abs 0.5, max rel 0.167"


def test_a_missing_output_is_a_difference() -> None:
    (check,) = compare_outputs("s0", "b", [{}], [{"y": np.ones(3, np.float32)}], TYPES, LIMITS, incomparable={})
    assert not check.ok


def test_incomparable_outputs_must_still_have_the_right_rank() -> None:
    one, other = {"y": np.ones(3, np.float32)}, {"y": np.zeros(3, np.float32)}
    (check,) = compare_outputs("s0", "b", [one], [other], TYPES, LIMITS, incomparable={"y": "random by definition"})
    assert check.ok
    (check,) = compare_outputs(
        "s0", "b", [{"y": np.ones((3, 1), np.float32)}], [other], TYPES, LIMITS,
        incomparable={"y": "random by definition"},
    )  # fmt: skip
    assert not check.ok


def test_what_could_not_be_compared_says_why() -> None:
    assert not_compared("s0", "b", "no input").note == "not compared: no input"


def test_asked_tolerances_replace_those_of_floating_types_only() -> None:
    asked, default = tolerances(0.5, 0.25, False), tolerances(None, None, False)
    assert asked["float32"] == asked["bfloat16"] == Tolerance(0.5, 0.25)
    assert asked["int64"] == default["int64"] == Tolerance(0.0, 0.0)
    assert 0 < default["float32"].rtol < default["float16"].rtol
    assert (asked["uint8"].atol, tolerances(None, 1.0, False)["uint8"].atol, default["uint8"].atol) == (0, 1, 1)
    assert asked["float32"].span == 0 < default["float32"].span


def test_bfloat16_may_be_as_far_off_as_its_steps_and_float32_may_not() -> None:
    want, got = {"y": np.array([1, 0.1, 0], np.float32)}, {"y": np.array([1.05, 0.1, 0.02], np.float32)}
    exact, loose = (tolerances(None, None, False, precision) for precision in ("fp32", "bf16"))
    for limits, ok in ((exact, False), (loose, True)):
        (check,) = compare_outputs("s0", "b", [got], [want], TYPES, limits, incomparable={})
        assert check.ok is ok
    assert loose["int64"] == exact["int64"] == Tolerance(0.0, 0.0)
    assert tolerances(0.5, 0.25, False, "bf16") == tolerances(0.5, 0.25, False)


def test_what_is_computed_in_bfloat16_says_so() -> None:
    check = CheckReport("s0", "b", 0, "y", True, 0.3, 0.1, 0.999)
    assert in_precision([check], "fp32") == [check]
    assert in_precision([check], "bf16")[0].note == "computed in bf16"


def test_a_quantised_model_may_be_a_step_off() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]>
    g (float[3] x, float s, uint8 z) => (float[3] y) { q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z) }"""
    assert is_quantised(ir.from_proto(onnx.parser.parse_model(text)).graph)
    assert not is_quantised(ir.from_proto(onnx.parser.parse_model(RELU)).graph)
    contrib = """<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1]>
    g (float[3,4] x, int8[4,5] w, float s) => (float[3,5] y) { y = com.microsoft.DynamicQuantizeMatMul(x, w, s) }"""
    assert is_quantised(ir.from_proto(onnx.parser.parse_model(contrib)).graph)
    step = {"y": np.array([0, 1, 254 / 255], np.float32)}
    want = {"y": np.array([0, 1, 1], np.float32)}
    for quantised in (True, False):
        limits = tolerances(None, None, quantised)
        (check,) = compare_outputs("s0", "b", [step], [want], TYPES, limits, incomparable={})
        assert check.ok is quantised
