# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators of every type against NumPy: functions, whole numbers, comparisons, conversions and chains."""

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
import pytest
from kernel_library import every_level
from native_models import FLOAT_LEVELS, Array, built, dynamic, model_of, run
from nndeploy_native.lowering.table import refusal_of
from nndeploy_native.plan import DOCUMENT_FILE, document_from_json
from onnx.reference import ReferenceEvaluator

from nndeploy.plugin.interface import Artifact
from nndeploy.values.types import DimRange

NAMES = {"float32": "float", "int32": "int32", "int64": "int64", "bool": "bool", "uint8": "uint8", "int8": "int8"}
WHOLE = ("int32", "int64", "uint8", "int8")
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan,
    "Sinh": np.sinh, "Cosh": np.cosh, "Asinh": np.arcsinh, "Acosh": np.arccosh, "Atanh": np.arctanh, "Sign": np.sign,
    "Round": np.round, "Exp": np.exp, "Log": np.log, "Abs": np.abs, "Floor": np.floor, "Ceil": np.ceil,
}  # fmt: skip
UNITS = 5
"""A function may be wrong by so many units of the last place."""
SIZES = (1, 3, 15, 16, 17, 33, 255, 257, 600)


def reals_of_all_sizes(count: int, seed: int = 0) -> Array:
    """Returns numbers of any bits, near one, between one and minus one, a little above one, and odd ones."""
    dice = np.random.default_rng(seed)
    odd = [np.inf, -np.inf, np.nan, 0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 88, 89.4, -89.4, 1e-40, -1e-40, 3e38]
    with np.errstate(invalid="ignore"):
        parts = [
            dice.integers(0, 2**32, count).astype(np.uint32).view(np.float32), dice.standard_normal(count),
            30 * dice.standard_normal(count), dice.uniform(-1, 1, count), 1 + np.abs(dice.standard_normal(count)) / 1e3,
        ]  # fmt: skip
        return np.concatenate([*parts, odd]).astype(np.float32)


def units_apart(found: Array, exact: Array) -> float:
    """Returns the largest difference in units of the last place of a float32."""
    with np.errstate(all="ignore"):
        wanted = exact.astype(np.float32)
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        unit = np.maximum(np.spacing(np.abs(wanted)), np.float32(1e-38)).astype(np.float64)
        apart = np.where(np.isfinite(found) & np.isfinite(wanted), np.abs(found - exact) / unit, np.inf)
        return float(np.where(same, 0, apart).max())


def whole_numbers(dtype: str, count: int, seed: int = 0) -> Array:
    """Returns whole numbers with the ends of the type, small ones among them."""
    dice, ends = np.random.default_rng(seed), np.iinfo(dtype)
    wide = dice.integers(ends.min, ends.max, count, dtype=dtype, endpoint=True)
    small = dice.integers(max(-3, ends.min), 4, count).astype(dtype)
    mixed = np.where(dice.random(count) < 0.5, wide, small)
    mixed[: min(count, 6)] = [ends.min, ends.max, 0, 1, ends.min, ends.max - 1][:count]
    return np.asarray(mixed, dtype)


@every_level
def test_functions_of_floats(level: str) -> None:
    x = reals_of_all_sizes(700)
    outputs = ", ".join(f"float[{x.size}] {name}_y" for name in FUNCTIONS)
    body = " ".join(f"{name}_y = {name}(x)" for name in FUNCTIONS)
    found = run(built(model_of(f"g (float[{x.size}] x) => ({outputs}) {{ {body} }}")), {"x": x}, level)
    with np.errstate(all="ignore"):
        apart = {name: units_apart(found[f"{name}_y"], of(x.astype(np.float64))) for name, of in FUNCTIONS.items()}
    assert {name: value for name, value in apart.items() if value > UNITS} == {}


@every_level
def test_powers_and_remainders_of_floats(level: str) -> None:
    x = reals_of_all_sizes(700)
    y = np.random.default_rng(1).permutation(np.where(np.arange(x.size) % 2, np.round(x), x)).astype(np.float32)
    with np.errstate(invalid="ignore"):
        y = np.concatenate([y, np.where(np.abs(y) > 30, np.fmod(y, 30), y)])
    x = np.concatenate([x, x])
    text = f"g (float[{x.size}] x, float[{x.size}] y) => (float[{x.size}] p, float[{x.size}] c, float[{x.size}] m) "
    artifact = built(model_of(text + "{ p = Pow(x, y) c = Mod<fmod=1>(x, y) m = Mod(x, y) }"))
    found = run(artifact, {"x": x, "y": y}, level, threads=2)
    with np.errstate(all="ignore"):
        wide = (x.astype(np.float64), y.astype(np.float64))
        assert units_apart(found["p"], np.power(*wide)) < 1
        assert units_apart(found["c"], np.fmod(*wide)) == 0
        assert units_apart(found["m"], np.mod(*wide)) <= 1


def _quotient(a: Array, b: Array) -> Array:
    """Returns quotients rounded to zero; zero where the divisor is."""
    wide, by = a.astype(object), np.where(b == 0, 1, b).astype(object)
    made = np.array([abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in zip(wide, by, strict=True)])
    return np.where(b == 0, 0, made)


def _rest(a: Array, b: Array) -> Array:
    return np.where(b == 0, 0, a.astype(object) - _quotient(a, b) * b.astype(object))


def _modulo(a: Array, b: Array) -> Array:
    return np.where(
        b == 0, 0, np.array([p % q if q else 0 for p, q in zip(a.astype(object), b.astype(object), strict=True)])
    )


PAIRS: dict[str, tuple[str, Callable[[Array, Array], Array]]] = {
    "Add": ("", lambda a, b: a.astype(object) + b.astype(object)),
    "Sub": ("", lambda a, b: a.astype(object) - b.astype(object)),
    "Mul": ("", lambda a, b: a.astype(object) * b.astype(object)),
    "Div": ("", _quotient),
    "Mod": ("", _modulo),
    "fmod": ("<fmod=1>", _rest),
    "Max": ("", np.maximum),
    "Min": ("", np.minimum),
    "BitwiseAnd": ("", np.bitwise_and),
    "BitwiseOr": ("", np.bitwise_or),
    "BitwiseXor": ("", np.bitwise_xor),
    "Pow": ("", lambda a, b: np.array([p ** int(q) for p, q in zip(a.astype(object), b, strict=True)])),
}
COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "Equal": np.equal, "Greater": np.greater, "GreaterOrEqual": np.greater_equal, "Less": np.less,
    "LessOrEqual": np.less_equal,
}  # fmt: skip


def wrapped(exact: Array, dtype: str) -> Array:
    """Returns numbers of any size in a type that keeps their last bits."""
    bits = 8 * np.dtype(dtype).itemsize
    low = int(np.iinfo(dtype).min)
    return np.array([(int(one) - low) % 2**bits + low for one in exact], object).astype(dtype)


@every_level
@pytest.mark.parametrize("dtype", WHOLE)
def test_whole_numbers(level: str, dtype: str) -> None:
    name = NAMES[dtype]
    for count in (5, 17, 300):
        a, b = whole_numbers(dtype, count), whole_numbers(dtype, count, 1)
        powers = np.abs(whole_numbers("int64", count, 2)) % 9
        outputs = ", ".join(
            [f"{name}[{count}] {one}_y" for one in (*PAIRS, "Neg", "Abs", "Sign", "BitwiseNot", "Clip")]
            + [f"bool[{count}] {one}_y" for one in COMPARISONS]
        )
        body = " ".join(
            f"{one}_y = {one if one != 'fmod' else 'Mod'}{attributes}(a, {'e' if one == 'Pow' else 'b'})"
            for one, (attributes, _) in PAIRS.items()
        )
        body += " " + " ".join(f"{one}_y = {one}(a, b)" for one in COMPARISONS)
        body += " Neg_y = Neg(a) Abs_y = Abs(a) Sign_y = Sign(a) BitwiseNot_y = BitwiseNot(a) Clip_y = Clip(a, l, h)"
        text = f"g ({name}[{count}] a, {name}[{count}] b, int64[{count}] e) => ({outputs}) {{ {body} }}"
        artifact = built(model_of(text, {"l": np.array(2, dtype), "h": np.array(100, dtype)}))
        found = run(artifact, {"a": a, "b": b, "e": powers}, level, threads=2)
        wanted = {one: of(a, powers if one == "Pow" else b) for one, (_, of) in PAIRS.items()}
        wide = a.astype(object)
        wanted |= {"Neg": -wide, "Abs": abs(wide), "Sign": np.sign(wide), "BitwiseNot": ~a, "Clip": np.clip(a, 2, 100)}
        for one, exact in wanted.items():
            np.testing.assert_array_equal(found[f"{one}_y"], wrapped(exact, dtype), err_msg=one)
        for one, compare in COMPARISONS.items():
            np.testing.assert_array_equal(found[f"{one}_y"], compare(a, b), err_msg=one)


@every_level
@pytest.mark.parametrize("dtype", WHOLE)
def test_shifts(level: str, dtype: str) -> None:
    name, count = NAMES[dtype], 40
    a, by = whole_numbers(dtype, count), (np.arange(count) % 70).astype(dtype)
    text = f"""g ({name}[{count}] a, {name}[{count}] b) => ({name}[{count}] l, {name}[{count}] r)
        {{ l = BitShift<direction="LEFT">(a, b) r = BitShift<direction="RIGHT">(a, b) }}"""
    found = run(built(model_of(text)), {"a": a, "b": by}, level)
    pairs = list(zip(a.astype(object), by.tolist(), strict=True))
    lefts = [p << q if q < 64 else 0 for p, q in pairs]
    np.testing.assert_array_equal(found["l"], wrapped(np.array(lefts, object), dtype))
    np.testing.assert_array_equal(found["r"], wrapped(np.array([p >> q for p, q in pairs], object), dtype))


@every_level
def test_comparisons_of_floats_and_truths(level: str) -> None:
    x = reals_of_all_sizes(30)
    y = np.where(np.arange(x.size) % 3, np.random.default_rng(1).permutation(x), x).astype(np.float32)
    logic = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor, "Equal": np.equal}
    outputs = [f"{one}_y" for one in COMPARISONS] + [f"{one}_z" for one in logic]
    outputs += ["nan", "inf", "high", "low", "none", "not"]
    body = " ".join(f"{one}_y = {one}(x, y)" for one in COMPARISONS) + " p = Less(x, y) q = Greater(x, z) "
    body += (
        " ".join(f"{one}_z = {one}(p, q)" for one in logic)
        + """ nan = IsNaN(x) inf = IsInf(x) not = Not(p)
        high = IsInf<detect_negative=0>(x) low = IsInf<detect_positive=0>(x)
        none = IsInf<detect_negative=0, detect_positive=0>(x)"""
    )
    said = ", ".join(f"bool[{x.size}] {one}" for one in outputs)
    text = f"g (float[{x.size}] x, float[{x.size}] y) => ({said}) <float z = {{0}}> {{ {body} }}"
    found = run(built(model_of(text)), {"x": x, "y": y}, level)
    wanted = {f"{one}_y": of(x, y) for one, of in COMPARISONS.items()}
    wanted |= {f"{one}_z": of(x < y, x > 0) for one, of in logic.items()}
    wanted |= {"nan": np.isnan(x), "inf": np.isinf(x), "high": x == np.inf, "low": x == -np.inf, "not": ~(x < y)}
    wanted["none"] = np.zeros(x.size, bool)
    for one, want in wanted.items():
        assert found[one].dtype == bool
        np.testing.assert_array_equal(found[one], want, err_msg=one)


def _converted(x: Array, dtype: str) -> Array:
    """Returns numbers in another type as NumPy converts them on x86-64."""
    if dtype == "bool" or x.dtype != np.float32 or dtype == "float32":
        return x.astype(dtype)
    middle = "int64" if dtype == "int64" else "int32"
    low = int(np.iinfo(middle).min)
    whole = [int(one) if np.isfinite(one) and low <= one < -low else low for one in x.tolist()]
    return wrapped(np.array(whole, object), dtype)


@every_level
@pytest.mark.parametrize("source", NAMES)
def test_conversions(level: str, source: str) -> None:
    for count in (7, 300):
        x = reals_of_all_sizes(count)[-count:] if source == "float32" else np.zeros(0)
        if source == "float32":
            x = np.concatenate([x, np.float32(2.0) ** np.arange(64), [-300.7, 255.9, -129, 2147483520]]).astype(
                np.float32
            )
        elif source == "bool":
            x = np.random.default_rng(0).random(count) < 0.5
        else:
            x = whole_numbers(source, count)
        targets = [one for one in NAMES if one != source]
        codes = {one: int(ir.DataType.from_numpy(np.dtype(one))) for one in targets}
        outputs = ", ".join(f"{NAMES[one]}[{x.size}] {one}_y" for one in targets)
        body = " ".join(f"{one}_y = Cast<to={codes[one]}>(x)" for one in targets)
        found = run(built(model_of(f"g ({NAMES[source]}[{x.size}] x) => ({outputs}) {{ {body} }}")), {"x": x}, level)
        for one in targets:
            np.testing.assert_array_equal(found[f"{one}_y"], _converted(x, one), err_msg=one)
            assert found[f"{one}_y"].dtype == one


@every_level
@pytest.mark.parametrize("dtype", NAMES)
def test_operands_are_broadcast(level: str, dtype: str) -> None:
    name, dice = NAMES[dtype], np.random.default_rng(0)
    text = f"""g (bool[n,1,5] c, {name}[3,1] a, {name}[n,3,5] b, {name} s) => ({name}[n,3,5] y, {name}[n,3,5] z)
        {{ y = Where(c, a, b) z = Where(c, s, a) }}"""
    ranges = {"n": DimRange(1, 60, 4)}
    artifact = built(dynamic(text, ranges), ranges)
    for count in (1, 4, 19, 60):
        shapes = {"a": (3, 1), "b": (count, 3, 5), "s": ()}
        given = {one: dice.integers(0, 100, shape).astype(dtype) for one, shape in shapes.items()}
        given["c"] = dice.random((count, 1, 5)) < 0.5
        found = run(artifact, given, level, threads=1 + count % 2)
        np.testing.assert_array_equal(found["y"], np.where(given["c"], given["a"], given["b"]))
        wanted = np.broadcast_to(np.where(given["c"], given["s"], given["a"]), found["z"].shape)
        np.testing.assert_array_equal(found["z"], wanted)


def test_any_byte_but_zero_is_true() -> None:
    text = "g (bool[17] c, float[17] a) => (float[17] y, int64[17] n, bool[17] t) "
    text += "{ z = Neg(a) y = Where(c, a, z) n = Cast<to=7>(c) t = Not(c) }"
    truths = np.arange(17, dtype=np.uint8) * np.uint8(15)
    a = np.ones(17, np.float32)
    for level in FLOAT_LEVELS:
        found = run(built(model_of(text)), {"c": truths.view(bool), "a": a}, level)
        np.testing.assert_array_equal(found["y"], np.where(truths, 1, -1))
        np.testing.assert_array_equal(found["n"], truths != 0)
        np.testing.assert_array_equal(found["t"].view(np.uint8), truths == 0)


ACTIVATIONS = (
    "Celu<alpha=0.7>", "Selu", "Selu<alpha=1.5, gamma=2.0>", "ThresholdedRelu<alpha=0.3>",
    "Shrink<lambd=0.4, bias=0.1>", "Softsign", 'Gelu<approximate="tanh">', "Gelu", "Elu<alpha=0.5>", "Mish",
    "HardSwish", "Relu",
)  # fmt: skip


@every_level
@pytest.mark.parametrize("count", [1, 17, 257])
def test_activations(level: str, count: int) -> None:
    x = (4 * np.random.default_rng(count).standard_normal(count)).astype(np.float32)
    outputs = ", ".join(f"float[{count}] y{number}" for number in range(len(ACTIVATIONS)))
    body = " ".join(f"y{number} = {one}(x)" for number, one in enumerate(ACTIVATIONS))
    model = model_of(f"g (float[{count}] x) => ({outputs}) {{ {body} }}")
    wanted = ReferenceEvaluator(ir.to_proto(model)).run(None, {"x": x})
    found = run(built(model), {"x": x}, level)
    for number, (one, want) in enumerate(zip(ACTIVATIONS, wanted, strict=True)):
        np.testing.assert_allclose(found[f"y{number}"], want, rtol=3e-6, atol=3e-7, err_msg=one)


@every_level
def test_more_operands_than_a_step_has(level: str) -> None:
    inputs = [f"x{number}" for number in range(9)]
    given = {
        name: np.random.default_rng(number).standard_normal((3, 7)).astype(np.float32)
        for number, name in enumerate(inputs)
    }
    given["x8"] = given["x8"][:1]
    said = ", ".join(f"float[{1 if name == 'x8' else 3},7] {name}" for name in inputs)
    names = ", ".join(inputs)
    text = f"""g ({said}) => (float[3,7] a, float[3,7] b, float[3,7] c, float[3,7] d)
        {{ a = Sum({names}) b = Mean({names}) c = Max({names}) d = Min({names}) }}"""
    found = run(built(model_of(text)), given, level)
    stacked = np.stack([np.broadcast_to(one, (3, 7)) for one in given.values()]).astype(np.float64)
    for one, want in zip("abcd", (stacked.sum(0), stacked.mean(0), stacked.max(0), stacked.min(0)), strict=True):
        np.testing.assert_allclose(found[one], want, rtol=1e-5, atol=1e-6)


def test_bounds_slopes_and_exponents_may_be_computed() -> None:
    text = """g (float[2,3,40] x, float l, float h, float[3,1] s, int64[40] e) =>
        (float[2,3,40] c, float[2,3,40] p, float[2,3,40] w, float[2,3,40] r)
        { c = Clip(x, l, h) p = PRelu(x, s) w = Pow(x, e) n = Neg(s) r = Clip(x, , h) }"""
    dice = np.random.default_rng(0)
    x, s = dice.standard_normal((2, 3, 40)).astype(np.float32), dice.standard_normal((3, 1)).astype(np.float32)
    e, low, high = dice.integers(-3, 4, 40), np.array(-0.5, np.float32), np.array(0.25, np.float32)
    found = run(built(model_of(text)), {"x": x, "l": low, "h": high, "s": s, "e": e})
    np.testing.assert_array_equal(found["c"], np.clip(x, low, high))
    np.testing.assert_array_equal(found["r"], np.minimum(x, high))
    np.testing.assert_allclose(found["p"], np.where(x < 0, x * s, x), rtol=1e-6)
    np.testing.assert_allclose(found["w"], x.astype(np.float64) ** e, rtol=1e-6)


def _steps(artifact: Artifact) -> list[str]:
    return [str(step["kernel"]) for step in document_from_json(artifact.files[DOCUMENT_FILE]).steps]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("(float[50] x, float[50] z) => (float[50] y) { c = Less(x, z) n = Not(c) y = Where(n, x, z) }", 1),
        ("(float[50] x) => (int64[50] y) { r = Relu(x) f = Floor(r) y = Cast<to=7>(f) }", 1),
        ("(int64[50] x) => (float[50] y) <float h = {0.5}> { f = Cast<to=1>(x) y = Mul(f, h) }", 1),
        ("(int64[50] x) => (float[50] y) <int64 h = {5}> { f = Add(x, h) y = Cast<to=1>(f) }", 1),
        ("(float[50] x) => (int64[50] y) <int64 h = {5}> { f = Cast<to=7>(x) y = Mod(f, h) }", 1),
        ("(int32[50] x, int32[50] z) => (bool[50] y) { m = Mul(x, z) y = Less(m, z) }", 1),
        ("(int32[50] x, int32[50] z) => (float[50] y) { m = Mul(x, z) y = Cast<to=1>(m) }", 1),
        ("(int64[50] x, int64[50] z) => (bool[50] y) { a = Less(x, z) b = Equal(x, z) y = Or(a, b) }", 1),
        ("(float[50] x, int64[50] z) => (float[50] y) <int64 h = {5}> { c = Less(z, h) y = Where(c, x, x) }", 2),
        ("(float[50] x) => (float[50] y) <float h = {3.0}> { i = Cast<to=6>(x) f = Cast<to=1>(i) y = Mul(f, h) }", 2),
    ],
)  # fmt: skip
def test_chains_are_one_step_where_their_domain_is_one(text: str, count: int) -> None:
    model = model_of(f"g {text}")
    artifact, dice = built(model), np.random.default_rng(0)
    assert _steps(artifact) == ["elementwise"] * count
    kinds = {value.name or "": value.dtype for value in model.graph.inputs}
    given = {
        name: (9 * dice.standard_normal(50)).astype(np.float32)
        if kind == ir.DataType.FLOAT
        else whole_numbers("int32", 50, len(name)).astype(kind.numpy() if kind else None)
        for name, kind in kinds.items()
    }
    with np.errstate(all="ignore"):
        (wanted,) = ReferenceEvaluator(ir.to_proto(model)).run(None, given)
    for level in FLOAT_LEVELS:
        np.testing.assert_array_equal(run(artifact, given, level)["y"], wanted)


def test_a_narrow_number_between_two_operators_keeps_its_width() -> None:
    """The product wraps before it is compared and divided."""
    text = "g (int8[3] x) => (int8[3] y, uint8[3] z) <int8 h = {3}> { m = Mul(x, h) y = Div(m, h) z = Cast<to=2>(y) }"
    for level in FLOAT_LEVELS:
        found = run(built(model_of(text)), {"x": np.array([100, -100, 2], np.int8)}, level)
        np.testing.assert_array_equal(found["y"], [14, -14, 2])
        np.testing.assert_array_equal(found["z"], [14, 242, 2])


@every_level
def test_numbers_that_follow_from_sizes(level: str) -> None:
    text = """g (float[n,3,w] x, bool[n] k) => (int64[3] s, int64[2] t, int64 c, float[w,n] f, int64[n] z, bool[n,2] o,
        int64[w] r, int64[2] j, int32[n] b) <int64 zero = {0}, int64 one = {1}, int64[1] two = {2},
        int64[2] turned = {2,0}>
        { s = Shape(x) t = Shape<start=-2>(x) c = Size(x) st = Gather(s, turned)
        f = ConstantOfShape<value = float {2.5}>(st) n0 = Shape(k) z = ConstantOfShape(n0) n2 = Concat<axis=0>(n0, two)
        o = ConstantOfShape<value = bool {1}>(n2) w1 = Shape<start=2>(x) ws = Squeeze(w1) r = Range(zero, ws, one)
        j = Concat<axis=0>(w1, two) b = ConstantOfShape<value = int32 {-7}>(n0) }"""
    ranges = {"n": DimRange(1, 8, 2), "w": DimRange(1, 40, 5)}
    artifact = built(dynamic(text, ranges), ranges)
    for n, w in ((1, 1), (2, 17), (8, 40)):
        found = run(artifact, {"x": np.zeros((n, 3, w), np.float32), "k": np.zeros(n, bool)}, level)
        wanted = {
            "s": [n, 3, w], "t": [3, w], "c": n * 3 * w, "f": np.full((w, n), 2.5), "z": np.zeros(n),
            "o": np.ones((n, 2)), "r": np.arange(w), "j": [w, 2], "b": np.full(n, -7),
        }  # fmt: skip
        for name, want in wanted.items():
            np.testing.assert_array_equal(found[name], want, err_msg=name)


@every_level
def test_ranges(level: str) -> None:
    text = """g () => (float[37] a, int32[37] b, int64[37] c) <float p = {1.5}, float q = {-7.6}, float r = {-0.25},
        int32 s = {5}, int32 t = {116}, int32 u = {3}, int64 v = {9}, int64 w = {-28}, int64 x = {-1}>
        { a = Range(p, q, r) b = Range(s, t, u) c = Range(v, w, x) }"""
    found = run(built(model_of(text)), {}, level, threads=2)
    np.testing.assert_array_equal(found["a"], np.float32(1.5) - np.arange(37, dtype=np.float32) * np.float32(0.25))
    np.testing.assert_array_equal(found["b"], np.arange(5, 116, 3))
    np.testing.assert_array_equal(found["c"], np.arange(9, -28, -1))


@every_level
def test_a_mask_that_keeps_all(level: str) -> None:
    text = "g (float[3,7] x) => (float[3,7] y, bool[3,7] m) { y, m = Dropout(x) }"
    x = np.random.default_rng(0).standard_normal((3, 7)).astype(np.float32)
    found = run(built(model_of(text)), {"x": x}, level)
    np.testing.assert_array_equal(found["y"], x)
    np.testing.assert_array_equal(found["m"], np.ones((3, 7), bool))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(int64[3] x) => (int64[3] y) <float e = {1.5}> { y = Pow(x, e) }", "a Pow of whole numbers by a float"),
        ("(double[3] x) => (double[3] y) { y = Neg(x) }", "no kernel reads double"),
        ("(float[3] x) => (float[3] y) <bool t = {1}, float r = {0.5}> { y = Dropout(x, r, t) }", "in training"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, why: str) -> None:
    model = model_of(f"g {text}")
    assert why in refusal_of(model.graph[0], model, {})
