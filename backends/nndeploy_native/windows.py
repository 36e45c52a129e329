# SPDX-License-Identifier: Apache-2.0
"""The sliding window of a fused convolution, from the capacity of its buffer.

The window is the largest whose first result fits the buffer: as many whole rows as possible; where not one row fits,
fewer columns of one row; where even few columns do not fit, fewer channels, whose partial sums are added up.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nndeploy_native.steps.step import Machine
from nndeploy_native.tensors import padded

if TYPE_CHECKING:
    from nndeploy_native.steps.convolution import Convolution

DEFAULT_BUFFER_BYTES = 128 * 1024
LARGE_INPUT_BYTES = 8 * 1024 * 1024
MIN_COLUMNS = 6
"""Fewer pixels than this leave the pointwise kernel's registers empty."""

MOST_REPEATED = 0.125
"""Not tuned yet: an eighth of the expansion."""


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """Rows and columns of the output, and channels of the first result, that are made at a time."""

    rows: int
    columns: int
    channels: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}x{self.channels}"

    @property
    def num_bytes(self) -> int:
        """The bytes of the first result of one window."""
        return 4 * self.rows * self.columns * self.channels


def buffer_bytes(machine: Machine, input_bytes: int) -> int:
    """Returns the capacity: what the user set, else a part of L2.

    Tuned: AMD Zen 5 class, L2 1 MiB, MobileNet shapes and 32x640x640, 2026-11-20: 128 to 256 KiB is within 8% of the
    best everywhere, 512 KiB and more 11-36% worse on inputs that exceed the caches.
    """
    if machine.buffer_bytes:
        return machine.buffer_bytes
    if not machine.l2_bytes:
        return DEFAULT_BUFFER_BYTES
    return machine.l2_bytes // (8 if input_bytes > LARGE_INPUT_BYTES else 4)


def window_for(capacity: int, height: int, width: int, channels: int, lanes: int) -> SlidingWindow:
    """Returns the window over an output of `height` x `width` whose first result has `channels`.

    A capacity that is too small for anything gives the smallest window: one vector of channels of a few columns.
    """
    wide = padded(channels, lanes)
    pixels = capacity // (4 * wide)
    if pixels >= width:
        rows = min(height, pixels // width)
        return SlidingWindow(_evened(height, rows), width, wide)
    if pixels >= min(width, MIN_COLUMNS):
        return SlidingWindow(1, _evened(width, pixels), wide)
    columns = min(width, MIN_COLUMNS)
    fitting = max(lanes, capacity // (4 * columns) // lanes * lanes)
    return SlidingWindow(1, columns, min(wide, fitting))


def expanded_window_for(capacity: int, depthwise: "Convolution", panel: int) -> SlidingWindow:
    """Returns the window of an inverted residual: whole rows, of all channels or of some whole panels.

    Rows that two windows share are expanded twice. Fewer channels at a time let a window have more rows; that is done
    until at most `MOST_REPEATED` of the expansion is repeated. A capacity too small for anything gives one row of one
    panel.
    """
    _, channels, height, width = depthwise.output.shape
    part = padded(channels, panel)
    rows = _expanded_rows(capacity, depthwise, part)
    while part > panel and (rows == 0 or _repeated(rows, depthwise) > MOST_REPEATED):
        part = padded(part // 2, panel)
        rows = _expanded_rows(capacity, depthwise, part)
    return SlidingWindow(_evened(height, max(1, rows)), width, part)


def expanded_window_bytes(rows: int, channels: int, depthwise: "Convolution") -> int:
    """Returns the bytes of the expanded rows and of the depthwise result that a window of `rows` holds."""
    expanded = _input_rows(rows, depthwise) * depthwise.x.shape[3]
    return 4 * channels * (expanded + rows * depthwise.output.shape[3])


def _expanded_rows(capacity: int, depthwise: "Convolution", channels: int) -> int:
    height = depthwise.output.shape[2]
    fitting = (r for r in range(height, 0, -1) if expanded_window_bytes(r, channels, depthwise) <= capacity)
    return next(fitting, 0)


def _input_rows(rows: int, depthwise: "Convolution") -> int:
    window = depthwise.window
    return (rows - 1) * window.strides[0] + (window.kernel[0] - 1) * window.dilations[0] + 1


def _repeated(rows: int, depthwise: "Convolution") -> float:
    """Returns the share of the expansion that is made again, for windows of `rows` of the output."""
    height = depthwise.output.shape[2]
    if rows >= height:
        return 0.0
    return _input_rows(rows, depthwise) / (rows * depthwise.window.strides[0]) - 1.0


def _evened(whole: int, most: int) -> int:
    """Returns the smallest part that needs no more windows than `most` does."""
    count = -(-whole // most)
    return -(-whole // count)
