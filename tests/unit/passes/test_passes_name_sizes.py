# SPDX-License-Identifier: Apache-2.0
"""Inferred sizes are those that ONNX's operators give, on small graphs and on real models at drawn sizes."""

import os
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from passes_harness import run_onnxruntime

from nndeploy.checking.drawn_sizes import drawn_sizes
from nndeploy.frontend.load import load_model
from nndeploy.graph.infer_sizes import known_sizes
from nndeploy.passes import optimise
from nndeploy.passes.name_sizes import NameSizes
from nndeploy.values.size import evaluated
from nndeploy.values.types import DimRange

MODELS = Path(__file__).resolve().parents[3].parent / "shared" / "models"
RANGES = {"n": DimRange(1, 8, 2), "h": DimRange(32, 640, 320, 32), "w": DimRange(9, 99, 20)}
SHAPES = {
    "ppocr_det_mobile_v2": {"x": "1,3,32..640:32,32..640:32"}, "ppocr_rec_en_mobile_v2": {"x": "1..4,3,32,8..320"},
    "magika_standard_v3_3": {"bytes": "1..4,2048"}, "basic_pitch": {"serving_default_input_2:0": "1..3,43844,1"},
    "nnsplit_en": {"input": "1..8,8..100:2"}, "fsmn_vad_online": {"speech": "1,1..200,400"},
}  # fmt: skip


def graph(text: str) -> ir.Model:
    """Returns a model of ONNX text, with ONNX's own inference."""
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {text}')
    return ir.from_proto(onnx.shape_inference.infer_shapes(proto))


@pytest.mark.parametrize(("body", "wanted"), [
    ("y = Conv<strides=[2,2], pads=[1,1,1,1], kernel_shape=[3,3]>(x, k)", "[n,8,16*{h/} + 16,({w} + 1)//(2)]"),
    ("c = Cast<to=2>(x) w = Cast<to=2>(k) i = ConvInteger<strides=[2,2], pads=[1,1,1,1]>(c, w) " "y = Cast<to=1>(i)",
     "[n,8,16*{h/} + 16,({w} + 1)//(2)]"),
    ('y = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(x, k)', "[n,8,16*{h/} + 16,({w} + 1)//(2)]"),
    ("y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)", "[n,4,16*{h/} + 16,({w})//(2)]"),
    ("y = Concat<axis=3>(x, x)", "[n,4,h,2*{w}]"), ("y = Flatten(x)", "[n,4*{h}*{w}]"),
    ("s = Shape(x) a = Slice(s, z, t) b = Concat<axis=0>(a, m) y = Reshape(x, b)", "[n,4,{h}*{w}]"),
    ("s = Shape<start=2>(x) p = ReduceProd<keepdims=1>(s) u = Mul(s, s) y = ConstantOfShape(u)", "[h*h,w*w]"),
    ("s = Shape<start=2>(x) p = ReduceProd<keepdims=1>(s) y = ConstantOfShape(p)", "[h*w]"),
    ("s = Shape<start=2>(x) p = ReduceSum<keepdims=1>(s) y = ConstantOfShape(p)", "[h + w]"),
    ("s = Shape<start=2>(x) p = ReduceMin<keepdims=1>(s) y = ConstantOfShape(p)", "[(h + w - abs(h - w))//2]"),
    ("s = Shape<start=2>(x) p = ReduceMax<keepdims=1>(s) y = ConstantOfShape(p)", "[(h + w + abs(h - w))//2]"),
    ("s = Shape<start=3>(x) l = Squeeze(s) y = Range(one, l, three)", "[({w} + 1)//(3)]"),
    ("s = Shape<start=3>(x) l = Squeeze(s) y = Range(l, one, back)", "[({w} + 1)//(3)]"),
    ("y = Pad(x, q)", "[n,4,h,{w} + 5]"),
    ("s = Shape<start=3>(x) l = Concat<axis=0>(t, s, z, t, z, z, z, z) two = Constant<value_ints=[-1,2]>() "
     "b = Constant<value_ints=[-1]>() f = Constant<value_ints=[-9223372036854775807]>() c = Reshape(l, two) "
     "d = Slice(c, b, f, z, b) i = Transpose(d) j = Reshape(i, b) w = Cast<to=7>(j) y = Pad(x, w)",
     "[n,4,{h} + 2,2*{w} + 2]"),
    ("a = ReduceMean<keepdims=0>(x, t) b = Transpose<perm=[0,2,1]>(a) y = STFT(b, one, , three)", "[n,{w} + -2,2,2]"),
    ("y = ReduceMean<keepdims=0>(x, t)", "[n,4,w]"), ("y = GlobalAveragePool(x)", "[n,4,1,1]"),
    ("y = Transpose<perm=[3,0,1,2]>(x)", "[w,n,4,h]"), ("y = Add(x, v)", "[n,4,h,w]"),
    ("a = ReduceSum<keepdims=0>(x, r) y = MatMul(a, x)", "[n,4,w]"),
    ("a = ReduceSum<keepdims=0>(x, e) y = MatMul(x, a)", "[n,4,h]"),
    ("y = Einsum<equation=\"nchw,n...->cnw\">(x, x)", "[4,n,w]"),
    ("y = Einsum<equation=\"...w,...h->...wh\">(x, x)", "[n,4,h,w,w]"), ("y, i = TopK<axis=2>(x, t)", "[n,4,2,w]"),
    ("i, y = TopK<axis=1, largest=0>(x, t)", "[n,2,h,w]"),
    ("a = ReduceMean<keepdims=0>(x, t) y = LSTM<hidden_size=2, layout=1>(a, k, k)", "[n,4,1,2]"),
])  # fmt: skip
def test_sizes_of_a_node(body: str, wanted: str) -> None:
    rank = wanted.count(",") + 1
    dims = ",".join(f"d{axis}" for axis in range(rank))
    text = f"""(float[n,4,h,w] x) => (float[{dims}] o) <float[8,4,3,3] k = {{{",".join("0" * 288)}}},
        int64[1] z = {{0}}, int64[1] t = {{2}}, int64[2] m = {{4,-1}},
        int64[3] r = {{0,1,3}}, int64[3] e = {{0,1,2}},
        int64 one = {{1}}, int64 three = {{3}}, int64 back = {{-3}},
        int64[8] q = {{0,0,0,2,0,0,0,3}}, float[4,1,1] v = {{1,2,3,4}}>
        {{ {body} o = Neg(y) }}"""
    if "m)" in body:
        text = text.replace("int64[1] t = {2}", "int64[1] t = {1}")
    model = graph(text)
    known = known_sizes(model, RANGES)
    (value,) = model.graph.outputs
    found = known.shape(value)
    assert found is not None
    raw = wanted.strip("[]").split(",")
    for sizes in ({"n": 3, "h": 96, "w": 33}, {"n": 1, "h": 32, "w": 98}):
        counted = {**sizes, "h": (sizes["h"] - 32) // 32}
        expected = [_by_hand(part, sizes) for part in raw]
        assert [evaluated(size, counted) for size in found] == expected, f"{body}: {found}"


CONTRIB_INPUTS = """(float[n,s,16] x, float[n,t,16] u, float[n,t,12] v, float[n,1,16] r, float[16,16] h,
    float[12,16] w, float[16,48] q, uint8[24,1,8] b, float[24,1] c, float[16] g, float one, float z)"""


@pytest.mark.parametrize(("body", "wanted"), [
    ("y = com.microsoft.FastGelu(x)", "[n,s,16]"),
    ("y = com.microsoft.MatMulNBits<K=16, N=24, bits=4, block_size=16>(x, b, c)", "[n,s,24]"),
    ("y = com.microsoft.FusedMatMul<transB=1>(x, w)", "[n,s,12]"),
    ("y = com.microsoft.FusedMatMul<transA=1>(x, x)", "[n,16,16]"),
    ("y = com.microsoft.FusedMatMul<transBatchA=1>(x, h)", ""),
    ("y = com.microsoft.SkipLayerNormalization(x, x, g)", "[n,s,16]"),
    ("a, m, d, y = com.microsoft.SkipLayerNormalization(x, x, g)", "[n,s,16]"),
    ("y = com.microsoft.MultiHeadAttention<num_heads=4>(x, u, v)", "[n,s,12]"),
    ("y = com.microsoft.Attention<num_heads=4>(x, q)", "[n,s,16]"),
    ("y = com.microsoft.QLinearAdd(x, one, z, r, one, z, one, z)", "[n,s,16]"),
    ("y = com.microsoft.QGemm<transB=1>(h, one, z, w, one, z)", "[16,12]"),
])  # fmt: skip
def test_sizes_of_operators_of_onnxruntime(body: str, wanted: str) -> None:
    head = f'<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]> g {CONTRIB_INPUTS}'
    model = ir.from_proto(onnx.parser.parse_model(f"{head} => (float[d] y) {{ {body} }}"))
    (node,) = model.graph
    output = next(value for value in node.outputs if value.name == "y")
    output.shape = None
    known = known_sizes(model, RANGES)
    found = known.shape(output)
    assert ("" if found is None else f"[{','.join(str(one).strip('{}') for one in found)}]") == wanted


def _by_hand(text: str, sizes: dict[str, int]) -> int:
    for name, size in (("{h/}", (sizes["h"] - 32) // 32), *sizes.items()):
        text = text.replace(f"{{{name}}}" if name in sizes else name, str(size))
    return int(eval(text, {}, dict(sizes)))  # noqa: S307 - a text of this file


def test_lists_are_followed_but_not_tables() -> None:
    """PyTorch computes pads by reversing rows of pairs: the elements of what has two axes are not a list."""
    model = graph("""(float[n,4] x) => (int64[2] y) <int64[4] a = {0,32,5,7}, int64[2] s = {-1,2}, int64[1] b = {-1},
        int64[1] e = {-9223372036854775807}, int64[1] k = {0}, int64[1] p = {-1}, int64[1] r = {2},
        int64[1] q = {0}> {
        t = Reshape(a, s) u = Slice(t, b, e, k, p) v = Transpose<perm=[1,0]>(u) f = Reshape(v, b)
        y = Slice(f, q, r) }""")  # fmt: skip
    optimise(model, {})
    np.testing.assert_array_equal(run_onnxruntime(ir.to_proto(model), {"x": np.zeros((1, 4), "f")})[0], [5, 0])


def test_names_are_the_inputs_own_and_stay() -> None:
    model = graph("(float[n,h] x) => (float[p,q] y) { a = Relu(x) b = Concat<axis=1>(a, a) y = Relu(b) }")
    assert NameSizes(RANGES).rewrite(model) > 0
    shapes = {value.name: str(value.shape) for node in model.graph for value in node.outputs}
    assert shapes["a"] == "[n,h]"
    assert "{h}" in shapes["b"]
    assert NameSizes(RANGES).rewrite(model) == 0


@pytest.mark.parametrize("name", SHAPES)
def test_real_model_has_the_inferred_sizes(name: str) -> None:
    path = MODELS / f"{name}.onnx"
    if not path.exists():
        pytest.skip("the real models are not beside the repository")
    loaded = load_model(path, shapes=SHAPES[name])
    optimise(loaded.model, loaded.ranges)
    known = known_sizes(loaded.model, loaded.ranges)
    values = [output for node in loaded.model.graph for output in node.outputs if output.name and known.shape(output)]
    proto = ir.to_proto(loaded.model)
    outside = {one.name for one in proto.graph.output}
    proto.graph.output.extend(onnx.ValueInfoProto(name=value.name) for value in values if value.name not in outside)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    followed, drawn = 0, drawn_sizes(loaded.ranges, 2)
    for sizes in drawn:
        feeds = {
            one.name: np.ones([sizes.get(str(dim), dim) for dim in one.type.shape], one.type.dtype)  # type: ignore[union-attr]
            for one in loaded.inputs
        }
        counted = {
            symbol: (size - loaded.ranges[symbol].min) // step if (step := loaded.ranges[symbol].step) > 1 else size
            for symbol, size in sizes.items()
        }
        found = session.run([value.name for value in values], feeds)
        for value, array in zip(values, found, strict=True):
            shape = known.shape(value) or ()
            if {one.name for size in shape if not isinstance(size, int) for one in size.symbols} <= counted.keys():
                assert array.shape == tuple(evaluated(size, counted) for size in shape), f"{value.name} at {sizes}"
                followed += 1
    assert followed >= 0.9 * len(drawn) * len(values), "nearly every size of these models follows from their inputs"


def test_sizes_that_both_branches_of_an_if_give_are_those_of_what_it_gives() -> None:
    model = graph("""(float[n,w] x, bool c) => (float[p,q,r] y) { u = If(c) <
            then_branch = t () => (float[d,e,f] a) { a = Unsqueeze(x, one) },
            else_branch = o () => (float[g,h,i] b) { s = Concat<axis=1>(x, x) b = Unsqueeze(s, one) }>
            y = Relu(u) }""".replace("{ u =", "<int64[1] one = {1}> { u ="))  # fmt: skip
    NameSizes({}).rewrite(model)
    first, middle, last = model.graph[-1].outputs[0].shape or ()
    assert (str(first), middle, str(last)) == ("n", 1, "u.2")
