# SPDX-License-Identifier: Apache-2.0
"""Shape arithmetic on known sizes becomes constants."""

import numpy as np
import onnx_ir as ir
from hypothesis import given
from hypothesis import strategies as st
from passes_harness import (
    GraphBuilder,
    assert_same_outputs,
    examples,
    graph,
    node_line,
    random_feeds,
    rewritten,
)

NAME = "fold-shapes"


def test_branch_of_if_is_entered_and_body_of_loop_is_not() -> None:
    model = graph(
        """(bool c, float[2,3] x) => (int64[2] y, int64[2] z) <int64 n = {3}, bool t = {1}> {
        y = If(c) < then_branch = t1 () => (int64[2] a) { s = Shape(x) a = Abs(s) },
                    else_branch = e1 () => (int64[2] b) { b = Shape(x) } >
        l, z = Loop(n, t, x) < body = b1 (int64 i, bool k, float[2,3] v) => (bool k2, float[2,3] v2, int64[2] w) {
            k2 = Identity(k) v2 = Identity(v) w = Shape(v) } > }""".replace("int64[2] z)", "int64[3,2] z)")
    )
    assert rewritten(NAME, model) == 2
    if_node, loop = model.graph
    assert list(if_node.attributes["then_branch"].as_graph().initializers) == ["s"]
    assert node_line(loop.attributes["body"].as_graph()[-1]) == "w = Shape(v)"


@examples()
@given(data=st.data(), opset=st.sampled_from([11, 13, 17, 21]))
def test_outputs_stay(data: st.DataObject, opset: int) -> None:
    """Random shape programs: parts of shapes of two inputs, put together again, as targets of Reshape."""
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    symbolic = data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
    build = GraphBuilder(opset, np.float32)
    x = build.input(
        [f"D{axis}" if flag else size for axis, (size, flag) in enumerate(zip(sizes, symbolic, strict=True))]
    )
    order = data.draw(st.permutations(range(len(sizes))))
    shape, parts = build.node("Shape", x), []
    for axis in order:
        kind = data.draw(st.sampled_from(["gather", "slice", "scalar", "cast"]))
        if kind == "slice":
            bounds = [build.constant([bound], np.int64) for bound in (axis, axis + 1, 0)]
            parts.append(build.node("Slice", shape, *bounds))
        elif kind == "scalar":
            scalar = build.node("Gather", shape, build.constant(axis, np.int64))
            parts.append(build.with_axes("Unsqueeze", scalar, [0]))
        elif kind == "cast":
            narrow = build.node("Cast", build.node("Gather", shape, build.constant([axis], np.int64)), to=6)
            parts.append(build.node("Cast", narrow, to=7))
        else:
            parts.append(build.node("Gather", shape, build.constant([axis], np.int64)))
    target = build.node("Concat", *parts, axis=0)
    y = build.node("Abs", build.node("Reshape", x, target))
    outputs = [y, target] if data.draw(st.booleans()) else [y]
    proto = build.model(*outputs, rank=len(sizes))
    feeds = random_feeds(proto, dims={f"D{axis}": size for axis, size in enumerate(sizes)})
    assert_same_outputs(NAME, proto, feeds, tolerance=0)


def test_types_of_folded_shapes_are_kept() -> None:
    model = graph("(float[2,3] x) => (int32[2] y) { s = Shape(x) t = Cast<to = 6>(s) y = Abs(t) }")
    assert rewritten(NAME, model) == 2
    assert model.graph.initializers["t"].dtype == ir.DataType.INT32
