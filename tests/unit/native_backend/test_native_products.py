# SPDX-License-Identifier: Apache-2.0
"""MatMul and Gemm in all forms against NumPy in float64, and how many steps they take."""

import json
from collections.abc import Callable

import numpy as np
import onnx_ir as ir
import pytest
from kernel_library import every_level
from native_models import Array, built, dynamic, each_float_level, model_of, reals, run
from nndeploy_native.lowering.table import refusal_of
from nndeploy_native.plan import DOCUMENT_FILE

from nndeploy.plugin.interface import Artifact
from nndeploy.values.types import DimRange

RANGES = {"n": DimRange(1, 4, 1), "h": DimRange(1, 40, 40), "w": DimRange(1, 40, 40)}


def kernels(artifact: Artifact) -> list[str]:
    """Returns the operators of the plan's steps."""
    return [step["kernel"] for step in json.loads(artifact.files[DOCUMENT_FILE])["steps"]]


def text_of(shape: tuple[int, ...]) -> str:
    return f"float[{','.join(map(str, shape))}]"


@every_level
@pytest.mark.parametrize("constant", ["", "a", "b"])
@pytest.mark.parametrize(
    ("of_a", "of_b"),
    [
        ((17,), (17,)),
        ((17,), (17, 33)),
        ((17,), (2, 17, 33)),
        ((5, 17), (17,)),
        ((2, 5, 17), (17,)),
        ((1, 17), (17, 33)),
        ((2, 3, 17), (17, 33)),
        ((2, 1, 5, 17), (3, 17, 4)),
        ((3, 17, 5), (2, 3, 5, 1)),
        ((2, 1, 1, 64), (2, 4, 64, 15)),
        ((16, 16), (1, 16, 16)),
    ],
)
def test_matmul_of_vectors_and_batches(level: str, of_a: tuple[int, ...], of_b: tuple[int, ...], constant: str) -> None:
    given = {"a": reals(*of_a), "b": reals(*of_b, seed=1)}
    wanted = np.matmul(given["a"].astype(np.float64), given["b"].astype(np.float64))
    constants = {constant: given.pop(constant)} if constant else {}
    inputs = ", ".join(f"{text_of(array.shape)} {name}" for name, array in given.items())
    artifact = built(model_of(f"g ({inputs}) => ({text_of(wanted.shape)} y) {{ y = MatMul(a, b) }}", constants))
    found = run(artifact, given, level, threads=2)["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert kernels(artifact) == ["fully_connected" if constant == "b" else "product"]


GEMMS = [  # the shape of C, attributes
    (None, ""),
    (None, "alpha=0.5"),
    ((33,), ""),
    ((33,), "alpha=2.0, beta=0.5"),
    ((1, 33), "beta=-1.5"),
    ((5, 33), "alpha=0.25"),
    ((5, 1), "beta=2.0"),
    ((1,), "alpha=3.0"),
    ((), "beta=0.5"),
]


@each_float_level
@pytest.mark.parametrize(("of_c", "attributes"), GEMMS)
@pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_gemm(level: str, of_c: tuple[int, ...] | None, attributes: str, turned: tuple[int, int]) -> None:
    """Every operand constant or not, turned or not."""
    of_a, of_b = ((17, 5) if turned[0] else (5, 17)), ((33, 17) if turned[1] else (17, 33))
    values = {"a": reals(*of_a), "b": reals(*of_b, seed=1), "c": reals(*of_c or (), seed=2)}
    factors = dict(part.split("=") for part in attributes.split(", ") if part)
    a, b = (values[name].T if turn else values[name] for name, turn in zip("ab", turned, strict=True))
    wanted = float(factors.get("alpha", 1)) * (a.astype(np.float64) @ b)
    wanted = wanted + float(factors.get("beta", 1)) * values["c"] if of_c is not None else wanted
    more = ", ".join([f"transA={turned[0]}", f"transB={turned[1]}", *([attributes] if attributes else [])])
    names = "ab" if of_c is None else "abc"
    for constants in ("", "b", "a", "ab") if of_c is None else ("", "b", "a", "c", "bc", "abc"):
        if of_c == () and "c" not in constants:
            continue  # a text says nothing of a scalar's shape
        given = {name: values[name] for name in names if name not in constants}
        inputs = ", ".join(f"{text_of(array.shape)} {name}" for name, array in given.items())
        text = f"g ({inputs}) => (float[5,33] y) {{ y = Gemm<{more}>({', '.join(names)}) }}"
        artifact = built(model_of(text, {name: values[name] for name in constants}))
        np.testing.assert_allclose(run(artifact, given, level)["y"], wanted, rtol=1e-5, atol=1e-5)
        is_end = of_c in (None, (5, 33)) if "c" not in constants else of_c not in ((5, 33), (5, 1))
        if is_end:
            assert kernels(artifact) == ["fully_connected" if "b" in constants else "product"]


@each_float_level
def test_bias_and_activation_are_the_end_of_a_product(level: str) -> None:
    text = """g (float[2,7,20] x, float[2,7,33] r) => (float[2,7,33] y, float[2,7,33] z, float[2,7,7] s) {
        m = MatMul(x, w) a = Add(b, m) y = Gelu(a) p = MatMul(x, w) q = Add(p, b) o = Add(q, r) z = Relu(o)
        t = Transpose<perm=[0,2,1]>(x) u = MatMul(x, t) v = Div(u, k) s = Add(v, l) }"""
    x, r, w, b, last = reals(2, 7, 20), reals(2, 7, 33, seed=1), reals(20, 33, seed=2), reals(33), reals(7, seed=4)
    model = model_of(text, {"w": w, "b": b, "k": np.array(8, np.float32), "l": last})
    artifact = built(model)
    assert kernels(artifact) == ["fully_connected", "fully_connected", "product"]
    found = run(artifact, {"x": x, "r": r}, level)
    sums, wide = x.astype(np.float64) @ w + b, x.astype(np.float64)
    np.testing.assert_allclose(found["y"], sums * _normal(sums), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["z"], np.maximum(sums + r, 0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found["s"], wide @ wide.transpose(0, 2, 1) / 8 + last, rtol=1e-5, atol=1e-5)


def _normal(x: Array) -> Array:
    """Returns the distribution function of the normal distribution."""
    from math import erf

    return 0.5 + 0.5 * np.vectorize(erf)(x / np.sqrt(2))


ATTENTION = """g (float[{b},{s},40] x, float[{b},1,1,{s}] mask) => (float[{b},{s},40] y, float[{b},{s},40] p) {{
    q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv) q4 = Reshape(q, heads) k4 = Reshape(k, heads)
    v4 = Reshape(v, heads) qt = Transpose<perm=[0,2,1,3]>(q4) kt = Transpose<perm=[0,2,3,1]>(k4)
    vt = Transpose<perm=[0,2,1,3]>(v4) s = MatMul(qt, kt) d = Div(s, root) m = Add(d, mask) w = Softmax(m)
    o = MatMul(w, vt) ot = Transpose<perm=[0,2,1,3]>(o) y = Reshape(ot, whole) p = MatMul(y, wo) }}"""


def attention_constants() -> dict[str, Array]:
    constants = {name: 0.3 * reals(40, 40, seed=seed) for seed, name in enumerate(("wq", "wk", "wv", "wo"))}
    shapes = {"heads": np.array([0, 0, 5, 8]), "whole": np.array([0, 0, 40]), "root": np.array(8**0.5, np.float32)}
    return constants | shapes


def attention(x: Array, mask: Array) -> tuple[Array, Array]:
    """Returns both outputs in float64."""
    constants, (batch, length, _) = attention_constants(), x.shape
    q, k, v = (
        (x.astype(np.float64) @ constants[name]).reshape(batch, length, 5, 8).transpose(0, 2, 1, 3)
        for name in ("wq", "wk", "wv")
    )
    scores = q @ k.transpose(0, 1, 3, 2) / 8**0.5 + mask
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    y = (shares @ v).transpose(0, 2, 1, 3).reshape(batch, length, 40)
    return y, y @ constants["wo"]


@each_float_level
def test_attention_copies_nothing(level: str) -> None:
    """Heads are read and written where they lie."""
    artifact = built(model_of(ATTENTION.format(b=2, s=9), attention_constants()))
    x, mask = reals(2, 9, 40), np.where(reals(2, 1, 1, 9, seed=1) > 0.5, np.float32(-1e9), np.float32(0))
    found = run(artifact, {"x": x, "mask": mask}, level, threads=2)
    for name, wanted in zip("yp", attention(x, mask), strict=True):
        np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-5)
    assert kernels(artifact) == [*["fully_connected"] * 3, "attention", "fully_connected"]


@each_float_level
def test_attention_at_any_length_copies_nothing(level: str) -> None:
    artifact = built(dynamic(ATTENTION.format(b="n", s="h"), RANGES, attention_constants()), RANGES)
    for batch, length in ((1, 1), (2, 5), (4, 17), (1, 40)):
        x, mask = reals(batch, length, 40), reals(batch, 1, 1, length, seed=1)
        found = run(artifact, {"x": x, "mask": mask}, level, threads=2)
        for name, wanted in zip("yp", attention(x, mask), strict=True):
            np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-5)
    assert "view_copy" not in kernels(artifact)


@each_float_level
@pytest.mark.parametrize(
    ("text", "compute"),
    [
        ("(float[n,h,w] a, float[w] b) => (float[n,h] y) { y = MatMul(a, b) }", np.matmul),
        ("(float[h] a, float[n,h,w] b) => (float[n,w] y) { y = MatMul(a, b) }", np.matmul),
        ("(float[n,1,h,w] a, float[7,w,h] b) => (float[n,7,h,h] y) { y = MatMul(a, b) }", np.matmul),
        ("(float[h,w] a, float[h,n] b) => (float[w,n] y) { y = Gemm<transA=1>(a, b) }", lambda a, b: a.T @ b),
    ],
)
def test_products_of_sizes_that_are_not_fixed(level: str, text: str, compute: Callable[..., Array]) -> None:
    model = dynamic("g " + text, RANGES)
    artifact = built(model, RANGES)
    for number, (n, h, w) in enumerate(((1, 1, 1), (3, 17, 33), (4, 40, 5))):
        given = {}
        for value in model.graph.inputs:
            sizes = {"n": n, "h": h, "w": w}
            shape = [dim if isinstance(dim, int) else sizes[str(dim.value)] for dim in value.shape or ()]
            given[value.name or ""] = reals(*shape, seed=number)
        wanted = compute(*(one.astype(np.float64) for one in given.values()))
        np.testing.assert_allclose(run(artifact, given, level)["y"], wanted, rtol=1e-5, atol=2e-5)


@each_float_level
def test_sums_of_nothing_are_zero(level: str) -> None:
    """Rows without elements by columns without elements, and what is added to them."""
    text = """g (float[n,h,t] a, float[n,t,w] b, float[w] c) => (float[n,h,w] y, float[n,h,w] z) { y = MatMul(a, b)
        m = MatMul(a, b) s = Add(m, c) z = Relu(s) }"""
    artifact = built(dynamic(text, {}))
    for n, h, t, w in ((1, 1, 0, 1), (2, 5, 0, 33), (3, 40, 0, 5), (2, 5, 7, 0), (0, 5, 7, 3), (2, 5, 7, 3)):
        given = {"a": reals(n, h, t), "b": reals(n, t, w, seed=1), "c": reals(w, seed=2)}
        found = run(artifact, given, level, threads=2)
        np.testing.assert_allclose(found["y"], given["a"] @ given["b"], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            found["z"], np.maximum(given["a"] @ given["b"] + given["c"], 0), rtol=1e-5, atol=1e-5
        )


def test_rows_and_columns_of_other_lengths_are_refused() -> None:
    model = model_of("g (float[3,4] a, float[n,5] b) => (float[3,5] y) { y = MatMul(a, b) }")
    model.graph.inputs[1].shape = ir.Shape([3, 5])
    assert refusal_of(model.graph[-1], model, {}) == "rows of 4 by columns of 3"


@each_float_level
@pytest.mark.parametrize("sizes", [(35, 39), (8, 5), ("h", "w")])
def test_a_convolution_over_patches_is_one_product(level: str, sizes: tuple[int | str, int | str]) -> None:
    """Pixels beyond the last whole patch are left out; tokens are read where the product puts them."""
    height, width = (size if isinstance(size, int) else 23 for size in sizes)
    rows, columns = height // 8, width // 5
    x, w, bias = reals(2, 3, height, width), reals(37, 3, 8, 5, seed=1), reals(37, seed=2)
    out = f"{rows},{columns}" if isinstance(sizes[0], int) else "r,s"
    text = f"""g (float[2,3,{sizes[0]},{sizes[1]}] x) => (float[2,{out},37] y) {{
        a = Conv<strides=[8,5]>(x, w, b) t = Transpose<perm=[0,2,3,1]>(a) y = Relu(t) }}"""
    artifact = built(dynamic(text, RANGES, {"w": w, "b": bias}), RANGES)
    assert kernels(artifact) == [*["view_copy"][: sizes != (8, 5)], "fully_connected"]  # one patch lies as it is read
    patches = x[:, :, : rows * 8, : columns * 5].reshape(2, 3, rows, 8, columns, 5).transpose(0, 2, 4, 1, 3, 5)
    wanted = patches.reshape(2, rows, columns, -1).astype(np.float64) @ w.reshape(37, -1).T + bias
    np.testing.assert_allclose(run(artifact, {"x": x}, level)["y"], np.maximum(wanted, 0), rtol=1e-5, atol=5e-5)
