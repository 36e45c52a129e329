# SPDX-License-Identifier: Apache-2.0
"""Requests and answers as gRPC carries them: tensors as raw bytes, or as the list for their datatype.

`ModelInferRequest` -> `InferRequest`; outputs -> `ModelInferResponse`, in raw bytes where the request came in those or
an output has no list (FP16, BF16), else in lists.
"""

from typing import Any

import numpy as np

from nndeploy.errors import InputError
from nndeploy.serve.datatypes import DATATYPES, Array, array_from_raw, checked_shape, dtype_of, raw_from_array
from nndeploy.serve.infer_request import TIMEOUT, Answer, InferRequest, checked_parameters, each_once, timeout_ns_of
from nndeploy.serve.messages import MESSAGES
from nndeploy.values.types import Value, dtype_name

LISTS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents", "INT64": "int64_contents",
    "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents", "UINT64": "uint64_contents",
    "FP32": "fp32_contents", "FP64": "fp64_contents", "BYTES": "bytes_contents",
}  # fmt: skip
"""Datatype -> the field of `InferTensorContents` that lists its elements."""


def request_from_message(message: Any) -> InferRequest:
    """Returns the request in a `ModelInferRequest`.

    Raises:
        InputError: it is none.
    """
    parameters = checked_parameters(_parameters(message), {TIMEOUT: int}, "the request")
    raws, inputs = message.raw_input_contents, message.inputs
    if raws and len(raws) != len(inputs):
        raise InputError(f"{len(inputs)} inputs, and {len(raws)} raw contents", hint="one for each, or none at all")
    values: dict[str, Value] = {}
    for i, name in enumerate(each_once([one.name for one in inputs], "the input")):
        values[name] = _value(inputs[i], raws[i] if raws else None)
    names = each_once([one.name for one in message.outputs], "the output")
    for one in message.outputs:
        checked_parameters(_parameters(one), {}, f"output {one.name!r:.80}")
    return InferRequest(values, message.id, names, timeout_ns_of(parameters))


def _value(one: Any, raw: bytes | None) -> Value:
    label = f"input {one.name!r:.80}"
    checked_parameters(_parameters(one), {}, label)
    shape = checked_shape(list(one.shape), label)
    if raw is not None:
        if one.HasField("contents"):
            raise InputError(f"{label} has contents beside raw_input_contents", hint="one of them")
        return array_from_raw(one.name, one.datatype, shape, raw)
    return _listed(one, shape, label)


def _listed(one: Any, shape: tuple[int, ...], label: str) -> Array:
    dtype = dtype_of(one.datatype, label)
    field = LISTS.get(one.datatype)
    if field is None:
        raise InputError(f"{label} is {one.datatype}, which has no list", hint="raw_input_contents")
    for used, _ in one.contents.ListFields():
        if used.name != field:
            raise InputError(f"{label} is {one.datatype} and has {used.name}", hint=field)
    elements = list(getattr(one.contents, field))
    try:
        array = np.array(elements, dtype=dtype)
    except OverflowError as err:
        raise InputError(f"{label} holds a number that is no {one.datatype}") from err
    if array.size != np.prod(shape, dtype=object):
        raise InputError(f"{label} must have {np.prod(shape, dtype=object)} elements ({list(shape)}), got {array.size}")
    return array.reshape(shape)


def _parameters(message: Any) -> dict[str, object]:
    found = {}
    for name, parameter in message.parameters.items():
        choice = parameter.WhichOneof("parameter_choice")
        found[name] = getattr(parameter, choice) if choice else None
    return found


def message_from_answer(model: str, found: Answer, message: Any) -> Any:
    """Returns the `ModelInferResponse` to the request `message`."""
    answer = MESSAGES["ModelInferResponse"](model_name=model, model_version=found.version, id=message.id)
    arrays: dict[str, Array] = {name: np.asarray(value) for name, value in found.outputs.items()}
    datatypes = {name: DATATYPES[dtype_name(array.dtype)] for name, array in arrays.items()}
    is_raw = bool(message.raw_input_contents) or not all(datatype in LISTS for datatype in datatypes.values())
    for name, array in arrays.items():
        one = answer.outputs.add(name=name, datatype=datatypes[name], shape=array.shape)
        if is_raw:
            answer.raw_output_contents.append(raw_from_array(array))
        else:
            getattr(one.contents, LISTS[datatypes[name]]).extend(_elements(array))
    return answer


def _elements(array: Array) -> list[Any]:
    items: list[Any] = array.ravel().tolist()
    return [str(item).encode() for item in items] if array.dtype.kind in "OSUT" else items
