# SPDX-License-Identifier: Apache-2.0
"""Small models of many kinds. The expected values are computed in numpy with float64 sums, never by another backend."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from nndeploy.checking.tolerances import OperatorClass
from nndeploy.testing.case import Case
from nndeploy.values.types import Value

Array: TypeAlias = "np.ndarray[Any, Any]"


def _reals(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Array:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


def _integers(*shape: int, dtype: Any, low: int = -9, high: int = 9) -> Array:
    return np.asarray(np.random.default_rng(1).integers(low, high, shape)).astype(dtype)


def _texts(*values: str) -> Array:
    return np.array(values, dtype=object)


def _float32(value: Any) -> Array:
    return np.asarray(value).astype(np.float32)


def _matmul(a: Array, b: Array) -> Array:
    return _float32(a.astype(np.float64) @ b.astype(np.float64))


def _softmax(x: Array) -> Array:
    e = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return _float32(e / e.sum(axis=-1, keepdims=True))


def _convolved(x: Array, w: Array, b: Array) -> Array:
    """Conv with stride 1 and without padding; x is (N, C, H, W), w (M, C, K, K)."""
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), w.shape[2:], axis=(2, 3))
    return _float32(np.einsum("nchwij,mcij->nmhw", windows, w.astype(np.float64)) + b[:, None, None])


def _half_to_even(x: Array, scale: float, zero_point: int) -> Array:
    steps: Array = np.rint(x.astype(np.float32) / np.float32(scale)) + zero_point
    return steps.clip(-128, 127).astype(np.int8)


def _written(array: Array) -> str:
    """Returns the values of an array as ONNX text."""
    return ", ".join(repr(float(v)) for v in array.ravel())


_KERNEL = _reals(4, 3, 3, 3, seed=7)
_LARGE = _reals(256, 160, seed=8)  # 160 KiB: more than a backend keeps beside its graph
_MOVES, _ROUNDED, _SUMS, _FUNCTIONS = (
    OperatorClass.MOVES,
    OperatorClass.ROUNDED,
    OperatorClass.SUMS,
    OperatorClass.FUNCTIONS,
)

_ARITHMETIC = (
    Case(
        "two_inputs",
        "g (float[2,3] x, float[2,3] y) => (float[2,3] z) { z = Add(x, y) }",
        [[_reals(2, 3), _reals(2, 3, seed=1)], [_reals(2, 3, seed=2), _reals(2, 3, seed=3)]],
        lambda x, y: [x + y],
        _ROUNDED,
    ),
    Case(
        "two_outputs_one_inside",
        "g (float[2,3] x) => (float[2,3] y, float[2,3] z) { y = Relu(x) z = Mul(y, y) }",
        [[_reals(2, 3)]],
        lambda x: [np.maximum(x, 0), np.maximum(x, 0) ** 2],
        _ROUNDED,
    ),
    Case(
        "broadcast_of_a_constant",
        "g (float[2,3] x) => (float[2,3] y) <float[3] c = {0.5, -1.5, 2.0}> { y = Mul(x, c) }",
        [[_reals(2, 3)]],
        lambda x: [x * np.array([0.5, -1.5, 2.0], np.float32)],
        _ROUNDED,
    ),
    Case(
        "matrix_product",
        "g (float[4,32] x, float[32,5] y) => (float[4,5] z) { z = MatMul(x, y) }",
        [[_reals(4, 32), _reals(32, 5, seed=1)]],
        lambda x, y: [_matmul(x, y)],
        _SUMS,
    ),
    Case(
        "large_constant",
        f"g (float[2,256] x) => (float[2,160] y) <float[256,160] w = {{{_written(_LARGE)}}}> {{ y = MatMul(x, w) }}",
        [[_reals(2, 256)]],
        lambda x: [_matmul(x, _LARGE)],
        _SUMS,
    ),
    Case(
        "convolution_with_relu",
        f"""g (float[1,3,8,8] x) => (float[1,4,6,6] y)
        <float[4,3,3,3] w = {{{_written(_KERNEL)}}}, float[4] b = {{0.5, -0.5, 1.0, 0.0}}>
        {{ c = Conv(x, w, b) y = Relu(c) }}""",
        [[_reals(1, 3, 8, 8)]],
        lambda x: [np.maximum(_convolved(x, _KERNEL, np.array([0.5, -0.5, 1.0, 0.0])), 0)],
        _SUMS,
    ),
    Case(
        "softmax",
        "g (float[N,7] x) => (float[N,7] y) { y = Softmax<axis=-1>(x) }",
        [[_reals(3, 7)], [_reals(1, 7) * 30]],
        lambda x: [_softmax(x)],
        _FUNCTIONS,
    ),
    Case(
        "functions",
        "g (float[9] x) => (float[9] a, float[9] b, float[9] c) { a = Sigmoid(x) b = Tanh(x) c = Exp(x) }",
        [[_reals(9)]],
        lambda x: [_float32(1 / (1 + np.exp(-x.astype(np.float64)))), _float32(np.tanh(x)), _float32(np.exp(x))],
        _FUNCTIONS,
    ),
    Case(
        "model_function",
        """g (float[3] x) => (float[3] y) { y = local.scaled(x) }
        <domain: "local", opset_import: ["" : 21]>
        scaled (a) => (b) { s = Constant<value_float=2.0>() b = Mul(a, s) }""",
        [[_reals(3)]],
        lambda x: [x * 2],
        _ROUNDED,
    ),
)

_SHAPES = (
    Case(
        "free_sizes",
        "g (float[N,M] x, float[M] y) => (float[N,M] z) { z = Sub(x, y) }",
        [[_reals(2, 3), _reals(3)], [_reals(5, 1), _reals(1)], [_reals(2, 3), _reals(3, seed=4)]],
        lambda x, y: [x - y],
        _ROUNDED,
    ),
    Case(
        "rank_zero",
        "g (float x, float y) => (float z) { z = Add(x, y) }",
        [[_float32(1.5), _float32(2.25)], [_float32(-1), _float32(1)]],
        lambda x, y: [np.array(x + y)],
        _ROUNDED,
    ),
    Case(
        "empty_now_and_then",
        "g (float[N,3] x, float[M,3] y) => (float[K,3] z) { z = Concat<axis=0>(x, y) }",
        [[_reals(0, 3), _reals(2, 3)], [_reals(2, 3), _reals(0, 3)], [_reals(0, 3), _reals(0, 3)]],
        lambda x, y: [np.concatenate([x, y])],
        _MOVES,
    ),
    Case(
        "always_empty",
        "g (float[0,3] x) => (float[0,3] y) { y = Relu(x) }",
        [[_reals(0, 3)]],
        lambda x: [x],
        _MOVES,
    ),
    Case(
        "sum_over_nothing",
        "g (float[N,3] x) => (float[1,3] y) <int64[1] axes = {0}> { y = ReduceSum<keepdims=1>(x, axes) }",
        [[_reals(0, 3)], [_reals(4, 3)]],
        lambda x: [_float32(x.astype(np.float64).sum(axis=0, keepdims=True))],
        _SUMS,
    ),
    Case(
        "computed_shape",
        """g (float[N,4] x) => (float[A,B] y) <int64[1] first = {0}, int64[1] rest = {-1}, int64[1] two = {2}>
        { s = Shape(x) n = Gather<axis=0>(s, first) m = Mul(n, two) t = Concat<axis=0>(m, rest) y = Reshape(x, t) }""",
        [[_reals(3, 4)], [_reals(1, 4)]],
        lambda x: [x.reshape(2 * len(x), -1)],
        _MOVES,
    ),
    Case(
        "transposed_and_cut",
        """g (float[3,4] x) => (float[2,3] y) <int64[1] b = {1}, int64[1] e = {3}, int64[1] a = {0}>
        { t = Transpose<perm=[1,0]>(x) y = Slice(t, b, e, a) }""",
        [[_reals(3, 4)]],
        lambda x: [np.ascontiguousarray(x.T[1:3])],
        _MOVES,
    ),
    Case(
        "unused_input",
        "g (float[2] x, float[3] unused) => (float[2] y) { y = Neg(x) }",
        [[_reals(2), _reals(3)]],
        lambda x, _unused: [-x],
        _ROUNDED,
    ),
    Case(
        "handed_through",
        "g (float[2] x) => (float[2] same, float[2] y) { same = Identity(x) y = Abs(x) }",
        [[_reals(2)]],
        lambda x: [x, np.abs(x)],
        _MOVES,
    ),
    Case(
        "the_same_twice",
        "g (float[2] x) => (float[2] y, float[2] z) { y = Relu(x) z = Relu(x) }",
        [[_reals(2)]],
        lambda x: [np.maximum(x, 0), np.maximum(x, 0)],
        _MOVES,
    ),
    Case(
        "constants_alone",
        "g () => (float[2] y) <float[2] c = {1.0, 2.0}> { y = Add(c, c) }",
        [[]],
        lambda: [np.array([2, 4], np.float32)],
        _MOVES,
    ),
    Case(
        "a_constant_beside",
        "g (float[2] x) => (float[2] y, float[2] z) <float[2] c = {1.0, 2.0}> { y = Relu(x) z = Identity(c) }",
        [[_reals(2)]],
        lambda x: [np.maximum(x, 0), np.array([1, 2], np.float32)],
        _MOVES,
    ),
    Case(
        "names_of_every_kind",
        """g (float[2] "onnx::Add_0", float[2] "a/b:0", float[2] "758") => (float[2] "input.1", float[2] "z, \u00fc")
        { t = Add("onnx::Add_0", "a/b:0") "input.1" = Add(t, "758") "z, \u00fc" = Sub("a/b:0", "758") }""",
        [[_reals(2), _reals(2, seed=1), _reals(2, seed=2)]],
        lambda a, b, c: [a + b + c, b - c],
        _ROUNDED,
    ),
)

_TYPES = (
    Case(
        "int8_moved",
        "g (int8[2,3] x) => (int8[3,2] y) { y = Transpose<perm=[1,0]>(x) }",
        [[_integers(2, 3, dtype=np.int8, low=-128, high=127)]],
        lambda x: [np.ascontiguousarray(x.T)],
        _MOVES,
    ),
    Case(
        "uint8_wraps_around",
        "g (uint8[3] x) => (uint8[3] y) { y = Add(x, x) }",
        [[np.array([255, 200, 5], np.uint8)]],
        lambda x: [x + x],
        _MOVES,
    ),
    Case(
        "uint8_largest",
        "g (uint8[4] x, uint8[4] y) => (uint8[4] z) { z = Max(x, y) }",
        [[np.array([255, 0, 7, 128], np.uint8), np.array([1, 2, 200, 127], np.uint8)]],
        lambda x, y: [np.maximum(x, y)],
        _MOVES,
    ),
    Case(
        "int64_large",
        "g (int64[3] x) => (int64[3] y) { y = Add(x, x) }",
        [[np.array([2**40 + 3, -(2**40), 7])]],
        lambda x: [x + x],
        _MOVES,
    ),
    Case(
        "int32_arithmetic",
        "g (int32[3] x, int32[3] y) => (int32[3] z) { z = Mul(x, y) }",
        [[np.array([7, -3, 2**24 + 1], np.int32), np.array([5, 9, 3], np.int32)]],
        lambda x, y: [x * y],
        _MOVES,
    ),
    Case(
        "uint32_compared",
        "g (uint32[3] x, uint32[3] y) => (bool[3] z) { z = Less(x, y) }",
        [[np.array([2**31 + 5, 1, 7], np.uint32), np.array([7, 2**32 - 1, 7], np.uint32)]],
        lambda x, y: [x < y],
        _MOVES,
    ),
    Case(
        "bool_logic",
        "g (bool[N] x, bool[N] y) => (bool[N] z) { n = Not(x) z = And(n, y) }",
        [[np.array([True, False, False]), np.array([True, True, False])]],
        lambda x, y: [~x & y],
        _MOVES,
    ),
    Case(
        "positions",
        "g (float[3,5] x) => (int64[3] y) { y = ArgMax<axis=1, keepdims=0>(x) }",
        [[_reals(3, 5)]],
        lambda x: [x.argmax(axis=1)],
        _MOVES,
    ),
    Case(
        "looked_up",
        "g (int64[N] i) => (float[N,2] y) <float[3,2] w = {0.0, 1.0, 2.0, 3.0, 4.0, 5.0}> { y = Gather<axis=0>(w, i) }",
        [[np.array([2, 0, 1, 2])], [np.array([1])]],
        lambda i: [np.arange(6, dtype=np.float32).reshape(3, 2)[i]],
        _MOVES,
    ),
    Case(
        "float16_sum",
        "g (float16[3] x, float16[3] y) => (float16[3] z) { z = Add(x, y) }",
        [[_reals(3, dtype=np.float16), _reals(3, seed=1, dtype=np.float16)]],
        lambda x, y: [x + y],
        _ROUNDED,
    ),
    Case(
        "bfloat16_sum",
        "g (bfloat16[3] x, bfloat16[3] y) => (bfloat16[3] z) { z = Add(x, y) }",
        [[_reals(3, dtype=ml_dtypes.bfloat16), _reals(3, seed=1, dtype=ml_dtypes.bfloat16)]],
        lambda x, y: [x + y],
        _ROUNDED,
    ),
    Case(
        "float64_product",
        "g (double[3] x) => (double[3] y) { y = Mul(x, x) }",
        [[np.array([1 / 3, 1e-200, 1e150])]],
        lambda x: [x * x],
        _ROUNDED,
    ),
    Case(
        "float8_out",
        "g (float[3] x) => (float8e4m3fn[3] y) { y = Cast<to=17>(x) }",
        [[np.array([0.3, -2.5, 1000.0], np.float32)]],
        lambda x: [np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn)],
        _ROUNDED,
    ),
    Case(
        "int4_in_and_out",
        "g (int4[5] x) => (int4[5] y) { y = Identity(x) }",
        [[np.array([-8, 7, 0, 1, -1]).astype(ml_dtypes.int4)]],
        lambda x: [x],
        _MOVES,
    ),
    Case(
        "complex_handed_through",
        "g (complex64[2] x) => (complex64[2] y) { y = Identity(x) }",
        [[np.array([1 + 2j, -1j], np.complex64)]],
        lambda x: [x],
        _MOVES,
    ),
    Case(
        "quantised",
        """g (float[2,8] x) => (int8[2,8] q, float[2,8] y) <float s = {0.05}, int8 z = {3}>
        { q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }""",
        [[_reals(2, 8) * 4]],
        lambda x: [
            _half_to_even(x, 0.05, 3),
            (_half_to_even(x, 0.05, 3).astype(np.float32) - np.float32(3)) * np.float32(0.05),
        ],
        OperatorClass.ROUNDED,
    ),
    Case(
        "text_joined",
        "g (string[N] x, string[N] y) => (string[N] z) { z = StringConcat(x, y) }",
        [[_texts("a", "", "\u00fc\u4e2d"), _texts("b", "c", "\n")], [_texts(), _texts()]],
        lambda x, y: [np.array([a + b for a, b in zip(x, y, strict=True)], dtype=object)],
        _MOVES,
    ),
)


def _loop_sums(count: Array, x: Array) -> Sequence[Value]:
    steps = [x * (i + 1) for i in range(int(count))]
    return [x * int(count), np.stack(steps) if steps else np.zeros((0, *x.shape), x.dtype)]


_COMPOSITE = (
    Case(
        "sequence_out",
        "g (float[2] x, float[2] y) => (seq(float[2]) s) { s = SequenceConstruct(x, y) }",
        [[_reals(2), _reals(2, seed=1)]],
        lambda x, y: [[x, y]],
        _MOVES,
    ),
    Case(
        "sequence_in",
        "g (seq(float[N]) s, int64 i) => (float[N] y, int64 n) { y = SequenceAt(s, i) n = SequenceLength(s) }",
        [[[_reals(2), _reals(3)], np.array(1)], [[_reals(1)], np.array(-1)]],
        lambda s, i: [s[int(i)], np.array(len(s))],
        _MOVES,
    ),
    Case(
        "empty_sequence",
        "g (seq(float[N]) s) => (int64 n) { n = SequenceLength(s) }",
        [[[]]],
        lambda s: [np.array(len(s))],
        _MOVES,
    ),
    Case(
        "optional_in",
        "g (optional(float[2]) x) => (bool y) { y = OptionalHasElement(x) }",
        [[_reals(2)], [None]],
        lambda x: [np.array(x is not None)],
        _MOVES,
    ),
    Case(
        "optional_out",
        "g (float[2] x) => (optional(float[2]) y) { y = Optional(x) }",
        [[_reals(2)]],
        lambda x: [x],
        _MOVES,
    ),
    Case(
        "if_with_captured_values",
        """g (bool c, float[2] x) => (float[2] y) {
          y = If (c) <then_branch = then () => (float[2] t) { t = Neg(x) },
                      else_branch = other () => (float[2] e) { e = Add(x, x) }>
        }""",
        [[np.array(True), _reals(2)], [np.array(False), _reals(2)]],
        lambda c, x: [-x if c else x + x],
        _ROUNDED,
    ),
    Case(
        "loop_with_scan_output",
        """g (int64 n, float[2] x) => (float[2] y, float[K,2] all) <float[2] zero = {0.0, 0.0}> {
          go = Constant<value = bool {1}>()
          y, all = Loop (n, go, zero) <body = body (int64 i, bool c, float[2] a) => (bool d, float[2] b, float[2] e)
          { d = Identity(c) b = Add(a, x) e = Identity(b) }>
        }""",
        [[np.array(3), _reals(2)], [np.array(1), _reals(2)], [np.array(0), _reals(2)]],
        _loop_sums,
        _ROUNDED,
    ),
    Case(
        "loop_of_scalars",
        """g (int64 n) => (int64[K] all) {
          go = Constant<value = bool {1}>()
          all = Loop (n, go) <body = body (int64 i, bool c) => (bool d, int64 e)
          { d = Identity(c) e = Add(i, i) }>
        }""",
        [[np.array(4)]],
        lambda n: [2 * np.arange(int(n))],
        _MOVES,
    ),
    Case(
        "scan",
        """g (float[N,2] x) => (float[2] y, float[N,2] all) <float[2] zero = {0.0, 0.0}> {
          y, all = Scan<num_scan_inputs = 1, body = body (float[2] a, float[2] b) => (float[2] c, float[2] d)
          { c = Add(a, b) d = Identity(c) }>(zero, x)
        }""",
        [[_reals(3, 2)]],
        lambda x: [_float32(x.cumsum(axis=0, dtype=np.float64)[-1]), _float32(x.cumsum(axis=0, dtype=np.float64))],
        _SUMS,
    ),
    Case(
        "labels",
        """g (int64[N] x) => (string[N] y)
        { y = ai.onnx.ml.LabelEncoder<keys_int64s=[1,2], values_strings=["one","two"], default_string="?">(x) }""",
        [[np.array([2, 1, 5])]],
        lambda x: [np.array([{1: "one", 2: "two"}.get(int(v), "?") for v in x], dtype=object)],
        _MOVES,
    ),
)

CASES: tuple[Case, ...] = (*_ARITHMETIC, *_SHAPES, *_TYPES, *_COMPOSITE)
