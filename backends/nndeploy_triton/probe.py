# SPDX-License-Identifier: Apache-2.0
"""What can be done here for a target: compiling needs Triton, running needs a GPU that the target names."""

from nndeploy.backend_kit.gpu_probe import NOTHING, Lack, gpu_probe
from nndeploy.plugin.interface import Probe
from nndeploy.target.target import Target, capability_number
from nndeploy_triton.library import HINT, triton_missing, triton_version

OLDEST = (7, 5)
"""Triton's compiler supports Turing and later."""


def probe(target: Target) -> Probe:
    """Returns whether kernels can be compiled for the target, and launched here."""
    old = [gpu for gpu in target.gpus if capability_number(gpu.compute_capability) < OLDEST]
    if old:
        too_old = Lack(f"{old[0].name} has compute capability {old[0].compute_capability}, Triton needs 7.5 or later")
        return gpu_probe(target, triton_version(), too_old, too_old)
    missing = triton_missing()
    return gpu_probe(target, triton_version(), Lack(missing, HINT) if missing else NOTHING)
