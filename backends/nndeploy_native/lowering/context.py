# SPDX-License-Identifier: Apache-2.0
"""What rules see of a model and where they put their steps.

A value may be known in several forms: as a plain tensor, as a blocked one, or as elements of another tensor that were
moved (reshaped, sliced, transposed...) but not copied yet. A rule asks for the form that its kernel reads, and the
context adds the step that makes it, once. Law: every tensor that a step reads is a graph input, a constant or the
output of an earlier step.
"""

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from nndeploy.backend_kit.kernels.tensor_sizes import sizes_of
from nndeploy.errors import BuildRefusedError
from nndeploy.graph.constants import constant_array
from nndeploy.values.size import Size, Symbol, fixed, is_fixed, product, symbol
from nndeploy.values.types import DimRange
from nndeploy_native.expressions import operand
from nndeploy_native.lowering.channels import whole_channels
from nndeploy_native.lowering.quantised_constants import dequantised_constant
from nndeploy_native.plan import DTYPES, MAX_RANK
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.movement import ChannelParts, Convert, Gather, StridedCopy, View, even_strides
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Array, Layout, Shape, Tensor, fixed_shape, may_be_same

FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)
ELEMENTS = {
    **dict.fromkeys(FLOATS, "fp32"), ir.DataType.DOUBLE: "fp64", ir.DataType.INT32: "int32",
    ir.DataType.INT64: "int64", ir.DataType.BOOL: "bool", ir.DataType.UINT8: "uint8", ir.DataType.INT8: "int8",
}  # fmt: skip
"""The types of ONNX that tensors may have, and what they are called there: float16 is computed as float32."""
MAX_MOVED_ELEMENTS = 2**24
"""Moved elements are followed one by one while a model is lowered."""


class Grown(NamedTuple):
    """An output that is the input `past` with `added` more places along an axis, or so many where that `is_total`."""

    past: str
    axis: int
    added: int | Symbol
    is_total: bool = False


@dataclass(slots=True)
class Lowered:
    """The outcome: steps in order, the tensors of the borders by name, and the data of constant tensors by root.

    `copies` tells of tensors that the model does not name, by root, what they are a copy of. `grown` are outputs, by
    name, whose tensors have room behind: as many places as the only axis of `capacity`, an input that is nothing else.
    `moved` is one more output: truths, of which one says that what is new stands elsewhere than right behind the input.
    `has_halves`: constants of float16 were read as float32.
    """

    steps: list[NativeStep] = field(default_factory=list)
    inputs: dict[str, Tensor] = field(default_factory=dict)
    outputs: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    copies: dict[str, str] = field(default_factory=dict)
    grown: dict[str, Grown] = field(default_factory=dict)
    capacity: Tensor | None = None
    moved: Tensor | None = None
    has_halves: bool = False

    def value_of(self, root: str) -> str:
        """Returns the value of the model that a tensor holds, the root itself where that is none."""
        while root in self.copies:
            root = self.copies[root]
        return root


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """Element i of a value is element `places[i]` of `base`, in the order of ONNX; a negative place is a zero."""

    base: Tensor
    places: Array


def image_shape(shape: Shape) -> Shape:
    """Returns the shape of an image in blocks: (N, C, W) is one pixel high, slices of (N, C, D, H, W) lie below others.

    Raises:
        BuildRefusedError: there are other axes.
    """
    if len(shape) not in (3, 4, 5):
        raise BuildRefusedError(f"kernels take rows (N, C, W), images (N, C, H, W), volumes (N, C, D, H, W): {shape}")
    return (*shape[:2], product(shape[2:-1]), shape[-1])


def column_shape(shape: Shape) -> Shape:
    """Returns (N, C, W) as an image that is one pixel wide; it lies in memory as one that is one pixel high."""
    batch, channels, _, width = image_shape(shape)
    return (batch, channels, width, 1)


class Context:
    """Lowers nodes of operator set `opset`; `ranges` are those of the symbols of the model's inputs.

    `names` are those of the model's values, which no other root may have.
    """

    def __init__(self, opset: int, ranges: Mapping[str, DimRange], names: Iterable[str]) -> None:
        self.opset = opset
        self.lowered = Lowered()
        self._ranges = ranges
        self._tensors: dict[str, dict[Layout, Tensor]] = {}
        self._moved: dict[str, Moved] = {}
        self._views: dict[str, View] = {}
        self._converted: dict[tuple[str, Layout], Tensor] = {}
        self._channels_last: dict[str, Tensor] = {}
        self._names = frozenset(names)
        self._waiting: set[str] = set()
        self._made_floats: dict[str, Array | None] = {}
        self._made_once: dict[Hashable, Tensor] = {}
        self._numbers = itertools.count()

    def shape_of(self, value: ir.Value | None) -> Shape:
        """Returns the sizes of a value of floats: for what computes with nothing else.

        Raises:
            BuildRefusedError: it is neither float32 nor float16, or has no sizes.
        """
        if value is not None and value.dtype not in FLOATS:
            raise BuildRefusedError(f"kernels compute with float32, not {_type_name(value)}")
        return self.sizes_of(value)

    def element_of(self, value: ir.Value | None) -> str:
        """Returns the element of a value, as tensors name it.

        Raises:
            BuildRefusedError: it is left out, or of a type that kernels do not read.
        """
        if value is None:
            raise BuildRefusedError("an input is left out")
        if value.dtype not in ELEMENTS:
            raise BuildRefusedError(f"no kernel reads {_type_name(value)}")
        return ELEMENTS[value.dtype]

    def sizes_of(self, value: ir.Value | None) -> Shape:
        """Returns the sizes of a value of any type that kernels read.

        Raises:
            BuildRefusedError: it is left out or of another type, its shape is not known, or it is too large or may have
                no elements.
        """
        self.element_of(value)
        assert value is not None
        sizes = sizes_of(value, self._ranges)
        if 0 in sizes:
            raise BuildRefusedError(f"{value.name!r} has no elements")
        if len(sizes) > MAX_RANK:
            raise BuildRefusedError(f"more than {MAX_RANK} axes")
        return sizes

    def is_followed(self, node: ir.Node) -> bool:
        """Whether a node's elements are followed one by one: its shapes are the same in every call, and not too large.

        These are the shapes of its first operand and of its outputs. Where the operand lies is the same then too.
        """
        values = [node.inputs[0], *(output for output in node.outputs if output.name)]
        name = (node.inputs[0].name if node.inputs[0] is not None else "") or ""
        if name not in self._moved and name in self._views and not self._views[name].has_fixed_places:
            return False
        shapes = [self.sizes_of(value) for value in values]
        return all(is_fixed(shape) and product(shape) <= MAX_MOVED_ELEMENTS for shape in shapes)

    def constant(self, value: ir.Value | None) -> Array | None:
        """Returns the data of a constant, the floats of one that is dequantised; None for any other value.

        Those of float16 are returned as float32.
        """
        if value is None:
            return None
        array, name = constant_array(value), value.name or ""
        if array is not None and array.dtype != np.float16:
            return array
        if name not in self._made_floats:
            self._made_floats[name] = dequantised_constant(value) if array is None else array.astype(np.float32)
            self.lowered.has_halves |= array is not None
        return self._made_floats[name]

    def floats(self, value: ir.Value | None, what: str) -> Array:
        """Returns the data of a constant float32 value.

        Raises:
            BuildRefusedError: it is not constant, or not float32.
        """
        array = self.constant(value)
        if array is None or array.dtype != np.float32:
            raise BuildRefusedError(f"{what} that is no float32 constant")
        return array

    def whole_numbers(self, value: ir.Value | None) -> Tensor:
        """Returns a value of int32 or int64, plain.

        Raises:
            BuildRefusedError: the value is of another type.
        """
        if self.element_of(value) not in ("int32", "int64"):
            raise BuildRefusedError(f"whole numbers of int32 or int64, not {self.element_of(value)}")
        return self.plain(value)

    def is_blocked(self, value: ir.Value) -> bool:
        """Whether the value, or what it was moved from, is there in blocks: what follows had better stay there."""
        name = value.name or ""
        if name in self._moved:
            return self._moved[name].base.is_blocked
        return Layout.BLOCKED in self._tensors.get(name, {})

    def is_moved(self, value: ir.Value) -> bool:
        """Whether the value is elements of another that were not copied yet."""
        name = value.name or ""
        return not self._tensors.get(name) and (name in self._moved or name in self._views)

    def is_plain(self, value: ir.Value | None) -> bool:
        """Whether the value is there in the order of ONNX, neither moved nor in blocks."""
        return Layout.PLAIN in self._tensors.get((value.name if value is not None else "") or "", {})

    def plain(self, value: ir.Value | None) -> Tensor:
        """Returns the value in the order of ONNX, in the shape that the model says."""
        known = self._forms(value)
        if Layout.PLAIN not in known:
            known[Layout.PLAIN] = self._plain(value)
        return known[Layout.PLAIN]

    def blocked(self, value: ir.Value | None) -> Tensor:
        """Returns the value in channel blocks: as an image, one pixel high or wide where it is (N, C, W).

        Raises:
            BuildRefusedError: it is neither.
        """
        known = self._forms(value)
        if Layout.BLOCKED not in known:
            known[Layout.BLOCKED] = self._blocked(value)
        return known[Layout.BLOCKED]

    def reshaped_blocks(self, value: ir.Value | None, shape: Shape) -> Tensor | None:
        """Returns an image that lies in blocks alone in a shape of the same channels; None where it is none."""
        forms = self._tensors.get((value.name if value is not None else "") or "", {})
        if Layout.BLOCKED not in forms or Layout.PLAIN in forms or len(shape) not in (3, 4, 5):
            return None
        tensor = forms[Layout.BLOCKED]
        image = column_shape(shape) if len(shape) == 3 and tensor.is_column else image_shape(shape)
        is_same = image[:2] == tensor.shape[:2] and product(image[2:]) == product(tensor.shape[2:])
        return replace(tensor, shape=image) if is_same else None

    def define_blocked(self, value: ir.Value, tensor: Tensor) -> None:
        """Says that `value` is an image in blocks that is there."""
        self._tensors[value.name or ""] = {Layout.BLOCKED: tensor}

    def view(self, value: ir.Value | None) -> View:
        """Returns the value as a strided view of a plain tensor, without a copy where it was only moved there."""
        name = (value.name if value is not None else "") or ""
        if name in self._views:
            return self._views[name]
        moved = self._moved.get(name)
        if moved is not None and not moved.base.is_blocked and not self._tensors.get(name) and moved.places.min() >= 0:
            strides = even_strides(moved.places)
            if strides is not None:
                first = int(moved.places[(0,) * moved.places.ndim])
                return View(moved.base, first, tuple(moved.places.shape), strides)
        return View.of(self.plain(value))

    def define_view(self, value: ir.Value, view: View) -> None:
        """Says that `value` is a view; nothing is copied before somebody asks.

        Raises:
            BuildRefusedError: the model says another shape.
        """
        if not may_be_same(view.sizes, self.sizes_of(value)):
            raise BuildRefusedError(f"the model says {value.name!r} is {self.sizes_of(value)}, it is {view.sizes}")
        self._views[value.name or ""] = view

    def moved(self, value: ir.Value | None) -> Moved:
        """Returns the value as elements of a tensor that is in memory.

        Raises:
            BuildRefusedError: its shape is not fixed, or too large to be followed element by element.
        """
        shape = self.sizes_of(value)
        if not is_fixed(shape):
            raise BuildRefusedError("elements are moved one by one in a shape that is not fixed")
        if product(shape) > MAX_MOVED_ELEMENTS:
            raise BuildRefusedError(f"more than {MAX_MOVED_ELEMENTS} elements are moved")
        name = (value.name if value is not None else "") or ""
        if name in self._moved:
            return self._moved[name]
        if name in self._views:
            return Moved(self._views[name].base, self._views[name].places())
        forms = self._forms(value)
        base = forms.get(Layout.BLOCKED) or forms[Layout.PLAIN]
        return Moved(base, np.arange(fixed(base.size), dtype=np.int64).reshape(fixed_shape(shape)))

    def moved_blocks(self, value: ir.Value) -> Moved | None:
        """Returns the value as elements of a blocked tensor, None where it is a tensor itself or those are plain."""
        moved = self._moved.get(value.name or "")
        is_made = bool(self._tensors.get(value.name or ""))
        return moved if moved is not None and moved.base.is_blocked and not is_made else None

    def moved_base(self, value: ir.Value | None) -> Tensor | None:
        """Returns the plain tensor whose elements a value is that was only moved, where it has no more of them."""
        name = (value.name if value is not None else "") or ""
        if value is None or not self.is_moved(value):
            return None
        base = self._moved[name].base if name in self._moved else self._views[name].base
        sizes = (base.size, product(self.sizes_of(value)))
        return None if base.is_blocked or not is_fixed(sizes) or fixed(sizes[0]) > fixed(sizes[1]) else base

    def define_alike(self, value: ir.Value, other: ir.Value, base: Tensor) -> None:
        """Says that a value is made of elements of `base` as another, which was only moved, is of those of its own."""
        name = other.name or ""
        if name in self._moved:
            self.define_moved(value, base, self._moved[name].places)
        else:
            self.define_view(value, replace(self._views[name], base=base))

    def in_channels_last(self, value: ir.Value | None) -> Tensor | None:
        """Returns (N, C, ...) as a plain tensor (N, ..., C) where it lies so already; None where it does not."""
        view = self._views.get((value.name if value is not None else "") or "")
        if view is None or len(view.sizes) < 3:
            return None
        last = view.transposed(_channels_last(len(view.sizes)))
        return replace(view.base, shape=last.sizes) if last.is_whole else None

    def has_near_channels(self, value: ir.Value) -> bool:
        """Whether the value is moved elements (N, C, ...) whose channels lie nearer to each other than their places."""
        moved = self._moved.get(value.name or "")
        if moved is None or not self.is_moved(value) or moved.base.is_blocked or moved.places.ndim < 3:
            return False
        places = moved.places
        if min(places.shape[1], places.shape[-1]) < 2:
            return False
        first, channel, along = (int(places[0, i][..., j].flat[0]) for i, j in ((0, 0), (1, 0), (0, 1)))
        return abs(channel - first) < abs(along - first)

    def channels_last(self, value: ir.Value | None) -> Tensor:
        """Returns (N, C, ...) as a plain tensor (N, ..., C), which is made once."""
        found = self.in_channels_last(value)
        if found is not None:
            return found
        assert value is not None
        name = value.name or ""
        if name not in self._channels_last:
            self._channels_last[name] = self._stored_channels_last(value)
        return self._channels_last[name]

    def _stored_channels_last(self, value: ir.Value) -> Tensor:
        moved = self._moved.get(value.name or "")
        if moved is not None and self.is_moved(value) and not moved.base.is_blocked and moved.places.min() >= 0:
            places = np.moveaxis(moved.places, 1, -1)
            if even_strides(places) is None:
                output = self.temporary("channels_last", places.shape, Layout.PLAIN, moved.base.element)
                self.emit(Gather(output, moved.base, places))
                return output
        view = self.view(value)
        return self.stored(view.transposed(_channels_last(len(view.sizes))), "channels_last")

    def output_channels_last(self, value: ir.Value) -> Tensor:
        """Returns the tensor (N, ..., C) that a rule's step must write for a value (N, C, ...).

        Raises:
            BuildRefusedError: it has no sizes.
        """
        sizes = self.sizes_of(value)
        order = _channels_last(len(sizes))
        shape = tuple(sizes[axis] for axis in order)
        tensor = self.temporary("channels_last", shape, Layout.PLAIN, self.element_of(value))
        self.lowered.copies[tensor.name] = value.name or ""
        self.define_view(value, View.of(tensor).transposed((0, len(sizes) - 1, *range(1, len(sizes) - 1))))
        return tensor

    def define_moved(self, value: ir.Value, base: Tensor, places: Array) -> None:
        """Says that `value` is made of elements of `base`; nothing is copied before somebody asks.

        Raises:
            BuildRefusedError: the model says another shape.
        """
        if places.shape != self.sizes_of(value):
            raise BuildRefusedError(f"the model says {value.name!r} is {self.sizes_of(value)}, it is {places.shape}")
        self._moved[value.name or ""] = Moved(base, places)

    def output(self, value: ir.Value, layout: Layout, image: Callable[[Shape], Shape] = image_shape) -> Tensor:
        """Returns the tensor that a rule's step must write; `image` says how (N, C, W) lies in blocks.

        Raises:
            BuildRefusedError: it has no sizes, or is in blocks and not float32.
        """
        shape = self.shape_of(value) if layout is Layout.BLOCKED else self.sizes_of(value)
        tensor = Tensor(
            value.name or "", image(shape) if layout is Layout.BLOCKED else shape, layout, self.element_of(value)
        )
        self._tensors[tensor.name] = {layout: tensor}
        return tensor

    def temporary(self, kind: str, shape: Shape, layout: Layout, element: str = "fp32") -> Tensor:
        """Returns a new tensor that the model does not name."""
        root = next(name for n in self._numbers if (name := f"{kind}.{n}") not in self._names)
        return Tensor(root, shape, layout, element)

    def constant_of(self, kind: str, array: Array) -> Tensor:
        """Returns a constant that the model does not name as a plain tensor."""
        element = next(element for element, dtype in DTYPES.items() if dtype == array.dtype.name)
        tensor = self.temporary(kind, array.shape, Layout.PLAIN, element)
        self.lowered.constants[tensor.name] = array
        return tensor

    def once(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """Returns what `make` returned when it was asked for under this key first."""
        if key not in self._made_once:
            self._made_once[key] = make()
        return self._made_once[key]

    def stored(self, view: View, kind: str) -> Tensor:
        """Returns a view as a plain tensor: a new one where its elements do not follow each other."""
        if view.is_whole:
            return replace(view.base, shape=view.sizes)
        output = self.temporary(kind, view.sizes, Layout.PLAIN, view.base.element)
        self.emit(StridedCopy(output, view))
        return output

    def capacity(self) -> Size:
        """Returns how many places the memory of what grows has, which the caller says in each call."""
        name = "capacity of what grows"
        size = symbol(name)
        if self.lowered.capacity is None:
            self.lowered.capacity = self.temporary(name, (size,), Layout.PLAIN, "bool")
        return size

    def define_grown(self, value: ir.Value, tensor: Tensor, grown: Grown) -> None:
        """Says that an output lies in `tensor`, which begins with an input and has room behind."""
        self.lowered.grown[value.name or ""] = grown
        self.lowered.outputs[value.name or ""] = tensor
        self.lowered.copies[tensor.name] = value.name or ""

    def emit(self, step: NativeStep) -> None:
        """Adds a step."""
        self.lowered.steps.append(step)

    def take_inputs(self, values: Sequence[ir.Value]) -> None:
        """Declares the graph's inputs, plain; other types where a rule asks for them: most say what the shapes say.

        Raises:
            BuildRefusedError: the shape of one is not known.
        """
        for value in values:
            if value.dtype == ir.DataType.FLOAT:
                self.lowered.inputs[value.name or ""] = self.output(value, Layout.PLAIN)
            elif value.dtype == ir.DataType.FLOAT16:
                self._take_halves(value)
            else:
                self._waiting.add(value.name or "")

    def _take_halves(self, value: ir.Value) -> None:
        """Declares an input of float16, of which all rules read what a step makes of it."""
        name, shape = value.name or "", self.sizes_of(value)
        self.lowered.inputs[name] = Tensor(name, shape, element="fp16")
        widened = self.temporary("widened", shape, Layout.PLAIN)
        self.lowered.copies[widened.name] = name
        self.emit(Elementwise(widened, (Operand(shape, self.lowered.inputs[name]),), operand(0)))
        self._tensors[name] = {Layout.PLAIN: widened}

    def as_it_is(self, value: ir.Value) -> Tensor:
        """Returns an input of float16 as the caller gives it, any other value plain."""
        given = self.lowered.inputs.get(value.name or "")
        return given if given is not None and given.element == "fp16" else self.plain(value)

    def narrowed(self, tensor: Tensor) -> Tensor:
        """Returns a tensor of float32 as one of float16."""
        made = self.temporary("narrowed", tensor.shape, Layout.PLAIN, "fp16")
        self.emit(Elementwise(made, (Operand(tensor.shape, tensor),), operand(0)))
        return made

    def define_widened(self, value: ir.Value, view: View) -> None:
        """Says that a value is a view of float16, of which most rules read what steps make of it."""
        dense = self.stored(view, "dense")
        widened = self.temporary("widened", dense.shape, Layout.PLAIN)
        self.emit(Elementwise(widened, (Operand(dense.shape, dense),), operand(0)))
        self._tensors[value.name or ""] = {Layout.PLAIN: widened}

    def finish(self, values: Sequence[ir.Value]) -> None:
        """Declares the graph's outputs: each a plain tensor of its own that a step writes.

        Raises:
            BuildRefusedError: the rule of its node gave one no value.
        """
        taken = {tensor.name for tensor in self.lowered.inputs.values()} | set(self.lowered.constants)
        for value in values:
            if not (self._is_known(value) or value.producer() is None or self.constant(value) is not None):
                raise BuildRefusedError(f"no kernel computes the output {value.name!r}")
            if value.name in self.lowered.grown:
                self.lowered.outputs[value.name] = self.lowered.outputs.pop(value.name)  # in the order of the model
                continue
            tensor = self.plain(value)
            if value.dtype == ir.DataType.FLOAT16:
                tensor = self.narrowed(tensor)
                self.lowered.copies[tensor.name] = value.name or ""
            elif tensor.name in taken | set(self.lowered.constants):
                copy = self.temporary("output", tensor.shape, Layout.PLAIN, tensor.element)
                self.emit(StridedCopy(copy, View.of(tensor)))
                self.lowered.copies[copy.name] = value.name or ""
                tensor = copy
            taken.add(tensor.name)
            self.lowered.outputs[value.name or ""] = tensor

    def _is_known(self, value: ir.Value) -> bool:
        name = value.name or ""
        return name in self._tensors or name in self._moved or name in self._views

    def _forms(self, value: ir.Value | None) -> dict[Layout, Tensor]:
        """Returns the forms in which the value is in memory; what no rule has made gets its first.

        That is a constant, an input that was waiting or, of a lone node, any input.
        """
        shape = self.sizes_of(value)
        assert value is not None
        name = value.name or ""
        if name not in self._tensors:
            is_made = self._is_known(value)
            self._tensors[name] = {}
            if not is_made:
                tensor = Tensor(name, shape, element=self.element_of(value))
                self._tensors[name] = {Layout.PLAIN: tensor}
                array = self.constant(value)
                if array is not None:
                    self.lowered.constants[name] = np.ascontiguousarray(array)
                elif name in self._waiting:
                    self.lowered.inputs[name] = tensor
        return self._tensors[name]

    def _plain(self, value: ir.Value | None) -> Tensor:
        shape = self.sizes_of(value)
        assert value is not None
        name = value.name or ""
        if name in self._views:
            return self._copied(name, self._views[name])
        if name not in self._moved:
            return replace(self.in_layout(self._tensors[name][Layout.BLOCKED], Layout.PLAIN), shape=shape)
        moved = self._moved[name]
        if is_in_order(moved):
            return replace(self.in_layout(moved.base, Layout.PLAIN), shape=shape)
        output = Tensor(name, shape, element=moved.base.element)
        self.emit(Gather(output, moved.base, moved.places))
        return output

    def _blocked(self, value: ir.Value | None) -> Tensor:
        shape = image_shape(self.shape_of(value))
        assert value is not None
        moved = self._moved.get(value.name or "")
        if moved is not None and moved.base.shape == shape and is_in_order(moved):
            return self.in_layout(moved.base, Layout.BLOCKED)
        places = moved.places.reshape(fixed_shape(shape)) if moved is not None else None
        channels = whole_channels(places, moved.base.shape) if moved is not None and places is not None else None
        if moved is None or channels is None:
            return self.in_layout(replace(self.plain(value), shape=shape), Layout.BLOCKED)
        output = self.temporary("channels", shape, Layout.BLOCKED)
        self.lowered.copies[output.name] = value.name or ""
        base = self.in_layout(moved.base, Layout.BLOCKED)
        self.emit(ChannelParts(output, (base,), tuple((0, channel) for channel in channels)))
        return output

    def _copied(self, name: str, view: View) -> Tensor:
        if view.is_whole:
            return replace(view.base, shape=view.sizes)
        output = Tensor(name, view.sizes, element=view.base.element)
        self.emit(StridedCopy(output, view))
        return output

    def in_layout(self, tensor: Tensor, layout: Layout) -> Tensor:
        """Returns a tensor's elements in a layout; converts them where they lie otherwise, once."""
        if tensor.layout is layout:
            return tensor
        key = (tensor.name, layout)
        if key not in self._converted or self._converted[key].shape != tensor.shape:
            self._converted[key] = self.temporary(layout, tensor.shape, layout)
            self.emit(Convert(self._converted[key], tensor))
            self.lowered.copies[self._converted[key].name] = tensor.name
        return self._converted[key]


def _channels_last(rank: int) -> tuple[int, ...]:
    return (0, *range(2, rank), 1)


def _type_name(value: ir.Value) -> str:
    return value.dtype.name.lower() if value.dtype is not None else "an unknown type"


def is_in_order(moved: Moved) -> bool:
    """Whether all elements of the base stand in their order, in whatever shape."""
    flat = moved.places.reshape(-1)
    return flat.size == moved.base.size and bool(np.array_equal(flat, np.arange(flat.size)))
