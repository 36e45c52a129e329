# SPDX-License-Identifier: Apache-2.0
"""What a rule does not take it refuses with a reason, which the log of a compile shows."""

import onnx_ir as ir
import pytest
from native_models import model_of, reals
from nndeploy_native.lowering.table import refusal_of
from tree_models import row_model

WEIGHTS = {"w": reals(1, 12, 5), "r": reals(1, 12, 3, seed=1), "b": reals(1, 24, seed=2), "s": reals(6)}
LSTM = (
    "(float[4,2,5] x{}) => (float[4,1,2,3] y) <int32[2] whole = {{4,4}}, int64[2] less = {{4,3}}> {{ y = {} }}"
)  # fmt: skip


def reason(model: ir.Model) -> str:
    return refusal_of(model.graph[-1], model, {})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(float[3,4] x) => (float[3] y) <int64 i = {4}> { y = Gather<axis=1>(x, i) }", "index that is no place"),
        ("(float[3,4] x, int64[2] a) => (float[2,2] y) <int64[2] o = {0, 0}> { y = Slice(x, o, a, a) }", "axes"),
        ('(bool[3] x, int64[3] i) => (bool[3] y) { y = ScatterElements<reduction="max">(x, i, x) }', "of bool"),
        ("(int64[3] x) => (int64[3] y) <float e = {1.5}> { y = Pow(x, e) }", "a Pow of whole numbers by a float"),
        ("(bfloat16[3] x) => (bfloat16[3] y) { y = Neg(x) }", "no kernel reads bfloat16"),
        ("(float[3] x) => (float[3] y) <bool t = {1}, float p = {0.5}> { y = Dropout(x, p, t) }", "in training"),
        ("(float[3,4] x, int64[1] k) => (float[3,2] y, int64[3,2] z) { y, z = TopK(x, k) }", "not constant"),
        ("(float[3,4] x, int64 a) => (float[3,4] y) { y = CumSum(x, a) }", "not constant"),
        ("(int64[3,4,5] x) => (int64[1,4,1] y) <int64[2] a = {0,2}> { y = ReduceMean(x, a) }", "whole numbers"),
        ("(int32[3,4] x) => (int32[3,1] y) <int64[1] a = {1}> { y = ReduceL2(x, a) }", "ReduceL2 of int32"),
        ("(float[1,4,2,2] x) => (float[1,4,2,2] y) { y = LRN<size=300>(x) }", "256 channels"),
        (
            "(float[1,1,1,9] x) => (float[1,1,1,4] y) "
            "{ y = MaxPool<kernel_shape=[1,4], strides=[1,3], pads=[0,0,0,3], ceil_mode=1>(x) }",
            "begins behind the input",
        ),
        ('(float[3,4] a) => (float[3] y) { y = Einsum<equation="ii->i">(a) }', "axes of different sizes: [3, 4]"),
        (
            "(float[2,6] x) => (float[2,6] y, float[2,1] m) { y, m = LayerNormalization(x, s) }",
            "mean and deviation",
        ),
        ("(float[2,6,5] x) => (float[2,6,5] y) { y = GroupNormalization<num_groups=4>(x, s, s) }", "4 groups"),
        *(
            (LSTM.format(inputs, node), why)
            for inputs, node, why in (
                ("", 'LSTM<hidden_size=3, activations=["Cos","Tanh","Tanh"]>(x, w, r)', "'cos', which ONNX does"),
                ("", 'LSTM<hidden_size=3, activations=["Tanh","Tanh"]>(x, w, r)', "2 activations instead of 3"),
                ("", 'LSTM<hidden_size=3, activations=["Affine","Tanh","Tanh"]>(x, w, r)', "'affine' without"),
                ("", 'LSTM<hidden_size=3, direction="up">(x, w, r)', "the direction 'up'"),
                ("", "LSTM<hidden_size=3>(x, w, r, b, less)", "lengths of sequences of int64"),
                ("", "LSTM<hidden_size=3>(x, w, r, r)", "a bias that does not fit"),
                ("", "LSTM<hidden_size=3>(x, w, r, b, , , , b)", "peepholes of shape"),
                (", float[1,12,3] v", "LSTM<hidden_size=3>(x, w, v)", "weights that is no float32 constant"),
                (", float[1,2,4] h", "LSTM<hidden_size=3>(x, w, r, b, , h)", "a first state of shape"),
                ("", "LSTM<hidden_size=3>(x, w, w)", "weights that do not fit together"),
                ("", "GRU<hidden_size=3>(x, w, r)", "weights that do not fit together"),
            )
        ),
    ],
)  # fmt: skip
def test_nodes(text: str, why: str) -> None:
    assert why in reason(model_of(f"g {text}", WEIGHTS))


@pytest.mark.parametrize(("operator", "outputs", "attributes", "why"), [
    ("LinearClassifier", {"l": None, "y": 2}, {"coefficients": [1.0, 2.0], "intercepts": [1.0]}, "strings"),
    ("LinearClassifier", {"l": None, "y": 2},
     {"coefficients": [1.0, 2.0], "intercepts": [1.0], "classlabels_ints": [0, 1]}, "1 intercepts for 2 labels"),
    ("LinearRegressor", {"y": 1}, {"coefficients": [1.0], "targets": 1}, "rows of 2 for 1 coefficients"),
    ("LinearRegressor", {"y": 1}, {"coefficients": [1.0, 1.0], "post_transform": "PROBIT"}, "'PROBIT'"),
    ("Scaler", {"y": 2}, {"offset": [1.0, 2.0, 3.0], "scale": [1.0]}, "3 offsets"),
    ("Normalizer", {"y": 2}, {"norm": "L3"}, "'L3'"), ("SVMRegressor", {"y": 1}, {}, "without support vectors"),
    ("SVMRegressor", {"y": 1},
     {
         "support_vectors": [0.0, 0.0, 1e3, 1e3], "coefficients": [1.0, 1.0], "n_supports": 2, "rho": [0.0],
         "kernel_type": "RBF", "kernel_params": [1.0, 0.0, 0.0],
     },
     "too far apart"),
])  # fmt: skip
def test_rows(operator: str, outputs: dict[str, int | None], attributes: dict[str, object], why: str) -> None:
    assert why in reason(row_model(operator, 2, outputs, attributes))


@pytest.mark.parametrize(("changed", "why"), [
    ({"nodes_truenodeids": [7, 0, 0]}, "a node that there is not"),
    ({"nodes_truenodeids": [0, 0, 0]}, "comes back to a node"), ({"nodes_truenodeids": [1, 0, 0]}, "two parents"),
    ({"nodes_nodeids": [0, 1, 1]}, "stands twice"), ({"nodes_modes": ["BRANCH_LEQ", "LEAF"]}, "several lengths"),
    ({"nodes_modes": ["BRANCH_MEMBER", "LEAF", "LEAF"]}, "mode 'BRANCH_MEMBER'"),
    ({"nodes_values": [float("nan"), 0.0, 0.0]}, "a threshold"),
    ({"nodes_featureids": [-1, 0, 0]}, "an element of a tree"), ({"nodes_treeids": [0, 1, 0]}, "among those of others"),
    ({"target_ids": [0, 1]}, "do not fit their columns"), ({"n_targets": 0}, "0 targets"),
    ({"aggregate_function": "MEDIAN"}, "'median'"), ({"post_transform": "SOFTMAX"}, "one score by 'SOFTMAX'"),
])  # fmt: skip
def test_trees(changed: dict[str, object], why: str) -> None:
    attributes: dict[str, object] = {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
        "nodes_values": [0.5, 0.0, 0.0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_falsenodeids": [1, 0, 0], "nodes_truenodeids": [2, 0, 0], "n_targets": 1,
        "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0],
    }  # fmt: skip
    assert why in reason(row_model("TreeEnsembleRegressor", 1, {"y": 1}, {**attributes, **changed}))
