# SPDX-License-Identifier: Apache-2.0
"""Fields of a record as arrays by name and one text of JSON, and back: what passes between processes of one stream.

Arrays keep their types and shapes and lie beside the text; lists, tuples, maps, texts, numbers, bytes and None are
what they were. Law: `fields_in(arrays_of(fields))` equals `fields`, with the same types; nothing is unpickled.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from nndeploy.errors import DataError
from nndeploy.values.types import Array, Value

TEXT = "text"
"""The name of the array with the bytes of the text; all others are numbers."""


def arrays_of(fields: Mapping[str, Value]) -> dict[str, Array]:
    """Returns fields as arrays.

    Raises:
        DataError: a value is of a type that cannot pass.
    """
    arrays: dict[str, Array] = {}
    tree = {}
    for name, value in fields.items():
        try:
            tree[name] = _tree_of(value, arrays)
        except TypeError as err:
            raise DataError(f"the field {name!r} cannot pass between processes: it holds {err}") from err
    return {**arrays, TEXT: np.frombuffer(json.dumps(tree).encode("ascii"), np.uint8)}


def fields_in(arrays: Mapping[str, Array]) -> dict[str, Value]:
    """Returns the fields that `arrays_of` made these arrays of, which they use."""
    tree: dict[str, Any] = json.loads(arrays[TEXT].tobytes())
    return {name: _value_of(one, arrays) for name, one in tree.items()}


def _tree_of(value: Value, arrays: dict[str, Array]) -> object:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [_tree_of(one, arrays) for one in value]
    if type(value) is tuple:
        return {"tuple": [_tree_of(one, arrays) for one in value]}
    if type(value) is dict:
        return {"map": [[_tree_of(key, arrays), _tree_of(one, arrays)] for key, one in value.items()]}
    if type(value) is bytes:
        return {"bytes": _placed(np.frombuffer(value, np.uint8), arrays)}
    if isinstance(value, np.generic) and value.dtype.kind not in "OUSMm":
        return {"scalar": _placed(np.asarray(value), arrays)}
    if type(value) is not np.ndarray or value.dtype.kind in "SMm":
        raise TypeError(f"a {type(value).__name__}")
    if value.dtype.kind in "OU":
        return {"texts": [_tree_of(value.ravel().tolist(), arrays), list(value.shape), value.dtype.str]}
    return {"array": _placed(value, arrays)}


def _placed(array: Array, arrays: dict[str, Array]) -> str:
    name = str(len(arrays))
    arrays[name] = array
    return name


def _value_of(tree: Any, arrays: Mapping[str, Array]) -> Value:
    if isinstance(tree, list):
        return [_value_of(one, arrays) for one in tree]
    if not isinstance(tree, dict):
        return tree
    ((kind, data),) = tree.items()
    match kind:
        case "tuple":
            return tuple(_value_of(one, arrays) for one in data)
        case "map":
            return {_value_of(key, arrays): _value_of(one, arrays) for key, one in data}
        case "bytes":
            return arrays[data].tobytes()
        case "scalar":
            return arrays[data][()]
        case "texts":
            values, shape, dtype = data
            found = np.empty(len(values), dtype)
            found[:] = [_value_of(one, arrays) for one in values]
            return found.reshape(shape)
    return arrays[data]
