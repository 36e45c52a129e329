# SPDX-License-Identifier: Apache-2.0
"""What rules see of a model and where they put their steps.

One context lowers one list of nodes in order. Law: every value that a step reads is a graph input, a constant or the
output of an earlier step, under its root's name.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from nndeploy.backend_kit.kernels.tensor_sizes import MAX_ELEMENTS, bounded_sizes_of
from nndeploy.errors import BuildRefusedError
from nndeploy.graph.arithmetic_sizes import broadcast_shape
from nndeploy.graph.constants import constant_array
from nndeploy.graph.operators import operand
from nndeploy.values.size import Dim, bounds, product
from nndeploy.values.types import DimRange
from nndeploy_triton.program import Program, ProgramBuilder, identity
from nndeploy_triton.steps.elementwise import MAX_INPUTS, Elementwise
from nndeploy_triton.steps.step import TritonStep
from nndeploy_triton.views import DTYPE_BYTES, Shape, View, dense

Array: TypeAlias = npt.NDArray[Any]

FLOATS = ("float16", "float32")
WHOLE = ("int32", "int64")
"""Whole numbers that programs compute with exactly."""


@dataclass(slots=True)
class Lowered:
    """The outcome: steps in order, the size of each root value, and the data of the constants among them."""

    steps: list[TritonStep] = field(default_factory=list)
    roots: dict[str, View] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)


class Context:
    """Lowers nodes of operator set `opset`; `ranges` are those of the symbols of the model's inputs.

    `names` are those of the model's values, which no temporary value may have.
    """

    def __init__(self, opset: int, ranges: Mapping[str, DimRange], names: Iterable[str]) -> None:
        self.opset = opset
        self.lowered = Lowered()
        self._ranges = ranges
        self._views: dict[str, View] = {}
        self._names = frozenset(names)
        self._numbers = itertools.count()

    def shape_of(self, value: ir.Value) -> Shape:
        """Returns the sizes of a value.

        Raises:
            BuildRefusedError: a size is not known, or there are too many elements.
        """
        return bounded_sizes_of(value, self._ranges)

    def dtype_of(self, value: ir.Value) -> str:
        """Returns the element type's name.

        Raises:
            BuildRefusedError: it is not known, or no kernel can read it.
        """
        if value.dtype is None:
            raise BuildRefusedError(f"the element type of {value.name!r} is not known")
        name = value.dtype.numpy().name
        if name not in DTYPE_BYTES or value.dtype == ir.DataType.STRING:
            raise BuildRefusedError(f"no kernel for elements of type {value.dtype.name.lower()}")
        return name

    def constant(self, value: ir.Value | None) -> Array | None:
        """Returns the data of a constant, None for any other value."""
        return constant_array(value) if value is not None else None

    def scalar(self, value: ir.Value | None) -> float | None:
        """Returns the number of a constant with one element, None for any other value."""
        array = self.constant(value)
        return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None

    def view(self, value: ir.Value | None) -> View:
        """Returns where the elements of a value are, however they lie.

        Raises:
            BuildRefusedError: the input is left out, or its type is not known.
        """
        if value is None:
            raise BuildRefusedError("an input is left out")
        name = value.name or ""
        if name not in self._views:
            self._views[name] = self._first_view(value, name)
        return self._views[name]

    def dense(self, value: ir.Value | None) -> View:
        """Returns a view of a value whose elements lie one after the other; copies where they do not."""
        view = self.view(value)
        return view if view.is_dense else self.packed(view)

    def packed(self, view: View) -> View:
        """Returns a dense copy of a view."""
        copy = self.temporary("copy", view.dtype, view.shape)
        self.lowered.steps.append(Elementwise(copy, (view,), identity()))
        return copy

    def output(self, value: ir.Value) -> View:
        """Returns the dense view that a rule's step must write."""
        view = self.new_root(value.name or "", self.dtype_of(value), self.shape_of(value))
        self._views[view.name] = view
        return view

    def alias(self, value: ir.Value, view: View) -> None:
        """Says that `value` is `view`, without a copy.

        Raises:
            BuildRefusedError: the model says another shape.
        """
        if view.shape != self.shape_of(value):
            raise BuildRefusedError(f"the model says {value.name!r} is {self.shape_of(value)}, it is {view.shape}")
        self._views[value.name or ""] = view

    def emit(self, step: TritonStep) -> None:
        """Adds a step."""
        self.lowered.steps.append(step)

    def temporary(self, kind: str, dtype: str, shape: Sequence[Dim]) -> View:
        """Returns the view of a new value that the model does not name."""
        name = next(name for n in self._numbers if (name := f"{kind}.{n}") not in self._names)
        return self.new_root(name, dtype, shape)

    def new_root(self, name: str, dtype: str, shape: Sequence[Dim]) -> View:
        """Returns the view of a new value with memory of its own."""
        view = dense(name, dtype, shape)
        self.lowered.roots[name] = view
        return view

    def new_constant(self, array: Array) -> View:
        """Returns the view of a new constant."""
        packed = np.ascontiguousarray(array).reshape(array.shape)
        view = self.temporary("constant", packed.dtype.name, packed.shape)
        self.lowered.constants[view.name] = packed
        return view

    def floats(self, node: ir.Node, count: int) -> list[ir.Value]:
        """Returns the first `count` inputs of a node, which are all float16 or all float32, as its output is.

        Raises:
            BuildRefusedError: they are not, or one is left out.
        """
        found = [operand(node, index) for index in range(count)]
        present = [value for value in found if value is not None]
        if len(present) != count:
            raise BuildRefusedError("an input is left out")
        dtypes = {self.dtype_of(value) for value in (*present, node.outputs[0])}
        if len(dtypes) != 1 or not dtypes <= set(FLOATS):
            raise BuildRefusedError(f"kernels compute with float16 or float32, not {' and '.join(sorted(dtypes))}")
        return present

    def numbers(self, node: ir.Node, count: int) -> list[ir.Value]:
        """Returns the first `count` inputs of a node, which are of one type of `FLOATS` or `WHOLE`.

        Raises:
            BuildRefusedError: they are not, or one is left out.
        """
        value = operand(node, 0)
        if value is None or self.dtype_of(value) not in WHOLE:
            return self.floats(node, count)
        present = [one for one in (operand(node, index) for index in range(count)) if one is not None]
        if len(present) != count or len({self.dtype_of(one) for one in present}) != 1:
            raise BuildRefusedError("inputs that are left out or differ in type")
        return present

    def elementwise(
        self, output: ir.Value, operands: Sequence["ir.Value | View"], compute: Callable[..., int], label: str
    ) -> None:
        """Emits output = compute(builder, operands...); constants of one element become part of the program."""
        target = self._target(output, operands)
        scalars = [None if isinstance(one, View) else self._float_scalar(one) for one in operands]
        views = [
            self.broadcast(one if isinstance(one, View) else self.view(one), target.shape)
            for one, scalar in zip(operands, scalars, strict=True)
            if scalar is None
        ]
        if len(views) > MAX_INPUTS:
            raise BuildRefusedError(f"more than {MAX_INPUTS} inputs")
        builder = ProgramBuilder(max(1, len(views)))
        numbers = iter(range(len(views)))
        result = compute(builder, *(next(numbers) if scalar is None else builder.const(scalar) for scalar in scalars))
        inputs = tuple(views) or (self.broadcast(self.new_constant(np.zeros(1, target.dtype)), target.shape),)
        self.emit(Elementwise(target, inputs, builder.program(result, label)))

    def _target(self, output: ir.Value, operands: Sequence["ir.Value | View"]) -> View:
        """Returns the view to write: of the shape that the model says, or else of the one that the operands give."""
        try:
            return self.output(output)
        except BuildRefusedError:
            shape = broadcast_shape([(one if isinstance(one, View) else self.view(one)).shape for one in operands])
            if bounds(product(shape))[1] > MAX_ELEMENTS:
                raise
            view = self.new_root(output.name or "", self.dtype_of(output), shape)
            self._views[view.name] = view
            return view

    def copied(self, target: View, source: View) -> None:
        """Emits a copy of `source`, converted to the target's element type."""
        self.emit(Elementwise(target, (source,), Program(1)))

    def broadcast(self, view: View, shape: Shape) -> View:
        """Returns the view stretched to `shape`.

        Raises:
            BuildRefusedError: it does not fit.
        """
        stretched = view.broadcast_to(shape)
        if stretched is None:
            raise BuildRefusedError(f"{view.shape} cannot be broadcast to {shape}")
        return stretched

    def finish(self, outputs: Sequence[ir.Value]) -> dict[str, View]:
        """Returns the dense view of each graph output, copying where elements lie otherwise."""
        return {value.name or "": self.dense(value) for value in outputs}

    def _first_view(self, value: ir.Value, name: str) -> View:
        array = self.constant(value)
        view = dense(name, self.dtype_of(value), self.shape_of(value))
        self.lowered.roots[name] = view
        if array is not None:
            self.lowered.constants[name] = np.ascontiguousarray(array).reshape(array.shape)
        return view

    def _float_scalar(self, value: ir.Value) -> float | None:
        array = self.constant(value)
        if array is None or array.size != 1 or array.dtype.kind not in "fb":
            return None
        return float(array.reshape(-1)[0])


def as_image(view: View) -> View:
    """Returns a view of (N, C, L) as (N, C, 1, L), one of (N, C, H, W) as it is.

    Raises:
        BuildRefusedError: it has another rank.
    """
    if len(view.shape) == 4:
        return view
    if len(view.shape) == 3:
        (n, c, length), (n_stride, c_stride, stride) = view.shape, view.strides
        return replace(view, shape=(n, c, 1, length), strides=(n_stride, c_stride, length * stride, stride))
    raise BuildRefusedError(f"kernels for windows take one or two spatial axes, not {len(view.shape) - 2}")
