# SPDX-License-Identifier: Apache-2.0
"""One small model of the suite: its text, inputs, and what numpy says the outputs are.

A backend is free to refuse any of them; what it takes it must get right.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir

from nndeploy.checking.tolerances import OperatorClass
from nndeploy.values.types import Value

_HEADER = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3, "local" : 1]>'


@dataclass(frozen=True, slots=True)
class Case:
    """A model as ONNX text, without the header, and calls of it.

    `calls` holds the inputs of each call in the graph's order; `expected` gives the outputs in the graph's order.
    """

    name: str
    text: str
    calls: Sequence[Sequence[Value]]
    expected: Callable[..., Sequence[Value]]
    computed: OperatorClass

    @property
    def proto(self) -> onnx.ModelProto:
        """The model, checked, with inferred shapes."""
        proto = onnx.parser.parse_model(_HEADER + self.text)
        onnx.checker.check_model(proto)
        return onnx.shape_inference.infer_shapes(proto, data_prop=True)

    def model(self) -> ir.Model:
        """Returns the model as backends get it, every node named."""
        model = ir.from_proto(self.proto)
        for i, node in enumerate(model.graph):
            node.name = f"node{i}"
        return model

    def samples(self) -> list[tuple[Mapping[str, Value], Mapping[str, Value]]]:
        """Returns for each call the inputs and the expected outputs by name."""
        graph = self.proto.graph
        names_in = [value.name for value in graph.input]
        names_out = [value.name for value in graph.output]
        with np.errstate(all="ignore"):
            return [
                (dict(zip(names_in, call, strict=True)), dict(zip(names_out, self.expected(*call), strict=True)))
                for call in self.calls
            ]
