# SPDX-License-Identifier: Apache-2.0
"""Lowering by rules, one an operator: whether a node has one, and what it says.

Rules are found by the operator's name as people write it: `Conv` of ONNX itself, `com.microsoft::Gelu` of others.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operator_rules import shown_operator
from nndeploy.graph.operators import is_overridden, opset_of
from nndeploy.values.types import DimRange


class Context(Protocol):
    """What rules see of a model and where they put their steps."""

    def finish(self, values: list[ir.Value], /) -> Any:
        """Declares the graph's outputs."""


AnyContext = TypeVar("AnyContext", bound=Context)
Rules = Mapping[str, Callable[[ir.Node, AnyContext], None]]
MakeContext = Callable[[int, Mapping[str, DimRange], Iterable[str]], AnyContext]
"""Makes a context of an operator set, the ranges of symbolic sizes, and the names of the model's values."""


def refusal_of(
    node: ir.Node,
    model: ir.Model,
    ranges: Mapping[str, DimRange],
    rules: Rules[AnyContext],
    make_context: MakeContext[AnyContext],
) -> str:
    """Returns why a node cannot be lowered alone, or ""."""
    if is_overridden(node, model):
        return f"no kernel for {node.domain or 'a function'}::{node.op_type}"
    name = shown_operator(node.domain, node.op_type)
    if name == "Constant":
        return ""
    if name not in rules:
        return f"no kernel for {name}"
    names = (value.name or "" for value in (*node.inputs, *node.outputs) if value is not None)
    context = make_context(opset_of(model), ranges, names)
    try:
        rules[name](node, context)
        context.finish([output for output in node.outputs if output.name])
    except BuildRefusedError as err:
        return str(err)
    return ""


def lower_node(node: ir.Node, model: ir.Model, rules: Rules[AnyContext], context: AnyContext) -> None:
    """Lowers a node of a model.

    Raises:
        BuildRefusedError: it has no rule, or its rule says no.
    """
    name = shown_operator(node.domain, node.op_type)
    if is_overridden(node, model) or name not in rules:
        raise BuildRefusedError(f"no kernel for {name}")
    try:
        rules[name](node, context)
    except BuildRefusedError as err:
        raise BuildRefusedError(f"{name} {node.name!r}: {err}") from err


def value_names(graph: ir.Graph) -> Iterator[str]:
    """Returns the names of all values of a graph."""
    for value in (*graph.inputs, *graph.initializers.values(), *(output for node in graph for output in node.outputs)):
        yield value.name or ""
