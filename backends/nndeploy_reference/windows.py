# SPDX-License-Identifier: Apache-2.0
"""Windows over the spatial axes of a tensor: where they lie, and the view of the input that each of their places has.

With ceil_mode a last window that would begin beyond the input and its padding at the beginning is left out. SAME gives
ceil(size / stride) windows; the odd pad is at the end (UPPER) or the beginning (LOWER).

Source: ONNX operators MaxPool (1-22), AveragePool (1-22), LpPool (1-22), Conv (1-22).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, floor

import numpy as np

from nndeploy_reference.operator_table import Array, Node


@dataclass(frozen=True, slots=True)
class Windows:
    """Sizes of the input and of the window, what is padded, and `counts`, how many windows lie along each axis."""

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    counts: tuple[int, ...]

    def taps(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Yields each place of the window with the view of a padded input that all windows have there."""
        for tap in product(*map(range, self.kernel)):
            starts = [t * d for t, d in zip(tap, self.dilations, strict=True)]
            yield (
                tap,
                tuple(
                    slice(start, start + (count - 1) * stride + 1, stride)
                    for start, count, stride in zip(starts, self.counts, self.strides, strict=True)
                ),
            )

    def padded(self, x: Array, filler: float, within: bool = False) -> Array:
        """Returns x with all that windows reach; with `within` its own padding is 1, and only what is beyond filled."""
        reaches = [
            (count - 1) * stride + (k - 1) * d + 1 - begin - size
            for count, stride, k, d, begin, size in zip(
                self.counts, self.strides, self.kernel, self.dilations, self.begins, self.sizes, strict=True
            )
        ]
        lead = [(0, 0)] * (x.ndim - len(self.sizes))
        if within:
            x = np.pad(x, [*lead, *zip(self.begins, self.ends, strict=True)], constant_values=1)
            begins: Sequence[int] = [0] * len(self.sizes)
            reaches = [reach - end for reach, end in zip(reaches, self.ends, strict=True)]
        else:
            begins = self.begins
        wide = [(begin, max(reach, 0)) for begin, reach in zip(begins, reaches, strict=True)]
        return np.pad(x, [*lead, *wide], constant_values=filler)


def windows_of(node: Node, sizes: Sequence[int], kernel: Sequence[int]) -> Windows:
    """Returns the windows of a node over an input of these sizes.

    Raises:
        ValueError: a window is larger than the padded input.
    """
    rank = len(sizes)
    strides, dilations = tuple(node.strides or [1] * rank), tuple(node.dilations or [1] * rank)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    mode, pads = node.auto_pad or "NOTSET", node.pads or [0] * (2 * rank)
    if mode.startswith("SAME"):
        counts = [ceil(size / stride) for size, stride in zip(sizes, strides, strict=True)]
        missing = [max((c - 1) * s + k - n, 0) for c, s, k, n in zip(counts, strides, spans, sizes, strict=True)]
        lower = [m // 2 if mode == "SAME_UPPER" else m - m // 2 for m in missing]
        pads = [*lower, *(m - low for m, low in zip(missing, lower, strict=True))]
    else:
        pads = [0] * (2 * rank) if mode == "VALID" else list(pads)
        rounded = ceil if mode == "NOTSET" and node.ceil_mode else floor
        counts = []
        for size, stride, span, begin, end in zip(sizes, strides, spans, pads[:rank], pads[rank:], strict=True):
            count = rounded((size + begin + end - span) / stride) + 1
            counts.append(count - (rounded is ceil and (count - 1) * stride >= size + begin))
    if min(counts, default=1) < 1:
        raise ValueError(f"a window of {spans} over {list(sizes)} with pads {pads}")
    return Windows(
        tuple(sizes), tuple(kernel), strides, dilations, tuple(pads[:rank]), tuple(pads[rank:]), tuple(counts)
    )
