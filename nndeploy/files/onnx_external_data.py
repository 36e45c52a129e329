# SPDX-License-Identifier: Apache-2.0
"""Whether an ONNX model from a bundle names files: a library would look for them, and read what nobody gave it.

Below the backends whose members are ONNX models: bytes come in, a refusal or nothing comes out. It reads protobuf's
wire format by itself, and takes every field that may stand twice for each of its values: no reader sees another name
than those that are checked here. What does not hold the word is not opened, so a model without external data costs one
search.

Source: protobuf.dev, "Encoding"; onnx.proto3, TensorProto.external_data.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias

from nndeploy.errors import BundleError, PolicyError

Span: TypeAlias = tuple[int, int]

KEY = b"location"
_FLATBUFFER_MARK = b"ORTM"
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_KEY_FIELD, _VALUE_FIELD = 1, 2
_ENTRY = "entry"
_INNER: Mapping[str, Mapping[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: _ENTRY},
}
"""Message -> the fields of it that hold messages in which a tensor may be."""


def check_names_no_file(model: bytes, known: Collection[str] = ()) -> None:
    """Passes a model whose tensors are all in itself, or in files of the bundle that are `known`.

    Raises:
        PolicyError: a tensor lies in another file, or the model is in a format whose names cannot be told.
        BundleError: it is no protobuf message.
    """
    if model[4:8] == _FLATBUFFER_MARK:
        raise PolicyError("the model is in a format of ONNX Runtime's own, not ONNX")
    for location in _locations(model):
        name = location.decode("utf-8", "replace")
        if name not in known:
            raise PolicyError(f"the model reads the file {name!r:.120}: a bundle reads nothing outside of itself")


def named_files(model: bytes) -> list[str]:
    """Returns the files that tensors of a model lie in, sorted; the model is one of ours.

    Raises:
        BundleError: it is no protobuf message.
    """
    return sorted({location.decode("utf-8", "replace") for location in _locations(model)})


def _locations(model: bytes) -> Iterator[bytes]:
    """Yields every value of every entry that has `KEY` among its keys."""
    waiting = [("model", (0, len(model)))]
    while waiting:
        kind, span = waiting.pop()
        if model.find(KEY, *span) < 0:
            continue
        if kind == _ENTRY:
            yield from _values(model, span)
            continue
        inner = _INNER[kind]
        waiting += [(inner[number], content) for number, content in _fields(model, span) if number in inner]


def _values(model: bytes, entry: Span) -> Iterator[bytes]:
    fields = [(number, model[begin:end]) for number, (begin, end) in _fields(model, entry)]
    if (_KEY_FIELD, KEY) in fields:
        yield from (content for number, content in fields if number == _VALUE_FIELD)


def _fields(model: bytes, span: Span) -> Iterator[tuple[int, Span]]:
    """Yields the number and the content of each field that has a length."""
    at, end = span
    while at < end:
        tag, at = _number(model, at, end)
        begin, wire = at, tag & 7
        if wire == _VARINT:
            _, at = _number(model, at, end)
        elif wire == _LENGTH:
            length, begin = _number(model, at, end)
            at = begin + length
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:
            raise BundleError(f"the model is no ONNX: wire type {wire}")
        if at > end:
            raise BundleError("the model is no ONNX: a field reaches beyond its message")
        if wire == _LENGTH:
            yield tag >> 3, (begin, at)


def _number(model: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = model[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise BundleError("the model is no ONNX: a broken number")
