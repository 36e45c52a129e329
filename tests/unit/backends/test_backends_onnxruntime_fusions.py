# SPDX-License-Identifier: Apache-2.0
"""Which fusions of ONNX Runtime are left out, because they make models slower."""

from pathlib import Path

import onnx
import onnx_ir as ir
from nndeploy_onnxruntime.build import MODEL_FILE, build

from nndeploy.plugin.interface import BuildOptions

SUM_AND_NORM = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,8,16] x, float[1,8,16] r) => (float[1,8,16] y)
    <float[16] s = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}, float[16] b = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}>
    { t = Add(x, r) y = LayerNormalization<axis=-1>(t, s, b) }"""


def test_sum_and_its_layer_normalisation_stay_two_operators(tmp_path: Path) -> None:
    model = ir.from_proto(onnx.parser.parse_model(SUM_AND_NORM))
    built = onnx.load_from_string(build(model, BuildOptions(), tmp_path).files[MODEL_FILE])
    assert [node.op_type for node in built.graph.node] == ["Add", "LayerNormalization"]
