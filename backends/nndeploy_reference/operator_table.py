# SPDX-License-Identifier: Apache-2.0
"""Operators of our own for ONNX's evaluator: functions over arrays, each for a range of versions.

    @operator("Softmax", before=13)
    def _softmax(node, x): ...

A function gets a `Node` and the inputs (None where one is absent), and gives an array or a tuple of outputs. A function
that `runs_graphs` may call `node.run(graph, inputs)`. What `own_operator` returns is a class of `onnx.reference`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from onnx import defs
from onnx.reference.op_run import OpRun

Array: TypeAlias = Any
Function = Callable[..., Any]
FOREVER = 1 << 30


class Node(SimpleNamespace):
    """Attributes of a node by name, None where one has no value; `version` of its schema, `num_outputs`, `run`."""

    def __getattr__(self, name: str) -> None:
        """Returns None for attributes that nobody gave, or that the version has not."""
        if name.startswith("__"):
            raise AttributeError(name)

    def run(self, graph: Any, inputs: Sequence[Any]) -> list[Any]:
        """Returns the outputs of a graph that the node holds, which sees all values around the node."""
        feeds = {**self.context, **dict(zip(graph.input_names, inputs, strict=True))}
        return list(graph.run(None, feeds, attributes=self.arguments))


@dataclass(frozen=True, slots=True)
class _Entry:
    function: Function
    since: int
    before: int
    runs_graphs: bool
    schema: Any


_TABLE: dict[tuple[str, str], list[_Entry]] = {}


def operator(
    *names: str,
    domain: str = "",
    since: int = 1,
    before: int = FOREVER,
    runs_graphs: bool = False,
    schema: Any = None,
) -> Callable[[Function], Function]:
    """Makes a function compute operators, from version `since` of the domain until one below `before`.

    `schema` is that of an operator which onnx has none for.
    """

    def register(function: Function) -> Function:
        for name in names:
            _TABLE.setdefault((domain, name), []).append(_Entry(function, since, before, runs_graphs, schema))
        return function

    return register


@cache
def own_operator(domain: str, name: str, version: int) -> type[OpRun] | None:
    """Returns the class of an operator at a version of its domain, None where it is left to ONNX's evaluator.

    Raises:
        SchemaError: there is no such operator at this version.
    """
    entry = next((e for e in _TABLE.get((domain, name), []) if e.since <= version < e.before), None)
    if entry is None:
        return None
    schema = entry.schema or defs.get_schema(name, version, domain)
    members = {"op_domain": domain, "op_schema": schema, "entry": entry}
    return type(name, (_OwnOperator,), members)


class _OwnOperator(OpRun):
    entry: _Entry
    op_schema: Any

    def need_context(self) -> bool:
        return self.entry.runs_graphs

    def _run(self, *inputs: Any, attributes: Any = None, context: Any = None, **given: Any) -> Any:
        given.pop("bindings", None)  # of symbols, where shapes are checked
        node = Node(
            op_type=self.op_schema.name,
            version=self.op_schema.since_version,
            num_outputs=len(self.onnx_node.output),
            context=context,
            arguments=attributes,
            **{name: _plain(value) for name, value in given.items()},
        )
        result = self.entry.function(node, *inputs)
        return result if isinstance(result, tuple) else (result,)

    def _check_and_fix_outputs(self, res: tuple[Any, ...]) -> tuple[Any, ...]:
        return res


def _plain(value: Any) -> Any:
    """Returns numbers as Python's, whose kind does not narrow what they are multiplied by."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def in_float32(function: Function) -> Function:
    """Returns a function that computes 16-bit floats in float32 and gives them back in the type of the first input."""

    def compute(node: Node, *inputs: Any) -> Any:
        narrow = inputs[0].dtype
        if not is_narrow(narrow):
            return function(node, *inputs)
        result = function(node, *(x.astype(np.float32) if x is not None and is_narrow(x.dtype) else x for x in inputs))
        parts = result if isinstance(result, tuple) else (result,)
        return tuple(part.astype(narrow) if part.dtype == np.float32 else part for part in parts)

    return compute


def is_narrow(dtype: Any) -> bool:
    """Returns whether an element type is a float of 16 bits."""
    return dtype in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


def front_axis(axis: int, rank: int) -> int:
    """Returns an axis counted from the front.

    Raises:
        ValueError: there is no such axis.
    """
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of rank {rank}")
    return axis % rank
