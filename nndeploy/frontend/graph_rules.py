# SPDX-License-Identifier: Apache-2.0
"""The wiring of a model: every value has one producer, which stands before its users; nothing refers to nothing.

In comes a parsed model whose nodes have names (`node_names.py`); nothing is changed. The onnx checker knows most of
these rules too, but not which node breaks them. A body sees the values of the graphs around it that stand before its
node, and must not produce one of the same name.

Source: ONNX IR.md, "Graphs", "Names Within a Graph" and "Nodes"; 9-reliability, C7.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import onnx

from nndeploy.errors import ModelError, NndeployError, did_you_mean
from nndeploy.frontend.traversal import bodies_of

Scopes: TypeAlias = tuple[set[str], ...]
"""The values that can be seen, by graph, innermost last."""

_MAX_NAMES_COMPARED = 2_000
_MAX_NAME_COMPARED = 200


def check_graphs(model: onnx.ModelProto) -> None:
    """Checks the wiring of the graph, of all bodies and of all functions.

    Raises:
        ModelError: a value is missing, used before it is produced, produced twice or by a circle of nodes, has no
            name, or an output is produced by nobody; or there are no outputs.
    """
    if not model.graph.output:
        raise ModelError("the model has no outputs")
    _check_graph(model.graph, ())
    for function in model.functions:
        try:
            _check_unique(function.input, "input")
            scopes = (set(function.input),)
            _check_nodes(function.node, scopes)
            _check_outputs(function.output, scopes)
        except NndeployError as err:
            err.within(f"function {function.name!r:.80}")
            raise


def _check_graph(graph: onnx.GraphProto, outer: Scopes) -> None:
    inputs = [value.name for value in graph.input]
    initializers = [tensor.name for tensor in graph.initializer]
    initializers += [sparse.values.name for sparse in graph.sparse_initializer]
    outputs = [value.name for value in graph.output]
    _check_unique(inputs, "input")
    _check_unique(initializers, "initializer")
    _check_unique(outputs, "output")
    scopes = (*outer, {*inputs, *initializers})
    _check_nodes(graph.node, scopes)
    _check_outputs(outputs, scopes)


def _check_unique(names: Iterable[str], kind: str) -> None:
    seen: set[str] = set()
    for name in names:
        if not name:
            raise ModelError(f"an {kind} of the graph has no name")
        if name in seen:
            raise ModelError(f"the {kind} {name!r:.80} is there twice")
        seen.add(name)


def _check_nodes(nodes: Sequence[onnx.NodeProto], scopes: Scopes) -> None:
    """Checks the nodes of one graph in their order, and adds what they produce to the innermost scope."""
    for node in nodes:
        try:
            for name in node.input:
                if name and not _is_known(name, scopes):
                    raise _missing(name, node, nodes, scopes)
            for body in bodies_of(node):
                _check_graph(body, scopes)
            _add_outputs(node, scopes)
        except NndeployError as err:
            err.within(f"node {node.name!r:.80} ({node.op_type})")
            raise


def _is_known(name: str, scopes: Scopes) -> bool:
    return any(name in scope for scope in scopes)


def _add_outputs(node: onnx.NodeProto, scopes: Scopes) -> None:
    *outer, own = scopes
    for name in node.output:
        if name in own:
            raise ModelError(
                f"the output {name!r:.80} is produced twice", hint="a node, input or initializer has it too"
            )
        if _is_known(name, tuple(outer)):
            raise ModelError(f"the output {name!r:.80} hides a value of the graph around it")
        if name:
            own.add(name)


def _check_outputs(outputs: Iterable[str], scopes: Scopes) -> None:
    for name in outputs:
        if not _is_known(name, scopes):
            raise ModelError(f"the output {name!r:.80} is produced by no node", hint=_near(name, scopes))


def _missing(name: str, node: onnx.NodeProto, nodes: Sequence[onnx.NodeProto], scopes: Scopes) -> ModelError:
    """Returns why the input `name` of `node` is not there yet: a circle, the order, or nobody makes it."""
    producers = {output: other for other in nodes for output in other.output if output}
    if name not in producers:
        return ModelError(f"the input {name!r:.80} is produced by no node", hint=_near(name, scopes))
    if circle := _circle(name, set(node.output), producers):
        return ModelError(f"nodes need each other's results in a circle: {circle}")
    return ModelError(
        f"the input {name!r:.80} is produced by the later node {producers[name].name!r:.80}",
        hint="ONNX wants every node after those that it takes values from",
    )


def _near(name: str, scopes: Scopes) -> str:
    known = sorted(n for scope in scopes for n in scope if len(n) <= _MAX_NAME_COMPARED)
    comparable = len(name) <= _MAX_NAME_COMPARED and len(known) <= _MAX_NAMES_COMPARED
    return did_you_mean(name, known) if comparable else ""


def _circle(name: str, outputs: set[str], producers: Mapping[str, onnx.NodeProto]) -> str:
    """Returns the nodes on the way from value `name` back to one of `outputs`, "" where there is no way."""
    came_from = {name: ""}
    waiting = [name]
    while waiting:
        value = waiting.pop()
        if value in outputs:
            return _shown_way(value, came_from, producers)
        if value in producers:
            needed = [v for v in producers[value].input if v and v not in came_from]
            came_from.update(dict.fromkeys(needed, value))
            waiting.extend(needed)
    return ""


def _shown_way(value: str, came_from: Mapping[str, str], producers: Mapping[str, onnx.NodeProto]) -> str:
    names = [producers[value].name]
    while value := came_from[value]:
        names.append(producers[value].name)
    shown = names if len(names) <= 5 else [*names[:2], "...", *names[-2:]]
    return " -> ".join(f"{name:.80}" for name in [*shown, names[0]])
