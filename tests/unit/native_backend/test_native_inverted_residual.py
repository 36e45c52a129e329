# SPDX-License-Identifier: Apache-2.0
"""pointwise -> depthwise -> pointwise: found, and right whatever the window."""

import numpy as np
import pytest
from native_models import built, convolved, each_float_level, model_of, reals, run


@each_float_level
@pytest.mark.parametrize("capacity", [1, 9000, 30_000, 2**20])
@pytest.mark.parametrize(("stride", "kernel", "dilation"), [(1, 3, 1), (2, 5, 1), (1, 3, 3)])
def test_triple_is_one_step_for_any_capacity(
    level: str, capacity: int, stride: int, kernel: int, dilation: int
) -> None:
    pad = dilation * (kernel // 2)
    size = (11 + 2 * pad - (kernel - 1) * dilation - 1) // stride + 1
    text = f"""g (float[2,10,11,11] x) => (float[2,12,{size},{size}] y) {{ e = Conv(x, a, ab)
        s = Sigmoid(e) d = Conv<group=70, strides=[{stride},{stride}], dilations=[{dilation},{dilation}],
        pads=[{pad},{pad},{pad},{pad}]>(s, w, wb) r = Relu(d) y = Conv(r, v) }}"""
    ab, wb = reals(70, seed=4), reals(70, seed=5)
    a, w, v = reals(70, 10, 1, 1, seed=1), reals(70, 1, kernel, kernel, seed=2), reals(12, 70, 1, 1, seed=3)
    model = model_of(text, {"a": a, "ab": ab, "w": w, "wb": wb, "v": v})
    artifact = built(model)
    assert "inverted_residual:" in artifact.log
    x = reals(2, 10, 11, 11)
    e = 1 / (1 + np.exp(-convolved(x, a, ab)))
    d = np.maximum(convolved(e, w, wb, stride, (pad, pad, pad, pad), dilation, 70), 0)
    np.testing.assert_allclose(
        run(artifact, {"x": x}, level, buffer_bytes=capacity)["y"], convolved(d, v), rtol=1e-5, atol=2e-5
    )


def test_residual_is_added_by_the_triple() -> None:
    text = """g (float[1,10,6,6] x) => (float[1,10,6,6] y) { e = Conv(x, a) s = Relu(e)
        d = Conv<group=40, pads=[1,1,1,1]>(s, w) r = Relu(d) p = Conv(r, v) y = Add(p, x) }"""
    a = reals(40, 10, 1, 1, seed=1)
    w, v, x = reals(40, 1, 3, 3, seed=2), reals(10, 40, 1, 1, seed=3), reals(1, 10, 6, 6)
    artifact = built(model_of(text, {"a": a, "w": w, "v": v}))
    assert "inverted_residual:" in artifact.log
    assert "elementwise" not in artifact.log
    d = np.maximum(convolved(np.maximum(convolved(x, a), 0), w, pads=(1, 1, 1, 1), groups=40), 0)
    np.testing.assert_allclose(run(artifact, {"x": x})["y"], convolved(d, v) + x, rtol=1e-5, atol=2e-5)
