# SPDX-License-Identifier: Apache-2.0
"""LSTM nodes: the cases of ONNX's own suite with constant weights, and what is refused."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from native_models import Array, built, each_float_level, model_of, reals, run
from nndeploy_native.lowering.table import refusal_of
from onnx.backend.test.case import node as node_cases
from onnx.backend.test.case.node import lstm as _lstm  # noqa: F401 - puts its cases on the list

CASES = {case.name: case for case in node_cases._NodeTestCases if case.name.startswith("test_lstm_")}


def case_of_suite(name: str) -> tuple[ir.Model, dict[str, Array], list[Array]]:
    """Returns a model of the suite whose inputs are constants but for x, with its inputs and outputs."""
    case = CASES[f"test_lstm_{name}"]
    proto, ((inputs, outputs),) = onnx.ModelProto.FromString(case.model.SerializeToString()), case.data_sets
    x, *others = proto.graph.input
    for value, array in zip(others, inputs[1:], strict=True):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
    del proto.graph.input[1:]
    return ir.from_proto(onnx.shape_inference.infer_shapes(proto)), {x.name: inputs[0]}, outputs


@each_float_level
@pytest.mark.parametrize("name", ["defaults", "with_initial_bias", "reverse", "bidirectional"])
def test_case_of_onnx_suite(name: str, level: str) -> None:
    model, inputs, outputs = case_of_suite(name)
    found = run(built(model), inputs, level)
    for value, wanted in zip(model.graph.outputs, outputs, strict=True):
        np.testing.assert_allclose(found[value.name or ""], wanted, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "why"), [("with_peepholes", "an LSTM with peepholes"), ("batchwise", "an LSTM with batch first")]
)
def test_other_case_of_onnx_suite_is_refused(name: str, why: str) -> None:
    model, _, _ = case_of_suite(name)
    (node,) = model.graph
    assert why in refusal_of(node, model, {})


WEIGHTS = {"w": reals(1, 12, 5), "r": reals(1, 12, 3, seed=1), "b": reals(1, 24, seed=2)}
NODE = (
    "g (float[4,2,5] x{inputs}) => (float[4,1,2,3] y) <int32[2] whole = {{4,4}}, int32[2] less = {{4,3}}> {{ {node} }}"
)


@pytest.mark.parametrize(
    ("inputs", "node", "why"),
    [
        ("", 'y = LSTM<hidden_size=3, activations=["Relu","Tanh","Tanh"]>(x, w, r)', "other activations"),
        ("", "y = LSTM<hidden_size=3, clip=2.0>(x, w, r)", "a clip"),
        ("", "y = LSTM<hidden_size=3, input_forget=1>(x, w, r)", "input and forget gates joined"),
        ("", 'y = LSTM<hidden_size=3, direction="up">(x, w, r)', "in the direction 'up'"),
        ("", "y = LSTM<hidden_size=3>(x, w, r, b, less)", "over parts of its sequences"),
        (", float[1,12,3] v", "y = LSTM<hidden_size=3>(x, w, v)", "weights that is no float32 constant"),
        (", float[1,2,4] h", "y = LSTM<hidden_size=3>(x, w, r, b, , h)", "a first state of an LSTM of shape"),
        ("", "y = LSTM<hidden_size=3>(x, w, w)", "weights of an LSTM that do not fit together"),
    ],
)
def test_what_is_refused_and_why(inputs: str, node: str, why: str) -> None:
    model = model_of(NODE.format(inputs=inputs, node=node), WEIGHTS)
    assert why in refusal_of(model.graph[-1], model, {})


def test_lengths_of_whole_sequences_change_nothing() -> None:
    x, results = reals(4, 2, 5), []
    for lengths in ("", "whole"):
        text = NODE.format(inputs="", node=f"y = LSTM<hidden_size=3>(x, w, r, b, {lengths})")
        results.append(run(built(model_of(text, WEIGHTS)), {"x": x})["y"])
    np.testing.assert_array_equal(*results)
