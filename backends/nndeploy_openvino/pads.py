# SPDX-License-Identifier: Apache-2.0
"""Which pads OpenVINO lays around a tensor without reading beyond it; asked of what is converted and what is opened.

The CPU device (2026.4.1) refuses an axis that would have fewer than no elements afterwards, and nothing else: where one
end is cut by more than there is and the other padded, it copies what stands before or behind the tensor. It adds pads
in 32 bits. Sizes are open here, so what is cut must be no more than is there whatever the size. A shift by one, as
models of language have it, makes nothing of nothing, and is the one cut that may stand beside a pad.
"""

from collections.abc import Sequence

MAX_PAD = 2**28


def unsafe_pads(begins: Sequence[int] | None, ends: Sequence[int] | None) -> str:
    """Returns why pads of the axes are not passed to the library, or ""; None are those that only a call tells."""
    if begins is None or ends is None:
        known = ends if begins is None else begins
        return "" if known is not None and not any(known) else "pads that only a call tells"
    if len(begins) != len(ends):
        return f"{len(begins)} pads before axes and {len(ends)} behind"
    for begin, end in zip(begins, ends, strict=True):
        if max(abs(begin), abs(end)) > MAX_PAD:
            return f"a pad of {max(begin, end, key=abs)}"
        if min(begin, end) < 0 < max(begin, end) and {begin, end} != {-1, 1}:
            return f"an axis cut at one end and padded at the other, by {begin} and {end}"
    return ""
