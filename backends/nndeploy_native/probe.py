# SPDX-License-Identifier: Apache-2.0
"""What can be done here for a target: a plan needs nothing, running it the kernel library of this machine."""

from nndeploy_kernels.loading import installed, missing

from nndeploy.plugin.interface import Probe
from nndeploy.target.target import Target, host_target
from nndeploy_native.session import INSTALL_HINT, no_library


def probe(target: Target) -> Probe:
    """Returns whether there are kernels for the target, and a library of them that this machine runs."""
    host = host_target()
    level = installed(host)
    version = level.name if level is not None else ""
    if why := missing(target):
        return Probe(False, False, version, why)
    if level is None:
        return Probe(True, False, version, no_library(host), INSTALL_HINT)
    return Probe(True, True, version, "")
