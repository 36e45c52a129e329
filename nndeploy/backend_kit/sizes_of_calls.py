# SPDX-License-Identifier: Apache-2.0
"""Operators that make as many elements as numbers of a call say: a Range to 10^9 takes 4 GB, whoever asks for it.

What follows from shapes is as large as what the caller gave, and what is constant is known to the compile. For plugin
authors: a node with `unbounded_sizes` is refused, or checked before it runs.
"""

from collections.abc import Mapping
from math import inf

import onnx_ir as ir

from nndeploy.backend_kit.query import constant_of
from nndeploy.backend_kit.spans import Spans

MAX_ELEMENTS = 2**28
"""That one operator makes because numbers of a call say so: 1 GiB of float32."""

SIZE_INPUTS: Mapping[tuple[str, str], tuple[int, ...]] = {
    **dict.fromkeys((("", "Range"), ("com.microsoft", "Range")), (0, 1, 2)),
    **dict.fromkeys((("", "ConstantOfShape"),), (0,)),
    **dict.fromkeys((("", name) for name in ("HannWindow", "HammingWindow", "BlackmanWindow")), (0,)),
    **dict.fromkeys((("", name) for name in ("Expand", "Tile", "Upsample", "OneHot", "Pad", "CenterCropPad")), (1,)),
    **dict.fromkeys((("", "AffineGrid"), ("", "Col2Im"), ("com.microsoft", "Pad")), (1,)),
    ("", "MelWeightMatrix"): (0, 1),
    ("", "Resize"): (2, 3),
    ("", "MaxUnpool"): (2,),
    ("com.microsoft", "CropAndResize"): (3,),
}
"""(Domain, operator) -> the inputs that say how many elements it makes."""


def unbounded_sizes(node: ir.Node, spans: Spans) -> list[int]:
    """Returns the inputs of a node with which numbers of a call may ask for more than `MAX_ELEMENTS`."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    numbers = [number for number in SIZE_INPUTS.get((domain, node.op_type), ()) if number < len(node.inputs)]
    return [number for number in numbers if _may_be_many(node.inputs[number], spans)]


def _may_be_many(value: ir.Value | None, spans: Spans) -> bool:
    if value is None or constant_of(value) is not None or spans.follows_from_shapes(value):
        return False
    low, high = spans.of(value)
    sizes = [inf if not isinstance(size, int) else size for size in value.shape] if value.shape is not None else [inf]
    length = 1.0
    for size in sizes:
        length *= size
    most = max(abs(low), abs(high), 1)
    return most > 1 and (most == inf or length == inf or most**length > MAX_ELEMENTS)
