# SPDX-License-Identifier: Apache-2.0
"""cuDNN on NVIDIA GPUs: convolutions, matrix products, pooling, normalisation and what is done element by element.

Plans are made without a GPU, for the one that the target describes. The artifact is a list of plans and of the memory
that each works on; the box runs it with cuDNN and a driver.
"""

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
    """The backend `cudnn`."""

    name = "cudnn"
    tier = 2
    device_kind = "cuda"
    api_version = API_VERSION
    extra_domains: tuple[str, ...] = ()

    def probe(self, target: Target) -> Probe:
        """Returns whether plans can be made for the target's GPUs, and run here; nothing is loaded but the driver."""
        from nndeploy_cudnn.probe import probe

        return probe(target)

    def transforms(self, target: Target) -> Sequence[Transform]:  # noqa: ARG002
        """Returns the expansion of operators that ONNX defines by others."""
        from nndeploy.backend_kit.transforms.expand_function import ExpandFunction

        return (ExpandFunction(),)

    def supports(self, model: "ir.Model", target: Target, options: BuildOptions) -> list[Support]:
        """Returns cuDNN's answer for each node."""
        from nndeploy_cudnn.support import supports

        return supports(model, target, options)

    def build(self, submodel: "ir.Model", target: Target, options: BuildOptions, workdir: Path) -> Artifact:  # noqa: ARG002
        """Returns `program.json`, `plans.bin` and `constants.safetensors` for the target's first GPU.

        Where the batch is in a range, so for each size of a ladder.

        Raises:
            BuildRefusedError: cuDNN does not take it, or is not usable here.
        """
        from nndeploy_cudnn.build import build

        return build(submodel, target, options)

    def code_files(self, files: Mapping[str, memoryview]) -> CodeFiles:
        """Returns the plans, of which cuDNN makes code."""
        from nndeploy_cudnn.program import PLANS_FILE

        return CodeFiles(frozenset(name for name in files if name.rpartition("/")[2] == PLANS_FILE))

    def open(self, files: Mapping[str, memoryview], metadata: Mapping[str, Json], options: OpenOptions) -> Session:
        """Returns a session over an artifact of `build`.

        Raises:
            UnavailableError: there is no GPU, no cuDNN, or they are not those that the plans were made for.
            BundleError: the artifact is malformed.
        """
        from nndeploy_cudnn.session import open_session

        return open_session(files, metadata, options)
