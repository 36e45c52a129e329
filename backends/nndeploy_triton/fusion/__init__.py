# SPDX-License-Identifier: Apache-2.0
"""Steps -> fewer steps that do the same: the list of fusions, in order.

Law: the values of the submodel's outputs do not change but for rounding, and no step reads what is not yet written.
"""

from collections.abc import Set

from nndeploy.backend_kit.kernels.dead_steps import without_dead_steps
from nndeploy_triton.fusion.elementwise_chains import fuse_elementwise
from nndeploy_triton.fusion.separable import fuse_separable
from nndeploy_triton.steps.step import TritonStep


def fused(steps: list[TritonStep], kept: Set[str]) -> list[TritonStep]:
    """Returns the fused steps; `kept` names the roots that are read outside."""
    steps = without_dead_steps(steps, kept)
    steps = fuse_elementwise(steps, kept)
    steps = fuse_separable(steps, kept)
    return fuse_elementwise(steps, kept)
