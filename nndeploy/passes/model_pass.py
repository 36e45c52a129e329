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

from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import graphs_within


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
    """A pass that looks at each node of its `ops` in topological order, until it has nothing more to do there."""

    ops: ClassVar[frozenset[str]]

    def rewrite(self, model: ir.Model) -> int:
        """Rewrites the model in place; returns how often it changed something."""
        edits = GraphEdits(model)
        return sum(
            self._rewrite_again(node, graph, edits)
            for graph in self.graphs(model)
            for node in tuple(graph)
            if node.op_type in self.ops
        )

    def _rewrite_again(self, node: ir.Node, graph: ir.Graph, edits: GraphEdits) -> int:
        count = 0
        while node.graph is graph and node.op_type in self.ops and edits.is_standard(node):
            if not self.rewrite_node(node, edits):
                break
            count += 1
        return count

    @abc.abstractmethod
    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Rewrites around `node`, which is still in its graph; returns whether it changed anything.

        It is asked again until it changes nothing, so each change has to bring it nearer to that.
        """
