# SPDX-License-Identifier: Apache-2.0
"""What stays where it lies: heads of attention, patches, and channels in their blocks; it is not copied."""

import numpy as np
import pytest
from native_models import assert_right, built, dynamic, each_float_level, kernels_of, model_of, reals, run

from nndeploy.values.types import DimRange

CLOSE = {"rtol": 1e-4, "atol": 5e-5, "threads": 2}
RANGES = {"n": DimRange(1, 4, 1), "h": DimRange(1, 40, 40), "w": DimRange(1, 40, 40)}


ATTENTION = """g (float[{b},{s},40] x, float[{b},1,1,{s}] mask) => (float[{b},{s},40] y, float[{b},{s},40] p) {{
    q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv) q4 = Reshape(q, heads) k4 = Reshape(k, heads)
    v4 = Reshape(v, heads) qt = Transpose<perm=[0,2,1,3]>(q4) kt = Transpose<perm=[0,2,3,1]>(k4)
    vt = Transpose<perm=[0,2,1,3]>(v4) s = MatMul(qt, kt) d = Div(s, root) m = Add(d, mask) w = Softmax(m)
    o = MatMul(w, vt) ot = Transpose<perm=[0,2,1,3]>(o) y = Reshape(ot, whole) p = MatMul(y, wo) }}"""


@each_float_level
@pytest.mark.parametrize("sizes", [(2, 9), ("n", "h")])
def test_attention_copies_nothing(level: str, sizes: tuple[int | str, int | str]) -> None:
    constants = {name: 0.3 * reals(40, 40, seed=seed) for seed, name in enumerate(("wq", "wk", "wv", "wo"))}
    constants |= {"heads": np.array([0, 0, 5, 8]), "whole": np.array([0, 0, 40]), "root": np.array(8**0.5, np.float32)}
    model = dynamic(ATTENTION.format(b=sizes[0], s=sizes[1]), RANGES, constants)
    artifact = built(model, RANGES)
    assert kernels_of(artifact) == [*["fully_connected"] * 3, "attention", "fully_connected"]
    for batch, length in ((2, 9), (1, 1), (4, 17))[: 3 if sizes[0] == "n" else 1]:
        mask = np.where(reals(batch, 1, 1, length, seed=1) > 0.5, np.float32(-1e9), np.float32(0))
        assert_right(model, artifact, {"x": reals(batch, length, 40), "mask": mask}, level, **CLOSE)


@each_float_level
@pytest.mark.parametrize("sizes", [(35, 39), (8, 5), ("h", "w")])
def test_a_convolution_over_patches_is_one_product(level: str, sizes: tuple[int | str, int | str]) -> None:
    """Pixels beyond the last whole patch are left out; tokens are read where the product puts them."""
    height, width = (size if isinstance(size, int) else 23 for size in sizes)
    out = f"{height // 8},{width // 5}" if isinstance(sizes[0], int) else "r,s"
    text = f"""g (float[2,3,{sizes[0]},{sizes[1]}] x) => (float[2,{out},37] y) {{
        a = Conv<strides=[8,5]>(x, w, b) t = Transpose<perm=[0,2,3,1]>(a) y = Relu(t) }}"""
    model = dynamic(text, RANGES, {"w": reals(37, 3, 8, 5, seed=1), "b": reals(37, seed=2)})
    artifact = built(model, RANGES)
    assert kernels_of(artifact) == [
        *["view_copy"][: sizes != (8, 5)],
        "fully_connected",
    ]  # one lies as it is read
    assert_right(model, artifact, {"x": reals(2, 3, height, width)}, level, **CLOSE)


CHANNELS = {
    "shuffled, split, joined": (
        """g (float[1,20,4,5] x) => (float[1,30,4,5] y) <int64[5] apart = {1,2,10,4,5}, int64[4] again = {1,20,4,5},
        int64[2] sizes = {10,10}> { r = Conv<group=20>(x, w) a = Reshape(r, apart) t = Transpose<perm=[0,2,1,3,4]>(a)
        s = Reshape(t, again) l, h = Split<axis=1>(s, sizes) n = Relu(h) y = Concat<axis=1>(n, l, n) }""",
        {"x": (1, 20, 4, 5)}, "2 layout conversions",
    ),
    "of several images": (
        """g (float[2,21,7,10] x, float[2,32,7,10] z) => (float[2,58,7,10] y) <int64[5] apart = {2,3,7,7,10},
        int64[4] again = {2,21,7,10}, int64[2] sizes = {16,5}> { r = Conv<group=21>(x, w) q = Conv<group=32>(z, v)
        a = Reshape(r, apart) t = Transpose<perm=[0,2,1,3,4]>(a) s = Reshape(t, again)
        l, h = Split<axis=1>(s, sizes) c = Concat<axis=1>(q, h, l) y = Concat<axis=1>(c, h) }""",
        {"x": (2, 21, 7, 10), "z": (2, 32, 7, 10)}, "channel_parts",
    ),
}  # fmt: skip


@each_float_level
@pytest.mark.parametrize("name", CHANNELS)
def test_channels_are_moved_in_their_blocks(level: str, name: str) -> None:
    text, shapes, said = CHANNELS[name]
    weights = {key: np.ones((shape[1], 1, 1, 1), np.float32) for key, shape in zip("wv", shapes.values(), strict=False)}
    model = model_of(text, weights)
    artifact = built(model)
    assert artifact.log.count(said) == 1
    assert_right(model, artifact, {key: reals(*shape) for key, shape in shapes.items()}, level, **CLOSE)


@each_float_level
def test_an_image_in_blocks_is_normalised_there(level: str) -> None:
    """What follows is the end: an activation, a number of each channel, a residual."""
    text = """g (float[2,18,3,5] x, float[2,18,3,5] r) => (float[2,18,3,5] y) { a = Conv<group=18>(x, w)
        d = Conv<group=18>(r, w) n = InstanceNormalization<epsilon=0.1>(a, s, b) k = LeakyRelu(n) m = Mul(k, c)
        y = Add(m, d) }"""
    constants = {"w": reals(18, 1, 1, 1), "s": reals(18, seed=1), "b": reals(18, seed=2), "c": reals(18, 1, 1, seed=3)}
    model = model_of(text, constants)
    artifact = built(model)
    assert kernels_of(artifact)[-2:] == ["instance_norm", "to_plain"]
    assert_right(model, artifact, {"x": 2 + 3 * reals(2, 18, 3, 5), "r": reals(2, 18, 3, 5, seed=5)}, level, **CLOSE)


def test_places_of_a_maximum_count_in_the_image_that_was_pooled() -> None:
    """Though MaxUnpool is told to give a larger one, as in ONNX's own case."""
    text = """g (float[1,1,2,2] x, int64[1,1,2,2] i) => (float[1,1,5,5] y) <int64[4] s = {1,1,5,5}> {
        y = MaxUnpool<kernel_shape=[2,2], strides=[2,2]>(x, i, s) }"""
    places = np.array([[[[5, 7], [13, 15]]]])
    found = run(built(model_of(text)), {"x": np.array([[[[5, 6], [7, 8]]]], np.float32), "i": places})["y"]
    wanted = np.zeros((1, 1, 5, 5), np.float32)
    wanted[0, 0, [1, 1, 3, 3], [1, 3, 1, 3]] = 5, 6, 7, 8
    np.testing.assert_array_equal(found, wanted)
