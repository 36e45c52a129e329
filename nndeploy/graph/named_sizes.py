# SPDX-License-Identifier: Apache-2.0
"""Symbolic sizes of a graph's values, written into the model as what they are of its inputs' sizes."""

from collections.abc import Mapping

import onnx_ir as ir

from nndeploy.graph.infer_sizes import known_sizes
from nndeploy.graph.known_sizes import Shape
from nndeploy.graph.operators import graphs_entered_without_inputs
from nndeploy.values.size import Dim
from nndeploy.values.size_text import text_of
from nndeploy.values.types import DimRange


def name_sizes(model: ir.Model, ranges: Mapping[str, DimRange]) -> int:
    """Writes shapes into the values of a model and of its branches; returns how many values it named sizes of.

    `ranges` are those of the symbols of the inputs, whose own shapes stay as they are.
    """
    known = known_sizes(model, ranges)
    named = 0
    for graph in graphs_entered_without_inputs(model.graph):
        for output in (output for node in graph for output in node.outputs):
            if output.name and output.dtype is not None:
                named += _named(output, known.shape(output), ranges)
    return named


def _named(value: ir.Value, shape: Shape | None, ranges: Mapping[str, DimRange]) -> bool:
    if shape is None or all(isinstance(size, int) for size in value.shape or (None,)):
        return False
    before = [None] * len(shape) if value.shape is None else list(value.shape)
    dims = [_dim(size, old, ranges) for size, old in zip(shape, before, strict=True)]
    if value.shape is not None and dims == [_plain(dim) for dim in before]:
        return False
    value.shape = ir.Shape(dims)
    return True


def _dim(size: Dim, before: int | ir.SymbolicDim | None, ranges: Mapping[str, DimRange]) -> int | str | None:
    return size if isinstance(size, int) else text_of(size, ranges) or _plain(before)


def _plain(dim: int | ir.SymbolicDim | None) -> int | str | None:
    return dim.value if isinstance(dim, ir.SymbolicDim) else dim
