# SPDX-License-Identifier: Apache-2.0
"""The numbers of what is built: cuDNN's own plans, read back and computed by numpy, against ONNX in float64.

Every model is built for a GPU without TF32-free matmul engines (H200) and for an old one (T4), in float32 (row-major)
and float16 (channels last), so each layout and each form of an operation is met.
"""

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
import pytest
from cudnn_models import cudnn_target, inputs_of, model_from_text
from oracle.in_float64 import outputs_in_float64

TOLERANCE = {"float": (1e-5, 1e-5), "float16": (4e-3, 4e-3), "bfloat16": (3e-2, 3e-2)}
"""rtol, atol: a few units in the last place of the type, times the length of the sums here (at most 300)."""

MODELS = {
    "conv with bias, residual and relu": """(T[2,6,9,9] x, T[8,6,3,3] w, T[8] b, T[2,8,9,9] z) => (T[2,8,9,9] y)
        { c = Conv<pads=[1,1,1,1]>(x,w,b)  d = Add(c,z)  y = Relu(d) }""",
    "conv with strides, dilations and uneven padding": """(T[1,4,13,11] x, T[6,4,3,2] w) => (T[1,6,7,5] y)
        { y = Conv<pads=[2,1,1,0], strides=[2,2], dilations=[1,2]>(x,w) }""",
    "conv without padding, same upper": """(T[1,3,8,8] x, T[4,3,3,3] w) => (T[1,4,4,4] y)
        { y = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(x,w) }""",
    "conv of one axis with clip": """(T[2,4,20] x, T[6,4,5] w, T[6] b) => (T[2,6,20] y)
        <T lo = {0.0}, T hi = {6.0}>
        { c = Conv<pads=[2,2]>(x,w,b)  y = Clip(c,lo,hi) }""",
    "conv of three axes": """(T[1,3,5,6,7] x, T[4,3,2,3,3] w, T[4] b) => (T[1,4,4,6,7] y)
        { c = Conv<pads=[0,1,1,0,1,1]>(x,w,b)  y = Relu(c) }""",
    "depthwise conv, swish by itself": """(T[1,8,10,10] x, T[8,1,3,3] w, T[8] b) => (T[1,8,10,10] y)
        { c = Conv<group=8, pads=[1,1,1,1]>(x,w,b)  s = Sigmoid(c)  y = Mul(c,s) }""",
    "grouped conv": """(T[1,8,6,6] x, T[12,4,3,3] w) => (T[1,12,6,6] y)
        { y = Conv<group=2, pads=[1,1,1,1]>(x,w) }""",
    "two convs and a branch": """(T[2,4,8,8] x, T[8,4,3,3] w, T[8,8,1,1] v) => (T[2,8,8,8] y, T[2,8,8,8] r)
        { c = Conv<pads=[1,1,1,1]>(x,w)  r = Relu(c)  d = Conv(r,v)  e = Add(d,r)  y = Relu(e) }""",
    "transposed conv": """(T[1,6,5,5] x, T[6,4,3,3] w, T[4] b) => (T[1,4,10,10] y)
        { y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]>(x,w,b) }""",
    "transposed conv of groups": """(T[1,6,5,5] x, T[6,2,2,2] w) => (T[1,4,10,10] y)
        { y = ConvTranspose<strides=[2,2], group=2>(x,w) }""",
    "local response normalisations": """(T[2,7,4,4] x) => (T[2,7,4,4] y, T[2,7,4,4] z)
        { y = LRN<size=4, alpha=0.1, beta=0.75, bias=1.0>(x) z = LRN<size=5, alpha=0.1, beta=0.75, bias=1.0>(x) }""",
    "squeeze and excite": """(T[2,8,6,6] x, T[4,8,1,1] w, T[4] b, T[8,4,1,1] v, T[8] c) => (T[2,8,6,6] y)
        { p = GlobalAveragePool(x)  d = Conv(p,w,b)  e = Relu(d)  f = Conv(e,v,c)  s = HardSigmoid(f)
          y = Mul(x,s) }""",
    "matmul with bias and gelu": """(T[2,5,16] x, T[16,24] w, T[24] b) => (T[2,5,24] y)
        { m = MatMul(x,w)  a = Add(m,b)  y = Gelu(a) }""",
    "matmul of two inputs": """(T[2,3,5,16] x, T[2,3,16,7] w) => (T[2,3,5,7] y) { y = MatMul(x,w) }""",
    "attention": """(T[1,6,4,8] q, T[1,6,4,8] k, T[1,6,4,8] v) => (T[1,6,4,8] y)
        <T s = {0.35}>
        { a = Transpose<perm=[0,2,1,3]>(q)  b = Transpose<perm=[0,2,3,1]>(k)  m = MatMul(a,b)  n = Mul(m,s)
          p = Softmax(n)  c = Transpose<perm=[0,2,1,3]>(v)  o = MatMul(p,c)  y = Transpose<perm=[0,2,1,3]>(o) }""",
    "matmul with a vector": """(T[16] x, T[16,7] w) => (T[7] y) { y = MatMul(x,w) }""",
    "gemm": """(T[5,16] x, T[12,16] w, T[12] b) => (T[5,12] y)
        { g = Gemm<transB=1, alpha=0.5, beta=2.0>(x,w,b)  y = Relu(g) }""",
    "gemm transposed": """(T[16,5] x, T[16,12] w, T[5,12] c) => (T[5,12] y) { y = Gemm<transA=1>(x,w,c) }""",
    "max pool": """(T[2,5,9,11] x) => (T[2,5,5,5] y)
        { y = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,0,1,0]>(x) }""",
    "max pool that hangs over": """(T[1,4,8,8] x) => (T[1,4,4,4] y)
        { y = MaxPool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1>(x) }""",
    "pool after conv": """(T[1,4,8,8] x, T[8,4,3,3] w) => (T[1,8,4,4] y)
        { c = Conv<pads=[1,1,1,1]>(x,w)  y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(c) }""",
    "average pools": """(T[1,4,8,8] x) => (T[1,4,8,8] y, T[1,4,8,8] z)
        { y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(x)
          z = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1>(x) }""",
    "pool of one axis": """(T[2,4,15] x) => (T[2,4,7] y) { y = MaxPool<kernel_shape=[3], strides=[2]>(x) }""",
    "global max pool": """(T[2,4,5,6] x) => (T[2,4,1,1] y) { y = GlobalMaxPool(x) }""",
    "chain with broadcasting": """(T[2,3,4,5] x, T[3,1,1] s, T[4,5] t, T[2,1,1,1] u) => (T[2,3,4,5] y)
        { a = Mul(x,s)  b = Add(a,t)  c = Sub(b,u)  d = Tanh(c)  y = Div(d,s) }""",
    "functions": """(T[3,7] x) => (T[3,7] y)
        { a = Abs(x)  b = Sqrt(a)  c = Exp(b)  d = Log(c)  e = Sin(d)  f = Cos(e)  g = Erf(f)  h = Neg(g)  i = Floor(h)
          j = Ceil(i)  k = Add(j,x)  y = Softplus(k) }""",
    "activations": """(T[4,33] x) => (T[4,33] y)
        <T slope = {0.25}>
        { a = LeakyRelu<alpha=0.1>(x)  b = Elu<alpha=0.7>(a)  c = Selu(b)  d = HardSwish(c)  e = Mish(d)  f = Celu(e)
          g = PRelu(f,slope)  h = Softsign(g)  i = HardSigmoid<alpha=0.3, beta=0.4>(h)  y = Identity(i) }""",
    "powers": """(T[4,9] x) => (T[4,9] y)
        <T two = {2.0}, T half = {0.5}, T odd = {1.7}>
        { a = Pow(x,two)  b = Pow(a,half)  c = Pow(b,odd)  y = Reciprocal(c) }""",
    "many inputs": """(T[2,6] a, T[2,6] b, T[1,6] c) => (T[2,6] y)
        { m = Max(a,b,c)  n = Mean(a,b,c)  s = Sum(m,n,a)  y = Min(s,b) }""",
    "batch normalisation": """(T[2,4,3,5] x) => (T[2,4,3,5] y)
        <T[4] s = {1.5, -0.5, 0.7, 1.0}, T[4] b = {0.1, 0.2, 0.3, 0.4}, T[4] m = {0.5, 0.0, -0.5, 1.0},
         T[4] v = {1.0, 2.0, 0.5, 0.25}>
        { y = BatchNormalization(x,s,b,m,v) }""",
    "layer normalisation": """(T[2,3,4] x) => (T[2,3,4] y)
        <T[4] s = {1.5, -0.5, 0.7, 1.0}, T[4] b = {0.1, 0.2, 0.3, 0.4}>
        { y = LayerNormalization<epsilon=0.001>(x,s,b) }""",
    "instance normalisation after conv": """(T[2,3,6,6] x, T[4,3,3,3] w) => (T[2,4,6,6] y)
        <T[4] s = {1.5, -0.5, 0.7, 1.0}, T[4] b = {0.1, 0.2, 0.3, 0.4}>
        { c = Conv<pads=[1,1,1,1]>(x,w)  y = InstanceNormalization(c,s,b) }""",
    "group normalisation": """(T[2,4,3,3] x) => (T[2,4,3,3] y)
        <T[4] s = {1.5, -0.5, 0.7, 1.0}, T[4] b = {0.1, 0.2, 0.3, 0.4}>
        { y = GroupNormalization<num_groups=2>(x,s,b) }""",
    "softmax in the middle": """(T[2,5,3,4] x) => (T[2,5,3,4] y) { y = Softmax<axis=1>(x) }""",
    "log softmax": """(T[4,10] x) => (T[4,10] y) { y = LogSoftmax(x) }""",
    "reductions": """(T[3,4,5] x) => (T[3,5] a, T[1] b, T[3,4] c, T[3,1,5] d, T[4] e)
        <int64[1] one = {1}, int64[1] last = {-1}, int64[2] ends = {0, 2}>
        { a = ReduceMean<keepdims=0>(x,one)  s = ReduceSum(x)  z = Squeeze(s)  b = Reshape(z,one)
          c = ReduceMax<keepdims=0>(x,last)  d = ReduceMin(x,one)  e = ReduceL2<keepdims=0>(x,ends) }""",
    "relabelling": """(T[2,6,4,4] x) => (T[2,4,4,6] a, T[2,3,4,4] b, T[2,96] c)
        <int64[1] s = {1}, int64[1] e = {6}, int64[1] ax = {1}, int64[1] st = {2}>
        { a = Transpose<perm=[0,2,3,1]>(x)  b = Slice(x,s,e,ax,st)  c = Flatten(x) }""",
    "channel shuffle": """(T[1,6,4,4] x, T[6,6,1,1] w) => (T[1,6,4,4] y)
        <int64[5] apart = {1,2,3,4,4}, int64[4] back = {1,6,4,4}>
        { c = Conv(x,w)  a = Reshape(c,apart)  t = Transpose<perm=[0,2,1,3,4]>(a)  r = Reshape(t,back)
          y = Relu(r) }""",
    "split, gather and concat": """(T[2,6,3,3] x) => (T[2,10,3,3] y)
        <int64[2] sizes = {2,4}, int64 i = {1}, int64[1] ax = {1}>
        { a, b = Split<axis=1>(x,sizes)  c = Relu(b)  g = Gather<axis=1>(x,i)  u = Unsqueeze(g,ax)  d = Sigmoid(a)
          e = Neg(u)  y = Concat<axis=1>(d,c,e,u,a) }""",
    "dense block": """(T[1,4,6,6] x, T[4,4,3,3] w, T[4,8,3,3] v) => (T[1,12,6,6] y)
        { a = Conv<pads=[1,1,1,1]>(x,w)  b = Concat<axis=1>(x,a)  r = Relu(b)  c = Conv<pads=[1,1,1,1]>(r,v)
          y = Concat<axis=1>(b,c) }""",
    "depth to space": """(T[1,8,3,4] x) => (T[1,2,6,8] y, T[1,2,6,8] z)
        { y = DepthToSpace<blocksize=2>(x)  z = DepthToSpace<blocksize=2, mode="CRD">(x) }""",
    "space to depth": """(T[1,2,6,8] x) => (T[1,8,3,4] y) { y = SpaceToDepth<blocksize=2>(x) }""",
    "pad": """(T[1,3,4,5] x, T[4,3,3,3] w) => (T[1,4,5,7] y)
        <int64[8] p = {0,0,1,2,0,0,2,2}>
        { a = Pad(x,p)  y = Conv(a,w) }""",
    "pad in front of channels": """(T[2,3,4] x) => (T[2,5,4] y)
        <int64[6] p = {0,1,0,0,1,0}>
        { y = Pad(x,p) }""",
    "resize by whole factors": """(T[1,4,3,5] x) => (T[1,4,6,15] y)
        <float[4] s = {1.0,1.0,2.0,3.0}>
        { y = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x,,s) }""",
    "bias read by two": """(T[1,4,5,5] x, T[4,4,1,1] w, T[4] b, T[1,4,5,5] z) => (T[1,4,5,5] y)
        { c = Conv(x,w,b)  e = Add(c,z)  y = Mul(e,c) }""",
    "conv with a residual of one image": """(T[2,4,5,5] x, T[4,4,1,1] w, T[1,4,5,5] z) => (T[2,4,5,5] y)
        { c = Conv(x,w)  s = Sigmoid(c)  e = Mul(s,z)  y = Add(e,z) }""",
    "reductions and norms into a concat": """(T[2,4,3,3] x) => (T[2,12,1,1] y, T[2,8,3,3] z)
        <T[4] s = {1.5, -0.5, 0.7, 1.0}, T[4] b = {0.1, 0.2, 0.3, 0.4}>
        { a = GlobalAveragePool(x)  m = GlobalMaxPool(x)  r = Relu(m)  y = Concat<axis=1>(m,a,r)
          n = InstanceNormalization(x,s,b)  p = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(x)
          z = Concat<axis=1>(p,n) }""",
    "concat along the last axis": """(T[2,4,3,5] x, T[4,4,1,1] w) => (T[2,4,3,15] y)
        { c = Conv(x,w)  r = Relu(x)  p = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(x)
          y = Concat<axis=3>(c,r,p) }""",
    "images in both memory orders": """(T[2,4,6,6] x, T[4,4,3,3] w) => (T[2,4,6,6] y, T[2,4,6,6] z)
        { c = Conv<pads=[1,1,1,1]>(x,w)  s = Sigmoid(c)  t = Tanh(x)  y = Add(s,t)  z = Sub(s,x) }""",
    "identity and dropout": """(T[2,3] x) => (T[2,3] y, T[2,3] z) { y = Identity(x)  d = Dropout(x)  z = Relu(d) }""",
    "one output twice read, one passed through": """(T[2,3] x) => (T[2,3] y, T[6] z)
        <int64[1] flat = {6}>
        { y = Relu(x)  z = Reshape(y,flat) }""",
}


@pytest.mark.parametrize(("target", "dtype"), [
    ("h200", "float"), pytest.param("h200", "float16", marks=pytest.mark.slow),
    pytest.param("t4", "float", marks=pytest.mark.slow), pytest.param("t4", "float16", marks=pytest.mark.slow),
    pytest.param("rtx4090", "bfloat16", marks=pytest.mark.slow),
])  # fmt: skip
@pytest.mark.parametrize("name", MODELS)
def test_plan_computes_what_onnx_says(run_built: Callable[..., dict], name: str, dtype: str, target: str) -> None:
    model = model_from_text(MODELS[name], dtype)
    inputs, (rtol, atol) = inputs_of(model), TOLERANCE[dtype]
    found, wanted = run_built(model, cudnn_target(target), inputs), outputs_in_float64(ir.to_proto(model), inputs)
    assert list(found) == [output.name for output in model.graph.outputs]
    for output, array in found.items():
        scale = max(1.0, float(np.abs(wanted[output]).max()))
        np.testing.assert_allclose(array.astype(np.float64), wanted[output], rtol, atol * scale, err_msg=output)
