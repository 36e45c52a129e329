# SPDX-License-Identifier: Apache-2.0
"""A model with pace points: behind each operator the operator nndeploy.Pace, whose output is its input's memory.

In come the bytes of a model as ONNX Runtime optimised it for this CPU, out go the bytes of one to be run as it is. Only
what changes is read: nodes, their inputs and outputs. A point stands behind the first output of a node that
nodes of the graph alone read, and all of them read the point's output from there on, so the operators keep their order.
"""

from collections.abc import Collection

from nndeploy_onnxruntime.model_fields import (
    ATTRIBUTE,
    DOMAIN,
    GRAPH,
    INPUT,
    NODE,
    OP_TYPE,
    OPSET_IMPORT,
    OUTPUT,
    fields,
    message,
    names_in,
    operator_name,
    outputs_of,
    varint_bytes,
)

PACE_DOMAIN = "nndeploy"
_INT_ATTRIBUTE = 2


def with_points(model: bytes, left_out: Collection[str] = ()) -> tuple[bytes, list[str]]:
    """Returns the model with points, and for each point the operator before it and its output.

    Behind the operators `left_out`, named as here, there is none.

    Raises:
        ValueError: these are not the bytes of a model.
    """
    out, names = bytearray(), list[str]()
    for number, raw, content in fields(model):
        if number == GRAPH:
            graph, names = _graph_with_points(content, left_out)
            out += message(GRAPH, graph)
        else:
            out += raw
    if names:
        out += message(OPSET_IMPORT, message(1, PACE_DOMAIN.encode()) + bytes((2 << 3, 1)))
    return bytes(out), names


def _graph_with_points(graph: bytes, left_out: Collection[str]) -> tuple[bytes, list[str]]:
    read, kept = names_in(graph)
    out, names, renamed = bytearray(), list[str](), dict[bytes, bytes]()
    for number, raw, content in fields(graph):
        if number != NODE:
            out += raw
            continue
        out += message(NODE, _with_inputs(content, renamed))
        made = next((one for one in outputs_of(content) if one and one in read and one not in kept), b"")
        if made and (name := operator_name(content)) not in left_out:
            renamed[made] = made + b"/paced"
            out += message(NODE, _point(made, renamed[made], len(names)))
            names.append(name)
    return bytes(out), names


def _with_inputs(node: bytes, renamed: dict[bytes, bytes]) -> bytes:
    out = bytearray()
    for number, raw, content in fields(node):
        out += message(INPUT, renamed[content]) if number == INPUT and content in renamed else raw
    return bytes(out)


def _point(source: bytes, result: bytes, point: int) -> bytes:
    attribute = message(1, b"point") + bytes((3 << 3,)) + varint_bytes(point)
    attribute += varint_bytes(20 << 3) + bytes((_INT_ATTRIBUTE,))  # its type
    return b"".join((
        message(INPUT, source), message(OUTPUT, result), message(OP_TYPE, b"Pace"),
        message(ATTRIBUTE, attribute), message(DOMAIN, PACE_DOMAIN.encode()),
    ))  # fmt: skip
