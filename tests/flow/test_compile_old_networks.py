# SPDX-License-Identifier: Apache-2.0
"""Networks as exporters of ONNX's first years wrote them give what the same networks give in today's words."""

import numpy as np
import onnx
import onnx.helper
import pytest
from compile_with import compile_with
from frontend_builders import model, outputs_of

import nndeploy

WEIGHTS = {
    "w": (8, 3, 3, 3), "b": (8,), "g": (8, 4, 3, 3), "scale": (8,), "shift": (8,), "mean": (8,), "var": (8,),
    "one": (8, 8, 1, 1), "slope": (8,), "f": (10, 128), "t": (128, 10), "fb": (10,), "bias": (1,),
}  # fmt: skip

CAFFE2 = """
    c = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w, b)
    n = BatchNormalization <consumed_inputs = [0, 0, 0, 1, 1], is_test = 1, epsilon = 0.001>
        (c, scale, shift, mean, var)
    r = Relu <consumed_inputs = [0]> (n)
    p = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [0, 0, 1, 1]> (r)
    l = LRN <size = 5, alpha = 0.0001> (p)
    q = Conv <group = 2, kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (l, g)
    m = Mul <axis = 1, broadcast = 1, consumed_inputs = [0, 0]> (q, scale)
    a = Add <axis = 1, broadcast = 1, consumed_inputs = [0, 0]> (m, shift)
    s = Sum <consumed_inputs = [0, 0]> (a, p)
    d, mask = Dropout <is_test = 1, ratio = 0.5, consumed_inputs = [0]> (s)
    h = Reshape <shape = [0, 128], consumed_inputs = [0]> (d)
    e = Gemm <broadcast = 1, transB = 1> (h, f, fb)
    y = Softmax(e)"""
CAFFE2_TODAY = """
    c = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w, b)
    n = BatchNormalization <epsilon = 0.001> (c, scale, shift, mean, var)
    r = Relu(n)
    p = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [0, 0, 1, 1]> (r)
    l = LRN <size = 5, alpha = 0.0001> (p)
    q = Conv <group = 2, kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (l, g)
    k = Constant <value_ints = [1, 2]> ()  scale3 = Unsqueeze(scale, k)  shift3 = Unsqueeze(shift, k)
    m = Mul(q, scale3)  a = Add(m, shift3)  s = Add(a, p)
    h = Flatten(s)
    e = Gemm <transB = 1> (h, f, fb)
    y = Softmax <axis = 1> (e)"""

CNTK = """
    u = Constant <value = float {127.5}> ()  v = Sub <broadcast = 1> (x, u)  z = Div <broadcast = 1> (v, u)
    c = Conv <auto_pad = "SAME_UPPER", kernel_shape = [3, 3], strides = [1, 1]> (z, w)
    a = Add <axis = -3, broadcast = 1> (c, b)
    r = LeakyRelu <alpha = 0.1, consumed_inputs = [0]> (a)
    o = PRelu(r, slope)
    p = AveragePool <auto_pad = "SAME_LOWER", kernel_shape = [2, 2], strides = [2, 2]> (o)
    i, j = Split <axis = 1> (p)
    k = Concat(i, j)
    h = Reshape <shape = [1, 128]> (k)
    e = MatMul(h, t)
    y = Add <broadcast = 1> (e, fb)"""
CNTK_TODAY = """
    u = Constant <value = float {127.5}> ()  v = Sub(x, u)  z = Div(v, u)
    a = Conv <auto_pad = "SAME_UPPER", kernel_shape = [3, 3]> (z, w, b)
    r = LeakyRelu <alpha = 0.1> (a)
    axes = Constant <value_ints = [1, 2]> ()  slope3 = Unsqueeze(slope, axes)  o = PRelu(r, slope3)
    p = AveragePool <auto_pad = "SAME_LOWER", kernel_shape = [2, 2], strides = [2, 2]> (o)
    h = Flatten(p)
    e = MatMul(h, t)
    y = Add(e, fb)"""

COREML = """
    z = ImageScaler <scale = 0.0039, bias = [0.1, 0.2, 0.3]> (x)
    c = Conv <auto_pad = "SAME_UPPER", kernel_shape = [3, 3]> (z, w)
    n = BatchNormalization <consumed_inputs = [0, 0, 0, 1, 1], is_test = 1, spatial = 1>
        (c, scale, shift, mean, var)
    r = LeakyRelu <alpha = 0.1> (n)
    p = MaxPool <auto_pad = "SAME_UPPER", kernel_shape = [2, 2], strides = [2, 2]> (r)
    s = MaxPool <auto_pad = "SAME_LOWER", kernel_shape = [2, 2], strides = [1, 1]> (p)
    m = Add <axis = 1, broadcast = 1> (s, shift)
    i = Clip <max = 2.0> (m)
    up = Upsample <height_scale = 2.0, width_scale = 2.0> (i)
    y = Conv <kernel_shape = [1, 1]> (up, one)"""
COREML_TODAY = """
    k = Constant <value = float {0.0039}> ()  v = Mul(x, k)
    offset = Constant <value = float[3,1,1] {0.1, 0.2, 0.3}> ()  z = Add(v, offset)
    c = Conv <auto_pad = "SAME_UPPER", kernel_shape = [3, 3]> (z, w)
    n = BatchNormalization(c, scale, shift, mean, var)
    r = LeakyRelu <alpha = 0.1> (n)
    p = MaxPool <auto_pad = "SAME_UPPER", kernel_shape = [2, 2], strides = [2, 2]> (r)
    s = MaxPool <auto_pad = "SAME_LOWER", kernel_shape = [2, 2]> (p)
    axes = Constant <value_ints = [1, 2]> ()  shift3 = Unsqueeze(shift, axes)  m = Add(s, shift3)
    two = Constant <value = float {2.0}> ()  i = Min(m, two)
    sizes = Constant <value = float[4] {1, 1, 2, 2}> ()
    up = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (i, , sizes)
    y = Conv <kernel_shape = [1, 1]> (up, one)"""


def network(nodes: str, version: int, ir_version: int, size: str) -> onnx.ModelProto:
    header = f'<ir_version: {ir_version}, opset_import: ["" : {version}]>\n'
    proto = model(f"g (float[1,3,8,8] x) => (float[{size}] y) {{ {nodes} }}", header)
    random = np.random.default_rng(3)
    for name, shape in WEIGHTS.items():
        array = abs(random.standard_normal(shape)).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        if ir_version < 4:
            proto.graph.input.append(onnx.helper.make_tensor_value_info(name, 1, shape))
    return proto


@pytest.mark.parametrize(("old", "version", "today", "size"), [
    (CAFFE2, 3, CAFFE2_TODAY, "1,10"), (CNTK, 2, CNTK_TODAY, "1,10"), (COREML, 1, COREML_TODAY, "1,8,8,8")
], ids=["caffe2", "cntk", "coreml"])  # fmt: skip
def test_gives_what_it_gives_in_words_of_today(old, version, today, size, tmp_path) -> None:
    given = {"x": (np.random.default_rng(5).random((1, 3, 8, 8)) * 255).astype(np.float32)}
    want = outputs_of(network(today, 17, 8, size), given)["y"]
    compile_with(network(old, version, 3, size), tmp_path / "old.nnd")
    with nndeploy.load_bundle(tmp_path / "old.nnd") as program:
        assert [named.name for named in program.inputs] == ["x"]
        np.testing.assert_allclose(program.run(given)["y"], want, rtol=1e-4, atol=1e-5)
