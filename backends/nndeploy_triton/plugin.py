# SPDX-License-Identifier: Apache-2.0
"""Own kernels on NVIDIA GPUs, written in Triton: built on any machine, run without Triton."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nndeploy.plugin.interface import (
    API_VERSION,
    Artifact,
    BuildOptions,
    CodeFiles,
    Json,
    OpenOptions,
    Probe,
    Session,
    Support,
    Transform,
)
from nndeploy.target.target import Target

if TYPE_CHECKING:
    import onnx_ir as ir


class Plugin:
    """The backend `triton`."""

    name = "triton"
    tier = 3
    device_kind = "cuda"
    api_version = API_VERSION
    extra_domains: tuple[str, ...] = ("com.microsoft",)

    def probe(self, target: Target) -> Probe:
        """Returns whether kernels can be compiled for the target's GPUs, and launched on this machine."""
        from nndeploy_triton.probe import probe

        return probe(target)

    def transforms(self, target: Target) -> Sequence[Transform]:  # noqa: ARG002
        """Returns the rewrite of quantised operators; what a model spells out is found while it is lowered."""
        from nndeploy.backend_kit.transforms.decompose_qlinear import DecomposeQLinear

        return (DecomposeQLinear(),)

    def supports(self, model: "ir.Model", target: Target, options: BuildOptions) -> list[Support]:
        """Returns the answer of the rules for each node."""
        from nndeploy_triton.support import supports

        return supports(model, target, options.ranges)

    def build(self, submodel: "ir.Model", target: Target, options: BuildOptions, workdir: Path) -> Artifact:  # noqa: ARG002
        """Returns cubins for each of the target's compute capabilities, with the plan of their launches.

        Raises:
            BuildRefusedError: a node has no kernel, or a kernel does not compile.
        """
        from nndeploy_triton.autotune import build_tuned

        return build_tuned(submodel, target, options.ranges)

    def code_files(self, files: Mapping[str, memoryview]) -> CodeFiles:
        """Returns all files: the plan chooses which of them are handed to the driver as code."""
        return CodeFiles(frozenset(files))

    def open(self, files: Mapping[str, memoryview], metadata: Mapping[str, Json], options: OpenOptions) -> Session:
        """Returns a session on the GPU that `options` names.

        Raises:
            UnavailableError: there is no such GPU, or the artifact has no code for it.
            BundleError: the artifact is malformed.
        """
        from nndeploy_triton.session import open_session

        return open_session(files, metadata, options)
