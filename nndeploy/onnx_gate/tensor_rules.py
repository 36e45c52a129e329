# SPDX-License-Identifier: Apache-2.0
"""What makes a tensor in an ONNX file sound: its sizes, its element type, and exactly as much data as both say.

Used by the gate on what `wire.py` found, before anything allocates memory for a tensor. Sizes are Python integers,
so nothing overflows.

Source: TensorProto and SparseTensorProto in onnx.proto (IR version 14).
"""

from dataclasses import dataclass

from nndeploy.errors import ModelError
from nndeploy.onnx_gate.limits import Limits
from nndeploy.onnx_gate.wire import Fields

EXTERNAL = 1
"""TensorProto.DataLocation.EXTERNAL"""


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type: bits of one element in raw data, and the list that holds it where there is no raw data.

    `num_entries` of that list hold `num_elements` elements.
    """

    name: str
    bits: int
    list_field: str
    num_entries: int = 1
    num_elements: int = 1


ELEMENT_TYPES: dict[int, ElementType] = {
    1: ElementType("FLOAT", 32, "float_data"),
    2: ElementType("UINT8", 8, "int32_data"),
    3: ElementType("INT8", 8, "int32_data"),
    4: ElementType("UINT16", 16, "int32_data"),
    5: ElementType("INT16", 16, "int32_data"),
    6: ElementType("INT32", 32, "int32_data"),
    7: ElementType("INT64", 64, "int64_data"),
    8: ElementType("STRING", 0, "string_data"),
    9: ElementType("BOOL", 8, "int32_data"),
    10: ElementType("FLOAT16", 16, "int32_data"),
    11: ElementType("DOUBLE", 64, "double_data"),
    12: ElementType("UINT32", 32, "uint64_data"),
    13: ElementType("UINT64", 64, "uint64_data"),
    14: ElementType("COMPLEX64", 64, "float_data", num_entries=2),
    15: ElementType("COMPLEX128", 128, "double_data", num_entries=2),
    16: ElementType("BFLOAT16", 16, "int32_data"),
    17: ElementType("FLOAT8E4M3FN", 8, "int32_data"),
    18: ElementType("FLOAT8E4M3FNUZ", 8, "int32_data"),
    19: ElementType("FLOAT8E5M2", 8, "int32_data"),
    20: ElementType("FLOAT8E5M2FNUZ", 8, "int32_data"),
    21: ElementType("UINT4", 4, "int32_data", num_elements=2),
    22: ElementType("INT4", 4, "int32_data", num_elements=2),
    23: ElementType("FLOAT4E2M1", 4, "int32_data", num_elements=2),
    24: ElementType("FLOAT8E8M0", 8, "int32_data"),
    25: ElementType("UINT2", 2, "int32_data", num_elements=4),
    26: ElementType("INT2", 2, "int32_data", num_elements=4),
    27: ElementType("FLOAT6E2M3", 6, "int32_data"),
    28: ElementType("FLOAT6E3M2", 6, "int32_data"),
}
"""TensorProto.DataType -> the type."""

_LISTS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")


def check_tensor(tensor: Fields, limits: Limits) -> int:
    """Returns the bytes that the tensor takes (strings: how many there are), external data included.

    Raises:
        ModelError: the type is unknown, a size is negative or too large, or the data is missing, there twice, in a
            field that does not fit the type, or of another length.
    """
    element = _element_type(tensor)
    num_elements = checked_size(tensor.numbers.get("dims", []), limits)
    num_bytes = _num_bytes(element, num_elements)
    if num_bytes > limits.max_tensor_bytes:
        raise ModelError(f"the tensor has {num_bytes} bytes", hint=f"at most {limits.max_tensor_bytes}")
    if tensor.spans.get("segment"):
        raise ModelError("the tensor is one segment of several, which nndeploy does not read")
    if tensor.number("data_location") == EXTERNAL:
        _check_external(tensor, element)
    else:
        _check_inline(tensor, element, num_elements, num_bytes)
    return num_bytes


def checked_size(dims: list[int], limits: Limits) -> int:
    """Returns the number of elements of a tensor with these sizes.

    Raises:
        ModelError: there are too many sizes, one is negative, or their product is too large.
    """
    if len(dims) > limits.max_rank:
        raise ModelError(f"the tensor has {len(dims)} dimensions", hint=f"at most {limits.max_rank}")
    if (negative := min(dims, default=0)) < 0:
        raise ModelError(f"the tensor has the size {negative}", hint="sizes of stored tensors are not negative")
    size = 1
    for dim in dims:
        size *= dim
    if size > limits.max_tensor_bytes * 8:
        raise ModelError(f"the tensor has the sizes {_shown(dims)}, more than memory can hold")
    return size


def dense_bytes(data_type: int | None, dims: list[int], limits: Limits) -> int:
    """Returns the bytes of a dense tensor of this type and these sizes.

    Raises:
        ModelError: see `check_tensor`.
    """
    element = ELEMENT_TYPES.get(data_type or 0)
    num_bytes = _num_bytes(element, checked_size(dims, limits)) if element else 0
    if num_bytes > limits.max_tensor_bytes:
        raise ModelError(
            f"the sparse tensor has {num_bytes} bytes when dense", hint=f"at most {limits.max_tensor_bytes}"
        )
    return num_bytes


def _element_type(tensor: Fields) -> ElementType:
    number = tensor.number("data_type")
    if number is None or number not in ELEMENT_TYPES:
        raise ModelError(f"the tensor has the unknown element type {number}", hint="types 1 to 28 are known")
    return ELEMENT_TYPES[number]


def _num_bytes(element: ElementType, num_elements: int) -> int:
    return num_elements if element.name == "STRING" else (num_elements * element.bits + 7) // 8


def _check_external(tensor: Fields, element: ElementType) -> None:
    if element.name == "STRING":
        raise ModelError("strings cannot lie in an external file")
    if not tensor.spans.get("external_data"):
        raise ModelError("the tensor says that its data is external, but not where")
    if present := _present_data(tensor):
        raise ModelError(f"the tensor has external data and {present[0]} too")


def _check_inline(tensor: Fields, element: ElementType, num_elements: int, num_bytes: int) -> None:
    if tensor.number("data_location") not in (None, 0):
        raise ModelError(f"the tensor has the unknown data location {tensor.number('data_location')}")
    if tensor.spans.get("external_data"):
        raise ModelError("the tensor names an external file, but says that its data is in the model")
    present = _present_data(tensor)
    if len(present) > 1:
        raise ModelError(f"the tensor has its data twice, in {' and '.join(present)}")
    allowed = (element.list_field,) if element.name == "STRING" else (element.list_field, "raw_data")
    if present and present[0] not in allowed:
        raise ModelError(f"the tensor is of type {element.name}, whose data cannot lie in {present[0]}")
    if present == ["raw_data"]:
        got, want, unit = tensor.counts["raw_data"], num_bytes, "bytes of raw data"
    else:
        got, unit = tensor.counts.get(element.list_field, 0), f"entries in {element.list_field}"
        want = -(-num_elements // element.num_elements) * element.num_entries
    if got != want:
        sizes = _shown(tensor.numbers.get("dims", []))
        raise ModelError(f"the tensor has {got} {unit}, but its type {element.name} and sizes {sizes} need {want}")


def _present_data(tensor: Fields) -> list[str]:
    return [name for name in (*_LISTS, "raw_data") if tensor.counts.get(name)]


def _shown(dims: list[int]) -> str:
    return "[" + ", ".join(str(dim) for dim in dims[:8]) + (", ..." if len(dims) > 8 else "") + "]"
