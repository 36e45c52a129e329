# SPDX-License-Identifier: Apache-2.0
"""Operators that look up what integers index, and the axes that these count along.

OneHot is none of them: what is out of range is on nowhere. Source: ONNX opset 24; operators of com.microsoft.
"""

from collections.abc import Mapping
from typing import NamedTuple

TUPLES = "tuples"
FIRST = ""


class Indexed(NamedTuple):
    """An input of indices, and the one that they look up: along the axis that attribute `axis` names (0 by default).

    `FIRST`: along the first one. `TUPLES`: the last axis of the indices holds places along axes behind `batch_dims`.
    """

    indices: int
    data: int
    axis: str = FIRST


INDEXED: Mapping[tuple[str, str], tuple[Indexed, ...]] = {
    **{("", name): (Indexed(1, 0, "axis"),) for name in ("Gather", "GatherElements", "ScatterElements")},
    **{("", name): (Indexed(1, 0, TUPLES),) for name in ("GatherND", "ScatterND")},
    ("", "RoiAlign"): (Indexed(2, 0),),
    ("", "RotaryEmbedding"): (Indexed(3, 1),),
    ("com.microsoft", "RotaryEmbedding"): (Indexed(1, 2),),
    ("com.microsoft", "GatherBlockQuantized"): (Indexed(1, 0, "gather_axis"),),
    ("com.microsoft", "EmbedLayerNormalization"): (Indexed(0, 2), Indexed(1, 4), Indexed(8, 3)),
}
"""(Domain, operator) -> its inputs of indices."""
