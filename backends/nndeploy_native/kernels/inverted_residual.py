# SPDX-License-Identifier: Apache-2.0
"""An inverted residual (expand 1x1, depthwise, project 1x1) as one operator: shape, window, C text.

In: the numbers of the three convolutions and the capacity of the buffer. Out: `struct nnd_inverted` as C.
"""

from dataclasses import dataclass

from nndeploy_native.kernels.instance import SIGNATURE
from nndeploy_native.kernels.isa import Isa
from nndeploy_native.kernels.packing import panels
from nndeploy_native.kernels.separable import Activation, Separable

INVERTED_BUFFER_BYTES = (
    256 << 10
)  # 128 to 768 KiB are within 5 % of each other: AMD Zen 5, second cache 1 MiB, 2026-11-20


@dataclass(frozen=True)
class InvertedResidual:
    """Expand from `in_channels` with activation `expand`, then `rest`: depthwise and projection."""

    in_channels: int
    rest: Separable
    expand: Activation

    @property
    def flops(self) -> int:
        """Twice the multiply-adds of the three convolutions."""
        r = self.rest
        return r.flops + 2 * r.images * r.y.size * r.x.size * r.channels * self.in_channels


@dataclass(frozen=True)
class InvertedWindow:
    """Output rows of a window, and the panels of hidden channels that one projection sums over."""

    rows: int
    group_panels: int


def ring_rows(s: InvertedResidual, window: InvertedWindow) -> int:
    """Returns how many expanded rows are kept."""
    y = s.rest.y
    return min(y.size, (window.rows - 1) * y.stride + (y.kernel - 1) * y.dilation + 1)


def ring_floats(s: InvertedResidual, window: InvertedWindow, isa: Isa) -> int:
    """Returns nnd_inverted_ring() of the header."""
    blocks = isa.blocks(s.rest.channels)
    kept = min(blocks, isa.panel + 1) if window.rows >= s.rest.y.out_size else blocks
    return kept * ring_rows(s, window) * s.rest.x.size * isa.lanes


def inverted_buffer_bytes(s: InvertedResidual, window: InvertedWindow, isa: Isa) -> int:
    """Returns the ring and the depthwise result of one group, for one thread."""
    blocks = min(isa.blocks(s.rest.channels), window.group_panels * isa.panel + 1)
    return 4 * (ring_floats(s, window, isa) + blocks * window.rows * s.rest.x.out_size * isa.lanes)


def choose_inverted_window(s: InvertedResidual, isa: Isa, capacity_bytes: int) -> InvertedWindow:
    """Returns the whole image in groups where at least two panels fit, else as many rows as fit, else one row."""
    num_panels = len(panels(s.rest.channels, isa))
    rows = s.rest.y.out_size
    for groups in range(1, num_panels + 1):
        window = InvertedWindow(rows, -(-num_panels // groups))
        if inverted_buffer_bytes(s, window, isa) <= capacity_bytes and window.group_panels >= min(2, num_panels):
            return window
    for count in range(rows - 1, 1, -1):
        window = InvertedWindow(-(-rows // -(-rows // count)), num_panels)
        if inverted_buffer_bytes(s, window, isa) <= capacity_bytes:
            return window
    return InvertedWindow(1, num_panels)


def num_inverted_windows(s: InvertedResidual, window: InvertedWindow) -> int:
    """Returns the units of the step."""
    return s.rest.images * -(-s.rest.y.out_size // window.rows)


def inverted_text(s: InvertedResidual, window: InvertedWindow) -> str:
    """Returns the C text of the step.

    data: input; expand weights, bias, slopes; depthwise weights, bias, slopes; project weights, bias, slopes; residual.
    Units: windows.
    """
    r = s.rest
    return f"""#include "inverted_residual.h"
static const struct nnd_inverted step = {{
  .expand = {{.in_channels = {s.in_channels}, .out_channels = {r.channels}, .panel_channels = {s.in_channels},
             .activation = {s.expand.initializer()}}},
  .project = {{.in_channels = {r.channels}, .out_channels = {r.out_channels}, .panel_channels = {r.channels},
              .activation = {r.second.initializer()}, .residual = {int(r.residual)}}},
  .depthwise = {{{r.y.initializer()}, {r.x.initializer()}, {r.first.initializer()}, 0}},
  .channels = {r.channels}, .images = {r.images},
  .window_rows = {window.rows}, .group_panels = {window.group_panels}}};
{SIGNATURE} {{
  nnd_inverted_run(step, (struct nnd_inverted_data){{
    {{.in = data[0], .weights = data[1], .bias = data[2], .slopes = data[3]}},
    {{.weights = data[7], .bias = data[8], .slopes = data[9], .residual = data[10], .out = out}},
    {{.weights = data[4], .bias = data[5], .slopes = data[6]}}}}, first, last, buffer);
}}
"""
