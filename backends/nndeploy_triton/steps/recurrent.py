# SPDX-License-Identifier: Apache-2.0
"""Recurrences, for kernels/recurrent.py."""

from dataclasses import dataclass

from nndeploy.values.size import fixed
from nndeploy_triton.gpu import GpuFacts
from nndeploy_triton.steps.step import Request, Tile, grid, power_of_two
from nndeploy_triton.views import View

MAX_HIDDEN = 256
"""The state of a larger recurrence, and a square of weights for it, do not fit into the registers of one block."""
ELEMENTS_A_THREAD = 32
THREADS_A_WARP = 32
MAX_WARPS = 16


@dataclass(frozen=True, slots=True)
class Lstm:
    """The states after each step, then the last state and cell: `output` is (steps + 2, directions, batch, hidden).

    `gates` (directions, steps, batch, 4 * hidden) is what does not depend on the state, `weights` (directions,
    4 * hidden, hidden) is what does. With `backwards` the only direction walks from the end.
    """

    output: View
    gates: View
    weights: View
    initial_h: View | None
    initial_c: View | None
    backwards: bool

    @property
    def inputs(self) -> tuple[View, ...]:
        """What the step reads."""
        return self.gates, self.weights, *(view for view in (self.initial_h, self.initial_c) if view is not None)

    def tiles(self, gpu: GpuFacts) -> list[Tile]:  # noqa: ARG002  # the same everywhere: the state decides
        """Returns the tiles to choose from."""
        block = power_of_two(fixed(self.output.shape[3]), MAX_HIDDEN, 16)
        warps = power_of_two(block * block // (ELEMENTS_A_THREAD * THREADS_A_WARP), MAX_WARPS)
        return [Tile((("BLOCK_H", block),), warps)]

    def request(self, gpu: GpuFacts, tile: Tile) -> Request:  # noqa: ARG002
        """Returns what to launch."""
        optional = (("initial_h", self.initial_h), ("initial_c", self.initial_c))
        steps, directions, batch, hidden = self.output.shape
        return Request(
            kernel="lstm",
            tensors=(
                ("out", self.output), ("gates", self.gates), ("weights", self.weights),
                *((name, view) for name, view in optional if view is not None),
            ),
            sizes=(
                ("num_steps", steps - 2), ("num_batch", batch), ("hidden", hidden), ("num_directions", directions),
            ),
            constants=(
                *((name, None) for name, view in optional if view is None),
                ("BACKWARDS", self.backwards), ("HAS_H", self.initial_h is not None),
                ("HAS_C", self.initial_c is not None), *tile.blocks,
            ),
            grid=grid([("num_directions", 1)], [("num_batch", 1)]),
            tile=tile,
            layout="rm",
        )  # fmt: skip
