# SPDX-License-Identifier: Apache-2.0
"""Named values as one member of a bundle: goldens, constants, shared weights.

`encode_values` makes a safetensors file, which the safetensors library reads too; its `__metadata__` holds one
canonical JSON text, the tree: which tensor, list, map, string or None stands under which name. `decode_values` reads
it without copying: arrays are read-only views of the buffer. Laws: `decode_values(encode_values(v))` equals `v` after
the normalising below, equal values give equal bytes, and `decode_values` takes only bytes that `encode_values` makes:
it rebuilds the header from the tree and demands equality.

Normalising: numpy scalars, bools and text become arrays of rank 0, tuples become lists, byte strings become str where
they are UTF-8, keys of maps become int or str. Python's int and float, which libraries put into maps, stay what they
are, since their element type is not known.

Source: the safetensors format (README of huggingface/safetensors): header length as 8 little-endian bytes, a JSON
header, then the tensors' bytes without gaps. Element types that it or numpy lacks (bfloat16, float8, int4, complex)
are kept as bytes of type U8; the tree has their real type and shape.
"""

import base64
import binascii
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from nndeploy.errors import BundleError, DataError
from nndeploy.files.strict_json import canonical_json, parse_json
from nndeploy.values.types import DTYPES, MAX_RANK, MAX_TYPE_DEPTH, Value, dtype_name, numpy_dtype

MAX_HEADER_BYTES = 100_000_000  # the safetensors library refuses more
ALIGNMENT = 64

_Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
_Tree: TypeAlias = dict[str, object]

_TREE_KEY = "nndeploy.values.1"
_NOT_FINITE = ("nan", "inf", "-inf")
_LEAST_INT, _MOST_INT = -(1 << 63), (1 << 64) - 1
_MAX_ELEMENTS = 1 << 58  # numpy counts bytes in 63 bits, and an element has at most 16; empty sizes count as one
_HEADER_LENGTH = struct.Struct("<Q")
_SAFETENSORS_DTYPES = {
    "float16": "F16", "float32": "F32", "float64": "F64", "int8": "I8", "int16": "I16", "int32": "I32",
    "int64": "I64", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "bool": "BOOL",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Tensor:
    """One tensor of the file: `key` is its name there, `dtype` one of `DTYPES`."""

    key: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def item_bytes(self) -> int:
        return numpy_dtype(self.dtype).itemsize

    @property
    def num_bytes(self) -> int:
        return math.prod(self.shape) * self.item_bytes


@dataclass(slots=True)
class _Encoded:
    """The tensors met on the way through the values, in order."""

    tensors: list[_Tensor] = field(default_factory=list)
    data: list[_Array] = field(default_factory=list)


def encode_values(values: Mapping[str, Value]) -> bytes:
    """Returns the member that holds `values`; a value is what `nndeploy.values.types` says, or a scalar.

    Raises:
        DataError: a value, an element or a key is of a type that no ONNX value has, text is not Unicode, lists are
            nested too deeply, or there is more text than a header may hold.
    """
    encoded = _Encoded()
    tree = {_name(name): _tree_from_value(values[name], encoded, name, 0) for name in sorted(values)}
    header = _header(tree, encoded.tensors)
    if len(header) > MAX_HEADER_BYTES:
        raise DataError(f"the text in these values takes {len(header)} bytes; at most {MAX_HEADER_BYTES} are allowed")
    data = dict(zip((tensor.key for tensor in encoded.tensors), encoded.data, strict=True))
    bodies = (data[tensor.key].reshape(-1).view(np.uint8).data for tensor in _in_file_order(encoded.tensors))
    return b"".join((_HEADER_LENGTH.pack(len(header)), header, *bodies))


def decode_values(buffer: bytes | memoryview) -> dict[str, Value]:
    """Returns the values that a member holds; arrays are read-only views of `buffer` and keep it alive.

    Raises:
        BundleError: the bytes are not those that `encode_values` makes of the values that they describe.
    """
    view = memoryview(buffer).toreadonly()
    header = _header_of(view)
    tree = _tree_of(header)
    tensors: list[_Tensor] = []
    for name, node in tree.items():
        _collect_tensors(node, tensors, name, 0)
    if _header(tree, tensors) != header:
        raise BundleError("the header of these values does not agree with their tree")
    body = view[_HEADER_LENGTH.size + len(header) :]
    if (expected := sum(tensor.num_bytes for tensor in tensors)) != len(body):
        raise BundleError(f"these values need {expected} bytes of data, the member has {len(body)}")
    arrays = _arrays(tensors, body)
    return {name: _value_from_tree(node, arrays) for name, node in tree.items()}


def _name(name: str) -> str:
    if not isinstance(_text(name, "the name of a value"), str):
        raise DataError(f"the name {name!r:.80} of a value is no text")
    return name


def _tree_from_value(value: Value, encoded: _Encoded, where: str, depth: int) -> _Tree:
    if depth > MAX_TYPE_DEPTH:
        raise DataError(f"values are nested deeper than {MAX_TYPE_DEPTH}", where=where)
    match value:
        case None:
            return {"kind": "none"}
        case list() | tuple():
            items = [_tree_from_value(v, encoded, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]
            return {"kind": "sequence", "items": items}
        case dict():
            return _tree_from_map(value, encoded, where, depth)
        case np.ndarray() | np.generic() | bool() | complex() | str() | bytes():
            return _tree_from_array(_as_array(value, where), encoded, where)
        case float():
            return {"kind": "number", "value": value if math.isfinite(value) else str(value)}
        case int() if _LEAST_INT <= value <= _MOST_INT:
            return {"kind": "number", "value": int(value)}
    raise DataError(f"{value!r:.80}, a {type(value).__name__}, is no value of a model", where=where)


def _tree_from_map(value: dict[Any, Value], encoded: _Encoded, where: str, depth: int) -> _Tree:
    keys = {_map_key(key, where): item for key, item in value.items()}
    kinds = {type(key) for key in keys}
    if len(kinds) > 1 or len(keys) != len(value):
        raise DataError("the keys of a map must be all integers or all strings, each once", where=where)
    entries = [[key, _tree_from_value(keys[key], encoded, f"{where}[{key!r}]", depth + 1)] for key in sorted(keys)]
    return {"kind": "map", "key": "int" if kinds == {int} else "string", "entries": entries}


def _map_key(key: object, where: str) -> Any:
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        return int(key)
    text = _text(key, where)
    if not isinstance(text, str):
        raise DataError(f"the key {key!r:.80} of a map is no text", where=where)
    return text


def _as_array(value: Value, where: str) -> _Array:
    """Returns the array in little-endian C order, or raises; strings become objects."""
    array = np.asarray(value)
    if dtype_name(array.dtype) == "string":
        return np.array(array, dtype=object)
    if dtype_name(array.dtype) not in DTYPES:
        raise DataError(f"an array of {array.dtype} is no value of a model", where=where)
    if array.dtype == np.bool_:
        return np.asarray(array.view(np.uint8) != 0, order="C")  # a bool may hide another byte than 0 and 1
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def _tree_from_array(array: _Array, encoded: _Encoded, where: str) -> _Tree:
    if array.dtype == np.dtype(object):
        items = [_tree_from_text(_text(item, where)) for item in array.reshape(-1).tolist()]
        return {"kind": "strings", "shape": list(array.shape), "items": items}
    tensor = _Tensor(str(len(encoded.tensors)), dtype_name(array.dtype), array.shape)
    encoded.tensors.append(tensor)
    encoded.data.append(array)
    return {"kind": "tensor", "data": tensor.key, "dtype": tensor.dtype, "shape": list(tensor.shape)}


def _text(item: object, where: str) -> str | bytes:
    """Returns text, as str where it is Unicode, else as bytes."""
    if isinstance(item, bytes):
        try:
            return item.decode("utf-8")
        except UnicodeDecodeError:
            return bytes(item)
    if not isinstance(item, str):
        raise DataError(f"a {type(item).__name__} stands where text should", where=where)
    try:
        item.encode("utf-8")
    except UnicodeEncodeError as err:
        raise DataError(f"the text {item!r:.80} is not Unicode", where=where) from err
    return str(item)


def _tree_from_text(text: str | bytes) -> object:
    return text if isinstance(text, str) else {"base64": base64.b64encode(text).decode("ascii")}


def _in_file_order(tensors: list[_Tensor]) -> list[_Tensor]:
    """Returns the tensors with the largest elements first, so that each begins on a multiple of its element."""
    return sorted(tensors, key=lambda tensor: -tensor.item_bytes)


def _header(tree: Mapping[str, object], tensors: list[_Tensor]) -> bytes:
    """Returns the safetensors header, padded so that the data begin on a multiple of `ALIGNMENT`."""
    entries: dict[str, object] = {"__metadata__": {_TREE_KEY: canonical_json(tree).decode("ascii")}}
    start = 0
    for tensor in _in_file_order(tensors):
        entries[tensor.key] = _header_entry(tensor, start)
        start += tensor.num_bytes
    text = canonical_json(entries)
    return text + b" " * (-(len(text) + _HEADER_LENGTH.size) % ALIGNMENT)


def _header_entry(tensor: _Tensor, start: int) -> dict[str, object]:
    known = _SAFETENSORS_DTYPES.get(tensor.dtype)
    shape = list(tensor.shape) if known else [tensor.num_bytes]
    return {"dtype": known or "U8", "shape": shape, "data_offsets": [start, start + tensor.num_bytes]}


def _header_of(view: memoryview) -> bytes:
    if len(view) < _HEADER_LENGTH.size:
        raise BundleError(f"{len(view)} bytes are too few for values")
    (length,) = _HEADER_LENGTH.unpack_from(view)
    if length > min(MAX_HEADER_BYTES, len(view) - _HEADER_LENGTH.size):
        raise BundleError(f"the header of these values claims {length} bytes, the member has {len(view)}")
    return bytes(view[_HEADER_LENGTH.size : _HEADER_LENGTH.size + length])


def _tree_of(header: bytes) -> dict[str, object]:
    entries = parse_json(header.rstrip(b" "), MAX_HEADER_BYTES)
    metadata = entries.get("__metadata__") if isinstance(entries, dict) else None
    text = metadata.get(_TREE_KEY) if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise BundleError(f"these values have no tree: __metadata__ lacks {_TREE_KEY!r}")
    try:
        tree = parse_json(text.encode("utf-8"), MAX_HEADER_BYTES)
    except BundleError as err:
        err.within("the tree of these values")
        raise
    if not isinstance(tree, dict):
        raise BundleError("the tree of these values is no object")
    return tree


def _collect_tensors(node: object, found: list[_Tensor], where: str, depth: int) -> None:
    """Checks the form of a tree and adds its tensors to `found`, in the order in which they were encoded."""
    if depth > MAX_TYPE_DEPTH:
        raise BundleError(f"values are nested deeper than {MAX_TYPE_DEPTH}", where=where)
    match node:
        case {"kind": "none", **rest} if not rest:
            return
        case {"kind": "number", "value": float() | int() | str() as value, **rest} if not rest and _is_number(value):
            return
        case {"kind": "tensor", "data": str(key), "dtype": str(dtype), "shape": list(shape), **rest} if not rest:
            found.append(_checked_tensor(key, dtype, shape, len(found), where))
        case {"kind": "strings", "shape": list(shape), "items": list(items), **rest} if not rest:
            _check_strings(shape, items, where)
        case {"kind": "sequence", "items": list(items), **rest} if not rest:
            for index, item in enumerate(items):
                _collect_tensors(item, found, f"{where}[{index}]", depth + 1)
        case {"kind": "map", "key": str(kind), "entries": list(entries), **rest} if not rest:
            _check_keys(entries, kind, where)
            for key, item in entries:
                _collect_tensors(item, found, f"{where}[{key!r}]", depth + 1)
        case _:
            raise BundleError(f"not a value: {node!r:.80}", where=where)


def _is_number(value: float | str) -> bool:
    if isinstance(value, str):
        return value in _NOT_FINITE
    return isinstance(value, float) or (not isinstance(value, bool) and _LEAST_INT <= value <= _MOST_INT)


def _checked_tensor(key: str, dtype: str, shape: list[object], index: int, where: str) -> _Tensor:
    if dtype not in DTYPES or dtype == "string":
        raise BundleError(f"unknown element type {dtype!r:.40}", where=where)
    if key != str(index):
        raise BundleError(f"the tensor {key!r:.40} should be called '{index}'", where=where)
    return _Tensor(key, dtype, _checked_shape(shape, where))


def _checked_shape(shape: list[object], where: str) -> tuple[int, ...]:
    sizes = tuple(size for size in shape if isinstance(size, int) and not isinstance(size, bool) and size >= 0)
    if len(sizes) != len(shape) or len(shape) > MAX_RANK or math.prod(max(size, 1) for size in sizes) > _MAX_ELEMENTS:
        raise BundleError(f"not a shape: {shape!r:.80}", where=where)
    return sizes


def _check_strings(shape: list[object], items: list[object], where: str) -> None:
    if math.prod(_checked_shape(shape, where)) != len(items):
        raise BundleError(f"{len(items)} strings for the shape {shape!r:.80}", where=where)
    for item in items:
        match item:
            case str():
                pass
            case {"base64": str(text), **rest} if not rest:
                _check_base64(text, where)
            case _:
                raise BundleError(f"not a string: {item!r:.80}", where=where)


def _check_base64(text: str, where: str) -> None:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as err:
        raise BundleError(f"not base 64: {text!r:.80}", where=where) from err
    if _tree_from_text(_text(raw, where)) != {"base64": text}:
        raise BundleError(f"not the one base 64 of bytes that are no text: {text!r:.80}", where=where)


def _check_keys(entries: list[Any], kind: str, where: str) -> None:
    keys: list[Any] = [entry[0] for entry in entries if isinstance(entry, list) and len(entry) == 2]
    wanted = {"int": int, "string": str}.get(kind)
    if len(keys) != len(entries) or any(type(key) is not wanted for key in keys):
        raise BundleError(f"the entries of a map of kind {kind!r:.40} are not pairs with such keys", where=where)
    if any(a >= b for a, b in pairwise(keys)) or (not keys and kind != "string"):
        raise BundleError("the keys of a map are not sorted, each once", where=where)


def _arrays(tensors: list[_Tensor], body: memoryview) -> dict[str, _Array]:
    arrays: dict[str, _Array] = {}
    start = 0
    for tensor in _in_file_order(tensors):
        data = np.frombuffer(body[start : start + tensor.num_bytes], np.uint8)
        if tensor.dtype == "bool" and data.size and data.max() > 1:
            raise BundleError("a bool is neither 0 nor 1", where=f"tensor {tensor.key}")
        arrays[tensor.key] = data.view(numpy_dtype(tensor.dtype)).reshape(tensor.shape)
        start += tensor.num_bytes
    return arrays


def _value_from_tree(node: Any, arrays: Mapping[str, _Array]) -> Value:
    """Returns the value of a tree that `_collect_tensors` has checked."""
    match node["kind"]:
        case "tensor":
            return arrays[node["data"]]
        case "number":
            return float(node["value"]) if isinstance(node["value"], str) else node["value"]
        case "strings":
            return _strings_from_tree(node["items"], node["shape"])
        case "sequence":
            return [_value_from_tree(item, arrays) for item in node["items"]]
        case "map":
            return {key: _value_from_tree(item, arrays) for key, item in node["entries"]}
    return None


def _strings_from_tree(items: list[Any], shape: list[int]) -> _Array:
    array = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):
        array[index] = item if isinstance(item, str) else base64.b64decode(item["base64"])
    array = array.reshape(shape)
    array.flags.writeable = False
    return array
