# SPDX-License-Identifier: Apache-2.0
"""A fused depthwise and pointwise convolution: its shape, its window, and the C text of its step.

In: the numbers of the two convolutions and the capacity of the buffer. Out: `struct nnd_separable` as a C initializer.
Law: the buffer of the chosen window never exceeds the capacity, unless one pixel of one channel block does.
"""

from dataclasses import dataclass

from nndeploy_native.kernels.instance import SIGNATURE
from nndeploy_native.kernels.isa import Isa

STREAM_FROM_BYTES = 16 << 20  # stores past the caches pay from here: AMD Zen 5, L3 32 MiB, 2026-11-20
SECOND_CACHE_BYTES = 1 << 20
LARGE_INPUT_BYTES = 8 << 20


@dataclass(frozen=True)
class Axis:
    """One axis of a convolution: `size` of the input, `begin` and `end` padding."""

    size: int
    kernel: int = 3
    stride: int = 1
    dilation: int = 1
    begin: int = 1
    end: int = 1

    @property
    def out_size(self) -> int:
        """Elements of the output."""
        return (self.size + self.begin + self.end - (self.kernel - 1) * self.dilation - 1) // self.stride + 1

    def initializer(self) -> str:
        """Returns `struct nnd_axis` in C."""
        return f"{{{self.size}, {self.out_size}, {self.kernel}, {self.stride}, {self.dilation}, {self.begin}}}"


@dataclass(frozen=True)
class Activation:
    """`kind` is a name of enum nnd_activation_kind without its prefix."""

    kind: str = "NONE"
    a: float = 0.0
    b: float = 0.0

    def initializer(self) -> str:
        """Returns `struct nnd_activation` in C."""
        return f"{{NND_{self.kind}, {float(self.a)!r}f, {float(self.b)!r}f}}"


RELU6 = Activation("CLIP", 0.0, 6.0)


@dataclass(frozen=True)
class Window:
    """Output pixels and channels of one first result."""

    rows: int
    columns: int
    channels: int

    def buffer_bytes(self, isa: Isa) -> int:
        """Returns what the first result takes."""
        return self.rows * self.columns * isa.blocks(self.channels) * isa.lanes * 4


@dataclass(frozen=True)
class Separable:
    """Depthwise (y, x, channels, first) then pointwise (out_channels, second), both with bias."""

    images: int
    channels: int
    out_channels: int
    y: Axis
    x: Axis
    first: Activation = RELU6
    second: Activation = RELU6
    residual: bool = False

    @property
    def flops(self) -> int:
        """Twice the multiply-adds of both convolutions."""
        pixels = self.images * self.y.out_size * self.x.out_size
        return 2 * pixels * self.channels * (self.y.kernel * self.x.kernel + self.out_channels)

    def input_bytes(self, isa: Isa) -> int:
        """Bytes of the blocked input."""
        return 4 * self.images * isa.blocks(self.channels) * isa.lanes * self.y.size * self.x.size

    def output_bytes(self, isa: Isa) -> int:
        """Bytes of the blocked output."""
        return 4 * self.images * isa.blocks(self.out_channels) * isa.lanes * self.y.out_size * self.x.out_size


def buffer_capacity(s: Separable, isa: Isa, second_cache_bytes: int = SECOND_CACHE_BYTES) -> int:
    """Returns the bytes of buffer that measured best: an eighth of the second cache for a large input, else a quarter.

    AMD Zen 5, 2026-11-20: 8 KiB costs 22 %, 64 KiB 5 %, more than 512 KiB 11 to 36 %.
    """
    return second_cache_bytes // (8 if s.input_bytes(isa) > LARGE_INPUT_BYTES else 4)


def choose_window(s: Separable, isa: Isa, capacity_bytes: int) -> Window:
    """Returns the largest window whose first result fits: whole rows, else columns of one row, else fewer channels."""
    pixel_bytes = isa.blocks(s.channels) * isa.lanes * 4
    pixels = max(capacity_bytes // pixel_bytes, 0)
    if pixels >= s.x.out_size:
        rows = min(pixels // s.x.out_size, s.y.out_size)
        windows = -(-s.y.out_size // rows)
        return Window(-(-s.y.out_size // windows), s.x.out_size, s.channels)
    tile = isa.accumulators // isa.panel
    if pixels >= min(tile, s.x.out_size):
        windows = -(-s.x.out_size // pixels)
        return Window(1, -(-s.x.out_size // windows), s.channels)
    columns = min(tile, s.x.out_size)
    while columns > 1 and columns * isa.lanes * 4 > capacity_bytes:
        columns -= 1
    blocks = max(capacity_bytes // (columns * isa.lanes * 4), 1)
    return Window(1, columns, min(blocks * isa.lanes, s.channels))


def initializer(s: Separable, window: Window, isa: Isa) -> str:
    """Returns `struct nnd_separable` in C."""
    out_plane = s.y.out_size * s.x.out_size * isa.lanes
    stream = int(s.output_bytes(isa) > STREAM_FROM_BYTES)
    prefetch_weights = int(4 * s.channels * s.out_channels > SECOND_CACHE_BYTES // 2)
    prefetch_input = int(s.input_bytes(isa) > SECOND_CACHE_BYTES)
    channels = window.channels
    return (
        f"{{.depthwise = {{{s.y.initializer()}, {s.x.initializer()}, {s.first.initializer()}, 0}}, "
        f".pointwise = {{.in_channels = {s.channels}, .out_channels = {s.out_channels}, "
        f".panel_channels = {s.channels}, .out_plane = {out_plane}, .activation = {s.second.initializer()}, "
        f".residual = {int(s.residual)}, .stream = {stream}, .prefetch_weights = {prefetch_weights}}}, "
        f".channels = {s.channels}, .images = {s.images}, .window_rows = {window.rows}, "
        f".window_columns = {window.columns}, .window_channels = {channels}, .prefetch_input = {prefetch_input}}}"
    )


def separable_text(s: Separable, window: Window, isa: Isa) -> str:
    """Returns the C text of the step.

    data: input, depthwise weights, bias, slopes, pointwise weights, bias, slopes, residual (null where unused).
    Units: windows.
    """
    return f"""#include "separable.h"
static const struct nnd_separable step = {initializer(s, window, isa)};
{SIGNATURE} {{
  nnd_separable_run(step, (struct nnd_separable_data){{data[0], data[1], data[2], data[3], {{
    .weights = data[4], .bias = data[5], .slopes = data[6], .residual = data[7], .out = out}}}}, first, last, buffer);
}}
"""


def num_windows(s: Separable, window: Window) -> int:
    """Returns the units of the step."""
    return s.images * -(-s.y.out_size // window.rows) * -(-s.x.out_size // window.columns)
