# SPDX-License-Identifier: Apache-2.0
"""Normalisations as they were spelled before they were operators: each spelling is one step, what is read stays."""

import itertools

import numpy as np
import onnx_ir as ir
import pytest
from native_models import assert_right, built, dynamic, each_float_level, model_of, reals, run
from nndeploy_native.transforms import transformed
from nndeploy_native.transforms.fuse_normalisation import FuseNormalisation

from nndeploy.values.types import DimRange

NUMBERS = "<float e = {0.001}, float one = {1}, float two = {2}, float half = {0.5}, float minus = {-0.5}>"
SQUARES = {"pow": "q = Pow(d, two)", "mul": "q = Mul(d, d)"}
QUOTIENTS = {
    "div": "r = Sqrt(v) n = Div(d, r)", "div by pow": "r = Pow(v, half) n = Div(d, r)",
    "reciprocal": "r = Sqrt(v) i = Reciprocal(r) n = Mul(d, i)",
    "one over": "r = Sqrt(v) i = Div(one, r) n = Mul(i, d)", "pow": "i = Pow(v, minus) n = Mul(d, i)",
}  # fmt: skip
ENDS = {
    "nothing": "y = Identity(n)", "scale": "y = Mul(n, w)", "scale first": "y = Mul(w, n)",
    "scale and bias": "s = Mul(n, w) y = Add(s, b)", "bias first": "s = Mul(w, n) y = Add(b, s)",
}  # fmt: skip


def spelled(
    norm: str, square: str, quotient: str, end: str, *, opset: int = 17, rows: str = "B,S", more: str = ""
) -> str:
    """Returns a graph of x, w and b; `d` is what is divided by its root."""
    mean = "ReduceMean<axes=[-1]>({})" if opset < 18 else "ReduceMean({}, axes)"
    begin = {"layer": f"m = {mean.format('x')} d = Sub(x, m) ", "rms": "d = Identity(x) "}[norm]
    body = f"{begin}{SQUARES[square]} a = {mean.format('q')} v = Add(a, e) {QUOTIENTS[quotient]} {ENDS[end]}"
    outputs = f"float[{rows},20] y{more}"
    numbers = NUMBERS if opset < 18 else NUMBERS[:-1] + ", int64[1] axes = {-1}>"
    return f"g (float[{rows},20] x, float[20] w, float[20] b) => ({outputs}) {numbers} {{ {body} }}"


def operators(model: ir.Model) -> list[str]:
    return [node.op_type for node in transformed(model).graph if node.op_type != "Identity"]


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize(
    ("square", "quotient", "end"),
    [*itertools.product(SQUARES, QUOTIENTS, ["scale and bias"]), *itertools.product(["pow"], ["div"], ENDS)],
)
@pytest.mark.parametrize("opset", [13, 17, 18])
def test_every_spelling_is_one_operator(norm: str, square: str, quotient: str, end: str, opset: int) -> None:
    model = model_of(spelled(norm, square, quotient, end, opset=opset), opset=opset)
    before = len(model.graph)
    adds = ["Add"] if norm == "rms" and "bias" in end else []  # RMSNormalization has no bias
    name = "LayerNormalization" if norm == "layer" else "RMSNormalization"
    assert operators(model) == [name, *adds]
    assert len(model.graph) == before, "what came in stays"
    x, w, b = reals(2, 3, 20) + 2, reals(20, seed=1), reals(20, seed=2)
    assert_right(model, built(model), {"x": x, "w": w, "b": b}, rtol=1e-4)


@each_float_level
@pytest.mark.parametrize(("batch", "length"), [(1, 1), (2, 7), (5, 33)])
def test_any_number_of_rows(level: str, batch: int, length: int) -> None:
    model = model_of(spelled("layer", "pow", "div", "scale and bias"), opset=17)
    inputs = {"x": reals(batch, length, 20) + 2, "w": reals(20, seed=1), "b": reals(20, seed=2)}
    assert_right(model, built(model), inputs, level, rtol=1e-4)


def test_a_difference_that_is_there_twice_is_one() -> None:
    text = f"""g (float[B,20] x) => (float[B,20] y) {NUMBERS} {{
        m = ReduceMean<axes=[-1]>(x) d = Sub(x, m) q = Mul(d, d) a = ReduceMean<axes=[1]>(q) v = Add(e, a)
        r = Sqrt(v) f = Sub(x, m) y = Div(f, r) }}"""
    assert operators(model_of(text, opset=17)) == ["LayerNormalization"]


@pytest.mark.parametrize(("more", "wanted"), [
    (", float[B,S,20] d", ["ReduceMean", "Sub", "RMSNormalization", "Add"]),
    (", float[B,S,1] m", ["ReduceMean", "Sub", "RMSNormalization", "Add"]), (", float[B,S,20] q", None),
    (", float[B,S,1] v", None), (", float[B,S,1] r", None), (", float[B,S,20] n", ["LayerNormalization", "Mul", "Add"]),
])  # fmt: skip
def test_what_is_read_elsewhere_stays(more: str, wanted: list[str] | None) -> None:
    model = model_of(spelled("layer", "pow", "div", "scale and bias", more=more), opset=17)
    assert operators(model) == (wanted or [node.op_type for node in model.graph])
    inputs = {"x": reals(2, 3, 20) + 2, "w": reals(20, seed=1), "b": reals(20, seed=2)}
    assert_right(model, built(model), inputs, rtol=1e-4)


@pytest.mark.parametrize("body", [
    "q = Pow(x, three) a = ReduceMean<axes=[-1]>(q) v = Add(a, e) r = Sqrt(v) y = Div(x, r)",
    "q = Mul(x, z) a = ReduceMean<axes=[-1]>(q) v = Add(a, e) r = Sqrt(v) y = Div(x, r)",
    "q = Mul(z, z) a = ReduceMean<axes=[-1]>(q) v = Add(a, e) r = Sqrt(v) y = Div(x, r)",
    "q = Mul(x, x) a = ReduceMean<axes=[0]>(q) v = Add(a, e) r = Sqrt(v) y = Div(x, r)",
    "q = Mul(x, x) a = ReduceSum(q, axes) v = Add(a, e) r = Sqrt(v) y = Div(x, r)",
    "q = Mul(x, x) a = ReduceMean<axes=[-1]>(q) v = Add(a, w) r = Sqrt(v) y = Div(x, r)",
    "q = Mul(x, x) a = ReduceMean<axes=[-1]>(q) v = Sub(a, e) r = Sqrt(v) y = Div(x, r)",
    "q = Mul(x, x) a = ReduceMean<axes=[-1]>(q) v = Add(a, e) r = Sqrt(v) y = Div(r, x)",
    "q = Mul(x, x) a = ReduceMean<axes=[-1]>(q) v = Add(a, e) r = Exp(v) y = Div(x, r)",
])  # fmt: skip
def test_what_is_no_normalisation_stays(body: str) -> None:
    numbers = "<float e = {0.001}, float three = {3}, int64[1] axes = {-1}>"
    model = model_of(
        f"g (float[20,20] x, float[20,20] z, float[20] w) => (float[20,20] y) {numbers} {{ {body} }}", opset=17
    )
    assert FuseNormalisation()(model, lambda _: True) == 0


@pytest.mark.parametrize(
    ("sizes", "end"), [("float[B,1]", "Mul"), ("float[3,20]", "Mul"), ("float[1]", "Mul"), ("float[20]", "Sub")]
)
def test_numbers_of_other_sizes_stay_outside(sizes: str, end: str) -> None:
    text = f"""g (float[B,3,20] x, {sizes} w) => (float[B,3,20] y) {NUMBERS} {{
        q = Mul(x, x) a = ReduceMean<axes=[-1]>(q) v = Add(a, e) r = Sqrt(v) n = Div(x, r) y = {end}(n, w) }}"""
    assert operators(model_of(text, opset=17)) == ["RMSNormalization", end]


GROUP_ENDS = {"scale and bias": "s = Mul(j, w) y = Add(s, b)", "scale": "y = Mul(w, j)", "bias": "y = Add(j, b)"}


def grouped(end: str, more: str = "") -> ir.Model:
    """Returns what exporters make of a normalisation of x (B, 6, 5, 7) in two groups."""
    text = f"""g (float[B,6,5,7] x) => (float[B,6,5,7] y{more})
        <int64[3] parts = {{0,2,-1}}, int64[4] back = {{0,6,5,7}}> {{ p = Reshape(x, parts)
        n = InstanceNormalization<epsilon=0.001>(p, ones, zeros) j = Reshape(n, back) {end} }}"""
    constants = {"ones": np.ones(2, np.float32), "zeros": np.zeros(2, np.float32)}
    constants |= {"w": reals(6, 1, 1, seed=1), "b": reals(1, 6, 1, 1, seed=2)}
    return dynamic(text, {"B": DimRange(1, 4, 1)}, constants, opset=17)


@each_float_level
@pytest.mark.parametrize("end", GROUP_ENDS)
def test_groups_that_are_spelled_out_are_one_step(level: str, end: str) -> None:
    model = grouped(GROUP_ENDS[end])
    assert operators(model) == ["GroupNormalization"]
    assert_right(model, built(model), {"x": reals(3, 6, 5, 7) + 2}, level, rtol=1e-4)


@pytest.mark.parametrize(("end", "more"), [
    ("y = Identity(j)", ""), ("y = Sub(j, b)", ""), ("s = Mul(j, w) y = Add(s, b)", ", float[B,6,5,7] s"),
    ("y = Mul(j, w)", ", float[B,2,105] n"), ("y = Mul(j, x)", ""),
])  # fmt: skip
def test_what_is_no_group_normalisation_stays(end: str, more: str) -> None:
    model = grouped(end, more)
    is_scaled_alone = more.endswith(" s")
    assert ("GroupNormalization" in operators(model)) == is_scaled_alone
    assert "Add" in operators(model) or not is_scaled_alone


def test_only_what_may_be_touched_is() -> None:
    model = model_of(spelled("layer", "pow", "div", "scale"), opset=17)
    assert FuseNormalisation()(model, lambda node: node.op_type != "Div") == 0
    assert FuseNormalisation()(model, lambda node: node.op_type == "Div") == 1


def test_two_axes_are_normalised_together() -> None:
    text = f"""g (float[B,4,5] x, float[4,5] w) => (float[B,4,5] y) {NUMBERS} {{
        q = Mul(x, x) a = ReduceMean<axes=[2,1]>(q) v = Add(a, e) r = Sqrt(v) n = Div(x, r) y = Mul(n, w) }}"""
    model = model_of(text, opset=17)
    assert operators(model) == ["RMSNormalization"]
    assert_right(model, built(model), {"x": reals(3, 4, 5), "w": reals(4, 5, seed=1)}, rtol=1e-4)


@each_float_level
@pytest.mark.parametrize("size", [16, 37, 200])
def test_rows_are_the_same_bytes_in_any_shares(size: int, level: str) -> None:
    """Short rows are done four at a time, and what is left of a share one by one."""
    body = "g (float[N, K] x) => (float[N, K] y) { y = LayerNormalization<axis = -1>(x, s, b) }".replace("K", str(size))
    artifact = built(model_of(body, {"s": reals(size, seed=1), "b": reals(size, seed=2)}))
    x = reals(23, size)
    whole = run(artifact, {"x": x}, level)["y"]
    assert whole.tobytes() == run(artifact, {"x": x}, level, threads=2)["y"].tobytes()
    for row in (0, 5, 22):
        assert whole[row].tobytes() == run(artifact, {"x": x[[row]]}, level)["y"].tobytes()
