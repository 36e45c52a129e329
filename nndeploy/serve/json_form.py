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
from functools import lru_cache
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
KNOWN_HEAD_BYTES = 2048
"""JSON up to so long is read once: clients that send raw tensors repeat it, and reading it takes longer than a small
call."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request, and which of its outputs go back as raw bytes: those named, else `is_binary`."""

    request: InferRequest
    binary: Mapping[str, bool]
    is_binary: bool


@dataclass(frozen=True, slots=True)
class _Input:
    """What JSON says of an input: how many raw bytes behind it are its elements, or `data`, where there are none."""

    name: str
    datatype: Any
    shape: tuple[int, ...]
    num_bytes: int | None
    data: Any

    def value(self, raw: memoryview) -> Value:
        if self.num_bytes is None:
            return array_from_elements(self.name, self.datatype, self.shape, self.data)
        if self.num_bytes > len(raw):
            what = f"input {self.name!r} should have {self.num_bytes} bytes, and {len(raw)} are left of the body"
            raise InputError(what)
        return array_from_raw(self.name, self.datatype, self.shape, raw[: self.num_bytes])


@dataclass(frozen=True, slots=True)
class _Head:
    """All that JSON says; the same text says the same."""

    inputs: tuple[_Input, ...]
    id: str
    outputs: tuple[str, ...]
    timeout_ns: int
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
    read = _known_head if json_bytes <= KNOWN_HEAD_BYTES else _head
    head, raw = read(body[:json_bytes]), memoryview(body)[json_bytes:]
    values: dict[str, Value] = {}
    for one in head.inputs:
        values[one.name] = one.value(raw)
        raw = raw[one.num_bytes or 0 :]
    if len(raw):
        raise InputError(f"{len(raw)} bytes of the body belong to no input")
    return HttpRequest(InferRequest(values, head.id, head.outputs, head.timeout_ns), head.binary, head.is_binary)


def _head(text: bytes) -> _Head:
    found = object_from_json(text, "the request", allow_nan=False)
    _check_keys(found, {"id", "parameters", "inputs", "outputs"}, "the request")
    parameters = checked_parameters(_parameters(found), {TIMEOUT: int, "binary_data_output": bool}, "the request")
    inputs = _inputs(_list(found, "inputs"))
    outputs = _list(found, "outputs")
    names = each_once([_name(output, "output", {"name", "parameters"}) for output in outputs], "the output")
    binary = {
        name: checked["binary_data"] is True
        for name, output in zip(names, outputs, strict=True)
        if (checked := checked_parameters(_parameters(output), {"binary_data": bool}, f"output {name!r}"))
    }
    is_binary = parameters.get("binary_data_output") is True
    return _Head(inputs, _text(found, "id"), names, timeout_ns_of(parameters), binary, is_binary)


_known_head = lru_cache(maxsize=64)(_head)


def _inputs(inputs: list[Any]) -> tuple[_Input, ...]:
    keys = {"name", "shape", "datatype", "parameters", "data"}
    names = each_once([_name(one, "input", keys) for one in inputs], "the input")
    found = []
    for name, one in zip(names, inputs, strict=True):
        label = f"input {name!r}"
        shape = checked_shape(one.get("shape"), label)
        num_bytes = checked_parameters(_parameters(one), {"binary_data_size": int}, label).get("binary_data_size")
        assert isinstance(num_bytes, int | None)
        if num_bytes is not None and "data" in one:
            raise InputError(f"{label} has data and binary_data_size", hint="one of them")
        if num_bytes is not None and num_bytes < 0:
            raise InputError(f"{label} should have {num_bytes} bytes")
        found.append(_Input(name, one.get("datatype"), shape, num_bytes, one.get("data")))
    return tuple(found)


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
