# SPDX-License-Identifier: Apache-2.0
"""Zeros that a Pad adds move into the padding of the Conv after it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_harness import GraphBuilder, assert_same_outputs, examples, graph, random_feeds, rewritten, run_onnxruntime

NAME = "fuse-pad-conv"
CONSTANTS = """<float[1,1,1,1] w = {1}, int64[8] p = {0, 0, 1, 2, 0, 0, 3, 4},
    int64[8] batch = {1, 0, 0, 0, 0, 0, 0, 0}, int64[8] cut = {0, 0, -1, 0, 0, 0, 1, 0},
    int64[4] q = {1, 2, 3, 4}, int64[2] axes = {-2, 3}, float nil = {0}, float one = {1}>"""
IN, OUT = "float[1,1,4,4] x", "float[A,B,C,D] y"


@pytest.mark.parametrize("body", [
    f"({IN}) => ({OUT}) {CONSTANTS} {{ a = Pad(x, p, one) y = Conv(a, w) }}",
    f'({IN}) => ({OUT}) {CONSTANTS} {{ a = Pad<mode = "edge">(x, p) y = Conv(a, w) }}',
    f'({IN}) => ({OUT}) {CONSTANTS} {{ a = Pad<mode = "reflect">(x, p) y = Conv(a, w) }}',
    f"({IN}) => ({OUT}) {CONSTANTS} {{ a = Pad(x, batch) y = Conv(a, w) }}",
    f"({IN}) => ({OUT}) {CONSTANTS} {{ a = Pad(x, cut) y = Conv(a, w) }}",
    f'({IN}) => ({OUT}) {CONSTANTS} {{ a = Pad(x, p) y = Conv<auto_pad = "SAME_UPPER">(a, w) }}',
    f"({IN}, int64[8] r) => ({OUT}) {CONSTANTS} {{ a = Pad(x, r) y = Conv(a, w) }}",
    f"({IN}, float v) => ({OUT}) {CONSTANTS} {{ a = Pad(x, p, v) y = Conv(a, w) }}",
    f"({IN}) => ({OUT}) {CONSTANTS} {{ a = Pad(x, p) y = MaxPool<kernel_shape = [1, 1]>(a) }}",
])  # fmt: skip
def test_stays(body: str) -> None:
    assert rewritten(NAME, graph(body)) == 0


@examples(30)
@given(data=st.data(), opset=st.sampled_from([9, 11, 13, 18, 21]))
def test_outputs_stay(data: st.DataObject, opset: int) -> None:
    build, spatial = GraphBuilder(opset, np.float32), data.draw(st.integers(1, 2))
    rank, generator = spatial + 2, np.random.default_rng(data.draw(st.integers(0, 99)))
    value = build.input([1, 2, *[4] * spatial])
    mode = data.draw(st.sampled_from(["constant", "constant", "constant", "edge"]))
    pads = [data.draw(st.integers(0, 2)) if axis % rank >= 2 else 0 for axis in range(2 * rank)]
    if not data.draw(st.integers(0, 5)):
        pads[data.draw(st.sampled_from([0, 1]))] = 1
    if opset < 11:
        value = build.node("Pad", value, pads=pads, mode=mode, value=data.draw(st.sampled_from([0.0, 0.0, 1.5])))
    else:
        more = data.draw(st.sampled_from([[], [build.constant(0.0)], [build.constant(1.5)]]))
        value = build.node("Pad", value, build.constant(pads, np.int64), *more, mode=mode)
    channels = 2 + pads[1]
    weights = build.constant(generator.standard_normal((3, channels, *[2] * spatial)))
    attributes = data.draw(
        st.sampled_from([{}, {"pads": [1, 0] * spatial}, {"auto_pad": "SAME_UPPER"}, {"auto_pad": "VALID"}])
    )
    strides = [data.draw(st.integers(1, 2)) for _ in range(spatial)]
    outputs = [build.node("Conv", value, weights, strides=strides, **attributes)]
    if data.draw(st.booleans()):
        outputs.append(build.node("Relu", value))
    proto = build.model(*outputs)
    assert_same_outputs(NAME, proto, random_feeds(proto), tolerance=1e-5, run=run_onnxruntime)
