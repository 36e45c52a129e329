# SPDX-License-Identifier: Apache-2.0
"""What a GPU could do at most, from what its driver says: bytes a second, and operations a second by element type.

Source: CUDA C++ Programming Guide, arithmetic throughput per multiprocessor and clock; NVIDIA's architecture papers
for the dense rates of tensor cores (H100, Ampere GA10x, Ada, Blackwell RTX).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_LANES = {(7, 5): 64, (8, 0): 64}
_USUAL_LANES = 128
_TF32_FMA = {(8, 0): 512, (8, 6): 128, (8, 7): 256, (8, 9): 128, (9, 0): 1024, (10, 0): 1024, (12, 0): 128}
_FLOAT16_FMA = {(7, 5): 256, (8, 0): 1024, (8, 6): 256, (8, 7): 512, (8, 9): 256, (9, 0): 2048, (10, 0): 2048}
"""Multiply-adds of tensor cores, a clock and multiprocessor, with sums in float32."""
_TF32_PRODUCTS = 3  # a float32 product takes three of TF32, see nndeploy_triton.gpu


@dataclass(frozen=True, slots=True)
class Peaks:
    """Bytes and operations a second; `l2_bytes` tells whether a problem ever leaves the chip. 0 is unknown."""

    bytes_per_s: float
    float32_per_s: float
    float16_per_s: float
    l2_bytes: int

    def floor_ms(self, num_bytes: float, num_operations: float, dtype: str) -> float:
        """Returns the least milliseconds for moving the bytes and doing the operations, each at its peak."""
        rate = self.float16_per_s if dtype == "float16" else self.float32_per_s
        times = [num_bytes / self.bytes_per_s if self.bytes_per_s else 0.0, num_operations / rate if rate else 0.0]
        return 1e3 * max(times)


def peaks_of(capability: str, descriptor: Mapping[str, Any]) -> Peaks:
    """Returns the peaks of a GPU from its compute capability and cuDNN descriptor (clocks in kHz, width in bits)."""
    major, _, minor = capability.partition(".")
    kind = (int(major), int(minor))
    clocks = descriptor.get("multiProcessorCount", 0) * descriptor.get("smClockRateKHz", 0) * 1e3
    per_fma = 2.0
    plain = clocks * _LANES.get(kind, _USUAL_LANES) * per_fma
    tensor32 = clocks * _TF32_FMA.get(kind, 0) * per_fma / _TF32_PRODUCTS
    tensor16 = clocks * _FLOAT16_FMA.get(kind, 2 * _TF32_FMA.get(kind, 0)) * per_fma
    both_edges = 2
    memory = descriptor.get("memClockRateKHz", 0) * 1e3 * both_edges * descriptor.get("memoryBusWidth", 0) / 8
    return Peaks(float(memory), max(plain, tensor32), max(plain, tensor16), int(descriptor.get("l2CacheSize", 0)))
