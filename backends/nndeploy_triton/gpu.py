# SPDX-License-Identifier: Apache-2.0
"""What block sizes depend on: facts about a GPU, from a target's description.

Where a target says only the compute capability, the facts are those of the smallest common GPU of that kind.
Source: CUDA C++ Programming Guide, technical specifications per compute capability.
"""

from dataclasses import dataclass

from nndeploy.target.target import Gpu, capability_number

_SHARED_BYTES = {(7, 5): 65536, (8, 0): 166912, (8, 7): 166912, (9, 0): 232448, (10, 0): 232448, (10, 3): 232448}
_USUAL_SHARED_BYTES = 101376  # 8.6, 8.9 and 12.0
_FEWEST_MULTIPROCESSORS = 16


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """A kind of GPU: compute capability, number of multiprocessors, shared memory a block may use, in bytes."""

    capability: tuple[int, int]
    num_multiprocessors: int
    shared_bytes: int

    @property
    def arch(self) -> int:
        """The compute capability as Triton writes it: 89 for 8.9, 120 for 12.0."""
        return self.capability[0] * 10 + self.capability[1]

    @property
    def float32_precision(self) -> str:
        """How matrix products of float32 are computed.

        "tf32x3" splits a factor in two and takes three products on the tensor cores, which keeps float32's accuracy;
        Turing's tensor cores have no such mode.
        """
        return "tf32x3" if self.capability >= (8, 0) else "ieee"


def facts_of(gpu: Gpu) -> GpuFacts:
    """Returns the facts of one of a target's GPUs."""
    capability, descriptor = capability_number(gpu.compute_capability), dict(gpu.cudnn)
    return GpuFacts(
        capability,
        int(descriptor.get("multiProcessorCount", _FEWEST_MULTIPROCESSORS)),
        int(descriptor.get("maxSharedMemoryPerBlockOptin", _SHARED_BYTES.get(capability, _USUAL_SHARED_BYTES))),
    )
