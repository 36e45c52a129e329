# SPDX-License-Identifier: Apache-2.0
"""The instruction sets that the kernels are built for, and what vector.h makes of each.

The numbers repeat those of c/vector.h: a test compiles that header for each row and compares.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Isa:
    """One variant: what the compiler is told, lanes of a vector, vectors of a weight panel, sums in registers."""

    name: str
    triple: str
    cpu: str
    lanes: int
    panel: int
    accumulators: int

    def blocks(self, channels: int) -> int:
        """Returns how many vectors hold `channels` channels."""
        return -(-channels // self.lanes)


AVX512 = Isa("avx512", "x86_64-linux-gnu.2.17", "x86_64_v4", 16, 2, 28)
AVX2 = Isa("avx2", "x86_64-linux-gnu.2.17", "x86_64_v3", 8, 2, 12)
NEON = Isa("neon", "aarch64-linux-gnu.2.17", "generic", 4, 4, 20)
ISAS = (AVX512, AVX2, NEON)
