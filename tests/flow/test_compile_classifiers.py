# SPDX-License-Identifier: Apache-2.0
"""Classifiers as skl2onnx writes them: operator sets imported again, a ZipMap at the end, wrong tools avoided."""

import numpy as np
import onnx
import pytest
from compile_with import compile_with
from onnx import TensorProto, helper

import nndeploy

COEFFICIENTS = [0.5, -1.0, 0.25, 1.0, 0.5, -0.75]
INTERCEPTS = [0.1, 0.2, -0.3]


def classifier(*, maps: bool, labels: list[int] | list[bytes]) -> onnx.ModelProto:
    """Returns a logistic regression of two features and three classes, with the imports that skl2onnx writes."""
    of_text = isinstance(labels[0], bytes)
    classes = {"classlabels_strings" if of_text else "classlabels_int64s" if maps else "classlabels_ints": labels}
    nodes = [
        helper.make_node(
            "LinearClassifier", ["X"], ["label", "scores"], domain="ai.onnx.ml", coefficients=COEFFICIENTS,
            intercepts=INTERCEPTS, multi_class=1, post_transform="SOFTMAX",
            **{"classlabels_strings" if of_text else "classlabels_ints": labels},
        ),
        helper.make_node("Normalizer", ["scores"], ["probabilities"], domain="ai.onnx.ml", norm="L1"),
    ]  # fmt: skip
    label = helper.make_tensor_value_info("label", TensorProto.STRING if of_text else TensorProto.INT64, ["N"])
    output = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 3])
    if maps:
        nodes.append(helper.make_node("ZipMap", ["probabilities"], ["zipped"], domain="ai.onnx.ml", **classes))
        key = TensorProto.STRING if of_text else TensorProto.INT64
        score = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
        kind = helper.make_sequence_type_proto(helper.make_map_type_proto(key, score))
        output = helper.make_value_info("zipped", kind)
    x = helper.make_tensor_value_info("X", TensorProto.FLOAT, ["N", 2])
    graph = helper.make_graph(nodes, "classifier", [x], [label, output])
    imports = [helper.make_opsetid(*each) for each in (("ai.onnx.ml", 1), ("", 17), ("ai.onnx", 17), ("ai.onnx.ml", 1))]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def expected(x: "np.ndarray") -> "np.ndarray":
    scores = x @ np.array(COEFFICIENTS).reshape(3, 2).T + INTERCEPTS
    exp = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exp / exp.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("labels", [[0, 1, 2], [b"a", b"b", b"c"]], ids=["numbers", "texts"])
@pytest.mark.parametrize("maps", [True, False], ids=["zipmap", "plain"])
def test_a_classifier_of_skl2onnx_compiles_and_is_right(tmp_path, maps, labels) -> None:
    report = compile_with(classifier(maps=maps, labels=labels), tmp_path / "m.nnd", keep_fallback=False)
    assert not report.warnings
    assert any(check.scope == "whole" for check in report.checks)
    x = np.array([[1, 2], [-0.5, 3], [4, -1]], np.float32)
    with nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        got = program.run({"X": x})
    want = expected(x)
    names = [name.decode() if isinstance(name, bytes) else name for name in labels]
    assert got["label"].tolist() == [names[i] for i in want.argmax(axis=1)]
    rows = [[row[name] for name in names] for row in got["zipped"]] if maps else got["probabilities"]
    np.testing.assert_allclose(np.array(rows, np.float64), want, rtol=1e-5)
