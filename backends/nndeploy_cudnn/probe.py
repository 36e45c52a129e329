# SPDX-License-Identifier: Apache-2.0
"""What can be done here for a target: plans need cuDNN and a driver or its stand-in, running them cuDNN and a GPU."""

from nndeploy.backend_kit.gpu_probe import NOTHING, Lack, gpu_probe
from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import Probe
from nndeploy.target.target import Target
from nndeploy_cudnn.library import HINT, installed_path, installed_version
from nndeploy_cudnn.planner import child_environment


def probe(target: Target) -> Probe:
    """Returns whether plans can be made for the GPUs of `target`, whether they run here, and why not."""
    if not installed_path():
        missing = Lack("cuDNN is not installed", HINT)
        return gpu_probe(target, "", missing, missing)
    return gpu_probe(target, installed_version(), _lacking_to_plan())


def _lacking_to_plan() -> Lack:
    try:
        child_environment()
    except UnavailableError as err:
        return Lack(err.what, err.hint)
    return NOTHING
