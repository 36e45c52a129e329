# SPDX-License-Identifier: Apache-2.0
"""What can be done here for a target: a plan needs the kernel library of this machine, a program of its own ziglang."""

from nndeploy_kernels.loading import installed, missing

from nndeploy.plugin.interface import Probe
from nndeploy.target.target import Target, host_target
from nndeploy_native.isa import isa_for, no_isa_reason
from nndeploy_native.library import HINT, zig_missing, zig_version


def refusal_of_target(target: Target, precision: str) -> str:
    """Returns why nothing can be made for a target, in one line; "" where something can."""
    if installed(host_target()) is not None:
        return missing(target, precision)
    return no_isa_reason(target, precision) if isa_for(target, precision) is None else ""


def probe(target: Target) -> Probe:
    """Returns whether plans or programs can be made for the target, and run on this machine."""
    why = refusal_of_target(target, "fp32")
    if why:
        return Probe(False, False, zig_version(), why)
    host, isa = host_target(), isa_for(target)
    if installed(host) is not None:
        return Probe(True, True, zig_version(), "")
    assert isa is not None
    runs = host.arch == isa.arch and set(host.cpu_features).issuperset(isa.cpu_features)
    lacking = zig_missing()
    reason = lacking or ("" if runs else f"this machine does not run {isa.name}")
    return Probe(not lacking, runs, zig_version(), reason, HINT if lacking else "")
