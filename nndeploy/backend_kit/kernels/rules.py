# SPDX-License-Identifier: Apache-2.0
"""Lowering by rules, one an operator of ONNX: whether a node has one, and what it says."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import is_standard, opset_of
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
    if not is_standard(node, model):
        return f"no kernel for {node.domain or 'a function'}::{node.op_type}"
    if node.op_type == "Constant":
        return ""
    if node.op_type not in rules:
        return f"no kernel for {node.op_type}"
    names = (value.name or "" for value in (*node.inputs, *node.outputs) if value is not None)
    context = make_context(opset_of(model), ranges, names)
    try:
        rules[node.op_type](node, context)
        context.finish([output for output in node.outputs if output.name])
    except BuildRefusedError as err:
        return str(err)
    return ""


def lower_node(node: ir.Node, model: ir.Model, rules: Rules[AnyContext], context: AnyContext) -> None:
    """Lowers a node of a model.

    Raises:
        BuildRefusedError: it has no rule, or its rule says no.
    """
    if not is_standard(node, model) or node.op_type not in rules:
        raise BuildRefusedError(f"no kernel for {node.op_type}")
    try:
        rules[node.op_type](node, context)
    except BuildRefusedError as err:
        raise BuildRefusedError(f"{node.op_type} {node.name!r}: {err}") from err


def value_names(graph: ir.Graph) -> Iterator[str]:
    """Returns the names of all values of a graph."""
    for value in (*graph.inputs, *graph.initializers.values(), *(output for node in graph for output in node.outputs)):
        yield value.name or ""
