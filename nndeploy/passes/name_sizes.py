# SPDX-License-Identifier: Apache-2.0
"""y: [unk__7, 8] -> y: [({height} + 1)//(2), 8]: symbolic sizes are named by what they are of the inputs' sizes.

Where ONNX's inference gives each size that it computes a new name, backends could not tell that two of them are equal,
nor compute one before anything ran. Changes no node.

Conditions: those of `infer_sizes.py`. A size is only ever renamed, or fixed where it turns out to be a number; those of
the graph's inputs stay as they are. Runs in branches of If too.

Source: ONNX operator definitions, as `*_sizes.py` of `nndeploy/graph` state them.
"""

from collections.abc import Mapping

import onnx_ir as ir

from nndeploy.graph.infer_sizes import known_sizes
from nndeploy.graph.known_sizes import KnownSizes
from nndeploy.graph.operators import graphs_entered_without_inputs
from nndeploy.passes.model_pass import ModelPass
from nndeploy.values.size import Dim
from nndeploy.values.size_text import text_of
from nndeploy.values.types import DimRange


class NameSizes(ModelPass):
    """Writes symbolic sizes as text."""

    name = "name-sizes"

    def __init__(self, ranges: Mapping[str, DimRange]) -> None:
        """`ranges` are those of the symbols of the inputs."""
        self._ranges = ranges

    def rewrite(self, model: ir.Model) -> int:
        """Writes shapes into values; returns how many values it named sizes of."""
        known = known_sizes(model, self._ranges)
        return sum(
            self._name(output, known)
            for graph in graphs_entered_without_inputs(model.graph)
            for node in graph
            for output in node.outputs
        )

    def _name(self, value: ir.Value, known: KnownSizes) -> bool:
        if not value.name or value.dtype is None:
            return False
        shape = known.shape(value)
        if shape is None or all(isinstance(size, int) for size in value.shape or (None,)):
            return False
        before = [None] * len(shape) if value.shape is None else list(value.shape)
        dims = [self._dim(size, old) for size, old in zip(shape, before, strict=True)]
        if value.shape is not None and dims == [_plain(dim) for dim in before]:
            return False
        value.shape = ir.Shape(dims)
        return True

    def _dim(self, size: Dim, before: int | ir.SymbolicDim | None) -> int | str | None:
        return size if isinstance(size, int) else text_of(size, self._ranges) or _plain(before)


def _plain(dim: int | ir.SymbolicDim | None) -> int | str | None:
    return dim.value if isinstance(dim, ir.SymbolicDim) else dim
