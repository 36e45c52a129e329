# SPDX-License-Identifier: Apache-2.0
"""The inputs that a model file declares, read without any library that parses models.

Bytes come in, names and axes go out: enough to refuse a `--shape` for what is not there before a compile is begun. It
is no check of the model, which is `gate`'s.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nndeploy.errors import ModelError, UsageError, did_you_mean
from nndeploy.frontend.shape_texts import ShapeSpec
from nndeploy.onnx_gate.limits import DEFAULT_LIMITS, Limits
from nndeploy.onnx_gate.onnx_messages import MESSAGES
from nndeploy.onnx_gate.wire import Budget, Fields, Span, fields_of


@dataclass(frozen=True, slots=True)
class DeclaredInput:
    """The axes of an input as texts, "?" for one without a size or name; None where no rank is known."""

    axes: tuple[str, ...] | None


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
        graphs = self._inner(self._read((0, len(self._data)), "ModelProto"), "graph", "GraphProto")
        if not graphs:
            raise ModelError("the model has no graph")
        for graph in graphs:
            for value in self._inner(graph, "input", "ValueInfoProto"):
                tensors = [
                    tensor
                    for kind in self._inner(value, "type", "TypeProto")
                    for tensor in self._inner(kind, "tensor_type", "Tensor")
                ]
                shapes = [shape for one in tensors for shape in self._inner(one, "shape", "TensorShapeProto")]
                axes = tuple(map(_axis, self._inner(shapes[0], "dim", "Dimension"))) if shapes else None
                yield value.text("name"), DeclaredInput(axes)

    def _read(self, span: Span, message: str) -> Fields:
        return fields_of(self._data, span, MESSAGES[message], self._budget)

    def _inner(self, fields: Fields, name: str, message: str) -> list[Fields]:
        return [self._read(span, message) for span in fields.spans.get(name, ())]


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
