# SPDX-License-Identifier: Apache-2.0
"""The sliding window of a fused convolution, from the capacity of its buffer.

The window is the largest whose first result fits the buffer: as many whole rows as possible; where not one row fits,
fewer columns of one row; where even few columns do not fit, fewer channels, whose partial sums are added up.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nndeploy.values.size import Dim, bounds, ceil_div, is_fixed, least, most, typical
from nndeploy_native.isa import Isa
from nndeploy_native.packing import panels
from nndeploy_native.scratch import Scratch, scratch_of
from nndeploy_native.tensors import padded

if TYPE_CHECKING:
    from nndeploy_native.steps.step import Axis, Machine

LARGE_INPUT_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """Rows and columns of the output, and channels of the first result, that are made at a time."""

    rows: Dim
    columns: Dim
    channels: int

    def __str__(self) -> str:
        sizes = "x".join(str(typical(size)) for size in (self.rows, self.columns, self.channels))
        return sizes if is_fixed((self.rows, self.columns)) else f"about {sizes}"


def buffer_capacity(machine: "Machine", input_bytes: int) -> int:
    """Returns the bytes of the buffer: what the user set, else a part of L2.

    Tuned: AMD Zen 5 class, L2 1 MiB, MobileNet shapes and 32x640x640, 2026-11-20: 128 to 256 KiB is within 8% of the
    best everywhere, 512 KiB and more 11-36% worse on inputs that exceed the caches.
    """
    if machine.buffer_bytes:
        return machine.buffer_bytes
    return machine.l2 // (8 if input_bytes > LARGE_INPUT_BYTES else 4)


def separable_capacity(machine: "Machine", input_bytes: int, first_bytes: int, row_bytes: int) -> int:
    """Returns the bytes of a pair's buffer: `first_bytes` of first result come of the input, `row_bytes` are one row.

    With strides the input of a window is larger than its first result. Where it comes from beyond L2 it is
    prefetched, and should leave there what is in use: stride 2 at 112 x 112, 96 channels, takes 0.87 of the time.
    """
    capacity = buffer_capacity(machine, input_bytes)
    if machine.buffer_bytes or input_bytes <= machine.l2:
        return capacity
    return max(capacity * first_bytes // max(first_bytes, input_bytes), min(row_bytes, capacity))


def window_for(capacity: int, rows: Dim, columns: Dim, channels: int, isa: Isa) -> SlidingWindow:
    """Returns the window over an output of `rows` x `columns` whose first result has `channels`.

    A capacity that is too small for anything gives the smallest window: one pixel of one vector of channels. Whole rows
    are taken where they fit whatever the size.
    """
    wide, element = padded(channels, isa.lanes), isa.elem_bytes
    pixels = capacity // (element * wide)
    if pixels >= bounds(columns)[1]:
        return SlidingWindow(evened(rows, least(rows, pixels // columns)), columns, wide)
    tile = min(isa.accumulators // isa.panel, bounds(columns)[1])
    if pixels >= tile:
        return SlidingWindow(1, evened(columns, pixels), wide)
    narrow = max(1, min(tile, capacity // (element * isa.lanes)))
    fitting = max(isa.lanes, capacity // (element * narrow) // isa.lanes * isa.lanes)
    return SlidingWindow(1, narrow, min(wide, fitting))


@dataclass(frozen=True, slots=True)
class InvertedWindow:
    """Output rows of an inverted residual's window, and the panels of hidden channels that one projection sums over."""

    rows: Dim
    group_panels: int


def inverted_window_for(capacity: int, y: "Axis", x: "Axis", channels: int, isa: Isa) -> InvertedWindow:
    """Returns the whole image in groups where at least two panels fit, else as many rows as fit, else one row."""
    num_panels = len(panels(channels, isa))
    if not is_fixed((y.size, y.out_size, x.size, x.out_size)):
        return InvertedWindow(_fitting_rows(capacity, y, x, channels, isa), num_panels)
    most_groups = 1 if isa.precision == "bf16" else num_panels  # parts of sums are kept in the output: not rounded
    for groups in range(1, most_groups + 1):
        window = InvertedWindow(y.out_size, -(-num_panels // groups))
        fits = inverted_scratch(window, y, x, channels, isa).num_bytes <= capacity
        if fits and window.group_panels >= min(2, num_panels):
            return window
    for count in range(y.out_size - 1, 1, -1):
        window = InvertedWindow(evened(y.out_size, count), num_panels)
        if inverted_scratch(window, y, x, channels, isa).num_bytes <= capacity:
            return window
    return InvertedWindow(1, num_panels)


def _fitting_rows(capacity: int, y: "Axis", x: "Axis", channels: int, isa: Isa) -> Dim:
    """Returns as many rows of all channels as fit, at least one: what `inverted_scratch` says, solved for rows."""
    vectors = capacity // (isa.elem_bytes * isa.lanes * isa.blocks(channels))
    beside = ((y.kernel - 1) * y.dilation + 1 - y.stride) * x.size
    return evened(y.out_size, most(1, least(y.out_size, (vectors - beside) // (y.stride * x.size + x.out_size))))


def inverted_scratch(window: InvertedWindow, y: "Axis", x: "Axis", channels: int, isa: Isa) -> Scratch:
    """Returns the ring of expanded rows and the depthwise result of one group: the first result."""
    blocks = isa.blocks(channels)
    is_whole = is_fixed((window.rows, y.out_size)) and window.rows >= y.out_size
    kept = min(blocks, isa.panel + 1) if is_whole else blocks
    group = min(blocks, window.group_panels * isa.panel + 1)
    vector_bytes = isa.elem_bytes * isa.lanes
    return scratch_of(
        ring=vector_bytes * kept * rows_read(y, window.rows) * x.size,
        first=vector_bytes * group * window.rows * x.out_size,
    )


def rows_read(y: "Axis", rows: Dim) -> Dim:
    """Returns how many rows of the input a window of `rows` output rows reads."""
    return least(y.size, (rows - 1) * y.stride + (y.kernel - 1) * y.dilation + 1)


def shared_rows(rows: Dim, out_rows: Dim, images: Dim, threads: int) -> Dim:
    """Returns the rows of windows that `threads` share evenly: at most `rows`, a few windows more where it helps."""
    if not is_fixed((rows, out_rows, images)):
        return rows
    count = -(-out_rows // rows)
    if images * count % threads == 0 or images * count >= 8 * threads:
        return rows
    for more in range(count + 1, count + threads + 1):
        if images * more % threads == 0 and more <= out_rows:
            return -(-out_rows // more)
    return rows


def evened(whole: Dim, largest: Dim) -> Dim:
    """Returns the smallest part that needs no more windows than `largest` does."""
    return most(1, ceil_div(whole, ceil_div(whole, largest)))
