# SPDX-License-Identifier: Apache-2.0
"""OpenVINO on the CPU: the inference library of the first tier.

The artifact is OpenVINO's IR, which any machine with OpenVINO compiles at load, and the compiled model for machines
like the one that built it.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
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

ARCHITECTURES = ("x86_64", "aarch64")


class Plugin:
    """The backend `openvino`."""

    name = "openvino"
    tier = 1
    device_kind = "cpu"
    api_version = API_VERSION
    extra_domains: tuple[str, ...] = ("com.microsoft", "org.openvinotoolkit")
    maps_weights = True

    def probe(self, target: Target) -> Probe:
        """Returns whether the library is installed and runs on the target's architecture; it is not loaded."""
        if target.arch not in ARCHITECTURES:
            return Probe(False, False, reason=f"there is no OpenVINO for {target.arch}")
        return _probe()

    def transforms(self, target: Target) -> Sequence[Transform]:  # noqa: ARG002
        """Returns rewrites of operators that OpenVINO refuses, in order."""
        from nndeploy.backend_kit.transforms.expand_function import ExpandFunction
        from nndeploy_openvino.transforms import TRANSFORMS

        return (*TRANSFORMS, ExpandFunction())

    def supports(self, model: "ir.Model", target: Target, options: BuildOptions) -> list[Support]:  # noqa: ARG002
        """Returns the library's answer for each node."""
        from nndeploy_openvino.support import supports

        return supports(model, options.ranges)

    def build(self, submodel: "ir.Model", target: Target, options: BuildOptions, workdir: Path) -> Artifact:
        """Returns OpenVINO's IR of the submodel, and its compiled form if the target is this machine.

        Raises:
            BuildRefusedError: OpenVINO does not convert or compile it, or it is larger than 2 GiB.
        """
        from nndeploy_openvino.build import build

        return build(submodel, target, options, workdir)

    def code_files(self, files: Mapping[str, memoryview]) -> CodeFiles:
        """Returns the compiled model, which OpenVINO runs as it is; the IR does without it."""
        from nndeploy_openvino.files import BLOB_FILE

        return CodeFiles(frozenset({BLOB_FILE}) & files.keys(), is_needed=False)

    def open(self, files: Mapping[str, memoryview], metadata: Mapping[str, Json], options: OpenOptions) -> Session:
        """Returns a session over an artifact of `build`.

        Raises:
            UnavailableError: the library or the device is not here.
            BundleError: files or names are missing, or do not fit the model.
        """
        from nndeploy_openvino.session import open_session

        return open_session(files, metadata, options)


@cache
def _probe() -> Probe:
    if find_spec("openvino") is None:
        from nndeploy_openvino.library import HINT

        return Probe(False, False, reason="openvino is not installed", hint=HINT)
    try:
        return Probe(True, True, version("openvino"))
    except PackageNotFoundError:
        return Probe(True, True)
