# SPDX-License-Identifier: Apache-2.0
"""A cuDNN operation graph as plain data: what the emitter writes, the planner memoises and its child builds.

Tensors are numbered from 1; `virtual` ones exist only inside the graph. Law: `graph_from_json(graph_to_json(g)) == g`,
and equal graphs have equal texts, so the text is the key of what was asked before.
"""

import json
from dataclasses import dataclass
from typing import Any

from nndeploy_cudnn.views import Dims

Scalar = float | int | str
MAX_ALIGNMENT = 16  # Source: cuDNN engines ask for 16 bytes at most


@dataclass(frozen=True, slots=True)
class GraphTensor:
    """A tensor: `uid` names it in the graph, `alignment` is that of its address in bytes.

    `by_value`: it is one number in host memory.
    """

    uid: int
    dims: Dims
    strides: Dims
    dtype: str
    virtual: bool = False
    by_value: bool = False
    alignment: int = MAX_ALIGNMENT


@dataclass(frozen=True, slots=True)
class GraphOperation:
    """An operation: `kind` is a key of `engines.BUILDERS`, `ports` say which tensor is its x, w, y and so on."""

    kind: str
    ports: tuple[tuple[str, int], ...]
    attributes: tuple[tuple[str, Scalar | Dims], ...] = ()


@dataclass(frozen=True, slots=True)
class Graph:
    """`exact`: products and sums as float32 has them, so no tensor cores, which would round to TF32."""

    tensors: tuple[GraphTensor, ...]
    operations: tuple[GraphOperation, ...]
    exact: bool


def graph_to_json(graph: Graph) -> str:
    """Returns the one text of a graph."""
    tensors = [[t.uid, t.dims, t.strides, t.dtype, t.virtual, t.by_value, t.alignment] for t in graph.tensors]
    operations = [[o.kind, o.ports, o.attributes] for o in graph.operations]
    return json.dumps([tensors, operations, graph.exact], separators=(",", ":"))


def graph_from_json(text: str) -> Graph:
    """Returns the graph of a text that `graph_to_json` wrote."""
    tensors, operations, exact = json.loads(text)
    return Graph(
        tuple(GraphTensor(t[0], tuple(t[1]), tuple(t[2]), *t[3:]) for t in tensors),
        tuple(
            GraphOperation(kind, tuple((port, uid) for port, uid in ports), tuple(map(_attribute, attributes)))
            for kind, ports, attributes in operations
        ),
        exact,
    )


def _attribute(pair: Any) -> tuple[str, Scalar | Dims]:
    name, value = pair
    return name, tuple(value) if isinstance(value, list) else value
