# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime on the CPU: the fallback that takes nearly everything, and its kernels one by one.

The artifact is the model as ONNX Runtime optimised it for any CPU; what depends on the CPU is done at load.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
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
    QuantiseRecipe,
    Session,
    Support,
    Transform,
)
from nndeploy.target.target import Target
from nndeploy.values.types import Value

if TYPE_CHECKING:
    import onnx_ir as ir


class Plugin:
    """The backend `onnxruntime`."""

    name = "onnxruntime"
    tier = 4
    device_kind = "cpu"
    api_version = API_VERSION
    extra_domains: tuple[str, ...] = ("com.microsoft",)
    has_pace_points = True
    maps_weights = True

    def probe(self, target: Target) -> Probe:  # noqa: ARG002 - what it makes runs wherever the library is
        """Returns whether the library is installed; it is not loaded."""
        return _probe()

    def transforms(self, target: Target) -> Sequence[Transform]:  # noqa: ARG002
        """Returns the expansion of operators that ONNX defines by others."""
        from nndeploy.backend_kit.transforms.expand_function import ExpandFunction

        return (ExpandFunction(),)

    def supports(self, model: "ir.Model", target: Target, options: BuildOptions) -> list[Support]:  # noqa: ARG002
        """Returns the library's answer for each node."""
        from nndeploy_onnxruntime.support import supports

        return supports(model, options.custom_op_libraries)

    def build(self, submodel: "ir.Model", target: Target, options: BuildOptions, workdir: Path) -> Artifact:  # noqa: ARG002
        """Returns the optimised model: `model.onnx`, and its large constants in `weights.bin`.

        Raises:
            BuildRefusedError: the library refuses the model, or it is larger than 2 GiB.
        """
        from nndeploy_onnxruntime.build import build

        return build(submodel, options, workdir)

    def code_files(self, files: Mapping[str, memoryview]) -> CodeFiles:  # noqa: ARG002
        """Returns none: a model names operators, and libraries of others are named by the user alone."""
        return NO_CODE

    def open(self, files: Mapping[str, memoryview], metadata: Mapping[str, Json], options: OpenOptions) -> Session:  # noqa: ARG002
        """Returns a session over an artifact of `build`.

        Raises:
            UnavailableError: the library, an operator library or the device is not here.
            BundleError: the model asks for data outside the artifact.
        """
        from nndeploy_onnxruntime.open_session import open_session

        return open_session(files, options)

    def evaluate(
        self, model: bytes, samples: Sequence[Mapping[str, Value]], options: BuildOptions
    ) -> list[dict[str, Value]]:
        """Returns a model's outputs on each sample: as the file says, one thread.

        Raises:
            BuildRefusedError: the library cannot run the model, or not on these values.
        """
        from nndeploy_onnxruntime.evaluate import evaluate

        return evaluate(model, samples, options.custom_op_libraries)

    def calibrate(
        self, model: bytes, samples: Sequence[Mapping[str, Value]], method: str, workdir: Path
    ) -> dict[str, tuple[float, float]]:
        """Returns the range of each float tensor on the samples.

        Raises:
            BuildRefusedError: the library cannot run the model, or not on these values.
        """
        from nndeploy_onnxruntime.calibrate import calibrate

        return calibrate(model, samples, method, workdir)

    def quantise(self, model: bytes, recipe: QuantiseRecipe, workdir: Path) -> bytes:
        """Returns the model with the nodes of the recipe quantised.

        Raises:
            BuildRefusedError: the library cannot.
        """
        from nndeploy_onnxruntime.quantise import quantise

        return quantise(model, recipe, workdir)


@cache
def _probe() -> Probe:
    if find_spec("onnxruntime") is None:
        from nndeploy_onnxruntime.library import HINT

        return Probe(False, False, reason="onnxruntime is not installed", hint=HINT)
    return Probe(True, True, _version())


def _version() -> str:
    if (library := sys.modules.get("onnxruntime")) is not None:
        return str(library.__version__)  # reading the metadata takes a millisecond
    for distribution in ("onnxruntime", "onnxruntime-gpu"):
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return ""
