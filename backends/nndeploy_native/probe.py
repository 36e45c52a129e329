# SPDX-License-Identifier: Apache-2.0
"""What can be done here for a target: a plan needs nothing, running it the kernel library of this machine."""

from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import Probe
from nndeploy.target.target import Target
from nndeploy_native.kernel_library import level_here, no_kernels


def probe(target: Target) -> Probe:
    """Returns whether there are kernels for the target, and a library of them that this machine runs."""
    if why := no_kernels(target):
        return Probe(False, False, "", why)
    try:
        return Probe(True, True, level_here().name, "")
    except UnavailableError as err:
        return Probe(True, False, "", err.what, err.hint)
