# SPDX-License-Identifier: Apache-2.0
"""Decision trees as the kernel library walks them: tables in which the children of a node lie side by side."""

from dataclasses import dataclass

from nndeploy_native.steps.step import Words, Written
from nndeploy_native.tensors import Array, Tensor

AGGREGATES = ("sum", "min", "max")
"""What becomes of the leaves that a row reaches."""
LESS, EQUAL, GREATER, NAN = 1, 2, 4, 8
"""How an element lies to a threshold: bits of enum nnd_tree_relation."""
LEAF = -1
"""The relations of a leaf."""


@dataclass(frozen=True, slots=True, eq=False)
class TreeTables:
    """`trees` (trees, 3): first node, first column, number of columns; `nodes` (nodes, 3): feature, child, relations.

    An element that has one of the relations to the node's number of `thresholds` takes the node behind `child`, any
    other one `child`; of a leaf that is where its numbers begin in `leaves`, of which -0 is none. Each tree begins with
    its root, and nodes lie before their children.
    """

    trees: Array
    thresholds: Array
    nodes: Array
    leaves: Array


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """output (rows, columns) = what the leaves come to that the rows of x (rows, features) reach / divisor + base.

    A column of which a row reaches no number is -0 before `base` is added.
    """

    output: Tensor
    x: Tensor
    tables: TreeTables
    aggregate: str
    divisor: int
    base: Array | None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)

    def written(self) -> Written:
        tables = self.tables
        words = Words(self, columns=self.output.shape[1])
        return Written("trees", f"{len(tables.trees)} trees of {len(tables.nodes)} nodes", words)
