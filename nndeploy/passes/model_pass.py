# SPDX-License-Identifier: Apache-2.0
"""What every pass is: a rewrite in place that keeps what the model computes and says how many places it changed.

A pass that works node by node derives from `NodePass`; one that needs the whole graph from `ModelPass`. Bodies of
If, Loop and Scan are visited only by passes that say so, and functions of the model never: they are opaque.

Laws, each held by a test: outputs do not change; names, types and order of the graph's inputs and outputs do not
change; a second run right after the first changes nothing.
"""

import abc
from collections.abc import Iterable
from typing import ClassVar

import onnx_ir as ir

from nndeploy.passes.graph_edits import GraphEdits
from nndeploy.passes.operators import graphs_within


class ModelPass(ir.passes.InPlacePass):
    """A backend-independent rewrite; `name` is what reports print."""

    name: ClassVar[str]
    enters_bodies: ClassVar[bool] = False

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Returns the same model, rewritten, as onnx-ir's own passes do."""
        return ir.passes.PassResult(model, modified=self.rewrite(model) > 0)

    @abc.abstractmethod
    def rewrite(self, model: ir.Model) -> int:
        """Rewrites the model in place; returns how many places it changed."""

    def graphs(self, model: ir.Model) -> Iterable[ir.Graph]:
        """Returns the graphs that this pass may change, outer ones first."""
        return tuple(graphs_within(model.graph)) if self.enters_bodies else (model.graph,)


class NodePass(ModelPass):
    """A pass that looks at each node of its `ops` once, in topological order."""

    ops: ClassVar[frozenset[str]]

    def rewrite(self, model: ir.Model) -> int:
        """Rewrites the model in place; returns how many nodes it changed."""
        edits = GraphEdits(model)
        return sum(
            self.rewrite_node(node, edits)
            for graph in self.graphs(model)
            for node in tuple(graph)
            if node.op_type in self.ops and node.graph is graph and edits.is_standard(node)
        )

    @abc.abstractmethod
    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Rewrites around `node`, which is still in its graph; returns whether it changed anything."""
