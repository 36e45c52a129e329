# SPDX-License-Identifier: Apache-2.0
"""What a network gets as floats becomes bytes in one pass, which puts channels side by side."""

import numpy as np
import pytest
from native_models import built, dynamic, each_float_level, kernels_of, model_of, reals, run
from test_native_quantised import assert_same, by_onnxruntime, bytes_of

from nndeploy.values.types import DimRange

NETWORK = """g (float[{n},{channels},{h},11] x) => (uint8[{n},16,{h},11] y) {{
    q = QuantizeLinear(x, s, z)  a = DequantizeLinear(q, s, z)  b = DequantizeLinear(w, ws)
    c = Conv<pads=[1,1,1,1]>(a, b)  y = QuantizeLinear(c, t, z) }}"""


@each_float_level
@pytest.mark.parametrize("element", ["uint8", "int8"])
@pytest.mark.parametrize("channels", [1, 3, 4, 7])
def test_an_image_becomes_bytes_in_one_pass(level: str, element: str, channels: int) -> None:
    """Of few channels with no other pass; of more with one that moves the bytes."""
    constants = {
        "s": np.array(0.0371, np.float32), "z": np.array(17, element), "t": np.array(0.25, np.float32),
        "w": bytes_of("int8", 16, channels, 3, 3), "ws": np.array(2.0**-6, np.float32),
    }  # fmt: skip
    fixed = model_of(NETWORK.format(n=1, h=9, channels=channels).replace("uint8[", f"{element}["), constants)
    moves = [] if channels <= 4 else ["view_copy"]
    assert kernels_of(built(fixed))[:-1] == ["int8_quantise", *moves, "int8_convolution"][: 2 + len(moves)]
    assert_same(fixed, {"x": reals(1, channels, 9, 11) * 4}, level)
    text, ranges = NETWORK.replace("uint8[", f"{element}["), {"n": DimRange(1, 4, 1), "h": DimRange(3, 20, 1)}
    free = built(dynamic(text.format(n="n", h="h", channels=channels), ranges, constants), ranges)
    assert "elementwise" not in kernels_of(free)
    for images, height in ((2, 5), (3, 20)):
        inputs = {"x": reals(images, channels, height, 11) * 4}
        wanted = by_onnxruntime(model_of(text.format(n=images, h=height, channels=channels), constants), inputs)
        np.testing.assert_allclose(run(free, inputs, level)["y"].astype(int), wanted["y"].astype(int), atol=1)


@each_float_level
def test_what_else_is_made_of_floats_stays_a_program(level: str) -> None:
    """A scale of zero or of some, and bytes that someone else reads where they lie."""
    text = """g (float[1,3,5,6] x) => (uint8[1,3,5,6] q, uint8[1,5,6,3] u, uint8[1,3,5,6] m) {
        q = QuantizeLinear(x, s, z)  u = Transpose<perm=[0,2,3,1]>(q)  m = QuantizeLinear<axis=1>(x, k, zk) }"""
    constants = {
        "s": np.array(0.05, np.float32), "z": np.array(120, np.uint8),
        "k": np.array([0.1, 0.2, 0.05], np.float32), "zk": np.array([0, 100, 255], np.uint8),
    }  # fmt: skip
    model = model_of(text, constants)
    kernels = kernels_of(built(model))
    assert (kernels.count("int8_quantise"), kernels.count("elementwise")) == (1, 1)
    assert_same(model, {"x": reals(1, 3, 5, 6) * 5}, level)
