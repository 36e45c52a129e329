# SPDX-License-Identifier: Apache-2.0
"""Numbers at the edge, and inputs without elements, mean one thing on every backend: docs/reference/verification.md.

A backend gives what is wanted, refuses the operator, or hands the call on to the next variant; nothing else.
"""

from pathlib import Path
from typing import Any

import nndeploy_native.plugin
import nndeploy_onnxruntime.plugin
import nndeploy_openvino.plugin
import numpy as np
import onnx
import onnx.parser
import onnx.reference
import onnx_ir as ir
import pytest

from nndeploy.errors import BuildRefusedError, InputError, OtherVariantError
from nndeploy.passes import optimise
from nndeploy.plugin.interface import BuildOptions, OpenOptions
from nndeploy.target.target import Target, host_target

PLUGINS = {
    one.name: one
    for one in (
        nndeploy_native.plugin.Plugin(),
        nndeploy_onnxruntime.plugin.Plugin(),
        nndeploy_openvino.plugin.Plugin(),
    )
}
NAN, INF = np.nan, np.inf
REFUSED, HANDED_ON = "refused", "handed on"
MIN32, MAX32, MIN64, MAX64 = -(2**31), 2**31 - 1, -(2**63), 2**63 - 1


def f32(*numbers: float) -> "np.ndarray[Any, Any]":
    return np.array(numbers, np.float32)


def i32(*numbers: int) -> "np.ndarray[Any, Any]":
    return np.array(numbers, np.int32)


def i64(*numbers: int) -> "np.ndarray[Any, Any]":
    return np.array(numbers, np.int64)


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 20, "ai.onnx.ml" : 3]> g ' + text)


def outcome(backend: str, text: str, inputs: dict[str, Any], folder: Path) -> Any:
    """Returns the outputs, or what the backend does instead."""
    found = ir.from_proto(onnx.shape_inference.infer_shapes(parsed(text), data_prop=True))
    optimise(found, {})
    plugin, options = PLUGINS[backend], BuildOptions()
    target = Target("box", host_target().arch, cpu_features=host_target().cpu_features)
    if not all(said.ok for said in plugin.supports(found, target, options)):
        return REFUSED
    try:
        artifact = plugin.build(found, target, options, folder)
    except BuildRefusedError:
        return REFUSED
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    session = plugin.open(files, dict(artifact.metadata), OpenOptions(threads=1))
    try:
        return session.run({name: np.asarray(value) for name, value in inputs.items()})
    except OtherVariantError:
        return HANDED_ON
    finally:
        session.close()


X, A, E = f32(1, NAN, -2, -0.0), f32(0, 0, NAN, 0.0), np.zeros((2, 0), np.float32)
IMAGE = f32(*range(16)).reshape(1, 1, 4, 4)
IMAGE[0, 0, 1, 1] = NAN
POOLED = f32(NAN, 7, 13, 15).reshape(1, 1, 2, 2)
ROWS = f32(1, NAN, 3, 4, 5, 6).reshape(2, 3)
ROW = "(float[2,3] x) => (%s y) { y = %s(x) }"
BOTH = "(float[4] x, float[4] a) => (float[4] y) { y = %s(x, a) }"
HALVES = "(%s[N] x, %s[N] a) => (%s[N] y) { y = %s(x, a) }"
DIVIDENDS, DIVISORS = i32(MIN32, 7, -7, MAX32, MIN32, -7), i32(-1, 0, 2, 3, 0, -2)
WIDE, WIDE_DIVISORS = i64(MIN64, 7, -7, MAX64, MIN64, -7), i64(-1, 0, 2, 3, 0, -2)
EMPTY = "(float[2,N] x) => (float[2] y) <int64[1] k = {1}> { y = %s<keepdims = 0>(x, k) }"

NUMBERS: dict[str, tuple[str, dict[str, Any], Any, set[str]]] = {
    "Max": (BOTH % "Max", {"x": X, "a": A}, f32(1, NAN, NAN, 0), {"native", "onnxruntime"}),
    "Min": (BOTH % "Min", {"x": X, "a": A}, f32(0, NAN, NAN, 0), {"native", "onnxruntime"}),
    "Relu": ("(float[4] x) => (float[4] y) { y = Relu(x) }", {"x": X}, f32(1, NAN, 0, 0), {"native", "onnxruntime"}),
    "Clip": (
        "(float[4] x) => (float[4] y) <float a = {-1}, float b = {0.5}> { y = Clip(x, a, b) }",
        {"x": X}, f32(0.5, NAN, -1, 0), {"native", "onnxruntime"},
    ),
    "ReduceMax": (ROW % ("float[1,1]", "ReduceMax"), {"x": ROWS}, f32(NAN).reshape(1, 1), {"native"}),
    "ReduceMin": (ROW % ("float[1,1]", "ReduceMin"), {"x": ROWS}, f32(NAN).reshape(1, 1), {"native"}),
    "ArgMax": (
        ROW % ("int64[2]", "ArgMax<axis = 1, keepdims = 0>"), {"x": ROWS}, i64(1, 2), {"native"},
    ),
    "ArgMin": (
        ROW % ("int64[2]", "ArgMin<axis = 1, keepdims = 0>"), {"x": ROWS}, i64(1, 0), {"native"},
    ),
    "MaxPool": (
        "(float[1,1,4,4] x) => (float[1,1,2,2] y) { y = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x) }",
        {"x": IMAGE}, POOLED, {"native"},
    ),
    "GlobalMaxPool": (
        "(float[1,1,4,4] x) => (float[1,1,1,1] y) { y = GlobalMaxPool(x) }",
        {"x": IMAGE}, f32(NAN).reshape(1, 1, 1, 1), {"native"},
    ),
    "MaxPool of -infinity": (
        "(float[1,1,2,2] x) => (float[1,1,1,1] y) { y = MaxPool<kernel_shape = [2,2]>(x) }",
        {"x": np.full((1, 1, 2, 2), -INF, np.float32)}, np.full((1, 1, 1, 1), -INF, np.float32), {"native"},
    ),
    "MaxRoiPool": (
        """(float[1,1,4,4] x) => (float[1,1,2,2] y) <float[1,5] r = {0, 0, 0, 3, 3}>
        { y = MaxRoiPool<pooled_shape = [2,2]>(x, r) }""",
        {"x": IMAGE[:, :, ::-1, ::-1].copy()}, f32(15, 13, 7, NAN).reshape(1, 1, 2, 2), {"native"},
    ),
    "RoiAlign of the largest": (
        """(float[1,1,4,4] x) => (float[1,1,1,1] y) <float[1,4] r = {0.5, 0.5, 2.5, 2.5}, int64[1] i = {0}>
        { y = RoiAlign<mode = "max", output_height = 1, output_width = 1>(x, r, i) }""",
        {"x": IMAGE}, f32(NAN).reshape(1, 1, 1, 1), {"native"},
    ),
    "LRN beside an infinity": (
        "(float[1,4,1,1] x) => (float[1,4,1,1] y) { y = LRN<size = 1, alpha = 1., beta = 1., bias = 0.>(x) }",
        {"x": f32(INF, 2, 1, 4).reshape(1, 4, 1, 1)}, f32(NAN, 0.5, 1, 0.25).reshape(1, 4, 1, 1), {"native"},
    ),
    "GRU of lengths": (
        """(float[2,1,1] x, int32[1] n) => (float[2,1,1,1] y)
        <float[1,3,1] w = {1,1,1}, float[1,3,1] r = {1,1,1}> { y, z = GRU<hidden_size = 1>(x, w, r, , n) }""",
        {"x": f32(NAN, 1).reshape(2, 1, 1), "n": i32(2)}, f32(NAN, NAN).reshape(2, 1, 1, 1), {"native"},
    ),
    "Hardmax": (
        "(float[2,3] x) => (float[2,3] y) { y = Hardmax(x) }",
        {"x": ROWS}, f32(0, 1, 0, 0, 0, 1).reshape(2, 3), set(),
    ),
    "Normalizer": (
        '(float[2,3] x) => (float[2,3] y) { y = ai.onnx.ml.Normalizer<norm = "MAX">(x) }',
        {"x": ROWS}, f32(NAN, NAN, NAN, 4 / 6, 5 / 6, 1).reshape(2, 3), set(),
    ),
    "text that a Loop stacks": (
        """(string[2] x, int64 n) => (string[K,2] y) <bool c = {1}>
        { y = Loop(n, c) <body = b (int64 i, bool k) => (bool d, string[2] e) { d = Identity(k) e = Identity(x) }> }""",
        {"x": np.array(["a", "b"], object), "n": np.array(2)}, np.array([["a", "b"]] * 2, object), set(),
    ),
    "TopK": (
        "(float[2,3] x) => (int64[2,2] y) <int64[1] k = {2}> { v, y = TopK(x, k) }",
        {"x": ROWS}, i64(1, 2, 2, 1).reshape(2, 2), {"native"},
    ),
    "Sin": ("(float[2] x) => (float[2] y) { y = Sin(x) }", {"x": f32(-0.0, 0)}, f32(-0.0, 0), set(PLUGINS)),
    "Tan": ("(float[2] x) => (float[2] y) { y = Tan(x) }", {"x": f32(-0.0, 0)}, f32(-0.0, 0), set(PLUGINS)),
    "Div of int32": (
        HALVES % ("int32", "int32", "int32", "Div"),
        {"x": DIVIDENDS, "a": DIVISORS}, i32(MIN32, 0, -3, 715827882, 0, 3), {"native", "onnxruntime"},
    ),
    "Div of int64": (
        HALVES % ("int64", "int64", "int64", "Div"),
        {"x": WIDE, "a": WIDE_DIVISORS}, i64(MIN64, 0, -3, MAX64 // 3, 0, 3), {"native", "onnxruntime"},
    ),
    "Mod of int32": (
        HALVES % ("int32", "int32", "int32", "Mod"),
        {"x": DIVIDENDS, "a": DIVISORS}, i32(0, 0, 1, 1, 0, -1), {"native", "onnxruntime"},
    ),
    "Mod of int64 with fmod": (
        HALVES % ("int64", "int64", "int64", "Mod<fmod = 1>"),
        {"x": WIDE, "a": WIDE_DIVISORS}, i64(0, 0, -1, 1, 0, -1), {"native", "onnxruntime"},
    ),
    "Div of int16": (
        HALVES % ("int16", "int16", "int16", "Div"),
        {"x": np.array([-32768, 7], np.int16), "a": np.array([-1, 0], np.int16)},
        np.array([-32768, 0], np.int16), set(),
    ),
    "Div of uint8": (
        HALVES % ("uint8", "uint8", "uint8", "Div"),
        {"x": np.array([200, 7], np.uint8), "a": np.array([0, 2], np.uint8)},
        np.array([0, 3], np.uint8), {"native", "onnxruntime"},
    ),
    "Div by a constant": (
        "(int64[N] x) => (int64[N] y) <int64[2] a = {-1, 0}> { y = Div(x, a) }",
        {"x": i64(MIN64, 5)}, i64(MIN64, 0), {"native", "onnxruntime"},
    ),
    "Relu of int32": (
        "(int32[N] x) => (int32[N] y) { y = Relu(x) }",
        {"x": i32(MAX32, MIN32, 3)}, i32(MAX32, 0, 3), {"native", "onnxruntime"},
    ),
    "Equal of large int32": (
        HALVES.replace("%s[N] y", "bool[N] y") % ("int32", "int32", "Equal"),
        {"x": i32(2**24 + 1), "a": i32(2**24)}, np.array([False]), {"native", "onnxruntime"},
    ),
    "ReduceSum of int32": (
        "(int32[2] x) => (int32[1] y) { y = ReduceSum(x) }",
        {"x": i32(2**24, 1)}, i32(2**24 + 1), {"native", "onnxruntime"},
    ),
    **{
        f"{name} of int32 that wraps": (
            f"(int32[1,3] x) => (int32[1,1] y) <int64[1] a = {{1}}> {{ y = {name}(x, a) }}",
            {"x": np.full((1, 3), MAX32, np.int32)}, i32(want).reshape(1, 1), set(),
        )
        for name, want in (("ReduceL1", MAX32 - 2), ("ReduceSumSquare", 3))
    },
    "OneHot out of range": (
        "(int64[N] x) => (float[N,3] y) <int64 d = {3}, float[2] v = {0, 1}> { y = OneHot(x, d, v) }",
        {"x": i64(0, 3, -4)}, f32(1, 0, 0, 0, 0, 0, 0, 0, 0).reshape(3, 3), set(PLUGINS),
    ),
    "GRU of no frames": (
        """(float[T,B,1] x, float[1,1,1] h) => (float[1,B,1] y)
        <float[1,3,1] w = {1,1,1}, float[1,3,1] r = {1,1,1}> { a, y = GRU<hidden_size = 1>(x, w, r, , , h) }""",
        {"x": np.zeros((0, 1, 1), np.float32), "h": f32(0.5).reshape(1, 1, 1)}, f32(0.5).reshape(1, 1, 1), set(),
    ),
    "GRU of no frames, whose rank is not known": (
        """(float[T,B,1] x, bool[1] c) => (float[1,B,1] y)
        <float[1,3,1] w = {1,1,1}, float[1,3,1] r = {1,1,1}, int64[3] s = {0,0,1}>
        { k = Squeeze(c) z = Reshape(x, s)
          q = If(k) <then_branch = t () => (u) { u = Identity(z) }, else_branch = f () => (v) { v = Squeeze(z) }>
          a, y = GRU<hidden_size = 1>(q, w, r) }""",
        {"x": np.zeros((0, 1, 1), np.float32), "c": np.array([True])}, np.zeros((1, 1, 1), np.float32), set(),
    ),
    "Loop of less than no rounds": (
        """(int64 n, float[2] x) => (float[2] y) <bool c = {1}>
        { y = Loop(n, c, x) <body = b (int64 i, bool k, float[2] a) => (bool d, float[2] e)
          { d = Identity(k) e = Add(a, a) }> }""",
        {"n": np.array(-1), "x": f32(1, 2)}, f32(1, 2), {"onnxruntime"},
    ),
    "FeatureVectorizer of no rows": (
        """(float[N,3] x, float[N,1] z) => (float[N,4] y)
        { y = ai.onnx.ml.FeatureVectorizer<inputdimensions = [3,1]>(x, z) }""",
        {"x": np.zeros((0, 3), np.float32), "z": np.zeros((0, 1), np.float32)}, np.zeros((0, 4), np.float32), set(),
    ),
    "LSTM of no sequences": (
        """(float[T,B,1] x) => (float[T,1,B,1] y) <float[1,4,1] w = {1,1,1,1}, float[1,4,1] r = {1,1,1,1}>
        { y = LSTM<hidden_size = 1>(x, w, r) }""",
        {"x": np.zeros((2, 0, 1), np.float32)}, np.zeros((2, 1, 0, 1), np.float32), {"native"},
    ),
    "InstanceNormalization of no rows": (
        "(float[1,2,H,3] x) => (float[1,2,H,3] y) <float[2] s = {1,1}> { y = InstanceNormalization(x, s, s) }",
        {"x": np.zeros((1, 2, 0, 3), np.float32)}, np.zeros((1, 2, 0, 3), np.float32), {"native"},
    ),
    "Unique of no columns": (
        "(float[N,M] x) => (float[a,b] y) { y = Unique<axis = 0>(x) }",
        {"x": np.zeros((3, 0), np.float32)}, np.zeros((1, 0), np.float32), set(),
    ),
    **{
        name: (EMPTY % name, {"x": E}, f32(want, want), set())
        for name, want in (
            ("ReduceSum", 0), ("ReduceL1", 0), ("ReduceL2", 0), ("ReduceSumSquare", 0), ("ReduceProd", 1),
            ("ReduceLogSumExp", -INF), ("ReduceLogSum", -INF), ("ReduceMean", NAN),
        )
    },
    "ReduceMax of none": (EMPTY % "ReduceMax", {"x": E}, f32(-INF, -INF), set()),
    "ReduceMin of none": (EMPTY % "ReduceMin", {"x": E}, f32(INF, INF), set()),
}  # fmt: skip
"""Name -> model, inputs, what is wanted, and the backends that give it."""


@pytest.mark.parametrize("backend", PLUGINS)
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_at_the_edge_mean_the_same(backend: str, name: str, tmp_path: Path) -> None:
    text, inputs, wanted, takers = NUMBERS[name]
    found = outcome(backend, text, inputs, tmp_path)
    if isinstance(found, str):
        assert backend not in takers, found
        return
    assert found["y"].dtype == wanted.dtype
    np.testing.assert_array_equal(found["y"], wanted)
    if name in ("Sin", "Tan"):
        np.testing.assert_array_equal(np.signbit(found["y"]), np.signbit(wanted))


TABLE = {"x": f32(*range(10)).reshape(5, 2)}
INDICES: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "Gather": ("(float[5,2] x, int64[N] i) => (float[N,2] y) { y = Gather(x, i) }", {"i": i64(0, 4, -5)}, set(PLUGINS)),
    "Gather of int32 that were moved": ("""(float[5,2] x, int32[N] i) => (float[N,1,2] y) <int64[1] a = {1}>
        { u = Unsqueeze(i, a) y = Gather(x, u) }""", {"i": i32(0, 4, -5)}, set(PLUGINS)),
    "Gather by what is computed": (
        "(float[5,2] x, int64[N] i) => (float[N,2] y) { n = Neg(i) y = Gather(x, n) }", {"i": i64(0, 4, -4)},
        {"native", "onnxruntime"},
    ),
    "GatherElements": (
        "(float[5,2] x, int64[N,2] i) => (float[N,2] y) { y = GatherElements(x, i) }",
        {"i": i64(0, 4, -5, 1).reshape(2, 2)}, set(PLUGINS),
    ),
    "GatherND": (
        "(float[5,2] x, int64[N,1] i) => (float[N,2] y) { y = GatherND(x, i) }", {"i": i64(0, 4, -5).reshape(3, 1)},
        {"native", "onnxruntime"},
    ),
    "ScatterElements": (
        "(float[5,2] x, int64[N,2] i, float[N,2] u) => (float[5,2] y) { y = ScatterElements(x, i, u) }",
        {"i": i64(0, 4, -5, 1).reshape(2, 2), "u": f32(1, 2, 3, 4).reshape(2, 2)}, {"native", "onnxruntime"},
    ),
    "ScatterND": (
        "(float[5,2] x, int64[N,1] i, float[N,2] u) => (float[5,2] y) { y = ScatterND(x, i, u) }",
        {"i": i64(0, 4).reshape(2, 1), "u": f32(1, 2, 3, 4).reshape(2, 2)}, {"native", "onnxruntime"},
    ),
    "MaxUnpool": (
        "(float[1,1,1,1] x, int64[1,1,1,1] i) => (float[1,1,2,2] y) { y = MaxUnpool<kernel_shape = [2,2]>(x, i) }",
        {"x": f32(1).reshape(1, 1, 1, 1), "i": i64(3).reshape(1, 1, 1, 1)}, {"native"},
    ),
}  # fmt: skip
"""Name -> model, inputs in range beside `TABLE`, and the backends that take it."""


@pytest.mark.parametrize("backend", PLUGINS)
@pytest.mark.parametrize("name", INDICES)
def test_an_index_out_of_range_is_an_error(backend: str, name: str, tmp_path: Path) -> None:
    text, inputs, takers = INDICES[name]
    inputs = {**TABLE, **inputs}
    if outcome(backend, text, inputs, tmp_path) == REFUSED:
        assert backend not in takers
        return
    for index in (9, -9):
        wrong = inputs["i"].copy()
        wrong.reshape(-1)[0] = index
        with pytest.raises(Exception, match=r"9|Out of range") as caught:  # a library has a class of its own
            outcome(backend, text, {**inputs, "i": wrong}, tmp_path)
        assert backend != "native" or isinstance(caught.value, InputError)


HUGE = 10**13
SIZES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "Range": (
        "(int64 a, int64 b, int64 c) => (int64[K] y) { y = Range(a, b, c) }",
        {"a": np.int64(2), "b": np.int64(-4), "c": np.int64(-3)}, {"b": np.int64(-HUGE)},
    ),
    "Range of floats": (
        "(float b) => (float[K] y) <float a = {0}, float c = {0.5}> { y = Range(a, b, c) }",
        {"b": np.float32(1.5)}, {"b": np.float32(HUGE)},
    ),
    "Range in a body": (
        """(bool c, int64 b) => (int64[K] y) <int64 z = {0}, int64 o = {1}> { y = If (c) <
        then_branch = t () => (int64[K] p) { p = Range(z, b, o) }, else_branch = e () => (int64[1] q)
        { q = Constant<value_ints = [7]>() }> }""",
        {"c": np.bool_(True), "b": np.int64(3)}, {"b": np.int64(HUGE)},
    ),
    "ConstantOfShape": (
        "(int64[2] s) => (float[A,B] y) { y = ConstantOfShape(s) }", {"s": i64(2, 0)}, {"s": i64(HUGE, 1)},
    ),
    "HannWindow": ("(int64 n) => (float[K] y) { y = HannWindow(n) }", {"n": np.int64(4)}, {"n": np.int64(HUGE)}),
    "MelWeightMatrix": (
        """(int64 n, int64 d) => (float[A,B] y) <int64 r = {8000}, float l = {0}, float h = {4000}>
        { y = MelWeightMatrix(n, d, r, l, h) }""",
        {"n": np.int64(2), "d": np.int64(8)}, {"n": np.int64(HUGE)},
    ),
    "Expand": ("(float[2,1] x, int64[2] s) => (float[A,B] y) { y = Expand(x, s) }",
               {"x": f32(1, 2).reshape(2, 1), "s": i64(1, 3)}, {"s": i64(1, HUGE)}),
    "Expand by more axes": (
        "(float[2] x, int64[3] s) => (float[A,B,C] y) { y = Expand(x, s) }",
        {"x": f32(1, 2), "s": i64(3, 1, 1)}, {"s": i64(10**7, 10**6, 1)},
    ),
    "Tile": ("(float[2] x, int64[1] r) => (float[K] y) { y = Tile(x, r) }",
             {"x": f32(1, 2), "r": i64(3)}, {"r": i64(HUGE)}),
    "Resize to sizes": (
        "(float[1,1,2,2] x, int64[4] s) => (float[A,B,C,D] y) { y = Resize(x, , , s) }",
        {"x": f32(1, 2, 3, 4).reshape(1, 1, 2, 2), "s": i64(1, 1, 3, 3)}, {"s": i64(1, 1, 10**7, 10**6)},
    ),
    "Resize by scales": (
        "(float[1,1,2,2] x, float[4] s) => (float[A,B,C,D] y) { y = Resize(x, , s) }",
        {"x": f32(1, 2, 3, 4).reshape(1, 1, 2, 2), "s": f32(1, 1, 2, 2)}, {"s": f32(1, 1, 1e7, 1e6)},
    ),
    "Resize of axes": (
        "(float[2,2] x, int64[1] s) => (float[A,2] y) { y = Resize<axes = [0]>(x, , , s) }",
        {"x": f32(1, 2, 3, 4).reshape(2, 2), "s": i64(4)}, {"s": i64(HUGE)},
    ),
    "OneHot": (
        "(int64[2] x, int64 d) => (float[2,K] y) <float[2] v = {0, 1}> { y = OneHot(x, d, v) }",
        {"x": i64(0, 1), "d": np.int64(3)}, {"d": np.int64(HUGE)},
    ),
    "Pad": ("(float[2] x, int64[2] p) => (float[K] y) { y = Pad(x, p) }",
            {"x": f32(1, 2), "p": i64(1, 0)}, {"p": i64(0, HUGE)}),
    "Pad of axes": (
        "(float[2,2] x, int64[2] p) => (float[2,K] y) <int64[1] k = {-1}> { y = Pad(x, p, , k) }",
        {"x": f32(1, 2, 3, 4).reshape(2, 2), "p": i64(1, 0)}, {"p": i64(HUGE, 0)},
    ),
    "CenterCropPad": (
        "(float[2,2] x, int64[1] s) => (float[A,2] y) { y = CenterCropPad<axes = [0]>(x, s) }",
        {"x": f32(1, 2, 3, 4).reshape(2, 2), "s": i64(4)}, {"s": i64(HUGE)},
    ),
    "MaxUnpool": (
        """(float[1,1,1,1] x, int64[1,1,1,1] i, int64[4] s) => (float[A,B,C,D] y)
        { y = MaxUnpool<kernel_shape = [2,2]>(x, i, s) }""",
        {"x": f32(1).reshape(1, 1, 1, 1), "i": i64(3).reshape(1, 1, 1, 1), "s": i64(1, 1, 2, 2)},
        {"s": i64(1, 1, 10**7, 10**6)},
    ),
    "AffineGrid": (
        "(float[1,2,3] x, int64[4] s) => (float[A,B,C,D] y) { y = AffineGrid(x, s) }",
        {"x": f32(1, 0, 0, 0, 1, 0).reshape(1, 2, 3), "s": i64(1, 1, 2, 2)}, {"s": i64(1, 1, 10**7, 10**6)},
    ),
    "Col2Im": (
        "(float[1,4,1] x, int64[2] s) => (float[1,1,A,B] y) <int64[2] k = {2,2}> { y = Col2Im(x, s, k) }",
        {"x": f32(1, 2, 3, 4).reshape(1, 4, 1), "s": i64(2, 2)}, {"s": i64(10**7, 10**6)},
    ),
}  # fmt: skip
"""Name -> model, inputs, and those with which it asks for far too many elements."""


@pytest.mark.parametrize("backend", PLUGINS)
@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_numbers_of_a_call_say_are_bounded(backend: str, name: str, tmp_path: Path) -> None:
    text, inputs, huge = SIZES[name]
    found = outcome(backend, text, inputs, tmp_path)
    if isinstance(found, str):
        return
    reference = onnx.reference.ReferenceEvaluator(parsed(text)).run(None, inputs)[0]
    np.testing.assert_allclose(found["y"], reference, atol=1e-6)
    with pytest.raises(InputError):
        outcome(backend, text, {**inputs, **huge}, tmp_path)
