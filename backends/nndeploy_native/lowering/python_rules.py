# SPDX-License-Identifier: Apache-2.0
"""Rules for nodes that Python computes: those of texts, maps and sequences. Source: see `python_steps.py`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.constants import constant_tensor, constant_texts
from nndeploy.graph.map_types import holds_map, map_type_of
from nndeploy.graph.operator_rules import shown_operator
from nndeploy.graph.operators import float_attribute, int_attribute, ints_attribute, is_overridden, operand, rank_of, text_attribute
from nndeploy_native.lowering.context import ELEMENTS
from nndeploy_native.plan import DTYPES, TEXT, PlanBorder, element_of_type
from nndeploy_native.python_steps import PythonStep, made_step
from nndeploy_native.transforms.texts_as_numbers import REFUSES_OTHERS

Attributes = dict[str, Any]


def is_python(node: ir.Node) -> bool:
    """Whether a node reads or makes texts, maps or sequences, which no kernel does."""
    return any(map(_is_no_tensor_of_numbers, (*node.inputs, *node.outputs)))


def _is_no_tensor_of_numbers(value: ir.Value | None) -> bool:
    return value is not None and (value.dtype == ir.DataType.STRING or holds_map(value))


def border_of(value: ir.Value) -> PlanBorder:
    """Returns a value beside plans as plan.json says it.

    Raises:
        BuildRefusedError: nothing here reads its type, or its rank is not known.
    """
    name = value.name or ""
    if (map_type := map_type_of(value)) is not None:
        element = element_of_type(map_type)
        if not element:
            raise BuildRefusedError(f"{name!r} is {map_type}")
        return PlanBorder(name, element, ())
    if value.dtype not in (*ELEMENTS, ir.DataType.STRING) or value.shape is None:
        raise BuildRefusedError(f"the type or the rank of {name!r} is not one that kernels take")
    element = {ir.DataType.FLOAT16: "fp16", ir.DataType.STRING: TEXT}.get(value.dtype) or ELEMENTS[value.dtype]
    return PlanBorder(name, element, tuple(dim if isinstance(dim, int) else None for dim in value.shape))


def python_step(node: ir.Node, model: ir.Model) -> PythonStep:
    """Returns a node as a step.

    Raises:
        BuildRefusedError: it has no rule, or its rule says no.
    """
    name = shown_operator(node.domain, node.op_type)
    if is_overridden(node, model) or name not in RULES:
        raise BuildRefusedError(f"no kernel for {name} of texts")
    inputs = [value for value in node.inputs if value is not None and constant_tensor(value) is None]
    operator, attributes = RULES[name](node)
    if len(node.outputs) != 1:
        raise BuildRefusedError(f"{name} of several outputs")
    step = PythonStep(operator, tuple(value.name or "" for value in inputs), node.outputs[0].name or "", attributes)
    kinds = [(border.element, len(border.shape)) for border in map(border_of, inputs)]
    try:
        made = made_step(step, kinds)
    except (ValueError, TypeError) as err:
        raise BuildRefusedError(f"{name}: {err}") from err
    said = border_of(node.outputs[0])
    if made.kind != (said.element, len(said.shape)):
        raise BuildRefusedError(f"{name} makes {made.kind}, the model says {said}")
    return step


def _list_of(node: ir.Node, names: Mapping[str, str]) -> tuple[str, list[Any]]:
    """Returns the element and the values of the first of the attributes (name -> element) that a node has."""
    for name, element in names.items():
        attribute = node.attributes.get(name)
        if attribute is not None:
            return element, list(attribute.value)
    raise BuildRefusedError(f"none of {', '.join(names)}")


def _gather(node: ir.Node) -> tuple[str, Attributes]:
    texts, axis = constant_texts(operand(node, 0)), int_attribute(node, "axis", 0)
    if texts is None or rank_of(operand(node, 0)) != 1 or axis:
        raise BuildRefusedError("texts that are no constant list")
    return "Gather", {"texts": texts}


def _label_encoder(node: ir.Node) -> tuple[str, Attributes]:
    _, keys = _list_of(node, {"keys_strings": TEXT, "keys_int64s": "int64", "keys_floats": "fp32"})
    element, values = _list_of(node, {"values_strings": TEXT, "values_int64s": "int64", "values_floats": "fp32"})
    default = {
        TEXT: text_attribute(node, "default_string", "_Unused"),
        "int64": int_attribute(node, "default_int64", -1),
        "fp32": float_attribute(node, "default_float", -0.0),
    }[element]
    others = [] if int_attribute(node, REFUSES_OTHERS, 0) else [default]
    return "LabelEncoder", {"keys": keys, "values": values, "element": element, "default": others}


def _zip_map(node: ir.Node) -> tuple[str, Attributes]:
    return "ZipMap", {"keys": _list_of(node, {"classlabels_strings": TEXT, "classlabels_int64s": "int64"})[1]}


RULES: dict[str, Callable[[ir.Node], tuple[str, Attributes]]] = {
    "ai.onnx.ml::LabelEncoder": _label_encoder,
    "ai.onnx.ml::ZipMap": _zip_map,
    "Gather": _gather,
}
