# SPDX-License-Identifier: Apache-2.0
"""Zeros that a Pad adds move into the padding of the AveragePool after it, where it counts them."""

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_harness import GraphBuilder, assert_same_outputs, examples, graph, random_feeds, rewritten, run_onnxruntime

NAME = "fuse-pad-pool"
CONSTANTS = "<int64[8] p = {0, 0, 1, 1, 0, 0, 1, 0}, int64[8] far = {0, 0, 3, 0, 0, 0, 0, 0}, float one = {1}>"
IN, OUT = "float[1,1,6,6] x", "float[A,B,C,D] y"


def _pool(attributes: str, pad: str = "Pad(x, p)", opset: int = 17) -> ir.Model:
    body = f"{{ a = {pad} y = AveragePool<kernel_shape = [3, 3]{attributes}>(a) }}"
    return graph(f"({IN}) => ({OUT}) {CONSTANTS} {body}", opset=opset)


@pytest.mark.parametrize(("attributes", "pad"), [
    (", pads = [1, 0, 0, 1]", "Pad(x, p)"), (", ceil_mode = 1", "Pad(x, p)"),
    (', auto_pad = "SAME_UPPER"', "Pad(x, p)"), (", dilations = [2, 2]", "Pad(x, p)"), ("", "Pad(x, far)"),
    ("", "Pad(x, p, one)"), ("", 'Pad<mode = "edge">(x, p)'),
])  # fmt: skip
def test_stays(attributes: str, pad: str) -> None:
    assert rewritten(NAME, _pool(attributes, pad, opset=19)) == 0


@examples(30)
@given(data=st.data(), opset=st.sampled_from([7, 10, 11, 18, 19, 21]))
def test_outputs_stay(data: st.DataObject, opset: int) -> None:
    build, spatial = GraphBuilder(opset, np.float32), data.draw(st.integers(1, 2))
    rank, value = spatial + 2, build.input([1, 2, *[5] * spatial])
    pads = [data.draw(st.integers(0, 2)) if axis % rank >= 2 else 0 for axis in range(2 * rank)]
    if opset < 11:
        value = build.node("Pad", value, pads=pads)
    else:
        value = build.node("Pad", value, build.constant(pads, np.int64))
    kernel = [data.draw(st.integers(2, 3)) for _ in range(spatial)]
    attributes = data.draw(st.sampled_from([{}, {"pads": [1, 0] * spatial}, {"auto_pad": "SAME_LOWER"}]))
    if opset >= 10 and data.draw(st.booleans()):
        attributes = attributes | {"ceil_mode": 1}
    count = data.draw(st.integers(0, 1))
    strides = [data.draw(st.integers(1, 2)) for _ in range(spatial)]
    y = build.node("AveragePool", value, kernel_shape=kernel, strides=strides, count_include_pad=count, **attributes)
    outputs = [y, build.node("Relu", value)] if data.draw(st.booleans()) else [y]
    proto = build.model(*outputs)
    assert_same_outputs(NAME, proto, random_feeds(proto), tolerance=1e-5, run=run_onnxruntime)
