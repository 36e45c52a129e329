# SPDX-License-Identifier: Apache-2.0
"""The stages in order, each with its limits. What each does stands in its module.

A stage's module offers `items(options) -> names` and `run(item, options) -> rows`; both run in a child only.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage: its module, seconds for all of it and for one item, whether items may run beside each other.

    What is timed runs alone.
    """

    name: str
    module: str
    seconds: float
    item_seconds: float
    is_parallel: bool = False


STAGES = (
    Stage("probe", "gpucheck.stage_probe", 40, 40),
    Stage("cuda", "gpucheck.stage_cuda", 60, 30),
    Stage("bundle", "gpucheck.stage_bundle", 60, 60),
    Stage("conformance", "gpucheck.stage_conformance", 150, 100, is_parallel=True),
    Stage("operators", "gpucheck.stage_operators", 120, 100, is_parallel=True),
    Stage("kernels", "gpucheck.stage_kernels", 150, 60),
    Stage("networks", "gpucheck.stage_networks", 180, 170, is_parallel=True),
    Stage("speed", "gpucheck.stage_speed", 90, 60),
)
"""In the order of what one wants to know first where time runs out."""
