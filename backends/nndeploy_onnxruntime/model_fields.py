# SPDX-License-Identifier: Apache-2.0
"""The fields of a model as bytes: enough to change it in the run half, which may not import onnx.

Only what is asked for is read; everything else stays as it is.

Source: protobuf.dev, "Encoding"; field numbers of onnx.proto3.
"""

import re
from collections.abc import Iterator, Sequence

GRAPH, OPSET_IMPORT = 7, 8
"""Field numbers of a model."""
NODE, INITIALIZER, GRAPH_INPUT, GRAPH_OUTPUT, SPARSE_INITIALIZER = 1, 5, 11, 12, 15
"""Field numbers of a graph."""
INPUT, OUTPUT, NODE_NAME, OP_TYPE, ATTRIBUTE, DOMAIN = 1, 2, 3, 4, 5, 7
"""Field numbers of a node."""
VALUE_NAME, VALUE_TYPE = 1, 2
"""Field numbers of an input or output of a graph."""
DIMS, DATA_TYPE, TENSOR_NAME, EXTERNAL_DATA, SPARSE_VALUES = 1, 2, 8, 13, 1
"""Field numbers of a tensor, the last one of a sparse one."""
ENTRY_KEY, ENTRY_VALUE = 1, 2
"""Field numbers of an entry of external data."""
_GRAPHS_OF_ATTRIBUTE = (6, 11)  # one, or several
_LENGTH = 2
_BLOCKS_DOMAIN = b"com.microsoft.nchwc"
_IN_BLOCKS = re.compile(rb"(.+)_nchwc(?:_token_[0-9]+)?")  # what NchwcTransformer calls a node


def names_in(graph: bytes) -> tuple[set[bytes], set[bytes]]:
    """Returns the names that nodes of a graph read, and those that stay.

    The latter are its outputs, and what the bodies of If, Loop and Scan may read from outside.
    """
    nodes = [content for number, _, content in fields(graph) if number == NODE]
    read = {name for node in nodes for name in inputs_of(node)}
    kept = {first(content, VALUE_NAME) for number, _, content in fields(graph) if number == GRAPH_OUTPUT}
    for node in nodes:
        kept |= read_by_bodies(node)
    return read, kept


def read_by_bodies(node: bytes) -> set[bytes]:
    """Returns the names that the bodies of a node hold: all that they may read from outside, and more."""
    found = set[bytes]()
    for number, _, attribute in fields(node):
        if number == ATTRIBUTE:
            for field, _, content in fields(attribute):
                if field in _GRAPHS_OF_ATTRIBUTE:
                    found = found.union(*names_in(content))
    return found


def inputs_of(node: bytes) -> list[bytes]:
    """Returns the names of a node's inputs."""
    return [content for number, _, content in fields(node) if number == INPUT]


def outputs_of(node: bytes) -> list[bytes]:
    """Returns the names of a node's outputs, those that are left out as nothing."""
    return [content for number, _, content in fields(node) if number == OUTPUT]


def operator_name(node: bytes) -> str:
    """Returns what people call a node: its operator and its value."""
    return f"{first(node, OP_TYPE).decode()} {value_name(node)}"


def value_name(node: bytes) -> str:
    """Returns the value that a node makes, by the model's name: its first output.

    The library gives what a convolution in blocks makes a name of its own, but calls the node after the old one.
    """
    if first(node, DOMAIN) == _BLOCKS_DOMAIN and (found := _IN_BLOCKS.fullmatch(first(node, NODE_NAME))):
        return found[1].decode()
    return next(filter(None, outputs_of(node)), b"").decode()


def values_until(model: bytes, names: Sequence[str], running: Sequence[str] = ()) -> list[tuple[str, ...]]:
    """Returns the values of the operators until each of those called `names` from the one before it; in all, every one.

    The last of `names` is the end of the model. `running` names operators in the order in which they run, where that is
    not the order of the nodes; others run behind those that make what they read, or the node before them.
    """
    places, place, found = {name: place for place, name in enumerate(running)}, -1, list[tuple[int, str, str]]()
    made = dict[bytes, int]()
    for number, _, node in fields(first(model, GRAPH)):
        if number == NODE:
            name = operator_name(node)
            behind = max((made[value] for value in inputs_of(node) if value in made), default=place)
            place = places.get(name, behind)
            made |= dict.fromkeys(outputs_of(node), place)
            found.append((place, name, value_name(node)))
    until, since = {name: list[str]() for name in names}, list[str]()
    for _, name, value in sorted(found, key=lambda one: one[0]):
        since.append(value)
        if name in until and name != names[-1]:
            until[name], since = since, []
    until[names[-1]] = since
    return [tuple(until[name]) for name in names]


def last_operator(model: bytes) -> str:
    """Returns the name of a model's last operator, "nothing" where it has none."""
    nodes = [content for number, _, content in fields(first(model, GRAPH)) if number == NODE]
    return operator_name(nodes[-1]) if nodes else "nothing"


def first(data: bytes, field: int) -> bytes:
    """Returns what the first entry of a field holds, nothing where there is none."""
    return next((content for number, _, content in fields(data) if number == field), b"")


def numbers(data: bytes, field: int) -> list[int]:
    """Returns the numbers of a field, which may be packed."""
    found = list[int]()
    for number, entry, content in fields(data):
        if number == field:
            packed, at = (content, 0) if entry[0] & 7 == _LENGTH else (entry, 1)  # a tag below 16 takes one byte
            while at < len(packed):
                value, at = _varint(packed, at)
                found.append(value)
    return found


def message(number: int, content: bytes) -> bytes:
    """Returns a field that holds a message, a text or bytes."""
    return varint_bytes(number << 3 | _LENGTH) + varint_bytes(len(content)) + content


def varint_bytes(value: int) -> bytes:
    """Returns a number as a field holds it."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def fields(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
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
