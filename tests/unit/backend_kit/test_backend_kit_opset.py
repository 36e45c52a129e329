# SPDX-License-Identifier: Apache-2.0
"""Conversion between versions of the operator set: a model, or a reason."""

import onnx.checker
from frontend_builders import model

from nndeploy.backend_kit.opset import converted

OLD = '<ir_version: 8, opset_import: ["ai.onnx" : 11]>\n'


def test_a_model_gets_the_version_and_stays_sound() -> None:
    proto = model("g (float[2,3] x) => (float[3] y) { y = ReduceSum <axes = [0], keepdims = 0> (x) }", OLD)
    result = converted(proto, 13)
    assert result.model is not None
    assert result.reason == ""
    assert [(o.domain, o.version) for o in result.model.opset_import] == [("", 13)]
    onnx.checker.check_model(result.model)


def test_a_model_that_has_the_version_already_is_returned_as_it_is() -> None:
    proto = model("g (float[1] x) => (float[1] y) { y = Relu(x) }")
    assert converted(proto, 17).model is proto


def test_a_conversion_that_is_not_possible_is_a_reason() -> None:
    proto = model("g (float[1] x) => (float[1] y) { y = Gelu(x) }", '<ir_version: 9, opset_import: ["" : 20]>\n')
    result = converted(proto, 9)
    assert result.model is None
    assert result.reason.startswith("from version 20 to 9: ")
    assert "\n" not in result.reason


def test_a_version_that_does_not_exist_is_a_reason() -> None:
    result = converted(model("g (float[1] x) => (float[1] y) { y = Relu(x) }"), 9999)
    assert (result.model, result.reason) == (None, "there is no version 9999 of ai.onnx")


def test_a_model_without_the_operator_set_is_a_reason() -> None:
    proto = model("g (float[1] x) => (float[1] y) { y = mine.Op(x) }", '<ir_version: 8, opset_import: ["mine" : 1]>\n')
    assert converted(proto, 17).reason == "the model imports no operator set ai.onnx"
