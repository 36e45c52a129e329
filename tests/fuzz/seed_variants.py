# SPDX-License-Identifier: Apache-2.0
"""Small models of other types of elements and sizes, which take other ways through the kernels: seeds of mutants."""

import numpy as np
from native_models import Array

VARIANTS: list[tuple[str, dict[str, tuple[int, ...] | Array]]] = [
    # whole numbers of every width
    ("""g (int32[n,4,t] x, int64[n,4,t] z) => (int32[n,1,t] a, int64[n,4] b, int64[n,4] c, int32[n,1,t] d,
        int64[n,1,t] e, int32[n,4] f, int32[n,4] h, int64[n,1,t] i) <int64[1] one = {1}, int64[1] two = {2}> {
        a = ReduceSum(x, one) b = ReduceSum<keepdims=0>(z, two) c = ReduceMean<keepdims=0>(z, two) d = ReduceMax(x, one)
        e = ReduceMin(z, one) f = ReduceProd<keepdims=0>(x, two) h = ReduceL1<keepdims=0>(x, two)
        i = ReduceSumSquare(z, one) }""", {}),
    ("""g (int32[n,4,t] x, int64[n,4,t] z) => (int32[n,4] a, int64[n,1,t] b, int32[n,1,t] c, int64[n,4] d,
        int32[n,4] e, int64[n,1,t] f, int64[n,4] h, int32[n,1,t] i) <int64[1] one = {1}, int64[1] two = {2}> {
        a = ReduceMin<keepdims=0>(x, two) b = ReduceProd(z, one) c = ReduceMean(x, one)
        d = ReduceMax<keepdims=0>(z, two)
        e = ReduceSumSquare<keepdims=0>(x, two) f = ReduceL1(z, one) h = ReduceL1<keepdims=0>(z, two)
        i = ReduceSum(x, one) }""", {}),
    ("""g (uint8[n,4,t] x, int8[n,4,t] z) => (uint8[n,1,t] a, uint8[n,4] b, int8[n,4] c, int8[n,1,t] d,
        int64[n,1,t] e, int64[n,4] f) <int64[1] one = {1}, int64[1] two = {2}> {
        a = ReduceMax(x, one) b = ReduceMin<keepdims=0>(x, two) c = ReduceMax<keepdims=0>(z, two) d = ReduceMin(z, one)
        e = ArgMax<axis=1>(x) f = ArgMin<axis=2, keepdims=0>(z) }""", {}),
    ("""g (int32[n,4,t] x, int64[n,9,t] z) => (int64[n,1,t] a, int64[n,9] b, int64[n,4] c, int64[n,1,t] d,
        int32[n,4,2] v, int64[n,4,2] i, int64[n,3,t] u, int64[n,3,t] j) <int64[1] two = {2}, int64[1] three = {3}> {
        a = ArgMax<axis=1>(x) b = ArgMin<axis=2, keepdims=0>(z) c = ArgMin<axis=2, keepdims=0, select_last_index=1>(x)
        d = ArgMax<axis=1>(z) v, i = TopK<axis=2, largest=0>(x, two) u, j = TopK<axis=1>(z, three) }""", {}),
    # views that are turned, and every other element, of every width
    ("""g (float[40,t] a, int64[n,5,t] b, uint8[n,37,33] c, float[n,8,t,16] d, int32[19,64] e) => (float[t,40] u,
        int64[t,5,n] v, uint8[n,33,37] w, float[n,t,16,8] x, int32[10,32] y, uint8[n,37,11] z)
        <int64[2] none = {0,0}, int64[2] all = {99,99}, int64[2] axes = {0,1}, int64[2] two = {2,2},
        int64[1] one = {1}, int64[1] end = {99}, int64[1] last = {2}, int64[1] three = {3}> {
        u = Transpose(a) v = Transpose(b) w = Transpose<perm=[0,2,1]>(c) x = Transpose<perm=[0,2,3,1]>(d)
        y = Slice(e, none, all, axes, two) z = Slice(c, none0, end, last, three) }""", {"none0": np.array([0])}),
    (
        # images of one layout, which are read in another
        """g (float[2,16,6,7] x) => (float[2,4,12,14] y, float[2,6,7,16] z, float[2,8,84] u, float[2,42,16] v)
        <int64[3] rows = {2,8,84}, int64[3] flat = {2,16,42}> {
        c = Conv(x, w) y = DepthToSpace<blocksize=2>(c) z = Transpose<perm=[0,2,3,1]>(c) d = Conv(c, w)
        u = Reshape(d, rows) e = Conv(d, w) f = Reshape(e, flat) v = Transpose<perm=[0,2,1]>(f) }""",
        {"w": (16, 16, 1, 1)},
    ),
    (
        # elements of other widths at places that are data
        """g (uint8[n,4,t] x, int64[9,4,3] z, int32[3] i, int64[n,4,2] j, int32[5,1] k, int32[n,2] h, int64[2] o)
        => (uint8[n,3,t] a, int64[3,4,3] b, uint8[n,4,2] c, int64[5,4,3] d, int64[n,2,5] e, uint8[n,4,t] f) {
        a = Gather<axis=1>(x, i) b = Gather(z, i) c = GatherElements<axis=2>(x, j)
        l = Cast<to=7>(k)
        d = GatherND(z, l) e = OneHot<axis=2>(h, five, o) f = ScatterElements<axis=2>(x, j, c) }""",
        {"five": np.array([5])},
    ),
    (
        # planes wide enough for vectors, of 5 x 5 taps, strided and dilated
        """g (float[n,9,23,37] x) => (float[n,8,12,19] y, float[n,7,23,37] z) {
        d = Conv<pads=[2,2,2,2], strides=[2,2], group=9>(x, w) r = Clip(d, low, high) y = Conv(r, p)
        e = Conv<pads=[2,2,2,2], dilations=[2,2], group=9>(x, v) z = Conv(e, q) }""",
        {
            "w": (9, 1, 5, 5), "p": (8, 9, 1, 1), "v": (9, 1, 3, 3), "q": (7, 9, 1, 1), "low": np.float32(0),
            "high": np.float32(6),
        },
    ),
    # windows of pooling that are compiled in, and others; sums of volumes
    ("""g (float[n,20,13,t] x) => (float[n,20,6,h] a, float[n,20,13,t] b, float[n,20,6,i] c, float[n,20,11,k] d) {
        r = Relu(x) a = AveragePool<kernel_shape=[2,2], strides=[2,2]>(r)
        b = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(r) c = MaxPool<kernel_shape=[3,3], strides=[2,2]>(b)
        d = MaxPool<kernel_shape=[3,3], dilations=[1,2]>(r) }""", {}),
    # long rows and columns
    ("""g (float[n,70,t] x, float[3,200] z) => (float[n,70,t] a, float[3,200] b, float[n,70,t] c, float[3,200] d,
        float[3,200] e, float[3,200] f) {
        a = Softmax<axis=1>(x) b = Softmax(z) c = LogSoftmax<axis=1>(x) d = LayerNormalization(z, s, s)
        e = CumSum(z, one) f = LpNormalization(z) }""", {"s": (200,), "one": np.array(1)}),
    ("""g (float[5,n,20] x) => (float[5,1,n,40] y, float[5,1,n,33] z) {
        y = LSTM<hidden_size=40>(x, w, r, b) z = GRU<hidden_size=33, linear_before_reset=1>(x, v, s, c) }""",
     {"w": (1, 160, 20), "r": (1, 160, 40), "b": (1, 320), "v": (1, 99, 20), "s": (1, 99, 33), "c": (1, 198)}),
    # few channels to begin with
    ("""g (float[n,3,33,t] x) => (float[n,24,16,h] y, float[n,20,33,t] z) {
        a = Conv<strides=[2,2]>(x, w, b) y = Relu(a) c = Conv<pads=[3,3,3,3], dilations=[1,1]>(x, v)
        z = Sigmoid(c) }""", {"w": (24, 3, 3, 3), "b": (24,), "v": (20, 3, 7, 7)}),
    ("""g (float[2,4,t,16] q, float[2,2,16,p] k, float[2,2,p,24] v, bool[1,1,t,p] m) => (float[2,4,t,24] y)
        <float scale = {0.25}, float least = {-10000.0}, int64[5] wide = {1,1,2,1,1}, int64[4] l = {2,4,16,-1},
        int64[4] h = {2,4,-1,24}, int64[1] two = {2}> {
        k1 = Unsqueeze(k, two) k2 = Expand(k1, wide) k3 = Reshape(k2, l) v1 = Unsqueeze(v, two) v2 = Expand(v1, wide)
        v3 = Reshape(v2, h) s = MatMul(q, k3) a = Mul(s, scale) c = Where(m, a, least) w = Softmax(c)
        y = MatMul(w, v3) }""", {}),
    # one of some, by numbers of both widths, of elements of all
    ("""g (int64[n,3] x, int32[n,3] z, bool[2] a, float[2] b, int64[2] c) => (bool[n,5,3] d, float[n,5,3] e,
        int64[n,5,3] f, float[n,3,5] h, bool[n,3,5] i) <int64[1] five = {5}> {
        d = OneHot<axis=1>(x, five, a) e = OneHot<axis=1>(z, five, b) f = OneHot<axis=1>(x, five, c)
        h = OneHot(z, five, b) i = OneHot(x, five, a) }""", {}),
    # short rows that are joined
    ("""g (float[n,t,3] x, float[n,t,5] z, int64[n,t,2] i, int64[n,t,1] j, uint8[n,t,7] a, uint8[n,t,9] b)
        => (float[n,t,8] u, int64[n,t,3] v, uint8[n,t,16] w) {
        u = Concat<axis=2>(x, z) v = Concat<axis=2>(i, j) w = Concat<axis=2>(a, b) }""", {}),
    # narrow matrices that are turned
    ("""g (float[t,2] a, int64[3,t] b, uint8[t,4] c, float[n,t,4] d, uint8[3,t] e, int64[t,2] f) => (float[2,t] u,
        int64[t,3] v, uint8[4,t] w, float[t,n,4] x, uint8[t,3] y, int64[2,t] z) {
        u = Transpose(a) v = Transpose(b) w = Transpose(c) x = Transpose<perm=[1,0,2]>(d) y = Transpose(e)
        z = Transpose(f) }""", {}),
    ("""g (int32[t,5] a, int64[n,t] b, uint8[4,t] c, bool[n,t] d, int64[n,1] e) => (int32[t,5] u, int64[n,v1] v,
        uint8[w0,w1] w, bool[n,1] x, bool[t] y, int64[n,t] z) <int64 zero = {0}, int64[4] pads = {0,2,0,3},
        int64[4] more = {1,0,2,1}, int64[1] first = {0}, int64[1] last = {1}> {
        u = CumSum(a, zero) v = Pad(b, pads) w = Pad<mode="edge">(c, more) x = ReduceMax(d, last)
        y = ReduceMin<keepdims=0>(d, first) z = Add(b, e) }""", {}),
    # the largest of long rows
    ("""g (float[n,90] a, int32[n,50] b, uint8[n,90] c, int64[n,40] d) => (int64[n,1] u, int64[n,1] v, int64[n,1] w,
        int64[n,1] x, float[n,70] y, int64[n,70] z) <int64[1] most = {70}> { u = ArgMax<axis=1>(a)
        v = ArgMin<axis=1>(b) w = ArgMax<axis=1>(c) x = ArgMin<axis=1>(d) y, z = TopK(a, most) }""", {}),
    (
        # elements in even runs of a table, of every width
        """g (uint8[4,30] a, int64[4,30] b, float[4,30] c) => (uint8[4,20] u, int64[4,20] v, float[4,20] w) {
        u = Gather<axis=1>(a, i) v = Gather<axis=1>(b, i) w = Gather<axis=1>(c, i) }""",
        {"i": np.array([*range(2, 12), *range(29, 9, -2)])},
    ),
    ("""g (float[n,9,23,t] x) => (float[n,8,23,t] y, float[n,7,12,v] z, float[n,6,h,w] u) {
        d = Conv<pads=[2,2,2,2], group=9>(x, w5) r = HardSwish(d) y = Conv(r, p)
        e = Conv<pads=[1,1,1,1], strides=[2,2], group=9>(x, w3) s = Sigmoid(e) z = Conv(s, q)
        f = Conv<group=9>(x, w3) g = Relu(f) i = Conv(g, o) u = Relu(i) }""",
     {"w5": (9, 1, 5, 5), "p": (8, 9, 1, 1), "w3": (9, 1, 3, 3), "q": (7, 9, 1, 1), "o": (6, 9, 1, 1)}),
]  # fmt: skip
