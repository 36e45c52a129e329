# SPDX-License-Identifier: Apache-2.0
"""A model with pace points: behind each operator the operator nndeploy.Pace, whose output is its input's memory.

In come the bytes of a model as ONNX Runtime optimised it for this CPU, out go the bytes of one to be run as it is. Only
what changes is read: nodes, their inputs and outputs. A point stands behind the first output of a node that another
node of the graph reads, and everybody reads the point's output from there on, so the operators keep their order.

Source: protobuf.dev, "Encoding"; field numbers of onnx.proto3.
"""

import re
from collections.abc import Iterator

DOMAIN = "nndeploy"
_LENGTH = 2
_GRAPH, _OPSET_IMPORT = 7, 8
_NODE, _GRAPH_OUTPUT = 1, 12
_INPUT, _OUTPUT, _NODE_NAME, _OP_TYPE, _ATTRIBUTE, _DOMAIN = 1, 2, 3, 4, 5, 7
_NAME = 1  # of an output of a graph
_GRAPHS_OF_ATTRIBUTE = (6, 11)  # one, or several
_INT_ATTRIBUTE = 2
_IN_BLOCKS = re.compile(r"(.+)_nchwc(?:_token_[0-9]+)?")  # what NchwcTransformer calls a node


def with_points(model: bytes) -> tuple[bytes, list[tuple[str, str]]]:
    """Returns the model with points, and for each point the operator before it with its output, and the model's value.

    The library gives the output of a convolution in blocks a new name; its node is then called after the old one.

    Raises:
        ValueError: these are not the bytes of a model.
    """
    out, names = bytearray(), list[tuple[str, str]]()
    for number, raw, content in _fields(model):
        if number == _GRAPH:
            graph, names = _graph_with_points(content)
            out += _message(_GRAPH, graph)
        else:
            out += raw
    out += _message(_OPSET_IMPORT, _message(1, DOMAIN.encode()) + bytes((2 << 3, 1)))
    return bytes(out), names


def _graph_with_points(graph: bytes) -> tuple[bytes, list[tuple[str, str]]]:
    read, kept = _names(graph)
    out, names, renamed = bytearray(), list[tuple[str, str]](), dict[bytes, bytes]()
    for number, raw, content in _fields(graph):
        if number != _NODE:
            out += raw
            continue
        out += _message(_NODE, _with_inputs(content, renamed))
        made = _first(content, _OUTPUT)
        if made in read and made not in kept:
            renamed[made] = made + b"/paced"
            out += _message(_NODE, _point(made, renamed[made], len(names)))
            in_blocks = _IN_BLOCKS.fullmatch(_first(content, _NODE_NAME).decode())
            value = in_blocks[1] if in_blocks else made.decode()
            names.append((f"{_first(content, _OP_TYPE).decode()} {value}", value))
    return bytes(out), names


def _with_inputs(node: bytes, renamed: dict[bytes, bytes]) -> bytes:
    out = bytearray()
    for number, raw, content in _fields(node):
        out += _message(_INPUT, renamed[content]) if number == _INPUT and content in renamed else raw
    return bytes(out)


def _point(source: bytes, result: bytes, point: int) -> bytes:
    attribute = _message(1, b"point") + bytes((3 << 3,)) + _varint_bytes(point)
    attribute += _varint_bytes(20 << 3) + bytes((_INT_ATTRIBUTE,))  # its type
    return b"".join((
        _message(_INPUT, source), _message(_OUTPUT, result), _message(_OP_TYPE, b"Pace"),
        _message(_ATTRIBUTE, attribute), _message(_DOMAIN, DOMAIN.encode()),
    ))  # fmt: skip


def _names(graph: bytes) -> tuple[set[bytes], set[bytes]]:
    """Returns the names that nodes of a graph read, and those that stay.

    The latter are its outputs, and what the bodies of If, Loop and Scan may read from outside.
    """
    nodes = [content for number, _, content in _fields(graph) if number == _NODE]
    read = {content for node in nodes for number, _, content in _fields(node) if number == _INPUT}
    kept = {_first(content, _NAME) for number, _, content in _fields(graph) if number == _GRAPH_OUTPUT}
    for node in nodes:
        for body in _bodies(node):
            kept = kept.union(*_names(body))
    return read, kept


def _bodies(node: bytes) -> Iterator[bytes]:
    for number, _, attribute in _fields(node):
        if number == _ATTRIBUTE:
            yield from (content for field, _, content in _fields(attribute) if field in _GRAPHS_OF_ATTRIBUTE)


def _first(message: bytes, field: int) -> bytes:
    """Returns what the first entry of a field holds, nothing where there is none."""
    return next((content for number, _, content in _fields(message) if number == field), b"")


def _message(number: int, content: bytes) -> bytes:
    return _varint_bytes(number << 3 | _LENGTH) + _varint_bytes(len(content)) + content


def _varint_bytes(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _fields(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yields each field's number, its bytes, and what it holds where that has a length (else nothing)."""
    at = 0
    while at < len(data):
        begin = at
        tag, at = _varint(data, at)
        content = b""
        match tag & 7:
            case 0:
                _, at = _varint(data, at)
            case 1:
                at += 8
            case 2:
                length, at = _varint(data, at)
                content = data[at : at + length]
                at += length
            case 5:
                at += 4
            case _:
                raise ValueError(f"no wire type: {tag & 7}")
        if at > len(data):
            raise ValueError("a field reaches beyond its message")
        yield tag >> 3, data[begin:at], content


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a broken number")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
