# SPDX-License-Identifier: Apache-2.0
"""The inputs and outputs that a model file declares, read without any library that parses models.

Bytes come in, names, axes and types go out: enough to refuse a `--shape` for what is not there before a compile is
begun, and to show what a model takes. It is no check of the model, which is `gate`'s.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nndeploy.errors import ModelError, UsageError, did_you_mean
from nndeploy.frontend.shape_texts import ShapeSpec
from nndeploy.graph.element_names import DTYPES
from nndeploy.onnx_gate.limits import DEFAULT_LIMITS, Limits
from nndeploy.onnx_gate.onnx_messages import MESSAGES
from nndeploy.onnx_gate.wire import Budget, Fields, Span, fields_of


@dataclass(frozen=True, slots=True)
class DeclaredInput:
    """The axes of an input as texts, "?" for one without a size or name; None where no rank is known."""

    axes: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class DeclaredValue:
    """An input or output: its type as people write it (`float32[N,3,?]`), and its axes as `DeclaredInput` has them."""

    name: str
    type: str
    axes: tuple[str, ...] | None


def declared_values(
    data: bytes, limits: Limits = DEFAULT_LIMITS
) -> tuple[tuple[DeclaredValue, ...], tuple[DeclaredValue, ...]]:
    """Returns the inputs, without those that are initializers, and the outputs of a model that passed the gate."""
    return _Reader(data, limits).values()


def declared_metadata(data: bytes, limits: Limits = DEFAULT_LIMITS) -> dict[str, str]:
    """Returns what exporters noted of a model that passed the gate: texts by key."""
    return dict(_Reader(data, limits).metadata())


def declared_inputs(data: bytes, limits: Limits = DEFAULT_LIMITS) -> dict[str, DeclaredInput]:
    """Returns name -> input of a serialised model.

    Raises:
        ModelError: the bytes are no ONNX model.
    """
    return dict(_Reader(data, limits).inputs())


class _Reader:
    """Follows spans of messages into each other."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        self._data = data
        self._budget = Budget(limits.max_fields, limits.max_nodes, limits.max_name_bytes)

    def inputs(self) -> Iterator[tuple[str, DeclaredInput]]:
        for graph in self._graphs():
            for value in self._inner(graph, "input", "ValueInfoProto"):
                tensors = [
                    tensor
                    for kind in self._inner(value, "type", "TypeProto")
                    for tensor in self._inner(kind, "tensor_type", "Tensor")
                ]
                yield value.text("name"), DeclaredInput(self._axes(tensors[0]) if tensors else None)

    def values(self) -> tuple[tuple[DeclaredValue, ...], tuple[DeclaredValue, ...]]:
        (graph,) = self._graphs()
        weights = {one.text("name") for one in self._inner(graph, "initializer", "TensorProto")}
        axes = dict(self.inputs())
        inputs, outputs = (
            tuple(
                DeclaredValue(value.text("name"), self._type(self._inner(value, "type", "TypeProto")), None)
                for value in self._inner(graph, kind, "ValueInfoProto")
            )
            for kind in ("input", "output")
        )
        return tuple(replace(one, axes=axes[one.name].axes) for one in inputs if one.name not in weights), outputs

    def metadata(self) -> Iterator[tuple[str, str]]:
        model = self._read((0, len(self._data)), "ModelProto")
        for pair in self._inner(model, "metadata_props", "StringStringEntryProto"):
            yield pair.text("key"), pair.text("value")

    def _graphs(self) -> list[Fields]:
        graphs = self._inner(self._read((0, len(self._data)), "ModelProto"), "graph", "GraphProto")
        if not graphs:
            raise ModelError("the model has no graph")
        return graphs

    def _axes(self, tensor: Fields) -> tuple[str, ...] | None:
        shapes = self._inner(tensor, "shape", "TensorShapeProto")
        return tuple(map(_axis, self._inner(shapes[0], "dim", "Dimension"))) if shapes else None

    def _type(self, kinds: Sequence[Fields]) -> str:
        """Returns a type as people write it; the gate has seen how deep it is."""
        for kind in kinds:
            for tensor in self._inner(kind, "tensor_type", "Tensor"):
                axes = self._axes(tensor)
                return f"{_element(tensor, 'elem_type')}[{'...' if axes is None else ','.join(axes)}]"
            for name, message in (("sequence", "Sequence"), ("optional", "Optional")):
                for inner in self._inner(kind, f"{name}_type", message):
                    return f"{name}({self._type(self._inner(inner, 'elem_type', 'TypeProto'))})"
            for inner in self._inner(kind, "map_type", "Map"):
                value = self._type(self._inner(inner, "value_type", "TypeProto"))
                return f"map({_element(inner, 'key_type')}, {value})"
        return "?"

    def _read(self, span: Span, message: str) -> Fields:
        return fields_of(self._data, span, MESSAGES[message], self._budget)

    def _inner(self, fields: Fields, name: str, message: str) -> list[Fields]:
        return [self._read(span, message) for span in fields.spans.get(name, ())]


def _element(fields: Fields, name: str) -> str:
    return DTYPES.get(fields.number(name) or 0, "?")


def _axis(dimension: Fields) -> str:
    size = dimension.number("dim_value")
    return dimension.text("dim_param") or "?" if size is None else str(size)


def check_shape_names(specs: Mapping[str, ShapeSpec], inputs: Mapping[str, DeclaredInput]) -> None:
    """Refuses sizes of what a model does not have.

    Raises:
        UsageError: a name is neither that of an input nor of a size, or an input has another number of axes.
    """
    named = {axis for one in inputs.values() for axis in one.axes or () if not axis.isdecimal() and axis != "?"}
    named |= {size for name in specs.keys() & inputs.keys() for size in specs[name].dims if isinstance(size, str)}
    for name, spec in specs.items():
        if name not in inputs and name not in named:
            hint = did_you_mean(name, (*inputs, *sorted(named)))
            raise UsageError(f"the model has no input {name!r}, and no size of that name", hint=hint)
        axes = inputs[name].axes if name in inputs else None
        if axes is not None and len(spec.of_rank(len(axes))) != len(axes):
            what = f"the input {name!r} has {len(axes)} axes, but its --shape has {len(spec.of_rank(len(axes)))}"
            raise UsageError(what, hint=f"the model says [{', '.join(axes)}]")
