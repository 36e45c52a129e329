# SPDX-License-Identifier: Apache-2.0
"""Outputs of which nothing is left but an operator's rounding: what it is given still tells one number from another.

A Sigmoid of -30 is 1e-13 for one engine and 0 for another that rounds as if all results were near 1, and both are
right; one of 30 is 1 for all. Where every element is so, an engine that is wrong may agree. So the model before the
operator is compared then (`model_before_saturation`), where an error is as large as any.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

from nndeploy.checking.cuts import ending_with
from nndeploy.values.types import Value

SATURATING = frozenset({"Sigmoid"})
ROUNDING = 2.0**-19
"""Right engines are so far apart at most, of 1: sixteen times the last bit of a float32."""

_MOVING = frozenset({
    "Identity", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Split", "Concat", "Gather", "Cast",
})  # fmt: skip


def saturated_outputs(model: ir.Model, want: Sequence[Mapping[str, Value]], by_limits: Collection[str]) -> list[str]:
    """Returns the outputs of a model that an operator saturates on every sample, so that errors before it are lost.

    Near 0 an output keeps its digits, and only an engine that was found right `by_limits` may have lost them.
    """
    return [
        value.name
        for value in model.graph.outputs
        if value.name and any(_saturating(value))
        if all(_is_saturated(one.get(value.name), near_zero=value.name in by_limits) for one in want)
    ]


def _is_saturated(value: Value, *, near_zero: bool) -> bool:
    """Returns whether every element of an output is 1 but for the rounding, or 0 where that counts."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or not value.size:
        return False
    apart = np.abs(1 - value)
    return bool(np.all((np.minimum(np.abs(value), apart) if near_zero else apart) <= ROUNDING))


def model_before_saturation(model: ir.Model, outputs: Sequence[str]) -> ir.Model | None:
    """Returns a copy of a model that ends with what the operators are given that make `outputs`; None without any."""
    copy = model.clone()
    if any(value.type is None for node in copy.graph for value in node.outputs if value.name):
        ShapeInferencePass()(copy)
    made = [node.inputs[0] for value in copy.graph.outputs if value.name in outputs for node in _saturating(value)]
    given = {value.name: value for value in made if value is not None and value.producer() is not None and value.type}
    return ending_with(copy, list(given.values())) if given else None


def _saturating(value: ir.Value | None) -> Iterator[ir.Node]:
    """Yields the operators whose results an output is made of, moved at most."""
    node = None if value is None else value.producer()
    if node is None:
        return
    if node.op_type in SATURATING:
        yield node
    elif node.op_type in _MOVING:
        for moved in node.inputs:
            yield from _saturating(moved)
