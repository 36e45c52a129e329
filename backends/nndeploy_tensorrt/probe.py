# SPDX-License-Identifier: Apache-2.0
"""What TensorRT can do on this machine for a target: which library builds, and whether there is a GPU to run on.

No library is loaded: packages are looked up, and the driver is asked through `nndeploy.cuda`.
"""

from nndeploy.cuda.facts import cuda_unavailable
from nndeploy.plugin.interface import Probe
from nndeploy.target.target import Target, host_target
from nndeploy_tensorrt.library import LIBRARIES, RTX, installed_version, is_installed
from nndeploy_tensorrt.serving import NO_GPU, Serving, serving_for


def probe(target: Target) -> Probe:
    """Returns whether an engine can be built for `target`, whether engines run here, and why not."""
    serving = serving_of(target)
    cannot_run = _why_not_run()
    reason, hint = (serving.reason, serving.hint) if serving.reason else (cannot_run, "")
    if target.is_host and serving.reason == NO_GPU and cannot_run:
        reason = cannot_run
    return Probe(bool(serving.flavour), not cannot_run, _versions(), reason, hint)


def serving_of(target: Target) -> Serving:
    """Returns which library builds for the GPUs of `target`; see `nndeploy_tensorrt.serving`."""
    return serving_for(target, lambda: [gpu.compute_capability for gpu in host_target().gpus])


def _why_not_run() -> str:
    if not any(is_installed(flavour) for flavour in LIBRARIES):
        return f"{RTX.title} is not installed"
    return cuda_unavailable()


def _versions() -> str:
    return ", ".join(
        f"{library.title} {installed_version(flavour)}".strip()
        for flavour, library in LIBRARIES.items()
        if is_installed(flavour)
    )
