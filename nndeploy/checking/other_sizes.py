# SPDX-License-Identifier: Apache-2.0
"""Open sizes -> smaller and larger ones than were made up, to race placements at: who wins at one length may lose.

    input[1, length = 64] -> length = 16, length = 256
    image[1, 3, H = 224, W = 224] -> H = W = 128, H = W = 448

Batches, channels and a cache's past stay. Law: the same sizes give the same.
"""

import math

from nndeploy.checking.likely_sizes import IMAGE, LENGTH, WAVE
from nndeploy.checking.made_up_sizes import choice_near
from nndeploy.checking.open_sizes import OpenSizes, Sizes

FACTORS = (0.25, 4.0)
"""Factors of the number of elements of a sequence or picture: a fourth, and four times as many."""
_STRIDE = 32


def other_sizes(unknown: OpenSizes, sizes: Sizes) -> list[Sizes]:
    """Returns for each of `FACTORS` sizes that differ and break no condition; none where there are none."""
    found = list[Sizes]()
    for factor in FACTORS:
        scaled = {symbol: _size(sizes[symbol], kind, factor) for symbol, kind in unknown.kinds.items()}
        near = choice_near(unknown, scaled, {})
        if near not in (sizes, *found) and not unknown.breaks(near):
            found.append(near)
    return found


def _size(size: int, kind: str, factor: float) -> int:
    if kind in (LENGTH, WAVE):
        return max(1, int(size * factor))
    if kind == IMAGE:
        return max(_STRIDE, int(size * math.sqrt(factor) / _STRIDE + 0.5) * _STRIDE)
    return size
