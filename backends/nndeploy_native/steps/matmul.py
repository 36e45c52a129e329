# SPDX-License-Identifier: Apache-2.0
"""Products of plain matrices: by constant weights, packed, or of two values."""

from dataclasses import dataclass, field, replace

from nndeploy_native.packing import pack_blocks, pack_channels
from nndeploy_native.steps.step import PLAIN, Call, Epilogue, Field, Machine, Note
from nndeploy_native.tensors import Array, Tensor


@dataclass(frozen=True, slots=True, eq=False)
class FullyConnected:
    """output (rows, outputs) = epilogue(x (rows, inputs) by weights (inputs, outputs) + bias)."""

    output: Tensor
    x: Tensor
    weights: Array
    bias: Array | None
    epilogue: Epilogue = field(default=PLAIN)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x, *self.epilogue.inputs)

    def with_epilogue(self, epilogue: Epilogue, output: Tensor) -> "FullyConnected":
        """Returns the step with another end."""
        return replace(self, epilogue=epilogue, output=output)

    def call(self, machine: Machine) -> Call:
        """Returns what to call."""
        inputs, outputs = self.weights.shape
        bias = pack_channels(self.bias, outputs, machine.isa)
        weights = pack_blocks(self.weights.T.reshape(outputs, inputs, 1, 1), machine.isa)
        fields: dict[str, Field] = {"rows": self.output.size // outputs, "inputs": inputs, "outputs": outputs}
        notes: dict[str, Note] = {
            "what": f"fully connected {inputs}->{outputs}",
            "multiply_adds": self.output.size * inputs,
        }
        arguments = (self.x, weights, bias, self.epilogue.residual)
        return Call("fully_connected", {**fields, "end": self.epilogue}, self.output, arguments, notes=notes)


@dataclass(frozen=True, slots=True)
class Product:
    """output (..., rows, columns) of a (..., rows, inner) and b (..., inner, columns); batches equal, or b has none."""

    output: Tensor
    a: Tensor
    b: Tensor
    b_is_shared: bool

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.a, self.b)

    def call(self, machine: Machine) -> Call:  # noqa: ARG002
        """Returns what to call."""
        rows, columns = self.output.shape[-2:]
        inner = self.a.shape[-1]
        fields: dict[str, Field] = {
            "batch": self.output.size // (rows * columns),
            "rows": rows,
            "inner": inner,
            "columns": columns,
        }
        fields["b_is_shared"] = self.b_is_shared
        notes: dict[str, Note] = {
            "what": f"product {rows}x{inner}x{columns}",
            "multiply_adds": self.output.size * inner,
        }
        return Call("product", fields, self.output, (self.a, self.b), notes=notes)
