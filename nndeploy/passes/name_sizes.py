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

from nndeploy.graph.named_sizes import name_sizes
from nndeploy.passes.model_pass import ModelPass
from nndeploy.values.types import DimRange


class NameSizes(ModelPass):
    """Writes symbolic sizes as text."""

    name = "name-sizes"

    def __init__(self, ranges: Mapping[str, DimRange]) -> None:
        """`ranges` are those of the symbols of the inputs."""
        self._ranges = ranges

    def rewrite(self, model: ir.Model) -> int:
        """Writes shapes into values; returns how many values it named sizes of."""
        return name_sizes(model, self._ranges)
