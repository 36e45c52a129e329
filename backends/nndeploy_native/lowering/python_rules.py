# SPDX-License-Identifier: Apache-2.0
"""Rules for nodes that Python computes: those of texts, maps and sequences, and those that find elements.

Source: see `text_steps.py` and `found_steps.py`.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.constants import constant_array, constant_ints, constant_tensor, constant_texts
from nndeploy.graph.map_types import holds_map, map_type_of
from nndeploy.graph.operator_rules import shown_operator
from nndeploy.graph.operators import (
    float_attribute,
    int_attribute,
    ints_attribute,
    is_overridden,
    operand,
    rank_of,
    static_shape,
    text_attribute,
)
from nndeploy_native import found_steps
from nndeploy_native.lowering.context import ELEMENTS
from nndeploy_native.lowering.row_rules import keys_of_table
from nndeploy_native.plan import DTYPES, TEXT, PlanBorder, element_of_type
from nndeploy_native.python_step import PythonStep
from nndeploy_native.python_steps import made_step
from nndeploy_native.transforms.text_grams import OWN, TEXT_BYTES
from nndeploy_native.transforms.texts_as_numbers import ML, REFUSES_OTHERS

Attributes = dict[str, Any]


def is_python(node: ir.Node) -> bool:
    """Whether a node is of texts, maps or sequences, looks numbers up in a dict, or finds elements."""
    values = [value for value in (*node.inputs, *node.outputs) if value is not None]
    if not node.domain and node.op_type in found_steps.MAKERS:
        return True
    return any(_is_text(value) or holds_map(value) for value in values) or (node.domain == ML and _is_looked_up(node))


def _is_text(value: ir.Value | None) -> bool:
    return value is not None and value.dtype == ir.DataType.STRING


def _is_looked_up(node: ir.Node) -> bool:
    if node.op_type == "LabelEncoder":
        return keys_of_table(node) is None
    return node.op_type == "OneHotEncoder" and int_attribute(node, "zeros", 1) == 0


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
    names, outputs = (tuple(value.name or "" for value in some) for some in (inputs, node.outputs))
    step = PythonStep(operator, names, outputs, attributes)
    reads, gives = ([*map(border_of, values)] for values in (inputs, node.outputs))
    if any(0 in border.shape for border in (*reads, *gives)):
        raise BuildRefusedError(f"{name} reads or gives no elements")
    try:
        made = made_step(step, [(border.element, len(border.shape)) for border in reads])
    except (ValueError, TypeError) as err:
        raise BuildRefusedError(f"{name}: {err}") from err
    said = tuple((border.element, len(border.shape)) for border in gives)
    if made.kinds != said:
        raise BuildRefusedError(f"{name} makes {made.kinds}, the model says {said}")
    return step


def _list_of(node: ir.Node, names: Mapping[str, str]) -> tuple[str, list[Any]]:
    """Returns the element and the values of the first of the attributes (name -> element) that a node has."""
    for name, element in names.items():
        attribute = node.attributes.get(name)
        if attribute is not None and attribute.type == ir.AttributeType.TENSOR:
            return _list_of_tensor(attribute.as_tensor())
        if attribute is not None:
            return element, list(attribute.value)
    raise BuildRefusedError(f"none of {', '.join(names)}")


def _list_of_tensor(tensor: ir.TensorProtocol) -> tuple[str, list[Any]]:
    if tensor.dtype == ir.DataType.STRING:
        return TEXT, [text.decode() for text in tensor.numpy().reshape(-1).tolist()]
    element = next((element for element, dtype in DTYPES.items() if dtype == tensor.numpy().dtype.name), "")
    if element not in ("fp32", "int32", "int64"):
        raise BuildRefusedError(f"a table of {tensor.dtype.name.lower()}")
    return element, tensor.numpy().reshape(-1).tolist()


def _forms(name: str) -> dict[str, str]:
    """Returns the attributes that keys or values may stand in."""
    return {f"{name}_strings": TEXT, f"{name}_int64s": "int64", f"{name}_floats": "fp32", f"{name}_tensor": ""}


def _label_encoder(node: ir.Node) -> tuple[str, Attributes]:
    if "classes_strings" in node.attributes:
        classes = list(node.attributes["classes_strings"].as_strings())
        return _categories(node, classes, list(range(len(classes))))
    _, keys = _list_of(node, _forms("keys"))
    element, values = _list_of(node, _forms("values"))
    default: Any = {
        TEXT: text_attribute(node, "default_string", "_Unused"),
        "fp32": float_attribute(node, "default_float", -0.0),
    }.get(element, int_attribute(node, "default_int64", -1))
    if "default_tensor" in node.attributes:
        _, (default,) = _list_of_tensor(node.attributes["default_tensor"].as_tensor())
    others = [] if int_attribute(node, REFUSES_OTHERS, 0) else [default]
    return "LabelEncoder", {"keys": keys, "values": values, "element": element, "default": others}


def _category_mapper(node: ir.Node) -> tuple[str, Attributes]:
    texts = _list_of(node, {"cats_strings": TEXT})[1]
    return _categories(node, texts, list(ints_attribute(node, "cats_int64s") or ()))


def _categories(node: ir.Node, texts: list[str], numbers: list[int]) -> tuple[str, Attributes]:
    """Returns texts as numbers, or numbers as texts, whichever come in."""
    if len(texts) != len(numbers):
        raise BuildRefusedError(f"{len(texts)} texts for {len(numbers)} numbers")
    if _is_text(operand(node, 0)):
        default: Any = int_attribute(node, "default_int64", -1)
        return "LabelEncoder", {"keys": texts, "values": numbers, "element": "int64", "default": [default]}
    default = text_attribute(node, "default_string", "_Unused")
    return "LabelEncoder", {"keys": numbers, "values": texts, "element": TEXT, "default": [default]}


def _gather(node: ir.Node) -> tuple[str, Attributes]:
    """Takes from a constant list of texts, or takes texts at constant places."""
    data, places, rank = operand(node, 0), operand(node, 1), rank_of(operand(node, 0)) or 0
    is_extractor = node.op_type == "ArrayFeatureExtractor"
    axis = rank - 1 if is_extractor else int_attribute(node, "axis", 0) % max(1, rank)
    texts, numbers = constant_texts(data), constant_array(places)
    if texts is not None and rank == 1 and not is_extractor:
        return "Gather", {"texts": texts}
    if texts is not None or numbers is None or (is_extractor and rank == 1):
        raise BuildRefusedError("texts of a table with several axes, or at places that are computed")
    shape = [numbers.size] if is_extractor else list(numbers.shape)
    return "Take", {"places": numbers.reshape(-1).tolist(), "shape": shape, "axis": axis}


def _reshape(node: ir.Node) -> tuple[str, Attributes]:
    output, said = node.outputs[0].shape, constant_ints(operand(node, 1)) if node.op_type == "Reshape" else None
    if node.op_type == "Flatten" and int_attribute(node, "axis", 1) == 1:
        said = (0, -1)
    if said is None and output is not None:
        said = tuple(dim if isinstance(dim, int) else -1 for dim in output)
    if said is None or said.count(-1) > 1 or (0 in said and int_attribute(node, "allowzero", 0)):
        raise BuildRefusedError("texts in a shape that is computed")
    return "Reshape", {"shape": list(said)}


def _identity(node: ir.Node) -> tuple[str, Attributes]:
    if node.op_type == "Cast" and not (_is_text(operand(node, 0)) and _is_text(node.outputs[0])):
        raise BuildRefusedError("a Cast between texts and numbers")
    return "Reshape", {"shape": [0] * (rank_of(operand(node, 0)) or 0)}


def _transpose(node: ir.Node) -> tuple[str, Attributes]:
    rank = rank_of(operand(node, 0)) or 0
    return "Transpose", {"order": list(ints_attribute(node, "perm") or reversed(range(rank)))}


def _concat(node: ir.Node) -> tuple[str, Attributes]:
    if any(constant_tensor(value) is not None for value in node.inputs):
        raise BuildRefusedError("a Concat with constant texts")
    return "Concat", {"axis": int_attribute(node, "axis", 0) % max(1, rank_of(operand(node, 0)) or 0)}


def _equal(node: ir.Node) -> tuple[str, Attributes]:
    for value in node.inputs:
        texts = constant_texts(value)
        if texts is not None:
            return "Equal", {"texts": texts, "shape": list(static_shape(value) or ())}
    raise BuildRefusedError("texts that are compared with others which are no constant")


def _string_normalizer(node: ir.Node) -> tuple[str, Attributes]:
    stopwords = node.attributes.get("stopwords")
    return "StringNormalizer", {
        "case": text_attribute(node, "case_change_action", "NONE"),
        "stopwords": [] if stopwords is None else list(stopwords.as_strings()),
        "is_case_sensitive": bool(int_attribute(node, "is_case_sensitive", 0)),
    }


def _tokenizer(node: ir.Node) -> tuple[str, Attributes]:
    separators = node.attributes.get("separators")
    expression = text_attribute(node, "tokenexp", "" if separators is None else ".")
    if int_attribute(node, "mark", 0) or (separators is not None and list(separators.as_strings()) != [""]):
        raise BuildRefusedError("tokens between separators, or with marks around them")
    least, padding = int_attribute(node, "mincharnum", 1), text_attribute(node, "pad_value", "")
    return "Tokenizer", {"expression": expression, "padding": padding, "least": least}


def _text_bytes(node: ir.Node) -> tuple[str, Attributes]:
    return "TextBytes", {"case": text_attribute(node, "case", "NONE")}


def _zip_map(node: ir.Node) -> tuple[str, Attributes]:
    return "ZipMap", {"keys": _list_of(node, {"classlabels_strings": TEXT, "classlabels_int64s": "int64"})[1]}


def _dict_vectorizer(node: ir.Node) -> tuple[str, Attributes]:
    return "DictVectorizer", {"keys": _list_of(node, {"string_vocabulary": TEXT, "int64_vocabulary": "int64"})[1]}


def _cast_map(node: ir.Node) -> tuple[str, Attributes]:
    elements = {"TO_FLOAT": "fp32", "TO_INT64": "int64", "TO_STRING": TEXT}
    element = elements.get(text_attribute(node, "cast_to", "TO_FLOAT"), "")
    is_sparse = text_attribute(node, "map_form", "DENSE") == "SPARSE"
    return "CastMap", {"element": element, "size": int_attribute(node, "max_map", 1) if is_sparse else 0}


def _non_zero(_: ir.Node) -> tuple[str, Attributes]:
    return "NonZero", {}


def _compress(node: ir.Node) -> tuple[str, Attributes]:
    axis = node.attributes.get("axis")
    return "Compress", {"axis": None if axis is None else axis.as_int() % max(1, rank_of(operand(node, 0)) or 0)}


def _non_max_suppression(node: ir.Node) -> tuple[str, Attributes]:
    most, overlap, least = (_number_of(operand(node, number)) for number in (2, 3, 4))
    return "NonMaxSuppression", {
        "most": int(max(0, most or 0)),
        "overlap": float(overlap or 0.0),
        "least": None if least is None else float(least),
        "is_centred": bool(int_attribute(node, "center_point_box", 0)),
    }


def _number_of(value: ir.Value | None) -> float | None:
    """Returns the number that an input always is, None where there is no such input."""
    if value is None:
        return None
    number = constant_array(value)
    if number is None or number.size != 1 or not math.isfinite(number.item()):
        raise BuildRefusedError("a bound that is computed, or none")
    return number.item()  # type: ignore[no-any-return]


RULES: dict[str, Callable[[ir.Node], tuple[str, Attributes]]] = {
    "ai.onnx.ml::ArrayFeatureExtractor": _gather,
    "ai.onnx.ml::CastMap": _cast_map,
    "ai.onnx.ml::CategoryMapper": _category_mapper,
    "ai.onnx.ml::DictVectorizer": _dict_vectorizer,
    "ai.onnx.ml::LabelEncoder": _label_encoder,
    "ai.onnx.ml::ZipMap": _zip_map,
    "com.microsoft::Tokenizer": _tokenizer,
    f"{OWN}::{TEXT_BYTES}": _text_bytes,
    "Compress": _compress,
    "Concat": _concat,
    "Equal": _equal,
    "Gather": _gather,
    **dict.fromkeys(("Cast", "Identity"), _identity),
    **dict.fromkeys(("Flatten", "Reshape", "Squeeze", "Unsqueeze"), _reshape),
    "NonMaxSuppression": _non_max_suppression,
    "NonZero": _non_zero,
    "StringNormalizer": _string_normalizer,
    "Transpose": _transpose,
}
