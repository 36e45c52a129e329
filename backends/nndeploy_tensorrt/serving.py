# SPDX-License-Identifier: Apache-2.0
"""Which TensorRT library serves the GPUs of a target, and for which compute capabilities an engine is built.

TensorRT-RTX builds for a list of capabilities, or one portable engine for 8.0 and later; it leaves out Hopper and the
data-centre Blackwells. Classic TensorRT builds on a GPU for that GPU. Data-centre GPUs go to the classic library
where it is installed, all others to TensorRT-RTX.

Source: TensorRT-RTX 1.7, Support Matrix and "CPU-Only AOT and TensorRT-RTX Engines"; TensorRT 11, Support Matrix.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nndeploy.backend_kit.gpu_probe import NO_GPU
from nndeploy.plugin.interface import Json
from nndeploy.target.target import Gpu, Target, capability_number
from nndeploy_tensorrt.artifact_facts import PORTABLE_FROM
from nndeploy_tensorrt.library import CLASSIC, RTX, is_installed

RTX_CAPABILITIES = ("7.5", "8.0", "8.6", "8.9", "12.0", "12.1")
"""Capabilities that TensorRT-RTX names; of those that come later than the last, the portable engine takes care."""

RTX_ARCHITECTURES = ("x86_64",)
DATA_CENTRE_CAPABILITIES = ("8.0", "9.0", "10.0", "10.3")


@dataclass(frozen=True, slots=True)
class Serving:
    """The library for a target and the capabilities to build for; or, where `flavour` is "", why there is none.

    `capabilities` empty means one portable engine, for 8.0 and later. `memory_bytes` is what the smallest of the GPUs
    has, 0 where nobody said.
    """

    flavour: str
    capabilities: tuple[str, ...] = ()
    memory_bytes: int = 0
    reason: str = ""
    hint: str = ""

    @property
    def requires(self) -> dict[str, Json]:
        """What a host must have to take the engine, in the form of `Artifact.requires`."""
        if self.capabilities:
            return {"compute_capability": list(self.capabilities)}
        return {"compute_capability_min": PORTABLE_FROM}


def serving_for(target: Target, capabilities_here: Callable[[], Sequence[str]]) -> Serving:
    """Returns which library builds for the GPUs of `target`.

    `capabilities_here` lists the compute capabilities of this machine's GPUs; it is asked only for the classic
    library, which builds on the GPU itself and is worth installing nowhere else.
    """
    if not target.gpus:
        return Serving("", reason=NO_GPU)
    answers = [_serving_for_gpu(gpu, target.arch, capabilities_here) for gpu in target.gpus]
    served = [answer for answer in answers if answer.flavour]
    if not served:
        return answers[0]
    same = [answer for answer in served if answer.flavour == served[0].flavour]
    return Serving(served[0].flavour, _merged([answer.capabilities for answer in same]), _smallest_memory(target))


def _serving_for_gpu(gpu: Gpu, arch: str, capabilities_here: Callable[[], Sequence[str]]) -> Serving:
    capability = gpu.compute_capability
    if capability in DATA_CENTRE_CAPABILITIES and is_installed(CLASSIC.flavour):
        return _classic(capability, capabilities_here)
    if arch in RTX_ARCHITECTURES and _is_served_by_rtx(capability):
        if not is_installed(RTX.flavour):
            return Serving("", reason=f"{RTX.title} is not installed", hint=RTX.hint)
        return Serving(RTX.flavour, (capability,) if capability in RTX_CAPABILITIES else ())
    if is_installed(CLASSIC.flavour):
        return _classic(capability, capabilities_here)
    hint = CLASSIC.hint if capability in capabilities_here() else ""
    return Serving("", reason=_not_by_rtx(capability, arch), hint=hint)


def _is_served_by_rtx(capability: str) -> bool:
    return capability in RTX_CAPABILITIES or capability_number(capability) > capability_number(RTX_CAPABILITIES[-1])


def _classic(capability: str, capabilities_here: Callable[[], Sequence[str]]) -> Serving:
    here = capabilities_here()
    if capability in here:
        return Serving(CLASSIC.flavour, (capability,))
    have = "this machine has " + (", ".join(here) if here else "no GPU")
    return Serving("", reason=f"{CLASSIC.title} builds only on a GPU of compute capability {capability}, {have}")


def _not_by_rtx(capability: str, arch: str) -> str:
    what = f"compute capability {capability}" if arch in RTX_ARCHITECTURES else f"{arch} machines"
    return f"{RTX.title} does not serve {what}, and {CLASSIC.title} is not installed"


def _merged(lists: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Returns all capabilities, sorted; () where one GPU needs the portable engine and all can take it."""
    if not all(lists):
        return ()
    return tuple(sorted({capability for some in lists for capability in some}, key=capability_number))


def _smallest_memory(target: Target) -> int:
    return min(gpu.memory_bytes for gpu in target.gpus)
