# SPDX-License-Identifier: Apache-2.0
"""What must hold after every pass, whatever it does: checked around each one, in one walk over the graph.

* the graph's inputs and outputs keep their names, element types and order;
* every value that is read is an input, an initializer, the output of an earlier node, or one of those outside a body;
* no value is produced twice, no two values of one scope share a name;
* a value knows exactly the nodes that read it: nothing that was removed still counts as a reader.
"""

from collections.abc import Iterable
from typing import TypeAlias

import onnx_ir as ir

from nndeploy.graph.nodes import bodies

Signature: TypeAlias = tuple[tuple[tuple[str | None, str], ...], tuple[tuple[str | None, str], ...]]


class BrokenGraphError(Exception):
    """A pass left a graph that does not hold together; the message says where."""


def signature_of(model: ir.Model) -> Signature:
    """Returns names and types of the graph's inputs and outputs, in order."""
    return _names_and_types(model.graph.inputs), _names_and_types(model.graph.outputs)


def check_signature(model: ir.Model, before: Signature) -> None:
    """Checks that inputs and outputs are what they were.

    Raises:
        BrokenGraphError: a name, a type or the order differs.
    """
    for kind, old, new in zip(("inputs", "outputs"), before, signature_of(model), strict=True):
        if old != new:
            raise BrokenGraphError(f"the graph's {kind} changed from {_text(old)} to {_text(new)}")


def check_graph(model: ir.Model) -> None:
    """Checks order, names and uses of the main graph and all bodies.

    Raises:
        BrokenGraphError: a value is read before it is produced, produced twice, or has a reader that is gone.
    """
    num_reads: dict[ir.Value, int] = {}
    _walk(model.graph, {}, num_reads)
    for value, number in num_reads.items():
        if number != len(value.uses()):
            raise BrokenGraphError(f"value {value.name!r} is read {number} times but counts {len(value.uses())}")


def _walk(graph: ir.Graph, known: dict[str, ir.Value], num_reads: dict[ir.Value, int]) -> None:
    own: dict[str, ir.Value | None] = {}
    for value in {**dict.fromkeys(graph.inputs), **dict.fromkeys(graph.initializers.values())}:
        _define(value, known, own, num_reads)
    for node in graph:
        for operand in node.inputs:
            if operand is not None:
                _read(operand, known, f"node {node.name!r} ({node.op_type})")
                num_reads[operand] += 1
        for body in bodies(node):
            _walk(body, known, num_reads)
        for value in node.outputs:
            if value.producer() is not node:
                raise BrokenGraphError(f"value {value.name!r} does not know that node {node.name!r} produces it")
            _define(value, known, own, num_reads)
    for value in graph.outputs:
        _read(value, known, "the graph's outputs")
    _leave(known, own)


def _define(
    value: ir.Value, known: dict[str, ir.Value], own: dict[str, ir.Value | None], num_reads: dict[ir.Value, int]
) -> None:
    num_reads.setdefault(value, 0)
    if not value.name:
        return
    if value.name in own:
        raise BrokenGraphError(f"two values are named {value.name!r}")
    own[value.name] = known.get(value.name)
    known[value.name] = value


def _leave(known: dict[str, ir.Value], own: dict[str, ir.Value | None]) -> None:
    for name, outer in own.items():
        if outer is None:
            del known[name]
        else:
            known[name] = outer


def _read(value: ir.Value, known: dict[str, ir.Value], reader: str) -> None:
    if not value.name or known.get(value.name) is not value:
        raise BrokenGraphError(f"value {value.name!r} is read by {reader} before anything produces it")


def _names_and_types(values: Iterable[ir.Value]) -> tuple[tuple[str | None, str], ...]:
    return tuple((value.name, str(value.type)) for value in values)


def _text(names_and_types: tuple[tuple[str | None, str], ...]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in names_and_types[:8])
