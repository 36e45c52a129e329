# SPDX-License-Identifier: Apache-2.0
"""What nodes cost: time counts the bytes that are moved, the share of compute the operations alone."""

import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest

from nndeploy.partition.concrete_shapes import concrete_shapes, shapes_in_all_graphs
from nndeploy.partition.cost import OPERATIONS_OF_A_TREE_NODE, Costs, estimate_costs
from nndeploy.partition.kinds import TREES

MODEL = """<ir_version: 8, opset_import: ["": 18]>
g (float[1,8,32,32] x) => (float[1,8,32,32] y) <float[8,1,1,1] w> { c = Conv<group = 8>(x, w) y = Relu(c) }"""


def costs_of(text: str) -> Costs:
    model = ir.from_proto(onnx.parser.parse_model(text))
    for node in model.graph:
        node.name = node.op_type
        for value in node.outputs:
            value.shape, value.dtype = ir.Shape((1, 8, 32, 32)), ir.DataType.FLOAT
    return estimate_costs(model, {})


def test_a_relu_has_less_of_the_compute_than_its_convolution() -> None:
    costs = costs_of(MODEL)
    assert costs.share("Relu") == pytest.approx(0.5, abs=0.01)  # of the time: both move as much
    assert costs.compute_share("Conv") == pytest.approx(2 / 3)
    assert costs.compute_share("Relu") == pytest.approx(1 / 3)


def test_where_nothing_computes_the_share_is_that_of_the_time() -> None:
    costs = Costs({"a": 3.0, "b": 1.0}, {}, {"a": 0, "b": 0})
    assert costs.compute_share("a") == 0.75


def test_trees_cost_their_levels_for_each_row() -> None:
    text = """<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]> g (float[8,4] x) => (float[8,1] y) {{
        y = ai.onnx.ml.TreeEnsembleRegressor<nodes_treeids={ids}, n_targets=1>(x) }}"""
    model = ir.from_proto(onnx.parser.parse_model(text.format(ids=[0] * 7 + [1] * 7)))
    (node,) = model.graph
    node.name = "trees"
    costs = estimate_costs(model, {})
    assert costs.kinds["trees"] == TREES
    assert costs.operations["trees"] == OPERATIONS_OF_A_TREE_NODE * 8 * 2 * 3


COMPUTED_SHAPE = """<ir_version: 8, opset_import: ["": 18]>
g (float[4,6] x, int64[2] a) => (float[M,N] y) { s = Abs(a) r = Reshape(x, s) y = Relu(r) }"""
"""No inference tells the shape of r: it is computed."""


def test_sizes_that_passes_found_count_for_the_graph_as_it_was_exported() -> None:
    exported = ir.from_proto(onnx.parser.parse_model(COMPUTED_SHAPE))
    optimised = exported.clone()
    optimised.graph.node(1).outputs[0].shape = ir.Shape((3, 8))
    assert "r" not in shapes_in_all_graphs(exported, {})(exported)
    assert shapes_in_all_graphs(optimised, {})(exported)["r"] == (3, 8)


PACKED = """<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
g (float[rows,64] x, uint8[32,2,16] q, float[64] s) => (float[rows,32] y) {
    p = com.microsoft.MatMulNBits<K=64, N=32, bits=4, block_size=32>(x, q, s) n = Neg(p) y = Relu(n) }"""


def test_a_product_of_packed_weights_costs_what_it_computes_at_the_sizes_of_the_sample() -> None:
    model = ir.from_proto(onnx.parser.parse_model(PACKED))
    for node in model.graph:
        node.name = node.op_type
    shapes = concrete_shapes(model, {"x": np.zeros((5, 64), np.float32)})
    assert [shapes[name] for name in "pny"] == [(5, 32)] * 3
    assert estimate_costs(model, shapes).operations["MatMulNBits"] == 2 * 5 * 32 * 64
