# SPDX-License-Identifier: Apache-2.0
"""Which nodes cuDNN takes: each is lowered by itself, and cuDNN asked for the plans that it would need.

A node that only relabels elements costs a copy when it stands alone and mostly nothing in company; it is taken.
Element-wise graphs are asked about in a small size: cuDNN compiles a kernel for each (0.2 s), the same for every size
that is as divisible, and a network has the same few in many sizes.
"""

from dataclasses import replace

import onnx_ir as ir

from nndeploy.backend_kit.gpu_probe import NO_GPU
from nndeploy.backend_kit.reasons import one_line_reason
from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import TAKEN, BuildOptions, Support
from nndeploy.target.target import Target
from nndeploy_cudnn.graph import Graph, GraphTensor
from nndeploy_cudnn.lowering import batches_of, refusal_of
from nndeploy_cudnn.planner import Planned, Planner, planner_for
from nndeploy_cudnn.views import memory_order, row_major, same_strides, strides_in_order

LARGEST_KEPT = 4
DIVISOR = 8  # cuDNN's kernels load 16 bytes at a time: eight halves


def supports(model: ir.Model, target: Target, options: BuildOptions) -> list[Support]:
    """Returns cuDNN's answer for each node of the main graph."""
    if not target.gpus:
        return [Support(False, NO_GPU)] * len(model.graph)
    try:
        with planner_for(target.gpus[0]) as planner:
            asked = SmallPlanner(planner)
            batches = batches_of(model.graph.inputs, options.ranges)
            reasons = [refusal_of(node, asked, options.ranges, batches) for node in model.graph]
    except UnavailableError as err:
        return [Support(False, one_line_reason(str(err)))] * len(model.graph)
    return [Support(False, one_line_reason(reason)) if reason else TAKEN for reason in reasons]


class SmallPlanner:
    """A planner that asks about element-wise graphs in a small size."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    def plan(self, graph: Graph, with_fallback: bool) -> Planned:
        """Returns a plan of the graph or of a smaller one like it, or the reason why there is none."""
        return self._planner.plan(smaller(graph), with_fallback)


def smaller(graph: Graph) -> Graph:
    """Returns an element-wise graph of dense tensors in small sizes, any other as it is."""
    is_dense = all(_is_dense(tensor) for tensor in graph.tensors)
    if not is_dense or any(operation.kind != "pointwise" for operation in graph.operations):
        return graph
    return replace(graph, tensors=tuple(_smaller(tensor) for tensor in graph.tensors))


def _smaller(tensor: GraphTensor) -> GraphTensor:
    dims = tuple(size if size <= LARGEST_KEPT else DIVISOR + size % DIVISOR for size in tensor.dims)
    return replace(tensor, dims=dims, strides=strides_in_order(dims, _order(tensor)))


def _is_dense(tensor: GraphTensor) -> bool:
    return same_strides(tensor.dims, tensor.strides, strides_in_order(tensor.dims, _order(tensor)))


def _order(tensor: GraphTensor) -> tuple[int, ...]:
    if same_strides(tensor.dims, tensor.strides, row_major(tensor.dims)):
        return tuple(range(len(tensor.dims)))
    return memory_order(tensor.dims, tensor.strides)
