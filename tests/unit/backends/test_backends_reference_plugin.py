# SPDX-License-Identifier: Apache-2.0
"""The backend reference: ONNX's evaluator, with what it gets wrong put right and its values made to keep the rules."""

from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest
from nndeploy_reference.plugin import Plugin
from nndeploy_reference.session import EvaluatorSession

from nndeploy.errors import BuildRefusedError, BundleError, UsageError
from nndeploy.plugin.interface import BuildOptions, OpenOptions
from nndeploy.target.target import host_target

PLUGIN = Plugin()
HEADER = '<ir_version: 10, opset_import: ["" : 21]>'


def proto_of(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEADER + text)


def run(text: str, **inputs: Any) -> dict[str, Any]:
    return EvaluatorSession(proto_of(text)).run(inputs)


def test_constant_output_belongs_to_the_caller() -> None:
    session = EvaluatorSession(proto_of("g () => (float[2] y) <float[2] c = {1.0, 2.0}> { y = Identity(c) }"))
    session.run({})["y"][...] = 9
    assert session.run({})["y"].tolist() == [1, 2]


def test_both_names_of_the_standard_domain_work() -> None:
    text = '<ir_version: 10, opset_import: ["ai.onnx" : 21]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
    session = EvaluatorSession(onnx.parser.parse_model(text))
    assert session.run({"x": np.ones(2, np.float32)})["y"].tolist() == [-1, -1]


def test_overflow_does_not_warn() -> None:
    assert run("g (float[1] x) => (float[1] y) { y = Exp(x) }", x=np.array([1e4], np.float32))["y"] == np.inf


def test_session_that_is_closed_says_so() -> None:
    session = EvaluatorSession(proto_of("g (float[2] x) => (float[2] y) { y = Neg(x) }"))
    session.close()
    session.close()
    with pytest.raises(UsageError, match="closed"):
        session.run({"x": np.ones(2, np.float32)})


@pytest.mark.parametrize("files", [{}, {"model.onnx": b"no model"}])
def test_artifact_without_a_model_is_a_damaged_bundle(files: dict[str, bytes]) -> None:
    views = {name: memoryview(data) for name, data in files.items()}
    with pytest.raises(BundleError, match=r"model\.onnx"):
        PLUGIN.open(views, {}, OpenOptions())


def test_operator_of_nobody_is_refused_and_its_neighbours_are_taken() -> None:
    text = '<ir_version: 10, opset_import: ["" : 21, "nobody" : 1]> g (float[2] x) => (float[2] z) '
    model = ir.from_proto(onnx.parser.parse_model(text + "{ y = nobody.Thing(x) z = Neg(y) }"))
    first, second = PLUGIN.supports(model, host_target(), BuildOptions())
    assert (first.ok, second.ok) == (False, True)
    assert "Thing" in first.reason


def test_evaluation_that_fails_is_refused_with_a_reason() -> None:
    model = proto_of("g (float[2] x) => (float[2] y) { y = Neg(x) }").SerializeToString()
    with pytest.raises(BuildRefusedError):
        PLUGIN.evaluate(model, [{}], BuildOptions())
