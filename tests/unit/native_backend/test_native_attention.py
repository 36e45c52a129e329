# SPDX-License-Identifier: Apache-2.0
"""Attention as exporters spell it out is one step; what looks like it and is not stays as it is."""

import numpy as np
import onnx_ir as ir
import pytest
from native_models import Array, assert_right, built, dynamic, kernels_of

from nndeploy.plugin.interface import Artifact
from nndeploy.values.types import DimRange

RANGES = {"n": DimRange(1, 4, 1), "t": DimRange(1, 64, 1), "p": DimRange(1, 64, 1)}
SPLIT = """h = Reshape(x, heads) q0 = Slice(h, zero, one, two) k0 = Slice(h, one, two, two)
    v0 = Slice(h, two, three, two) q1 = Squeeze(q0, two) k1 = Squeeze(k0, two) v1 = Squeeze(v0, two)
    q = Transpose<perm=[0,2,1,3]>(q1) v = Transpose<perm=[0,2,1,3]>(v1)"""
JOIN = "z = Transpose<perm=[0,2,1,3]>(o) y = Reshape(z, rows)"
NUMBERS = """int64[5] heads = {0,-1,3,4,8}, int64[3] rows = {0,-1,32}, int64[1] zero = {0}, int64[1] one = {1},
    int64[1] two = {2}, int64[1] three = {3}, float low = {-10000.0}, float none = {0.0}, float s = {0.594604}"""


def graph(body: str, extra: str = "") -> str:
    return f"g (float[n,t,96] x{extra}) => (float[n,t,32] y) <{NUMBERS}> {{ {SPLIT} {body} {JOIN} }}"


FORMS = {
    "keys turned at once, scores scaled": graph(
        "k = Transpose<perm=[0,2,3,1]>(k1) a = MatMul(q, k) b = Mul(a, s) w = Softmax(b) o = MatMul(w, v)"
    ),
    "both sides scaled": graph(
        """k = Transpose<perm=[0,2,1,3]>(k1) qs = Mul(q, s) kt = Transpose<perm=[0,1,3,2]>(k) ks = Mul(kt, s)
        a = MatMul(qs, ks) b = Add(a, m) w = Softmax<axis=-1>(b) o = MatMul(w, v)""", ", float[n,1,1,t] m",
    ),
    "divided, then masked by truths": graph(
        """k = Transpose<perm=[0,2,3,1]>(k1) a = MatMul(q, k) d = Div(a, s) b = Where(m, d, low) w = Softmax(b)
        o = MatMul(w, v)""", ", bool[t,t] m",
    ),
    "rows that are NaN become zeros": graph(
        """k = Transpose<perm=[0,2,3,1]>(k1) a = MatMul(q, k) b = Add(a, m) w = Softmax(b) i = IsNaN(w)
        u = Where(i, none, w) o = MatMul(u, v)""", ", float[n,1,t,t] m",
    ),
    "a mask and a bias of each head": graph(
        """k = Transpose<perm=[0,2,3,1]>(k1) a = MatMul(q, k) b = Add(a, e) c = Add(b, m) w = Softmax(c)
        o = MatMul(w, v)""", ", float[1,4,t,t] e, float[n,1,1,t] m",
    ),
}  # fmt: skip


def attention_of(artifact: Artifact) -> list[str]:
    """Returns the operators of a plan that are attention or a part of it."""
    return [kernel for kernel in kernels_of(artifact) if kernel in ("attention", "softmax", "product", "view_copy")]


def fed(model: ir.Model, sizes: dict[str, int]) -> dict[str, Array]:
    rng, given = np.random.default_rng(1), {}
    for value in model.graph.inputs:
        assert value.shape is not None
        shape = [sizes[str(dim)] if not isinstance(dim, int) else dim for dim in value.shape]
        is_truth = value.dtype == ir.DataType.BOOL
        given[str(value.name)] = rng.random(shape) < 0.7 if is_truth else rng.standard_normal(shape).astype(np.float32)
    return given


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [{"n": 1, "t": 1}, {"n": 2, "t": 17}, {"n": 1, "t": 50}])
def test_attention_is_one_step(form: str, sizes: dict[str, int]) -> None:
    model = dynamic(FORMS[form], RANGES)
    given, artifact = fed(model, sizes), built(model, RANGES)
    assert attention_of(artifact) == ["attention"]
    assert_right(model, artifact, given, threads=2, atol=3e-5)


SHARED = f"""g (float[n,t,64] x, float[n,2,p,16] k0, float[n,2,p,16] v0, float[n,1,t,p] m) => (float[n,t,64] y)
    <int64[4] heads = {{0,-1,4,16}}, int64[3] rows = {{0,-1,64}}, int64[1] two = {{2}}, int64[5] twice = {{1,1,2,1,1}},
    int64[4] joined = {{0,4,-1,16}}, float s = {{0.5}}> {{
    h = Reshape(x, heads) q = Transpose<perm=[0,2,1,3]>(h) k1 = Unsqueeze(k0, two) k2 = Expand(k1, twice)
    k = Reshape(k2, joined) v1 = Unsqueeze(v0, two) v2 = Expand(v1, twice) v = Reshape(v2, joined)
    kt = Transpose<perm=[0,1,3,2]>(k) ks = Mul(kt, s) qs = Mul(q, s) a = MatMul(qs, ks) b = Add(a, m) w = Softmax(b)
    o = MatMul(w, v) {JOIN} }}"""


@pytest.mark.parametrize("sizes", [{"n": 1, "t": 1, "p": 30}, {"n": 2, "t": 5, "p": 17}])
def test_keys_that_heads_share_are_not_copied(sizes: dict[str, int]) -> None:
    model = dynamic(SHARED, RANGES)
    given, artifact = fed(model, sizes), built(model, RANGES)
    assert attention_of(artifact) == ["attention"]
    assert_right(model, artifact, given, atol=3e-5)


@pytest.mark.parametrize("sizes", [{"n": 1, "t": 1, "p": 30, "s": 30}, {"n": 2, "t": 5, "p": 17, "s": 1}])
def test_a_mask_whose_keys_have_a_name_of_their_own(sizes: dict[str, int]) -> None:
    """As exporters declare it: the mask is `total_length` long, keys are past and new ones together."""
    ranges = {**RANGES, "s": RANGES["p"]}
    model = dynamic(SHARED.replace("float[n,1,t,p] m", "float[n,1,t,s] m"), ranges)
    given, artifact = fed(model, sizes), built(model, ranges)
    assert attention_of(artifact) == ["attention"]
    assert_right(model, artifact, given, atol=3e-5)


BY_THREE_AXES = """g (float[12,t,8] q, float[12,t,8] k0, float[12,t,8] v, float[3,1,t,t] m) => (float[12,t,8] y)
    <int64[4] apart = {3,4,-1,8}, int64[4] heads = {3,4,0,0}, int64[3] joined = {12,0,0}> {
    k = Transpose<perm=[0,2,1]>(k0) a = MatMul(q, k) sh = Shape(a) l = Gather(sh, two) t4 = Concat<axis=0>(front, l, l)
    b = Reshape(a, t4) c = Add(b, m) t3 = Concat<axis=0>(whole, l, l) d = Reshape(c, t3) w = Softmax<axis=-1>(d)
    y = MatMul(w, v) }"""
BY_THREE_AXES_NUMBERS = {"two": np.array([2]), "front": np.array([3, 4]), "whole": np.array([12])}


def test_heads_in_one_axis_with_the_batch() -> None:
    """Products of three axes, a mask of four between them."""
    model = dynamic(BY_THREE_AXES, RANGES, BY_THREE_AXES_NUMBERS)
    given, artifact = fed(model, {"t": 21}), built(model, RANGES)
    assert attention_of(artifact) == ["attention"]
    assert_right(model, artifact, given, atol=3e-5)


WINDOWS = """g (float[6,2,t,8] q, float[6,2,8,t] k, float[6,2,t,8] v, float[1,2,t,t] e, float[1,6,1,t,t] m)
    => (float[6,2,t,8] y) <int64[1] zero = {0}> {
    a = MatMul(q, k) b = Add(a, e) c = Unsqueeze(b, zero) d = Add(c, m) f = Squeeze(d, zero) w = Softmax<axis=-1>(f)
    y = MatMul(w, v) }"""


@pytest.mark.parametrize("size", [1, 5, 20])
def test_a_mask_of_each_window_in_a_shape_of_its_own(size: int) -> None:
    """Windows of an image that was shifted: a bias of each head, then a mask seen with one more axis."""
    model = dynamic(WINDOWS, RANGES)
    given, artifact = fed(model, {"t": size}), built(model, RANGES)
    assert attention_of(artifact) == ["attention"]
    assert_right(model, artifact, given, atol=3e-5)


@pytest.mark.parametrize("body", [
    "a = MatMul(q, k) w = Softmax<axis=1>(a) y = MatMul(w, v)", "a = MatMul(q, k) w = LogSoftmax(a) y = MatMul(w, v)",
    "a = MatMul(q, k) w = Softmax(a) b = MatMul(w, v) s = ReduceSum<keepdims=0>(w) y = Add(b, s)",
    "a = MatMul(q, k) w = Softmax(a) b = MatMul(w, v) s = ReduceSum<keepdims=0>(a) y = Add(b, s)",
    "a = MatMul(q, k) w = Softmax(a) wt = Transpose<perm=[0,2,1]>(w) y = MatMul(wt, v)",
])  # fmt: skip
def test_what_is_no_attention(body: str) -> None:
    """Softmax along rows, other functions, and what somebody else reads too."""
    text = f"g (float[2,6,8] q, float[2,8,6] k, float[2,6,8] v) => (float[2,6,8] y) {{ {body} }}"
    model = dynamic(text, {})
    given, artifact = fed(model, {}), built(model)
    assert "attention" not in attention_of(artifact)
    assert_right(model, artifact, given, atol=3e-5)
