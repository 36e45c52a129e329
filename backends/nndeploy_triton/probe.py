# SPDX-License-Identifier: Apache-2.0
"""What can be done here for a target: compiling needs Triton, running needs a GPU that the target names."""

from nndeploy.cuda import cuda_unavailable
from nndeploy.plugin.interface import Probe
from nndeploy.target.target import Target, capability_number
from nndeploy_triton.library import HINT, triton_missing, triton_version

NO_GPU = "the target has no NVIDIA GPU"
OLDEST = (7, 5)
"""Triton's compiler supports Turing and later."""


def probe(target: Target) -> Probe:
    """Returns whether kernels can be compiled for the target, and launched here."""
    if not target.gpus:
        return Probe(False, False, triton_version(), NO_GPU)
    old = [gpu for gpu in target.gpus if capability_number(gpu.compute_capability) < OLDEST]
    if old:
        reason = f"{old[0].name} has compute capability {old[0].compute_capability}, Triton needs 7.5 or later"
        return Probe(False, False, triton_version(), reason)
    not_here, missing = cuda_unavailable(), triton_missing()
    hint = HINT if missing else ""
    return Probe(not missing, not not_here, triton_version(), missing or not_here, hint)
