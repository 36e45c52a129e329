# SPDX-License-Identifier: Apache-2.0
"""Own kernels on CPUs: bundles carry plans, which a library of kernels that was compiled before interprets."""

from collections.abc import Callable, Mapping, Sequence
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
    Roof,
    Session,
    Support,
    Transform,
)
from nndeploy.target.target import Target

if TYPE_CHECKING:
    import onnx_ir as ir


class Plugin:
    """The backend `native`."""

    name = "native"
    tier = 3
    device_kind = "cpu"
    api_version = API_VERSION
    extra_domains: tuple[str, ...] = ("ai.onnx.ml", "com.microsoft")
    runs_alone = True
    is_hardened = True
    has_pace_points = True
    plans_branches = True
    maps_weights = True
    is_forkable = True

    def probe(self, target: Target) -> Probe:
        """Returns whether there are kernels for the target, and a library of them that this machine runs."""
        from nndeploy_native.probe import probe

        return probe(target)

    def transforms(self, target: Target) -> Sequence[Transform]:  # noqa: ARG002
        """Returns that for quantised operators; what a model spells out is made one operator when it is built."""
        from nndeploy.backend_kit.transforms.decompose_qlinear import DecomposeQLinear

        return (DecomposeQLinear(),)

    def supports(self, model: "ir.Model", target: Target, options: BuildOptions) -> list[Support]:
        """Returns the answer of the rules for each node."""
        from nndeploy_native.support import supports

        return supports(model, target, options)

    def build(self, submodel: "ir.Model", target: Target, options: BuildOptions, workdir: Path) -> Artifact:
        """Returns a plan, which serves every machine that the kernel library knows.

        Raises:
            BuildRefusedError: a node has no kernel, the target is too old, or the kernel library refuses the plan.
        """
        from nndeploy.errors import BuildRefusedError
        from nndeploy.target.target import WINDOW_BUFFER
        from nndeploy_native.kernel_library import no_kernels

        if why := no_kernels(target, options.precision):
            raise BuildRefusedError(why)
        from nndeploy_native.build import build
        from nndeploy_native.session import checked

        artifact = build(
            submodel,
            options.ranges,
            precision=options.precision,
            buffer_bytes=dict(target.caches).get(WINDOW_BUFFER, 0),
            workdir=str(workdir),
        )
        return checked(artifact)

    def code_files(self, files: Mapping[str, memoryview]) -> CodeFiles:  # noqa: ARG002
        """Returns none: plans are data."""
        return NO_CODE

    def open(self, files: Mapping[str, memoryview], metadata: Mapping[str, Json], options: OpenOptions) -> Session:
        """Returns a session over an artifact of `build`.

        Raises:
            UnavailableError: no kernel library is installed that this machine runs.
            BundleError: the artifact is malformed.
        """
        from nndeploy_native.session import open_session

        return open_session(files, metadata, options)

    def steps_here(
        self, files: Mapping[str, memoryview], metadata: Mapping[str, Json]
    ) -> Sequence[Mapping[str, int | str]] | None:
        """Returns the steps of a plan with the windows that this machine chooses; None where it has no library.

        Raises:
            BundleError: the artifact is malformed.
        """
        return self.steps_of_shapes(files, metadata, {})

    def steps_of_shapes(
        self, files: Mapping[str, memoryview], metadata: Mapping[str, Json], shapes: Mapping[str, tuple[int, ...]]
    ) -> Sequence[Mapping[str, int | str]] | None:
        """Returns the same for shapes of the inputs.

        Raises:
            BundleError: the artifact is malformed.
            OtherSizesError: the plan does not hold for these shapes.
        """
        from nndeploy_native.session import steps_here

        return steps_here(files, metadata, shapes)

    def pace_library(self) -> Path:
        """Returns the library of delays, which comes with the kernel library.

        Raises:
            UnavailableError: it is not installed, or not for this machine.
        """
        from nndeploy_native.kernel_library import pace_library

        return pace_library()

    def roof(self, threads: int | None, most_bytes: int) -> Roof:
        """Returns what the kernel library measures of this processor.

        Raises:
            UnavailableError: it is not installed, or cannot measure here.
        """
        from nndeploy_native.roof import measured_roof

        return measured_roof(threads, most_bytes)

    def runner(self, arch: str, metadata: Sequence[Mapping[str, Json]] = ()) -> Path:
        """Returns `nndeploy-run` for an architecture, which the wheel of that architecture brings for float32.

        Raises:
            UnavailableError: it is not installed.
        """
        from nndeploy_native.runner import runner

        return runner(arch, metadata)

    def why_not_alone(self, metadata: Mapping[str, Json], file: Callable[[str], bytes | memoryview]) -> str:
        """Returns what of an artifact the runner does not run, "" where there is nothing."""
        from nndeploy_native.runner import why_not_alone

        return why_not_alone(metadata, file)
