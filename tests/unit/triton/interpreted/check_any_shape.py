# SPDX-License-Identifier: Apache-2.0
"""Networks whose sizes are not fixed: one artifact is right at every shape in range, and refuses every other one."""

from collections.abc import Mapping

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from against_oracle import random_values
from gpu_on_numpy import Interpreter, session_on_gpu
from onnx.reference import ReferenceEvaluator

from nndeploy.passes import optimise
from nndeploy.values.types import DimRange

RANGES = {"n": DimRange(1, 4, 2), "h": DimRange(1, 20, 10), "w": DimRange(1, 20, 10), "s": DimRange(8, 64, 32, 8)}
"""Sizes of the models below; `s` has steps."""
SOME = {"n": (1, 3, 2), "h": (1, 7, 20), "w": (5, 1, 13), "s": (8, 24, 16)}
"""What each is in the calls of one session."""


def dynamic(text: str, constants: Mapping[str, np.ndarray], ranges: Mapping[str, DimRange] = RANGES) -> ir.Model:
    """Returns a model whose symbolic sizes are named; `ranges` are those that the passes know."""
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())
    model = ir.from_proto(onnx.shape_inference.infer_shapes(proto))
    optimise(model, ranges)
    for node in [one for one in model.graph if one.op_type == "Shape"]:  # another backend's, as in a partition
        given = ir.Value(name="k", shape=ir.Shape([4]), type=ir.TensorType(ir.DataType.INT64))
        node.outputs[0].replace_all_uses_with(given)
        model.graph.remove(node)
        model.graph.inputs.append(given)
    return model


def inputs_at(model: ir.Model, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Returns inputs of a model of which each symbol has its size."""
    found = {}
    for number, value in enumerate(model.graph.inputs):
        shape = [dim if isinstance(dim, int) else sizes[dim.value] for dim in value.shape]
        kind = value.dtype.numpy()
        if value.name == "k":
            found["k"] = np.array([sizes["n"], 2, sizes["s"], 3])
        elif kind.kind == "f":
            found[value.name] = random_values(number, kind.name, *shape)
        else:
            found[value.name] = (np.arange(np.prod(shape)) % 2 - 1).astype(kind).reshape(shape)
    return found


def reals(*shape: int, seed: int = 1) -> np.ndarray:
    """Returns a constant."""
    return random_values(seed, "float32", *shape)


NETWORKS: dict[str, tuple[str, dict[str, np.ndarray]]] = {
    "a chain of two inputs": (
        "g (float[n,h] x, float[n,h] z, float[h] b) => (float[n,h] y) { a = Add(x, z) c = Mul(a, b) y = Relu(c) }",
        {},
    ),
    "linear layers": (
        "g (float[n,h,9] x) => (float[n,h,5] y) { a = MatMul(x, v) c = Add(a, b) d = Relu(c) y = MatMul(d, w) }",
        {"v": reals(9, 33), "b": reals(33, seed=2), "w": reals(33, 5, seed=3)},
    ),
    "gemm": (
        "g (float[n,9] x) => (float[n,5] y) { a = Gemm<alpha=0.5>(x, v, b) y = Gemm<transB=1>(a, w) }",
        {"v": reals(9, 17), "b": reals(17, seed=2), "w": reals(5, 17, seed=3)},
    ),
    "attention": (
        """g (float[n,h,12] x) => (float[n,h,12] y) { k = Transpose<perm=[0,2,1]>(x) s = MatMul(x, k)
        p = Softmax<axis=-1>(s) y = MatMul(p, x) }""",
        {},
    ),
    "normalised": (
        """g (float[n,h,12] x, float[n,6,h,w] i) => (float[n,h,12] y, float[n,6,h,w] z, float[n,6,h,w] u,
        float[n,h,12] v) { a = LayerNormalization(x, s, t) m = ReduceMean(a, e) d = Sub(a, m) q = Mul(d, d)
        r = ReduceMean(q, e) f = Add(r, o) k = Sqrt(f) y = Div(d, k) z = InstanceNormalization(i, c, b)
        u = GroupNormalization<num_groups=3>(i, c, b) v = LogSoftmax<axis=1>(x) }""",
        {"s": reals(12), "t": reals(12, seed=2), "e": np.array([-1]), "o": np.float32(1e-5), "c": reals(6, seed=3),
         "b": reals(6, seed=4)},
    ),
    "reduced": (
        """g (float[n,6,h,w] x) => (float[n,6,1,1] a, float[n,6] b, float[n,h] c, float[6,w] d, float[k] e) {
        a = GlobalAveragePool(x) f = GlobalMaxPool(x) b = Flatten(f) c = ReduceSum<keepdims=0>(x, i)
        d = ReduceMax<keepdims=0>(x, j) e = ReduceL2<keepdims=0>(x, l) }""",
        {"i": np.array([1, 3]), "j": np.array([0, 2]), "l": np.array([0, 1, 2])},
    ),
    "convolutions": (
        """g (float[n,6,h,w] x) => (float[n,8,p,q] y, float[n,9,h,w] z) {
        a = Conv<strides=[2,2], pads=[1,1,1,1]>(x, u, b) c = HardSwish(a) d = Conv(c, v) y = Add(d, c)
        z = Conv<group=3, dilations=[2,2], pads=[2,2,2,2]>(x, k) }""",
        {"u": reals(8, 6, 3, 3), "b": reals(8, seed=2), "v": reals(8, 8, 1, 1, seed=3), "k": reals(9, 2, 3, 3, seed=4)},
    ),
    "padded as the size asks": (
        'g (float[n,3,h,w] x) => (float[n,4,p,q] y) { y = Conv<strides=[2,2], auto_pad="SAME_UPPER">(x, u) }',
        {"u": reals(4, 3, 3, 3)},
    ),
    "along one axis": (
        "g (float[n,3,h] x) => (float[n,4,p] y) { y = Conv<strides=[2], pads=[2,2]>(x, u) }",
        {"u": reals(4, 3, 5)},
    ),
    "separable": (
        """g (float[n,6,h,w] x) => (float[n,6,p,q] y) { a = Conv<group=6, pads=[1,1,1,1]>(x, d, b) c = Relu(a)
        e = Conv(c, v) y = Add(e, x) }""",
        {"d": reals(6, 1, 3, 3), "b": reals(6, seed=2), "v": reals(6, 6, 1, 1, seed=3)},
    ),
    "depthwise": (
        "g (float[n,6,h,w] x) => (float[n,12,p,q] y) { y = Conv<group=6, strides=[2,1], pads=[2,2,2,2]>(x, d) }",
        {"d": reals(12, 1, 5, 5)},
    ),
    "transposed": (
        "g (float[n,6,h,w] x) => (float[n,4,p,q] y) { y = ConvTranspose<strides=[2,2], pads=[1,1,1,1]>(x, u) }",
        {"u": reals(6, 4, 4, 4)},
    ),
    "pooled": (
        """g (float[n,6,h,w] x) => (float[n,6,p,q] y, float[n,6,h,w] z) {
        y = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x)
        z = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1>(x) }""",
        {},
    ),
    "halved and enlarged": (
        """g (float[n,3,s,w] x) => (float[n,7,s,w] y) { a = Conv<strides=[2,1], pads=[1,1,1,1]>(x, u)
        c = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(a, , e)
        y = Concat<axis=1>(c, x) }""",
        {"u": reals(4, 3, 3, 3), "e": np.array([1, 1, 2, 1], np.float32)},
    ),
    "resized": (
        """g (float[n,2,h,w] x, float[n,2,s,3] t) => (float[n,2,p,q] a, float[n,2,p,q] b, float[n,2,s,3] c,
        float[n,2,s,3] d, float[n,2,i,j] e) { a = Resize<mode="linear">(x, , two)
        b = Resize<mode="nearest", nearest_mode="ceil", coordinate_transformation_mode="align_corners">(x, , two)
        k = Shape(t) c = Resize<mode="linear", coordinate_transformation_mode="align_corners">(x, , , k)
        d = Resize<mode="linear", coordinate_transformation_mode="asymmetric">(x, , , k)
        e = Resize<mode="nearest">(t, , half) }""",
        {"two": np.array([1, 1, 2, 3], np.float32), "half": np.array([1, 1, 0.5, 1], np.float32)},
    ),
    "moved": (
        """g (float[n,6,h,w] x) => (float[n,h,w,2] y, float[n,p] z, float[n,6,h] u, float[n,6,q,w] v) {
        a = Transpose<perm=[0,2,3,1]>(x) y = Slice(a, b, e, k, t) z = Flatten(y) d = Gather<axis=3>(x, l)
        u = Identity(d) c, v = Split<axis=2, num_outputs=2>(f) f = Concat<axis=2>(x, x) }""".replace(
            "c, v = Split<axis=2, num_outputs=2>(f) f = Concat<axis=2>(x, x)",
            "f = Concat<axis=2>(x, x) c, v = Split<axis=2, num_outputs=2>(f)",
        ),
        {"b": np.array([5]), "e": np.array([0]), "k": np.array([3]), "t": np.array([-3]), "l": np.array(-1)},
    ),
    "from the end": (
        """g (float[n,s,w] x) => (float[n,2,w] y, float[n,p,w] z, float[n,3,w] u) { y = Slice(x, b, e, k)
        z = Slice(x, b, f, k, t) u = Gather<axis=1>(x, l) }""",
        {"b": np.array([-2]), "e": np.array([2**60]), "f": np.array([-(2**60)]), "k": np.array([1]),
         "t": np.array([-2]), "l": np.array([0, -1, -2])},
    ),
    "surrounded": (
        """g (float[n,2,h,w] x) => (float[n,3,p,q] y, float[n,4,h,w] z) { y = Pad(x, m, o)
        z = Pad<mode="wrap">(x, a) }""",
        {"m": np.array([0, 1, 2, 0, 0, 0, 1, 3]), "o": np.float32(1.5), "a": np.array([0, 1, 0, 0, 0, 1, 0, 0])},
    ),
    "in blocks": (
        """g (float[n,8,h,w] x, float[n,2,s,w] z) => (float[n,2,p,q] y, float[n,8,r,w] u, float[n,k,w] v) {
        y = DepthToSpace<blocksize=2>(x) t = Reshape(z, f) u = Transpose<perm=[0,2,1,3]>(t) v = Reshape(z, e) }""",
        {"f": np.array([0, -1, 8, 1]), "e": np.array([0, -1, 1])},
    ),
    "recurrent": (
        """g (float[h,n,3] x) => (float[h,2,n,5] y, float[2,n,5] z) {
        y, z = LSTM<hidden_size=5, direction="bidirectional">(x, u, r, b) }""",
        {"u": reals(2, 20, 3), "r": reals(2, 20, 5, seed=2), "b": reals(2, 40, seed=3)},
    ),
    "quantised": (
        """g (float[n,4,h,w] x) => (float[n,4,h,w] y, uint8[n,3,p,q] z) { a = QuantizeLinear<axis=1>(x, s, o)
        y = DequantizeLinear<axis=1>(a, s, o) c = QuantizeLinear(x, t, i)
        z = QLinearConv<pads=[1,1,0,0]>(c, t, i, k, t, l, v, i) }""",
        {"s": np.float32([0.1, 0.2, 0.3, 0.4]), "o": np.uint8([1, 2, 3, 4]), "t": np.float32(0.05), "i": np.uint8(128),
         "k": np.arange(48).reshape(3, 4, 2, 2).astype(np.int8), "l": np.int8(2), "v": np.float32(0.5171)},
    ),
    "chosen": (
        "g (float[n,h] x, int64[w] i) => (float[n,w] y) { c = Cast<to=1>(x) y = Gather<axis=1>(c, i) }",
        {},
    ),
}  # fmt: skip


UNDECLARED = ("linear layers", "attention", "convolutions", "moved", "in blocks")
"""Networks that are also built from what the passes make where nobody declared ranges, which the chain has anyway."""


@pytest.mark.parametrize(("name", "ranges"), [*((n, RANGES) for n in NETWORKS), *((n, {}) for n in UNDECLARED)])
def test_one_artifact_is_right_at_every_shape(name: str, ranges: Mapping[str, DimRange]) -> None:
    text, constants = NETWORKS[name]
    model, interpreter = dynamic(text, constants, ranges), Interpreter()
    reference = ReferenceEvaluator(ir.to_proto(model))
    with session_on_gpu(model, interpreter, RANGES) as session:
        num_kernels = len(interpreter.specs)
        for number in range(3):
            inputs = inputs_at(model, {size: some[number] for size, some in SOME.items()})
            wanted = reference.run(None, inputs)
            for _ in range(2):  # queued, then recorded
                found = session.run(inputs)
                for value, expected in zip(model.graph.outputs, wanted, strict=True):
                    what = f"{value.name} at {[array.shape for array in inputs.values()]}"
                    got = found[value.name].numpy()
                    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5, err_msg=what)
        assert len(interpreter.specs) == num_kernels
