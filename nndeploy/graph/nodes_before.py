# SPDX-License-Identifier: Apache-2.0
"""New nodes of ONNX's own domain before another one, in its graph, body or function: what leads to its inputs.

Names are those of the node and of its first output with a number behind, which nothing else has where no name of the
model ends so: `prefix` sets apart what several callers add to one node.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir


class NodesBefore:
    """Puts nodes before one node; types and shapes of what they make are not told."""

    def __init__(self, node: ir.Node, prefix: str) -> None:
        """Takes the node that they lead to."""
        self._node, self._prefix, self._count = node, prefix, 0

    def add(
        self, op_type: str, *inputs: ir.Value | None, attributes: Mapping[str, Any] | None = None, name: str = ""
    ) -> ir.Value:
        """Returns the output of a new node, called `name` with a number behind."""
        self._count += 1
        number = f"{self._prefix}{self._count}"
        output = ir.Value(name=f"{self._node.outputs[0].name}/{number}")
        made = ir.node(op_type, inputs, attributes, outputs=[output], name=f"{name or self._node.name}/{number}")
        self._node.prepend(made)
        return output

    def constant(self, array: "np.ndarray[Any, Any]") -> ir.Value:
        """Returns the output of a Constant."""
        return self.add("Constant", attributes={"value": ir.tensor(array)})
