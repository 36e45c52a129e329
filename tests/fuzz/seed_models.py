# SPDX-License-Identifier: Apache-2.0
"""Small models of forms that random networks do not draw, as seeds of mutants: ONNX text and shapes of constants."""

import ml_dtypes
import numpy as np
import onnx_ir as ir
from native_models import Array, dynamic, reals
from nndeploy_native.transforms.text_grams import OWN, TEXT_GRAMS
from onnx import TensorProto, helper
from seed_variants import VARIANTS
from tree_models import MODES, Drawn, classifier, regressor, row_model, trees_of

from nndeploy.values.types import DimRange


def _whole(*shape: int) -> Array:
    return np.random.default_rng(0).integers(-127, 127, shape, np.int8)


RANGES = {"n": DimRange(1, 3, 1), "t": DimRange(1, 9, 3)}
MODELS: list[tuple[str, dict[str, tuple[int, ...] | Array]]] = [
    # a projection in which the heads of queries and keys lie side by side
    ("""g (float[2,7,24] x, float[2,1,1,7] m) => (float[2,7,12] y) <int64[5] heads = {2,7,2,3,4},
        int64[3] rows = {2,7,12}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}> {
        h = Reshape(x, heads) q0 = Slice(h, zero, one, two) k0 = Slice(h, one, two, two)
        q1 = Squeeze(q0, two) k1 = Squeeze(k0, two) q = Transpose<perm=[0,2,1,3]>(q1)
        k = Transpose<perm=[0,2,3,1]>(k1) s = MatMul(q, k) a = Add(s, m) w = Softmax(a) o = MatMul(w, q)
        t = Transpose<perm=[0,2,1,3]>(o) y = Reshape(t, rows) }""", {}),
    # rows enough for keys and values to be packed, a mask of each row
    ("""g (float[n,19,12] x, float[n,1,19,19] m) => (float[n,19,12] y) <int64[4] heads = {0,19,2,6},
        int64[3] rows = {0,19,12}> { h = Reshape(x, heads) q = Transpose<perm=[0,2,1,3]>(h)
        k = Transpose<perm=[0,2,3,1]>(h) s = MatMul(q, k) a = Add(s, m) w = Softmax(a) o = MatMul(w, q)
        t = Transpose<perm=[0,2,1,3]>(o) y = Reshape(t, rows) }""", {}),
    (
        # heads that share keys, put into a cache at places that are data
        """g (float[n,t,16] q, float[n,t,8] k, float[n,2,4,4] p, int32[n] l, int64[1] z)
        => (float[n,t,16] y, float[n,2,9,4] a, float[n,2,9,4] b) {
        y, a, b = com.microsoft.GroupQueryAttention<num_heads=4, kv_num_heads=2, do_rotary=1>(q,k,k,p,p,l,z,c,c) }""",
        {"c": (9, 2)},
    ),
    # the same in a cache that grows, which tells whether it may lie in the memory of its input
    ("""g (float[1,2,16] q, float[1,2,8] k, float[1,2,t,4] p, float[1,2,t,4] r, int32[n] m)
        => (float[1,2,16] y, float[1,2,u,4] a, float[1,2,u,4] b) { s = Shape(m) z = Cast<to=6>(s) l = ReduceSum(m)
        y, a, b = com.microsoft.GroupQueryAttention<num_heads=4, kv_num_heads=2>(q,k,k,p,r,l,z) }""", {}),
    # caches of float16, read by attention and by others
    ("""g (float16[2,n,5] q, float16[2,3,5] k, float16[2,t,5] p, float16[2,t,5] r)
        => (float16[2,n,5] y, float16[2,u,5] a, float16[2,u,5] b, float16[2,u,5] z) {
        a = Concat<axis=1>(p, k) b = Concat<axis=1>(r, k) c = Transpose<perm=[0,2,1]>(a) s = MatMul(q, c)
        w = Softmax(s) y = MatMul(w, b) z = Relu(b) }""", {}),
    # rows of pixels shorter than a register tile
    ("""g (float[n,16,t,3] x, float[n,70,t,3] r) => (float[n,70,t,3] y) { c = Conv<pads=[1,1,1,1]>(x, w, b)
        a = Add(c, r) y = Relu(a) }""", {"w": (70, 16, 3, 3), "b": (70,)}),
    ("""g (float[n,1,t,5] x, float[3,5,t] z) => (float[n,3,t,t] y, float[n,t,9] u) <int64[1] one = {1}> {
        y = MatMul(x, z) s = Squeeze(x, one) p = MatMul(s, w) q = Add(p, b) u = Gelu(q) }""", {"w": (5, 9), "b": (9,)}),
    ("""g (float[2,3,4,5] x, float[4,10] v, float[6,4] z, float[6] c) => (float[2,3,4,2] y, float[10,6] u) {
        y = MatMul(x, w) u = Gemm<transA=1, transB=1, alpha=2.0, beta=0.5>(v, z, c) }""", {"w": (3, 5, 2)}),
    ("""g (float[6,3,4] x, int32[3] l, float[2,3,5] h, float[2,3,5] c) => (float[6,2,3,5] y, float[2,3,5] u) {
        y, u = LSTM<hidden_size=5, direction="bidirectional", clip=0.5, input_forget=1>(x, w, r, b, l, h, c, p) }""",
     {"w": (2, 20, 4), "r": (2, 20, 5), "b": (2, 40), "p": (2, 15)}),
    ("""g (float[n,t,4] x, int32[n] l) => (float[n,t,1,7] y, float[n,1,7] u) {
        y, u = GRU<hidden_size=7, direction="reverse", layout=1, linear_before_reset=1,
        activations=["HardSigmoid","Elu"]>(x, w, r, b, l) }""", {"w": (1, 21, 4), "r": (1, 21, 7), "b": (1, 42)}),
    ("""g (float[t,n,4] x, float[2,n,3] h) => (float[2,n,3] u, float[t,1,n,3] y) {
        d, u = RNN<hidden_size=3, direction="bidirectional", activations=["Affine","Softsign"],
        activation_alpha=[0.5], activation_beta=[0.1]>(x, w, r, b, , h) y = GRU<hidden_size=3>(x, v, s) }""",
     {"w": (2, 3, 4), "r": (2, 3, 3), "b": (2, 6), "v": (1, 9, 4), "s": (1, 9, 3)}),
    # an LSTM of bytes with zero points
    ("""g (float[t,n,5] x, int32[n] l, float[2,n,6] h) => (float[t,2,n,6] y, float[2,n,6] u) {
        y, u = com.microsoft.DynamicQuantizeLSTM<hidden_size=6, direction="bidirectional">
        (x, w, r, b, l, h, h, , s, z, s, z) }""",
     {"w": _whole(2, 5, 24), "r": _whole(2, 6, 24), "b": (2, 48), "s": np.full((2, 24), 0.01, np.float32),
      "z": _whole(2, 24)}),
    # every element of a tensor, both domains of programs
    ("""g (int32[n,7] x, bool[7] c, int8[n,1] z) => (float[n,7] y, bool[n,7] t, uint8[n,7] u) <int32 k = {5}>
        { m = Mod(x, k) d = Div(x, m) f = Cast<to=1>(d) s = Sin(f) y = Where(c, s, f) t = Less(x, m) w = Cast<to=6>(z)
        a = Add(x, w) u = Cast<to=2>(a) }""", {}),
    ("""g (uint8[n,4] x, uint8[4] z) => (uint8[n,4] y, int64[n,4] w, float[n,4] p) <float e = {1.5}>
        { a = BitShift<direction="LEFT">(x, z) y = BitwiseXor(a, z) w = Cast<to=7>(y) f = Cast<to=1>(x)
        p = Pow(f, e) }""", {}),
    # float64: both kinds of products, what becomes of each element, along axes, and moved
    ("""g (double[n,6] x, float[n,5] f, double[5,t] v) => (double[n,5] y, float[n,5] z, int64[n] i, double[5,n] u,
        double[n,t] w) { a = MatMul(x, m) b = Cast<to=11>(f) c = Add(a, b) y = Softmax<axis=1>(c) d = Sqrt(y)
        z = Cast<to=1>(d) i = ArgMax<axis=1, keepdims=0>(c) u = Transpose(d) w = MatMul(c, v) }""",
     {"m": np.arange(30).reshape(6, 5) / 7}),
    # numbers of sizes
    ("""g (float[n,3,t] x) => (int64[2] s, float[n] f, int64[t] r, bool[n,3,t] b) <int64 zero = {0}, int64 one = {1}>
        { s = Shape<start=1>(x) n0 = Shape<end=1>(x) f = ConstantOfShape<value = float {2.5}>(n0)
        t0 = Shape<start=2>(x) l = Squeeze(t0) r = Range(zero, l, one) b = IsNaN(x) }""", {}),
    ("""g (float[n,5,3,t,6] x, float[n,2,4,3,3] g) => (float[n,7,2,t,6] y, float[n,7,2,4,3] z, float[n,6,7,t,8] u) {
        y = Conv<pads=[0,1,1,0,1,1], strides=[2,1,1]>(x, w) z = GridSample<mode="linear">(y, g)
        a = Conv<pads=[1,1,0,1,1,0]>(x, v) u = ConvTranspose<strides=[3,1,1], group=3, pads=[1,1,0,1,1,0]>(a, k) }""",
     {"w": (7, 5, 3, 3, 3), "v": (6, 5, 3, 3, 1), "k": (6, 2, 3, 3, 3)}),
    ("""g (float[2,5,t,7] x) => (float[2,5,9,7] y, float[2,5,q,p] z, int64[2,5,q,p] i, float[2,5,r,s] u) {
        z, i = MaxPool<kernel_shape=[1,2], strides=[1,2], storage_order=1>(x)
        y = Resize<mode="cubic", antialias=1, axes=[2,3], coordinate_transformation_mode="align_corners">(z, , , m)
        u = LpPool<kernel_shape=[2,3], p=3, ceil_mode=1, pads=[1,1,1,1]>(x) }""", {"m": np.array([9, 7])}),
    ("""g (float[2,5,6,7] x, float[2,2,3] m, float[t,4] r, int64[t] b, float[t,5] c, int64[2,5,3,3] i)
        => (float[2,5,3,4] y, float[t,5,2,3] z, float[t,5,3,2] u, float[2,5,6,6] v, float[2,9,6,7] k)
        <int64[4] size = {2,5,3,4}> { a = AffineGrid(m, size)
        y = GridSample<mode="cubic", padding_mode="reflection">(x, a)
        z = RoiAlign<output_height=2, output_width=3>(x, r, b) u = MaxRoiPool<pooled_shape=[3,2]>(x, c)
        w = MaxPool<kernel_shape=[2,3], strides=[2,2]>(x) v = MaxUnpool<kernel_shape=[2,2], strides=[2,2]>(w, i)
        k = Resize<mode="linear", coordinate_transformation_mode="tf_crop_and_resize">(x, f, s) }""",
     {"f": np.array([0, 0, -0.1, 0.2, 1, 1, 0.9, 1.1], np.float32), "s": np.array([1, 1.8, 1, 1], np.float32)}),
    (
        # weights of few bits
        """g (float[n,t,40] x, float[n,t,19] r) => (float[n,t,19] y, float[3,7] u) {
        w = DequantizeLinear<axis=0, block_size=8>(q, s, z) m = MatMul(x, w) a = Add(m, r) y = Tanh(a)
        d = DequantizeLinear<axis=0>(p, k) u = Gemm<transB=1>(v, d, b) }""",
        {
            "q": np.arange(760).reshape(40, 19).astype(ml_dtypes.uint4),
            "z": np.arange(95).reshape(5, 19).astype(ml_dtypes.uint4),
            "p": np.arange(490).reshape(7, 70).astype(np.int8), "s": (5, 19), "v": (3, 70), "b": (7,), "k": (7,),
        },
    ),
    (
        # float16 at the borders
        """g (float16[n,t,9] x, float16[n,1,9] m) => (float16[n,t,7] y, float[n,t,9] u) {
        a = Add(x, m) p = MatMul(a, w) y = Add(p, b) u = Cast<to=1>(a) }""",
        {"w": np.arange(63).reshape(9, 7).astype(np.float16), "b": np.arange(7).astype(np.float16)},
    ),
    # Winograd's products
    ("""g (float[n,40,12,13] x, float[n,36,12,13] r) => (float[n,36,12,13] y) {
        c = Conv<pads=[1,1,1,1]>(x, w, b) a = Add(c, r) y = Tanh(a) }""", {"w": (36, 40, 3, 3), "b": (36,)}),
    # depthwise, then pointwise, of planes
    ("""g (float[n,24,9,t] x) => (float[n,16,9,t] y) { d = Conv<pads=[1,1,1,1], group=24>(x, w) r = Relu(d)
        y = Conv(r, p, b) }""", {"w": (24, 1, 3, 3), "p": (16, 24, 1, 1), "b": (16,)}),
    (
        # images in blocks: normalised, padded, channels last
        """g (float[n,5,6,7] x, float[9] s, float[9] b, float[n,9,6,7] r)
        => (float[n,9,6,7] y, float[n,6,7,9] z, float[n,9,9,9] u) <int64[8] widths = {0,0,1,1,0,0,2,1}> {
        c = Conv(x, w) i = InstanceNormalization(c, s, b) a = Add(i, r) y = Relu(a) t = Conv(c, v)
        z = Transpose<perm=[0,2,3,1]>(t) p = Pad<mode="reflect">(c, widths) u = Sigmoid(p) }""",
        {"w": (9, 5, 1, 1), "v": (9, 9, 1, 1)},
    ),
    ("""g (float[2,5,6,7] x) => (float[2,6,7,9] z, float[2,9,9,10] u) <int64[8] widths = {0,0,1,1,0,0,2,2}> {
        c = Conv(x, w) z = Transpose<perm=[0,2,3,1]>(c) u = Pad<mode="edge">(c, widths) }""", {"w": (9, 5, 1, 1)}),
    # normalisations of plain rows
    ("""g (float[n,6,t] x) => (float[n,6,t] y, float[n,6,t] z, float[n,6,t] u, float[n,6,t] v) {
        y = InstanceNormalization(x, s, s) z = GroupNormalization<num_groups=3>(x, s, s)
        u = LpNormalization<axis=1, p=1>(x) v = MeanVarianceNormalization<axes=[0,2]>(x) }""", {"s": (6,)}),
    # elements and slices at places that are data
    ("""g (float[n,4,t] x, int64[3] i, int32[n,4,2] j, int64[n,5,2] k)
        => (float[n,3,t] y, float[n,4,2] z, float[n,5,t] u) {
        y = Gather<axis=1>(x, i) z = GatherElements<axis=2>(x, j) u = GatherND(w, k) }""", {"w": (3, 4, 9)}),
    ("""g (float[n,t,7] x, int32[n,t,2] j, float[n,t,2] u, int64[5,2] k, float[5,7] v)
        => (float[n,t,7] y, float[n,t,7] z) {
        y = ScatterElements<axis=2, reduction="add">(x, j, u) z = ScatterND<reduction="max">(x, k, v) }""", {}),
    # where the largest lie
    ("""g (float[n,t,7] x) => (int64[n,1,7] a, int64[n,t] b, float[n,t,7] h, float[n,t,3] v, int64[n,t,3] i)
        <int64[1] three = {3}> { a = ArgMax<axis=1>(x) b = ArgMin<axis=2, keepdims=0, select_last_index=1>(x)
        h = Hardmax<axis=1>(x) v, i = TopK<axis=2>(x, three) }""", {}),
    # sums up to each element; sequences backwards
    ("""g (float[t,n,5] x, int64[n] l) => (float[t,n,5] y, float[t,n,5] z, float[t,n,5] u, float[t,n,5] v)
        <int64 axis = {0}> {
        y = CumSum<exclusive=1, reverse=1>(x, axis) z = ReverseSequence(x, l) u = LogSoftmax<axis=1>(x)
        v = Softmax(x) }""", {}),
    ("""g (float[n,4,t] x) => (float[n,1,t] a, float[n,4] b, float[n,4] c, float[n,1,t] d, float[n,4] e)
        <int64[1] one = {1}, int64[1] two = {2}> { a = ReduceL1(x, one) b = ReduceL2<keepdims=0>(x, two)
        c = ReduceLogSum<keepdims=0>(x, two) d = ReduceLogSumExp(x, one) e = ReduceMax<keepdims=0>(x, two) }""", {}),
    ("""g (float[n,4,t] x) => (float[n,1,t] a, float[n,4] b, float[n,4] c, float[n,1,t] d, float[n,4] e)
        <int64[1] one = {1}, int64[1] two = {2}> { a = ReduceMean(x, one) b = ReduceMin<keepdims=0>(x, two)
        c = ReduceProd<keepdims=0>(x, two) d = ReduceSum(x, one) e = ReduceSumSquare<keepdims=0>(x, two) }""", {}),
    (
        # products of bytes: rows that are quantised as they come, and by QLinearMatMul
        """g (float[n,t,24] x) => (float[n,t,18] y) { q, s, z = DynamicQuantizeLinear(x)
        m = MatMulInteger(q, w, z, v) f = Cast<to=1>(m) g = Mul(f, s) h = Mul(g, k) a = Add(h, b) y = Relu(a) }""",
        {"w": _whole(24, 18), "v": np.int8(3), "k": (18,), "b": (18,)},
    ),
    ("""g (uint8[n,24] x) => (uint8[n,18] y, int32[n,18] u) {
        y = QLinearMatMul(x, s, z, w, k, v, s, z) u = MatMulInteger(x, w) }""",
     {"s": np.float32(0.1), "z": np.uint8(7), "w": _whole(24, 18), "v": np.int8(0), "k": np.float32(0.02)}),
    # padding of plain tensors
    ("""g (float[n,4,t] x, float v) => (float[n,7,t] y, float[n,4,s] z) <int64[6] a = {0,1,0,0,2,0}> {
        y = Pad(x, a, v) c = Pad<mode="wrap">(x, e) z = Relu(c) }""", {"e": np.array([0, 0, 2, 0, 0, 3])}),
    # padding and slices by numbers that are data
    ("""g (float[2,4,5] x, int64[6] a, int64[1] b, int64[1] e, float[1] v) => (float[3,5,8] y, float[2,2,5] z)
        <int64[1] axis = {1}> { y = Pad(x, a, v) z = Slice(x, b, e, axis) }""", {}),
    ("""g (float[n,6,5,t] x, int64[n,3] i, float[2] v, int64 k)
        => (float[n,6,5,t] y, float[n,3,8] z, float[n,6,5,t] u) <int64[1] depth = {8}> {
        y = LRN<size=3>(x) z = OneHot<axis=-1>(i, depth, v) u = Trilu<upper=0>(x, k) }""", {}),
    (
        # channels and elements that are moved
        """g (float[n,6,5,7] x, float[n,8,5,7] r) => (float[n,8,5,7] y, float[n,4,5,7] z, float[n,12,5,7] u, float[3] g)
        <int64[2] parts = {3,5}, int64[1] one = {1}, int64[1] three = {3}, int64[1] nine = {9}, int64[1] two = {2}> {
        c = Conv(x, w) d = Conv(r, v) a, b = Split<axis=1>(c, parts) y = Concat<axis=1>(b, a)
        z = Slice(d, one, nine, one, two) u = Concat<axis=1>(z, d) g = Gather(t, i) }""",
        {"w": (8, 6, 1, 1), "v": (8, 8, 1, 1), "t": (9,), "i": np.array([7, 1, 4])},
    ),
    (
        # chains of convolutions: separable, inverted residual, and what they begin with
        """g (float[n,3,21,t] x) => (float[n,8,11,s] y) {
        a = Conv<pads=[1,1,1,1], strides=[2,2]>(x, w0) b = Relu(a) c = Conv<pads=[1,1,1,1], group=8>(b, d0) d = Relu(c)
        e = Conv(d, p0) f = Conv(e, p1) h = HardSwish(f) i = Conv<pads=[1,1,1,1], group=24>(h, d1) j = HardSwish(i)
        k = Conv(j, p2) l = Add(k, e) m = Conv<pads=[2,2,2,2], group=8>(l, d2) o = Conv(m, p3) y = Relu(o) }""",
        {
            "w0": (8, 3, 3, 3), "d0": (8, 1, 3, 3), "p0": (8, 8, 1, 1), "p1": (24, 8, 1, 1), "d1": (24, 1, 3, 3),
            "p2": (8, 24, 1, 1), "d2": (8, 1, 5, 5), "p3": (8, 8, 1, 1),
        },
    ),
    ("""g (float[2,8,9,10] x, float[2,8,9,10] r, float[5,6] t) => (float[2,8,9,10] y, float[5] g)
        <int64[1] flat = {30}> { a = Conv<pads=[1,1,1,1], group=8>(x, d) b = Relu(a) c = Conv(b, p) e = Add(c, r)
        f = Conv<pads=[1,1,1,1], group=8>(e, k) y = Conv(f, q) u = Reshape(t, flat) g = Gather(u, i) }""",
     {"d": (8, 1, 3, 3), "p": (8, 8, 1, 1), "k": (8, 1, 3, 3), "q": (8, 8, 1, 1), "i": np.array([7, 1, 29, 0, 3])}),
    (
        # convolutions in groups, dilated, strided; of few and of many channels
        """g (float[n,20,t,9] x) => (float[n,20,u,v] y, float[n,33,t,9] z) {
        a = Conv<group=2, pads=[1,1,1,1]>(x, w) b = Conv<group=20, strides=[2,2], dilations=[2,1]>(a, d)
        y = Conv<group=4>(b, e) z = Conv<pads=[2,2,2,2], dilations=[2,2]>(x, f) }""",
        {"w": (20, 10, 3, 3), "d": (20, 1, 3, 3), "e": (20, 5, 1, 1), "f": (33, 20, 3, 3)},
    ),
    ("""g (float[n,6,5,t] x, int64[1] p, float[2] c) => (float[n,6,9,12] y, float[n,6,1,1] z, float[n,6,5,t] u)
        <float[4] s = {1.0,1.0,2.0,2.0}, int64[2] to = {9,12}> { r = Relu(x)
        y = Resize<mode="nearest", axes=[2,3]>(x, , , to) z = GlobalAveragePool(r)
        u = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1>(r) }""", {}),
    # caches that grow
    ("""g (float[1,3,t,8] q, float[1,3,t,8] a, float[1,3,t,8] b, float[1,3,p,8] c, float[1,3,p,8] d)
        => (float[1,t,24] y, float[1,3,s,8] k, float[1,3,s,8] v) <int64[3] rows = {1,-1,24}> {
        k = Concat<axis=2>(c, a) v = Concat<axis=2>(d, b) m = Transpose<perm=[0,1,3,2]>(k) e = MatMul(q, m)
        w = Softmax<axis=-1>(e) o = MatMul(w, v) h = Transpose<perm=[0,2,1,3]>(o) y = Reshape(h, rows) }""", {}),
    (
        # convolutions of bytes: sums, and bytes of them; in groups, of many channels and of few
        """g (uint8[n,8,9,t] x, uint8[n,32,5,6] u) => (uint8[n,12,9,t] y, int32[n,8,4,5] z, uint8[n,32,5,6] v) {
        y = QLinearConv<pads=[1,1,1,1]>(x, s, z0, w, k, v0, s, z0, b) z = ConvInteger(u, w2, z0)
        v = QLinearConv<group=32, pads=[1,1,1,1]>(u, s, z0, w3, s, v1, s, z0) }""",
        {
            "s": np.float32(0.1), "z0": np.uint8(7), "w": _whole(12, 8, 3, 3), "k": np.full(12, 0.02, np.float32),
            "v0": np.zeros(12, np.int8), "v1": np.int8(0), "b": np.arange(12, dtype=np.int32) * 50,
            "w2": _whole(8, 32, 2, 2), "w3": _whole(32, 1, 3, 3),
        },
    ),
    (
        # an image of floats that becomes bytes, and few channels between; pixels that are joined
        """g (float[n,3,5,26] x) => (uint8[n,16,3,14] y) { q = QuantizeLinear(x, s, z)  a = DequantizeLinear(q, s, z)
        v = DequantizeLinear(w, s)  c = Conv<strides=[2,2], pads=[1,1,1,1]>(a, v)  d = QuantizeLinear(c, s, z)
        e = DequantizeLinear(d, s, z)  k = DequantizeLinear(w1, s)  f = Conv<group=16, pads=[1,1,1,2]>(e, k)
        y = QuantizeLinear(f, s, z) }""",
        {
            "s": np.array(0.03, np.float32), "z": np.array(9, np.uint8), "w": _whole(16, 3, 3, 3),
            "w1": _whole(16, 1, 3, 3),
        },
    ),
    (
        # a residual and a pool of bytes
        """g (uint8[n,16,7,6] x) => (uint8[n,16,4,3] y) { a = DequantizeLinear(x, s, z)  v = DequantizeLinear(w, s)
        a0 = Conv<pads=[1,1,1,1]>(a, v)  b = QuantizeLinear(a0, s, z)  b0 = DequantizeLinear(b, s, z)
        c = Conv<pads=[1,1,1,1]>(b0, v)  d = QuantizeLinear(c, s, z)  e = DequantizeLinear(d, s, z)  f = Add(e, b0)
        g = Relu(f)  h = QuantizeLinear(g, s, z)  i = DequantizeLinear(h, s, z)
        j = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(i)  y = QuantizeLinear(j, s, z) }""",
        {"s": np.array(0.03, np.float32), "z": np.array(9, np.uint8), "w": _whole(16, 16, 3, 3)},
    ),
    (
        # bytes: tables behind sums and by themselves, parts that are put together, the nearest of an image
        """g (uint8[n,16,6,5] x) => (uint8[n,32,6,5] y, uint8[n,16,3,3] p, int8[n,16,6,5] t) {
        a = DequantizeLinear(x, s, z)  v = DequantizeLinear(w, s)  c = Conv<pads=[1,1,1,1]>(a, v)
        d = QuantizeLinear(c, s, z)  e = DequantizeLinear(d, s, z)  f = Sigmoid(e)  g0 = QuantizeLinear(f, s, z)
        h = DequantizeLinear(g0, s, z)  i = Concat<axis=1>(h, a)  y = QuantizeLinear(i, s, z)
        p = MaxPool<kernel_shape=[2,2], strides=[2,2], pads=[0,0,0,1]>(x)  j = Tanh(a)
        t = QuantizeLinear(j, s, k) }""",
        {
            "s": np.array(0.03, np.float32), "z": np.array(9, np.uint8), "k": np.array(-9, np.int8),
            "w": _whole(16, 16, 3, 3),
        },
    ),
    (
        # a gate of channels: their means, which scale them
        """g (uint8[n,16,8,4] x) => (int8[n,20,8,4] y) { a = DequantizeLinear(x, s, z)  b = DequantizeLinear(w, s)
        c0 = Conv<pads=[1,1,1,1]>(a, b)  c = QuantizeLinear(c0, s, z)  d = DequantizeLinear(c, s, z)
        m = GlobalAveragePool(d)  e = Mul(m, g)  f = Mul(d, e)  y = QuantizeLinear(f, s, k) }""",
        {
            "s": np.array(0.03, np.float32), "z": np.array(9, np.uint8), "k": np.array(-9, np.int8),
            "w": _whole(20, 16, 3, 3), "g": (1, 20, 1, 1),
        },
    ),
    (
        # convolutions of bytes: few channels, pixels, depthwise in two passes, groups; all kinds of ends
        """g (uint8[n,3,9,8] x) => (uint8[n,20,5,4] y, int32[n,70,5,4] t, float[n,6,3,2] u) {
        a = QLinearConv<strides=[2,2], pads=[1,1,1,1]>(x, s, z, w0, s, z, s, z, b0)
        b = QLinearConv(a, s, z, w1, s1, z1, s, z)  y = QLinearConv<group=20, pads=[1,1,1,1]>(b, s, z, w2, s, z, s, z)
        d = QLinearConv(b, s, z, w4, s, k, s, z)  t = ConvInteger<group=70, pads=[2,0,2,0], dilations=[2,1]>(d, w5, z)
        e = DequantizeLinear(y, s, z)  v = DequantizeLinear(w3, s)  f = Conv<group=2>(e, v, b3)  g = HardSwish(f)
        u = Add(g, c3) }""",
        {
            "s": np.array(0.03, np.float32), "z": np.array(9, np.uint8), "k": np.array(0, np.int8),
            "w0": _whole(64, 3, 3, 3).view(np.uint8), "b0": _whole(64).astype(np.int32), "w1": _whole(20, 64, 1, 1),
            "s1": np.full(20, 0.01, np.float32), "z1": _whole(20), "w2": _whole(20, 1, 3, 3).view(np.uint8),
            "w4": _whole(70, 20, 1, 1), "w5": _whole(70, 1, 3, 1), "w3": _whole(6, 10, 3, 3), "b3": (6,),
            "c3": (1, 6, 1, 1),
        },
    ),
]  # fmt: skip


def _tree_models() -> list[ir.Model]:
    """Returns ensembles of trees: comparisons of one kind and of all, leaves with few columns, labels with names."""
    rng = np.random.default_rng(0)
    return [
        regressor(
            rng, Drawn(2, 2, 3, 2, (0, 1), MODES, has_tracks=True), aggregate_function="MIN", base_values=[0.5, 1.0]
        ),
        classifier(rng, Drawn(3, 2, 4, 3, (1, 2)), classlabels_int64s=[7, 8, 9], post_transform="SOFTMAX"),
        row_model(
            "TreeEnsembleRegressor",
            3,
            {"y": 1},
            {"n_targets": 1, **trees_of(rng, Drawn(2, 2, 3, 1, (0,)), "target")},
            TensorProto.DOUBLE,
        ),
        row_model(
            "SVMClassifier",
            2,
            {"label": None, "y": 3},
            {
                "support_vectors": [0.5, 1, -1, 2, 0, -2],
                "vectors_per_class": [1, 1, 1],
                "coefficients": [1.0] * 6,
                "kernel_type": "LINEAR",
                "rho": [0.5] * 3,
                "classlabels_ints": [0, 1, 2],
                "prob_a": [-1.0] * 3,
                "prob_b": [0.25] * 3,
            },
        ),
    ]


def _gram_models() -> list[ir.Model]:
    """Returns n-grams of whole numbers, with numbers in between, and of texts, whose words lead to each other."""
    pool = {"ngram_counts": [0, 2], "ngram_indexes": [1, 0, 2, 3], "min_gram_length": 1, "max_gram_length": 2}
    numbers = helper.make_node(
        "TfIdfVectorizer", ["x"], ["y"], pool_int64s=[7, -1, 7, 7, -1, 3], mode="TFIDF", weights=[1.0, 2, 3, 4],
        max_skip_count=2, **pool,
    )  # fmt: skip
    texts = helper.make_node(
        TEXT_GRAMS, ["x", "e"], ["y"], domain=OWN, pool_strings=["ab", "c", "ab", "c", "é", "ab"], mode="IDF",
        max_skip_count=1, expression=r"\w", case="LOWER", least=1, **pool,
    )  # fmt: skip
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])
    rows = helper.make_tensor_value_info("x", TensorProto.INT32, ["n", "m"])
    bytes_ = helper.make_tensor_value_info("x", TensorProto.UINT8, ["m"])
    ends = helper.make_tensor_value_info("e", TensorProto.INT64, ["n"])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(OWN, 1)]
    return [
        ir.from_proto(helper.make_model(helper.make_graph([node], "g", inputs, [y]), opset_imports=imports))
        for node, inputs in ((numbers, [rows]), (texts, [bytes_, ends]))
    ]


def seed_models() -> list[ir.Model]:
    """Returns the models, with constants that are drawn where a shape stands for them."""
    return (
        _tree_models()
        + _gram_models()
        + [
            dynamic(
                text, RANGES, {name: reals(*one) if isinstance(one, tuple) else one for name, one in constants.items()}
            )
            for text, constants in (*MODELS, *VARIANTS)
        ]
    )
