# SPDX-License-Identifier: Apache-2.0
"""What must hold of the sizes of a model's inputs for it to run, read from its operators and constants.

    Conv(x [N, C, H, W], w [16, 3, 3, 3])        C equals 3
    Add(patches [N, (H//16)*(W//16) + 1, D], positions [1, 197, D])    the two rows equal, or one of them is 1
    Gather(x [N, T], places up to 15999)         T is at least 16000
    Reshape(x [N, H//4, W//4, D] to [-1, 7, 7, D])    the elements are a multiple of 49 D
    a window of 3 over (H - 2)//2                the result has at least one element

Sizes are those of `known_sizes`; where they could not be followed nothing is said. A condition is firm where the
operator runs whatever the inputs are, and a wish where it stands in a branch of If, or where sizes that break it are
legal but unusual: a patch that is cut off, rows that become another batch.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from nndeploy.checking.operator_conditions import RULES, WINDOWS
from nndeploy.checking.relations import AT_LEAST, BROADCAST, EQUAL, MULTIPLE, Found
from nndeploy.graph.known_sizes import KnownSizes
from nndeploy.graph.nodes import bodies
from nndeploy.graph.operators import operand
from nndeploy.values.size import Dim, Size, bounds, evaluated, exact_quotient


@dataclass(frozen=True, slots=True)
class Condition:
    """A relation of two sizes; `is_firm` where the model cannot run without it."""

    relation: str
    left: Dim
    right: Dim
    is_firm: bool = True

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that it depends on."""
        return frozenset(one.name for size in (self.left, self.right) if isinstance(size, Size) for one in size.symbols)

    @property
    def is_certain(self) -> bool:
        """Whether it holds whatever the sizes are, as far as can be seen."""
        if self.relation == MULTIPLE:
            return self.right == 0 or exact_quotient(self.left, self.right) is not None
        if self.relation == AT_LEAST:
            return bounds(self.left - self.right)[0] >= 0
        return self.left == self.right or (self.relation == BROADCAST and 1 in (self.left, self.right))

    def excess(self, values: Mapping[str, int]) -> int:
        """Returns how much the left size is larger than it should be; 0 where the condition holds.

        Raises:
            KeyError: a symbol has no value.
        """
        try:
            left, right = evaluated(self.left, values), evaluated(self.right, values)
        except ZeroDivisionError:
            return 1
        if self.relation == AT_LEAST:
            return min(0, left - right)
        if self.relation == MULTIPLE:
            return left % right if right > 0 else left - right
        return 0 if self.relation == BROADCAST and 1 in (left, right) else left - right


def size_conditions(model: ir.Model, known: KnownSizes) -> list[Condition]:
    """Returns what must hold of the sizes, in the order of the nodes, each once; `known` are those of the model."""
    found: dict[Condition, None] = {}
    for condition in _in_graph(model.graph, known, True):
        if condition.symbols and not condition.is_certain:
            found.setdefault(condition)
    return list(found)


def _in_graph(graph: ir.Graph, known: KnownSizes, is_firm: bool) -> Iterator[Condition]:
    for node in graph:
        for relation, left, right, *firm in _asked_by(node, known):
            yield Condition(relation, left, right, is_firm and all(firm))
            if relation == BROADCAST and 1 not in (left, right):  # one element for many is written as 1
                yield Condition(EQUAL, left, right, False)
        for output in node.outputs:
            for size in known.shape(output) or ():
                if bounds(size)[0] < 1:
                    yield Condition(AT_LEAST, size, 1, is_firm and node.op_type in WINDOWS)
        for body in bodies(node):
            if not body.inputs:
                yield from _in_graph(body, known, False)


def _asked_by(node: ir.Node, known: KnownSizes) -> Found:
    rule = RULES.get((node.domain, node.op_type))
    try:
        yield from rule(node, known) if rule else ()
    except Exception:  # an axis that is not there, a size not worth following, a mistake of ours: then nothing is asked
        return


def spatial_symbols(model: ir.Model, known: KnownSizes) -> dict[str, int]:
    """Returns the symbols of sizes over which windows move, and over how many axes each window moves (1 to 3)."""
    found: dict[str, int] = {}
    for node in model.graph:
        shape: Sequence[Dim] = known.shape(operand(node, 0)) or () if node.op_type in WINDOWS else ()
        for size in shape[2:]:
            if isinstance(size, Size) and len(size.symbols) == 1:
                found.setdefault(next(iter(size.symbols)).name, len(shape) - 2)
    return found
