# SPDX-License-Identifier: Apache-2.0
"""What each operator asks of sizes: the open size U of an input must be 11, or at least 11, for the operator to run."""

import onnx.parser
import onnx_ir as ir
import pytest

from nndeploy.checking.made_up_sizes import choices
from nndeploy.checking.open_sizes import open_sizes
from nndeploy.checking.operator_conditions import RULES

QUANTISED = "uint8[2,U] x, float s, uint8 z"
ELEVEN = "[1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0,9.0,10.0,11.0]"
EXACT = [
    ("float[2,U] x, float[2,11] f", "Add(x, f)"),
    ("float[2,3,U] x, float[11,12] f, float[12] g", "com.microsoft.Attention<num_heads=2>(x, f, g)"),
    ("float[2,U,4] x, float[11] f", "BatchNormalization(x, f, f, f, f)"),
    ("float[2,U] x, float[3,11] f", "Concat<axis=0>(x, f)"), ("float[2,U,9,9] x, float[4,11,3,3] f", "Conv(x, f)"),
    ("float[2,U,9,9] x, float[11,4,3,3] f", "ConvTranspose(x, f)"),
    ("uint8[2,U] x, float[11] f", "DequantizeLinear<axis=1>(x, f)"),
    ("float[3,2,U] x, uint8[1,11,16] w, uint8[1,4,16] r, float s, uint8 z",
     "com.microsoft.DynamicQuantizeLSTM<hidden_size=4>(x, w, r, , , , , , s, z, s, z)"),
    ("float[2,U] x, float[11,3] f", 'Einsum<equation="ab,bc->ac">(x, f)'),
    ("float[2,U] x, float[3,11] f", "com.microsoft.FusedMatMul<transB=1>(x, f)"),
    ("float[3,2,U] x, float[1,12,11] w, float[1,12,4] r", "GRU<hidden_size=4>(x, w, r)"),
    ("float[2,U] x, float[11,3] f", "Gemm(x, f)"), ("float[U,3,9,9] x, float[11,4,4,2] f", "GridSample(x, f)"),
    ("float[U,3,32] x, float[11,1,8,8] k, int32[11] m, int32 n",
     "com.microsoft.GroupQueryAttention<num_heads=2, kv_num_heads=1>(x, , , k, k, m, n)"),
    ("float[2,U] x, float[11] f", "LayerNormalization(x, f)"),
    ("float[2,U] x", f"ai.onnx.ml.LinearRegressor<coefficients={ELEVEN}>(x)"),
    ("float[2,U] x, float[11,3] f", "MatMul(x, f)"),
    ("float[2,U] x, uint8[3,1,16] b, float[3] f",
     "com.microsoft.MatMulNBits<K=11, N=3, bits=4, block_size=32>(x, b, f)"),
    (f"{QUANTISED}, uint8[11,3] b", "com.microsoft.QGemm(x, s, z, b, s, z)"),
    (f"{QUANTISED}, uint8[2,11] b", "com.microsoft.QLinearAdd(x, s, z, b, s, z, s, z)"),
    ("uint8[2,U,9,9] x, float s, uint8 z, uint8[4,11,3,3] b", "QLinearConv(x, s, z, b, s, z, s, z)"),
    (f"{QUANTISED}, uint8[11,3] b", "QLinearMatMul(x, s, z, b, s, z, s, z)"),
    ("float[2,3,9,9] x, float[11,4] f, int64[U] m", "RoiAlign(x, f, m)"),
    ("float[2,U] x", f"ai.onnx.ml.Scaler<offset={ELEVEN}, scale=[1.0]>(x)"),
    ("float[20] x, int64[U] i, float[11] f", "ScatterElements(x, i, f)"),
    ("float[3,2,U] x, float[1,16,11] w, float[1,16,4] r", "LSTM<hidden_size=4>(x, w, r)"),
    ("float[3,2,5] x, float[1,4,5] w, float[1,4,4] r, float[1,U,4] h", "RNN<hidden_size=4>(x, w, r, , , h)", 2),
    ("float[2,U] x, float[11] f", "com.microsoft.SkipLayerNormalization(x, x, f)"),
    ("float[2,U] x", "Expand(x, c)", 11, "{2, 11}"), ("float[2,U] x", "Reshape(x, c)", 11, "{2, 11}"),
    ("float[2,U] x", "Split<axis=1>(x, c)", 11, "{5, 6}"), ("float[2,U] x", "Squeeze(x, c)", 1, "{1}"),
]  # fmt: skip
LEAST = [
    ("int64[2,11] x, float[9,4] f, float[U,4] g, float[4] h",
     "com.microsoft.EmbedLayerNormalization(x, , f, g, , h, h)"),
    ("float[2,U] x", "Gather<axis=1>(x, c)", 11, "{3, 10}"), ("float[U] x", "GatherND(x, c)", 11, "{10}"),
    ("float[2,U] x", 'Pad<mode="reflect">(x, c)', 11, "{0, 10, 0, 0}"),
    ("float[1,U,1] x, float[11] w, int64 s", "STFT(x, s, w)"), ("float[2,U] x", "TopK(x, c)", 11, "{11}"),
    ("float[2,U] x", "ai.onnx.ml.TreeEnsembleRegressor<nodes_featureids=[10,0,0]>(x)"),
    ("float[2,3,U,99] x, float[4,3,11,3] f", "Conv(x, f)"), ("float[2,3,U,99] x", "MaxPool<kernel_shape=[11,3]>(x)"),
]  # fmt: skip
BLOCKS = [
    ("float[2,U,3,3] x", "DepthToSpace<blocksize=4>(x)", 16),
    ("float[2,3,U,8] x", "SpaceToDepth<blocksize=4>(x)", 4),
    ("float[2,U] x", "Reshape(x, c)", 11, "{-1, 22}"),
]


def asked(inputs: str, node: str, size: int = 11, constant: str = "{1}") -> tuple[ir.Model, int]:
    """Returns a model of one node, and the size that it asks for."""
    count = constant.count(",") + 1
    imports = '"": 18, "com.microsoft": 1, "ai.onnx.ml": 3'
    text = f"g ({inputs}) => (float[a] y) <int64[{count}] c = {constant}> {{ y = {node} }}"
    model = ir.from_proto(onnx.parser.parse_model(f"<ir_version: 8, opset_import: [{imports}]> {text}"))
    model.graph.outputs[0].shape = None
    return model, size


@pytest.mark.parametrize("row", EXACT, ids=lambda row: row[1].partition("(")[0].partition("<")[0])
def test_a_size_that_can_only_be_one_is_that(row: tuple[str, str]) -> None:
    model, size = asked(*row)
    unknown = open_sizes(model)
    assert next(choices(unknown, {}))["U"] == size
    assert not unknown.breaks({"U": size})
    assert unknown.breaks({"U": 7})


@pytest.mark.parametrize("row", LEAST, ids=lambda row: row[1].partition("(")[0].partition("<")[0])
def test_a_size_that_must_be_large_enough_is(row: tuple[str, str]) -> None:
    model, size = asked(*row)
    unknown = open_sizes(model)
    assert [unknown.breaks({"U": one}) for one in (size - 1, size, size + 5)] == [True, False, False]


@pytest.mark.parametrize("row", BLOCKS, ids=lambda row: row[1].partition("(")[0].partition("<")[0])
def test_a_size_that_must_be_a_multiple_is(row: tuple[str, str, int]) -> None:
    model, size = asked(*row)
    unknown = open_sizes(model)
    assert [unknown.breaks({"U": one}) for one in (size, 2 * size, size + 1)] == [False, False, True]


def test_every_rule_is_held_by_a_row() -> None:
    tried = {node.op_identifier()[:2] for row in (*EXACT, *LEAST, *BLOCKS) for node in asked(*row)[0].graph}
    alike = {rule: name for name, rule in RULES.items() if name in tried}
    assert not [name for name, rule in RULES.items() if name not in tried and rule not in alike]
