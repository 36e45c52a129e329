# SPDX-License-Identifier: Apache-2.0
"""TensorRT on NVIDIA GPUs: TensorRT-RTX, whose engines are built on any machine, and the classic library behind it.

The artifact is one serialized engine for the target's GPUs; the GPU specialises it at load.
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
    """The backend `tensorrt`."""

    name = "tensorrt"
    tier = 1
    device_kind = "cuda"
    api_version = API_VERSION
    extra_domains: tuple[str, ...] = ("com.microsoft",)

    def probe(self, target: Target) -> Probe:
        """Returns whether an engine can be built for the target's GPUs, and run on this machine; nothing is loaded."""
        from nndeploy_tensorrt.probe import probe

        return probe(target)

    def transforms(self, target: Target) -> Sequence[Transform]:
        """Returns the rewrites of operators that TensorRT refuses on the target's GPUs."""
        from nndeploy_tensorrt.transforms import transforms

        return transforms(target)

    def supports(self, model: "ir.Model", target: Target, options: BuildOptions) -> list[Support]:
        """Returns the answer of the library's parser and builder for each node."""
        from nndeploy_tensorrt.probe import serving_of
        from nndeploy_tensorrt.support import supports

        return supports(model, serving_of(target), options.ranges)

    def build(self, submodel: "ir.Model", target: Target, options: BuildOptions, workdir: Path) -> Artifact:
        """Returns the engine: `engine.trt`.

        Raises:
            BuildRefusedError: the parser or the builder refuses, or an input has a size that nobody declared.
        """
        from nndeploy_tensorrt.build import build
        from nndeploy_tensorrt.probe import serving_of

        return build(submodel, serving_of(target), target.arch, options.ranges, workdir)

    def code_files(self, files: Mapping[str, memoryview]) -> CodeFiles:
        """Returns the engine."""
        from nndeploy_tensorrt.files import ENGINE_FILE

        return CodeFiles(frozenset({ENGINE_FILE}) & files.keys())

    def open(self, files: Mapping[str, memoryview], metadata: Mapping[str, Json], options: OpenOptions) -> Session:
        """Returns a session over an engine on one GPU.

        Raises:
            UnavailableError: the library, its version or the GPU that the engine was built for is not here.
            BundleError: the artifact is not one of this backend's.
        """
        from nndeploy_tensorrt.session import open_session

        return open_session(files, metadata, options)
