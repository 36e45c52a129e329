# SPDX-License-Identifier: Apache-2.0
"""The sizes of every value of a graph, and the elements of its small integer tensors, from those of the inputs.

ONNX's own inference gives a new name to every size that it computes; here it stays a polynomial in the inputs' sizes
(`sizes/size.py`), so that two ways through a network are seen to end in equal sizes, and a target of Reshape that was
computed from shapes is known. What cannot be followed is a symbol of its own: `<value>.<axis>`.

Conditions: the model is valid, and symbols of one name at the inputs are one size, which is checked when it runs.
What the model says of values in between is taken where it is a number. Branches of If are followed, bodies that are
entered with values (Loop, Scan) are not. Of what an If gives those sizes are known that both branches give.
"""

import contextlib
from collections.abc import Mapping

import onnx_ir as ir

from nndeploy.graph import (
    arithmetic_sizes,
    attention_sizes,
    classical_sizes,
    contrib_sizes,
    image_sizes,
    movement_sizes,
    text_sizes,
)
from nndeploy.graph.branches import branches_of
from nndeploy.graph.known_sizes import KnownSizes, Shape
from nndeploy.graph.nodes import bodies
from nndeploy.graph.operators import is_overridden, opset_of
from nndeploy.values.size import UndecidedError, symbol
from nndeploy.values.types import DimRange


def known_sizes(
    model: ir.Model, ranges: Mapping[str, DimRange], elements: Mapping[ir.Value, Shape] | None = None
) -> KnownSizes:
    """Returns the sizes of the values of a model; `ranges` are those of the symbols of its inputs.

    `elements` are those of inputs whose elements are sizes.
    """
    known = KnownSizes(opset_of(model), ranges)
    for value, sizes in (elements or {}).items():
        known.learn_elements(value, sizes)
    _follow(model.graph, model, known)
    return known


def _follow(graph: ir.Graph, model: ir.Model, known: KnownSizes) -> None:
    """Learns of the values of a graph; of branches before what they give."""
    for node in graph:
        for body in bodies(node):
            if not body.inputs:
                _follow(body, model, known)
        rule = _RULES.get(node.domain, {}).get(node.op_type)
        if rule is not None and not is_overridden(node, model):
            with contextlib.suppress(UndecidedError):
                rule(node, known)


def _choice(node: ir.Node, known: KnownSizes) -> None:
    """Source: ONNX If."""
    for output, *results in zip(node.outputs, *(branch.outputs for branch in branches_of(node)), strict=False):
        first, second = (known.shape(result) for result in results)
        if first is not None and second is not None and len(first) == len(second):
            sizes = zip(first, second, strict=True)
            own = (one if one == other else symbol(f"{output.name}.{axis}") for axis, (one, other) in enumerate(sizes))
            known.learn_shape(output, tuple(own))


_RULES = {
    "": {
        **arithmetic_sizes.RULES,
        **attention_sizes.RULES,
        **image_sizes.RULES,
        **movement_sizes.RULES,
        **text_sizes.RULES,
        "If": _choice,
    },
    classical_sizes.DOMAIN: classical_sizes.RULES,
    contrib_sizes.DOMAIN: contrib_sizes.RULES,
}
"""Domain -> operator -> rule."""
