# SPDX-License-Identifier: Apache-2.0
"""Region -> submodel: a model of its own with typed inputs and outputs and the constants it reads.

A submodel's inputs are the values that its nodes read and somebody else produces, its outputs those that somebody
else or the program reads; both keep their names, and stand in the order of first use and of production.
"""

from collections.abc import Collection

import onnx_ir as ir

from nndeploy.graph.nodes import is_constant, values_read
from nndeploy.graph.regions import Region


def region_inputs(region: Region) -> list[ir.Value]:
    """Returns the values that enter a region, each once, in the order of first use."""
    inside = {id(output) for node in region.nodes for output in node.outputs}
    entering: dict[int, ir.Value] = {}
    for node in region.nodes:
        for value in values_read(node):
            if id(value) not in inside and not is_constant(value):
                entering.setdefault(id(value), value)
    return list(entering.values())


def region_outputs(region: Region, read_elsewhere: Collection[int]) -> list[ir.Value]:
    """Returns the values that leave a region, in the order of production.

    `read_elsewhere` holds the ids of all values that another region or the program's outputs read.
    """
    return [output for node in region.nodes for output in node.outputs if id(output) in read_elsewhere]


def values_between(regions: list[Region], graph: ir.Graph) -> set[int]:
    """Returns the ids of the values that some region reads from another, and of the program's outputs."""
    between = {id(value) for value in graph.outputs}
    for region in regions:
        between.update(id(value) for value in region_inputs(region))
    return between


def submodel_of(model: ir.Model, region: Region, between: Collection[int]) -> ir.Model:
    """Returns the region as a model; weights are shared with `model`, not copied."""
    inputs, outputs = region_inputs(region), region_outputs(region, between)
    constants: dict[int, ir.Value] = {}
    for node in region.nodes:
        constants.update({id(value): value for value in values_read(node) if is_constant(value)})
    view = ir.GraphView(
        inputs,
        outputs,
        nodes=region.nodes,
        initializers=tuple(constants.values()),
        opset_imports=model.graph.opset_imports,
        name="submodel",
    )
    graph = view.clone()
    for value in graph.inputs:
        value.const_value = None
    return ir.Model(graph, ir_version=model.ir_version, functions=list(model.functions.values()))
