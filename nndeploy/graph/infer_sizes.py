# SPDX-License-Identifier: Apache-2.0
"""The sizes of every value of a graph, and the elements of its small integer tensors, from those of the inputs.

ONNX's own inference gives a new name to every size that it computes; here it stays a polynomial in the inputs' sizes
(`sizes/size.py`), so that two ways through a network are seen to end in equal sizes, and a target of Reshape that was
computed from shapes is known. What cannot be followed is a symbol of its own: `<value>.<axis>`.

Conditions: the model is valid, and symbols of one name at the inputs are one size, which is checked when it runs.
What the model says of values in between is taken where it is a number. Branches of If are followed, bodies that are
entered with values (Loop, Scan) are not.
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
)
from nndeploy.graph.known_sizes import KnownSizes
from nndeploy.graph.operators import graphs_entered_without_inputs, is_overridden, opset_of
from nndeploy.values.size import UndecidedError
from nndeploy.values.types import DimRange

_RULES = {
    "": {**arithmetic_sizes.RULES, **attention_sizes.RULES, **image_sizes.RULES, **movement_sizes.RULES},
    classical_sizes.DOMAIN: classical_sizes.RULES,
    contrib_sizes.DOMAIN: contrib_sizes.RULES,
}
"""Domain -> operator -> rule."""


def known_sizes(model: ir.Model, ranges: Mapping[str, DimRange]) -> KnownSizes:
    """Returns the sizes of the values of a model; `ranges` are those of the symbols of its inputs."""
    known = KnownSizes(opset_of(model), ranges)
    for graph in graphs_entered_without_inputs(model.graph):
        for node in graph:
            rule = _RULES.get(node.domain, {}).get(node.op_type)
            if rule is not None and not is_overridden(node, model):
                with contextlib.suppress(UndecidedError):
                    rule(node, known)
    return known
