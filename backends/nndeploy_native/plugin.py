# SPDX-License-Identifier: Apache-2.0
"""Own kernels on CPUs: compiled ahead of time from C, run with nothing but libc and numpy."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
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
    """The backend `native`."""

    name = "native"
    tier = 3
    device_kind = "cpu"
    api_version = API_VERSION
    extra_domains: tuple[str, ...] = ()
    runs_alone = True
    has_pace_points = True

    def probe(self, target: Target) -> Probe:
        """Returns whether kernels can be built for the target, and run on this machine."""
        from nndeploy_native.probe import probe

        return probe(target)

    def transforms(self, target: Target) -> Sequence[Transform]:  # noqa: ARG002
        """Returns none: what a model spells out is found among the steps."""
        return ()

    def supports(self, model: "ir.Model", target: Target, options: BuildOptions) -> list[Support]:
        """Returns the answer of the rules for each node."""
        from nndeploy_native.support import supports

        return supports(model, target, options)

    def build(self, submodel: "ir.Model", target: Target, options: BuildOptions, workdir: Path) -> Artifact:
        """Returns a plan, or where the kernel library lacks a step a library for the target's instruction set.

        Raises:
            BuildRefusedError: a node has no kernel, there is no compiler, or the target is too old.
        """
        from nndeploy_kernels.loading import installed

        from nndeploy.errors import BuildRefusedError
        from nndeploy.target.target import WINDOW_BUFFER, host_target
        from nndeploy_native.build import build, machine_of
        from nndeploy_native.plan_build import build_plan
        from nndeploy_native.plan_session import checked
        from nndeploy_native.probe import refusal_of_target

        if why := refusal_of_target(target, options.precision):
            raise BuildRefusedError(why)
        if installed(host_target()) is not None:
            buffer_bytes = dict(target.caches).get(WINDOW_BUFFER, 0)
            with suppress(BuildRefusedError):
                artifact = build_plan(submodel, options.ranges, precision=options.precision, buffer_bytes=buffer_bytes)
                return checked(artifact)
        return build(submodel, machine_of(target, options), options.ranges, workdir)

    def code_files(self, files: Mapping[str, memoryview]) -> CodeFiles:
        """Returns the library of kernels."""
        from nndeploy_native.plan import LIBRARY_FILE

        return CodeFiles(frozenset({LIBRARY_FILE}) & files.keys())

    def open(self, files: Mapping[str, memoryview], metadata: Mapping[str, Json], options: OpenOptions) -> Session:
        """Returns a session over an artifact of `build`.

        Raises:
            UnavailableError: this machine lacks an instruction that the kernels use.
            BundleError: the artifact is malformed.
        """
        from nndeploy_native.plan_document import PLAN_FORMAT
        from nndeploy_native.plan_session import open_plan
        from nndeploy_native.session import open_session

        return (open_plan if metadata.get("format") == PLAN_FORMAT else open_session)(files, metadata, options)

    def steps_here(
        self, files: Mapping[str, memoryview], metadata: Mapping[str, Json]
    ) -> Sequence[Mapping[str, int | str]] | None:
        """Returns the steps of a plan with the windows that this machine chooses; a library tells its own.

        Raises:
            BundleError: the artifact is malformed.
        """
        from nndeploy_native.plan_document import PLAN_FORMAT
        from nndeploy_native.plan_session import steps_here

        return steps_here(files, metadata) if metadata.get("format") == PLAN_FORMAT else None

    def build_pace_library(self, arch: str, workdir: Path) -> bytes:
        """Returns the library of delays for an architecture.

        Raises:
            BuildRefusedError: there is no compiler, or not for this architecture.
        """
        from nndeploy_native.pace_library import build_pace_library

        return build_pace_library(arch, workdir)
