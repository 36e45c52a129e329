# SPDX-License-Identifier: Apache-2.0
"""What nodes cost: time counts the bytes that are moved, the share of compute the operations alone."""

import onnx.parser
import onnx_ir as ir
import pytest

from nndeploy.partition.concrete_shapes import shapes_in_all_graphs
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


from nndeploy.partition.concrete_shapes import shapes_in_all_graphs
from nndeploy.partition.cost import OPERATIONS_OF_A_TREE_NODE, Costs, estimate_costs
from nndeploy.partition.kinds import TREES
