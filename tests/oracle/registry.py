# SPDX-License-Identifier: Apache-2.0
"""Who computes which operator: functions over float64 and exact integers, found by name and version.

    @operator("Relu")
    def _relu(call, x): return np.maximum(0, x)

A function gets a `Call` (attributes with their defaults, the version, what it needs to run graphs) and the inputs,
None where one is absent. Floats of any width come as float64, integers of 4 bits as those of 8. What it returns is
brought to the element types that the operator's schema declares.

Source: the schemas of onnx.defs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from onnx import NodeProto, defs, helper

Value = Any
"""A tensor as an array, a sequence as a list, a map as a dict, an absent optional as None."""


class InvalidError(Exception):
    """The specification forbids these inputs: an engine must answer with an error."""


class UnspecifiedError(Exception):
    """The specification leaves open what comes out: an engine may answer with anything, or an error."""


class MissingError(Exception):
    """The oracle has no such operator."""


@dataclass
class Call:
    """One node that is to be computed; its attributes are attributes of this object, None where they have no value."""

    node: NodeProto
    version: int
    attributes: Mapping[str, Any]
    dtypes: Sequence[Any] = ()
    run: Callable[..., list[Value]] = field(default=lambda *_: [])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.attributes.get(name)

    @property
    def op(self) -> str:
        return self.node.op_type

    @property
    def num_outputs(self) -> int:
        return len(self.node.output)

    def wants(self, index: int) -> bool:
        """Returns whether an output has a name."""
        return index < len(self.node.output) and bool(self.node.output[index])


Function = Callable[..., Any]
_FUNCTIONS: dict[tuple[str, str], dict[int, Function]] = {}


_ON_VALUES: set[Function] = set()


def operator(*names: str, since: int = 1, domain: str = "", on_values: bool = False) -> Callable[[Function], Function]:
    """Makes a function the one that computes operators from a version on, until a later one is declared.

    With `on_values` it gets and gives values as they are: it moves them about and computes with none.
    """

    def register(function: Function) -> Function:
        for name in names:
            _FUNCTIONS.setdefault((domain, name), {})[since] = function
        if on_values:
            _ON_VALUES.add(function)
        return function

    return register


def function_of(domain: str, name: str, version: int) -> Function | None:
    """Returns what computes an operator at a version of its domain, None where nothing does."""
    versions = _FUNCTIONS.get((domain, name), {})
    fitting = [since for since in versions if since <= version]
    return versions[max(fitting)] if fitting else None


def takes_values(function: Function) -> bool:
    """Returns whether a function gets and gives values as they are."""
    return function in _ON_VALUES


def known_operators() -> set[tuple[str, str]]:
    """Returns (domain, name) of every operator that has a function of its own."""
    return set(_FUNCTIONS)


NARROW_INTEGERS = {
    np.dtype(ml_dtypes.int4): np.int8, np.dtype(ml_dtypes.uint4): np.uint8, np.dtype(ml_dtypes.int2): np.int8,
    np.dtype(ml_dtypes.uint2): np.uint8,
}  # fmt: skip


def is_float(dtype: Any) -> bool:
    """Returns whether an element type is a float of any width."""
    dtype = np.dtype(dtype)
    return dtype.kind == "f" or (dtype.kind == "V" and dtype not in NARROW_INTEGERS)


def widened(value: Value) -> Value:
    """Returns a value with floats as float64 and integers of less than 8 bits as those of 8."""
    if isinstance(value, list):
        return [widened(item) for item in value]
    if value is None or isinstance(value, dict):
        return value
    array = np.asarray(value)
    if array.dtype in NARROW_INTEGERS:
        return array.astype(NARROW_INTEGERS[array.dtype])
    return array.astype(np.float64) if is_float(array.dtype) else array


def as_type(value: Any, dtype: Any) -> Any:
    """Returns an array in an element type; floats are rounded once, integers wrap."""
    array, dtype = np.asarray(value), np.dtype(dtype)
    if array.dtype == dtype:
        return array
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def narrowed(value: Value, dtype: Any) -> Value:
    """Returns a result in the element type that its operator declares, item by item where it is a sequence."""
    if isinstance(value, list):
        return [narrowed(item, dtype) for item in value]
    return value if value is None or isinstance(value, dict) else as_type(value, dtype)


def results_as_declared(schema: Any, inputs: Sequence[Value], outputs: Sequence[Value]) -> list[Value]:
    """Brings outputs to the types of a schema.

    That is the type of the input with the same type variable, the one that the schema names, or the type that the
    function chose.
    """
    bound: dict[str, Any] = {}
    declared = _declared_for(schema.inputs, len(inputs))
    for parameter, value in zip(declared, inputs, strict=False):
        if (dtype := element_dtype(value)) is not None:
            bound.setdefault(parameter.type_str, dtype)
    types = [parameter.type_str for parameter in _declared_for(schema.outputs, len(outputs))]
    single = {
        c.type_param_str: c.allowed_type_strs[0] for c in schema.type_constraints if len(c.allowed_type_strs) == 1
    }
    found = []
    for value, text in zip(outputs, types, strict=True):
        dtype = bound[text] if text in bound else _dtype_of_text(single.get(text, text))
        found.append(value if dtype is None else narrowed(value, dtype))
    return found


def element_dtype(value: Value) -> Any:
    """Returns the element type of a tensor, or of the tensors of a sequence; None where there is none."""
    while isinstance(value, list):
        value = value[0] if value else None
    return None if value is None or isinstance(value, dict) else np.asarray(value).dtype


def _declared_for(parameters: Sequence[Any], count: int) -> list[Any]:
    """Returns the declared parameter of each of `count` values: the last one may stand for many."""
    return [parameters[min(i, len(parameters) - 1)] for i in range(count)]


def _dtype_of_text(text: str) -> Any:
    if not (text.startswith("tensor(") and text.endswith(")")):
        return None
    name = text[len("tensor(") : -1].upper()
    return helper.tensor_dtype_to_np_dtype(getattr(helper.TensorProto, name))


def schema_of(domain: str, name: str, version: int) -> Any:
    """Returns the schema of an operator at a version of its domain, None where there is none."""
    try:
        return defs.get_schema(name, version, domain)
    except defs.SchemaError:
        return None
