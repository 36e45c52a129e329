# SPDX-License-Identifier: Apache-2.0
"""A sum of convolutions of one value becomes one convolution."""

import numpy as np
import onnx_ir as ir
from hypothesis import given, reject
from hypothesis import strategies as st
from passes_harness import GraphBuilder, assert_same_outputs, examples, nodes, random_feeds, rewritten

NAME = "merge-conv-sums"


def test_trained_branches_become_one_layer() -> None:
    """As RepVGG and MobileOne are trained: 3x3, 1x1 and the value itself, each normalised."""
    build = GraphBuilder(17)
    random = np.random.default_rng(0)
    x, each = build.input([1, 4, 5, 5]), [build.constant(random.standard_normal((4, 1, 1))) for _ in range(2)]
    wide, narrow = (build.constant(random.standard_normal((4, 4, size, size))) for size in (3, 1))
    same = build.node("Add", build.node("Mul", x, each[0]), each[1])
    value = build.node("Add", build.node("Conv", x, narrow), build.node("Conv", x, wide, pads=[1, 1, 1, 1]))
    model = ir.from_proto(build.model(build.node("Relu", build.node("Add", value, same))))
    assert rewritten(NAME, model) == 2
    assert [node.split(" = ")[1].split("(")[0].split("<")[0] for node in nodes(model)] == ["Conv", "Relu"]


@examples(60)
@given(data=st.data())
def test_outputs_stay(data: st.DataObject) -> None:
    """In float64: the sum is exact but for the last digits, whatever windows meet."""
    build = GraphBuilder(17)
    random = np.random.default_rng(data.draw(st.integers(0, 999)))
    groups, axes = data.draw(st.sampled_from([1, 2, 4])), data.draw(st.integers(1, 2))
    stride, x = data.draw(st.integers(1, 2)), build.input([1, 4, *[7] * axes])

    def conv(value: str) -> str:
        size, dilation = data.draw(st.sampled_from([1, 2, 3])), data.draw(st.sampled_from([1, 1, 2]))
        first = data.draw(st.integers(0, 2))
        pads = [first] * axes + [max(0, dilation * (size - 1) - first)] * axes
        weights = build.constant(random.standard_normal((4, 4 // groups, *[size] * axes)))
        bias = [build.constant(random.standard_normal(4))] if data.draw(st.booleans()) else []
        return build.node(
            "Conv", value, weights, *bias, pads=pads, group=groups, strides=[stride] * axes, dilations=[dilation] * axes
        )

    def same(value: str) -> str:
        scale, shift = (build.constant(random.standard_normal((4, *[1] * axes))) for _ in range(2))
        scaled = build.node("Mul", *data.draw(st.permutations([value, scale])))
        return build.node("Add", scaled, shift) if data.draw(st.booleans()) else scaled

    value = conv(x)
    for _ in range(data.draw(st.integers(1, 3))):
        other = data.draw(st.sampled_from([conv, same]))(data.draw(st.sampled_from([x, x, x, value])))
        value = build.node("Add", *data.draw(st.permutations([value, other])))
    try:
        proto = build.model(value)
    except AssertionError:  # the summands cannot be broadcast
        reject()
    assert_same_outputs(NAME, proto, random_feeds(proto), tolerance=1e-9)
