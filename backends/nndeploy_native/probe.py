# SPDX-License-Identifier: Apache-2.0
"""What can be done here for a target: building needs ziglang, running needs the target's instruction set."""

from nndeploy.plugin.interface import Probe
from nndeploy.target.target import Target, host_target
from nndeploy_native.isa import isa_for, no_isa_reason
from nndeploy_native.library import HINT, zig_missing, zig_version


def probe(target: Target) -> Probe:
    """Returns whether kernels can be built for the target, and run on this machine."""
    isa = isa_for(target)
    if isa is None:
        return Probe(False, False, zig_version(), no_isa_reason(target))
    host = host_target()
    runs = host.arch == isa.arch and set(host.cpu_features).issuperset(isa.cpu_features)
    missing = zig_missing()
    reason = missing or ("" if runs else f"this machine does not run {isa.name}")
    return Probe(not missing, runs, zig_version(), reason, HINT if missing else "")
