# SPDX-License-Identifier: Apache-2.0
"""Requests and answers as HTTP carries them: JSON, with tensors in it or as raw bytes behind it.

body, length of its JSON -> `HttpRequest`; outputs -> body, length of its JSON

Law: every byte of a body is either of the JSON or of exactly one input, in the order of the inputs.

Source: Open Inference Protocol, HTTP/REST; the extension "binary tensor data" of the header
Inference-Header-Content-Length.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nndeploy.errors import InputError, did_you_mean
from nndeploy.runtime.plain_data import plain_from_value
from nndeploy.serve.datatypes import (
    DATATYPES,
    Array,
    array_from_elements,
    array_from_raw,
    checked_shape,
    raw_from_array,
)
from nndeploy.serve.infer_request import TIMEOUT, Answer, InferRequest, checked_parameters, each_once, timeout_ns_of
from nndeploy.stream.formats.json_lines import object_from_json
from nndeploy.values.types import Value, dtype_name

MAX_NAME_CHARACTERS = 1024


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request, and which of its outputs go back as raw bytes: those named, else `is_binary`."""

    request: InferRequest
    binary: Mapping[str, bool]
    is_binary: bool


def request_from_body(body: bytes, json_bytes: int | None) -> HttpRequest:
    """Returns the request in a body, of which the first `json_bytes` are JSON, or all.

    Raises:
        InputError: it is none.
    """
    if json_bytes is not None and json_bytes > len(body):
        raise InputError(f"the JSON should have {json_bytes} bytes, and the body has {len(body)}")
    json_bytes = len(body) if json_bytes is None else json_bytes
    found = object_from_json(body[:json_bytes], "the request", allow_nan=False)
    _check_keys(found, {"id", "parameters", "inputs", "outputs"}, "the request")
    parameters = checked_parameters(_parameters(found), {TIMEOUT: int, "binary_data_output": bool}, "the request")
    values = _inputs(found, memoryview(body)[json_bytes:])
    outputs = _list(found, "outputs")
    names = each_once([_name(output, "output", {"name", "parameters"}) for output in outputs], "the output")
    binary = {
        name: checked["binary_data"] is True
        for name, output in zip(names, outputs, strict=True)
        if (checked := checked_parameters(_parameters(output), {"binary_data": bool}, f"output {name!r}"))
    }
    request = InferRequest(values, _text(found, "id"), names, timeout_ns_of(parameters))
    return HttpRequest(request, binary, parameters.get("binary_data_output") is True)


def _inputs(found: Mapping[str, Any], raw: memoryview) -> dict[str, Value]:
    inputs = _list(found, "inputs")
    keys = {"name", "shape", "datatype", "parameters", "data"}
    names = each_once([_name(one, "input", keys) for one in inputs], "the input")
    values: dict[str, Value] = {}
    for name, one in zip(names, inputs, strict=True):
        label = f"input {name!r}"
        shape = checked_shape(one.get("shape"), label)
        sizes = checked_parameters(_parameters(one), {"binary_data_size": int}, label)
        if not sizes:
            values[name] = array_from_elements(name, one.get("datatype"), shape, one.get("data"))
            continue
        size = sizes["binary_data_size"]
        assert isinstance(size, int)
        if "data" in one:
            raise InputError(f"{label} has data and binary_data_size", hint="one of them")
        if not 0 <= size <= len(raw):
            raise InputError(f"{label} should have {size} bytes, and {len(raw)} are left of the body")
        values[name] = array_from_raw(name, one.get("datatype"), shape, raw[:size])
        raw = raw[size:]
    if len(raw):
        raise InputError(f"{len(raw)} bytes of the body belong to no input")
    return values


def _name(one: object, kind: str, keys: set[str]) -> str:
    if not isinstance(one, dict):
        raise InputError(f"an {kind} must be an object, is {one!r:.40}")
    name = one.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARACTERS:
        raise InputError(f"an {kind} has no name")
    _check_keys(one, keys, f"{kind} {name!r:.80}")
    return name


def _check_keys(found: Mapping[str, Any], known: set[str], label: str) -> None:
    for key in found:
        if key not in known:
            raise InputError(f"{label} has the unknown key {key!r:.80}", hint=did_you_mean(key, sorted(known)))


def _parameters(found: Mapping[str, Any]) -> dict[str, object]:
    parameters = found.get("parameters", {})
    if not isinstance(parameters, dict):
        raise InputError(f"parameters must be an object, is {parameters!r:.40}")
    return parameters


def _list(found: Mapping[str, Any], key: str) -> list[Any]:
    items = found.get(key, [])
    if not isinstance(items, list):
        raise InputError(f"{key} must be a list, is {items!r:.40}")
    return items


def _text(found: Mapping[str, Any], key: str) -> str:
    text = found.get(key, "")
    if not isinstance(text, str) or len(text) > MAX_NAME_CHARACTERS:
        raise InputError(f"{key} must be a text of up to {MAX_NAME_CHARACTERS} characters")
    return text


def body_from_answer(model: str, found: Answer, asked: HttpRequest) -> tuple[bytes, int | None]:
    """Returns the body of an answer, and how many bytes of it are JSON; None where all are."""
    told, raws = [], []
    for name, value in found.outputs.items():
        array: Array = np.asarray(value)
        one: dict[str, Any] = {"name": name, "datatype": DATATYPES[dtype_name(array.dtype)], "shape": list(array.shape)}
        if _is_binary(asked, name):
            raws.append(raw_from_array(array))
            told.append(one | {"parameters": {"binary_data_size": len(raws[-1])}})
        else:
            told.append(one | {"data": plain_from_value(array.reshape(-1))})
    answer: dict[str, Any] = {"model_name": model, "model_version": found.version, "outputs": told}
    if asked.request.id:
        answer["id"] = asked.request.id
    head = json.dumps(answer, allow_nan=False, separators=(",", ":")).encode("ascii")
    return (b"".join((head, *raws)), len(head)) if raws else (head, None)


def is_listed(asked: HttpRequest, name: str, value: Value) -> bool:
    """Returns whether an output is written element by element: as JSON, or as texts."""
    return not _is_binary(asked, name) or np.asarray(value).dtype.kind in "OSUT"


def _is_binary(asked: HttpRequest, name: str) -> bool:
    return asked.binary.get(name, asked.is_binary)
