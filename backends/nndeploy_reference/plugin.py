# SPDX-License-Identifier: Apache-2.0
"""ONNX's own evaluator, written in Python: the last resort, so that no valid model is refused.

Slow, and right by definition; the artifact is the model itself. Needs the package onnx where the bundle runs.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from nndeploy.plugin.interface import (
    API_VERSION,
    NO_CODE,
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
from nndeploy.values.types import Value
from nndeploy.version import install_command

if TYPE_CHECKING:
    import onnx_ir as ir


class Plugin:
    """The backend `reference`."""

    name = "reference"
    tier = 5
    device_kind = "cpu"
    api_version = API_VERSION
    extra_domains: tuple[str, ...] = ()

    def probe(self, target: Target) -> Probe:  # noqa: ARG002 - pure Python: any target will do
        """Returns whether the package onnx is installed; it is not loaded."""
        return _probe()

    def transforms(self, target: Target) -> Sequence[Transform]:  # noqa: ARG002
        """Returns no rewrites: the evaluator expands operators itself."""
        return ()

    def supports(self, model: "ir.Model", target: Target, options: BuildOptions) -> list[Support]:  # noqa: ARG002
        """Returns the evaluator's answer for each node."""
        from nndeploy_reference.build import supports

        return supports(model)

    def build(self, submodel: "ir.Model", target: Target, options: BuildOptions, workdir: Path) -> Artifact:  # noqa: ARG002
        """Returns the model as it is.

        Raises:
            BuildRefusedError: an operator has no implementation, or the model is larger than 2 GiB.
        """
        from nndeploy_reference.build import build

        return build(submodel)

    def code_files(self, files: Mapping[str, memoryview]) -> CodeFiles:  # noqa: ARG002
        """Returns none: a model names operators of ONNX alone."""
        return NO_CODE

    def open(self, files: Mapping[str, memoryview], metadata: Mapping[str, Json], options: OpenOptions) -> Session:  # noqa: ARG002
        """Returns a session over an artifact of `build`.

        Raises:
            UnavailableError: the package onnx or the device is not here.
            BundleError: the artifact has no model.
        """
        from nndeploy_reference.session import open_session

        return open_session(files, options)

    def evaluate(
        self,
        model: bytes,
        samples: Sequence[Mapping[str, Value]],
        options: BuildOptions,  # noqa: ARG002
    ) -> list[dict[str, Value]]:
        """Returns a model's outputs on each sample.

        Raises:
            BuildRefusedError: an operator has no implementation, or not for these values.
        """
        from nndeploy_reference.build import evaluate

        return evaluate(model, samples)


@cache
def _probe() -> Probe:
    if find_spec("onnx") is None:
        hint = install_command("compile")
        return Probe(False, False, reason="the package onnx is not installed", hint=hint)
    return Probe(True, True, version("onnx"))
