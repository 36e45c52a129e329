# SPDX-License-Identifier: Apache-2.0
"""What rules of operators say of sizes: (relation, left, right) of the shapes of inputs.

A fourth entry, False, says that sizes which break the relation are legal but unusual. A rule may index axes that are
not there: that ends it, as a size does that is not worth following.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, zip_longest

import onnx_ir as ir

from nndeploy.graph.known_sizes import KnownSizes, Shape
from nndeploy.graph.operators import operand
from nndeploy.values.size import Dim

EQUAL, BROADCAST, AT_LEAST, MULTIPLE = "equals", "equals, or either is 1,", "is at least", "is a multiple of"

Found = Iterator[tuple[str, Dim, Dim] | tuple[str, Dim, Dim, bool]]
Rule = Callable[[ir.Node, KnownSizes], Found]


def shapes_of(node: ir.Node, known: KnownSizes, *indices: int) -> list[Shape]:
    """Returns the shapes of inputs, () where one is not known or absent."""
    return [known.shape(operand(node, index)) or () for index in indices]


def broadcast(shapes: Iterable[Shape]) -> Found:
    """Yields that axes are equal or 1, counted from the last."""
    for dims in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        for left, right in pairwise(dict.fromkeys(dims)):
            yield BROADCAST, left, right


def equal(left: Shape, right: Shape) -> Found:
    """Yields that axes are equal, counted from the first, as far as both have them."""
    for one, other in zip(left, right, strict=False):
        yield EQUAL, one, other
