# SPDX-License-Identifier: Apache-2.0
"""Views of views become one Reshape, or nothing."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_harness import (
    GraphBuilder,
    assert_same_outputs,
    constants,
    examples,
    graph,
    nodes,
    random_feeds,
    rewritten,
    run_onnxruntime,
)

NAME = "merge-reshapes"


def test_target_that_copies_a_size_of_the_view_is_written_out() -> None:
    model = graph("""(float[4,6] x) => (float[A,B] y) <int64[2] s = {2, 12}, int64[3] t = {0, 3, -1}>
        { a = Reshape(x, s) b = Reshape(a, t) y = Flatten(b) }""")  # fmt: skip
    model.graph.outputs[0].shape = None
    assert rewritten(NAME, model) == 1
    assert nodes(model)[0] == "b = Reshape(x, b.shape)"
    assert constants(model)["b.shape"] == [2, 3, 4]


@pytest.mark.parametrize("opset", [1, 9, 11, 12])
def test_axes_were_attributes_up_to_opset_12(opset: int) -> None:
    body = "{ a = Unsqueeze<axes = [1]>(x) b = Squeeze<axes = [1]>(a) y = Neg(b) }"
    text = f'<ir_version: 8, opset_import: ["": {opset}]> g (float[N,M] x) => (float[N,M] y) {body}'
    model = ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text)))
    assert rewritten(NAME, model) == 1
    assert nodes(model)[-1] == "y = Neg(x)"


@examples()
@given(data=st.data(), opset=st.sampled_from([9, 12, 13, 17, 21]))
def test_outputs_stay(data: st.DataObject, opset: int) -> None:
    """Random chains of views of a random input; about a third of all sizes is symbolic."""
    shape = data.draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=2, max_size=4))
    build = GraphBuilder(opset, np.float32)
    value = build.input([f"D{axis}" if not data.draw(st.integers(0, 2)) else size for axis, size in enumerate(shape)])
    array, outputs = np.zeros(shape), []
    for _ in range(data.draw(st.integers(2, 5))):
        match data.draw(st.sampled_from(["reshape", "flatten", "squeeze", "unsqueeze", "copy", "relu"])):
            case "reshape":
                target = data.draw(
                    st.sampled_from([[-1], [1, -1], [*array.shape], [-1, *array.shape[1:]], [array.size, 1]])
                )
                value, array = build.node("Reshape", value, build.constant(target, np.int64)), array.reshape(target)
            case "copy":
                value = build.node("Reshape", value, build.constant([0] * (array.ndim - 1) + [-1], np.int64))
            case "flatten":
                axis = data.draw(st.integers(0, array.ndim))
                value, array = (
                    build.node("Flatten", value, axis=axis),
                    array.reshape(int(np.prod(array.shape[:axis])), -1),
                )
            case "squeeze" if array.ndim > 1 and 1 in array.shape:
                axis = array.shape.index(1) - data.draw(st.sampled_from([0, array.ndim if opset >= 11 else 0]))
                value, array = build.with_axes("Squeeze", value, [axis]), array.squeeze(axis)
            case "unsqueeze" if array.ndim < 5:
                axis = data.draw(st.integers(-array.ndim - 1 if opset >= 11 else 0, array.ndim))
                value, array = build.with_axes("Unsqueeze", value, [axis]), np.expand_dims(array, axis)
            case _:
                value = build.node("Relu", value)
        if not data.draw(st.integers(0, 3)):
            outputs.append(value)
    proto = build.model(*dict.fromkeys([*outputs, value]))
    feeds = random_feeds(proto, dims={f"D{axis}": size for axis, size in enumerate(shape)})
    assert_same_outputs(NAME, proto, feeds, tolerance=0, run=run_onnxruntime)
