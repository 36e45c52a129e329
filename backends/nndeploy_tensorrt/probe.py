# SPDX-License-Identifier: Apache-2.0
"""What TensorRT can do on this machine for a target: which library builds, and whether there is a GPU to run on.

No library is loaded: packages are looked up, and the driver is asked through `nndeploy.cuda`.
"""

from nndeploy.backend_kit.gpu_probe import NOTHING, Lack, gpu_probe
from nndeploy.plugin.interface import Probe
from nndeploy.target.target import Target, host_target
from nndeploy_tensorrt.library import LIBRARIES, RTX, installed_version, is_installed
from nndeploy_tensorrt.serving import Serving, serving_for


def probe(target: Target) -> Probe:
    """Returns whether an engine can be built for `target`, whether engines run here, and why not."""
    serving = serving_of(target)
    has_library = any(is_installed(flavour) for flavour in LIBRARIES)
    to_run = NOTHING if has_library else Lack(f"{RTX.title} is not installed", RTX.hint)
    return gpu_probe(target, _versions(), Lack(serving.reason, serving.hint), to_run)


def serving_of(target: Target) -> Serving:
    """Returns which library builds for the GPUs of `target`; see `nndeploy_tensorrt.serving`."""
    return serving_for(target, lambda: [gpu.compute_capability for gpu in host_target().gpus])


def _versions() -> str:
    return ", ".join(
        f"{library.title} {installed_version(flavour)}".strip()
        for flavour, library in LIBRARIES.items()
        if is_installed(flavour)
    )
