# SPDX-License-Identifier: Apache-2.0
"""Which backends build for a target, in which order, and which of those that were asked for cannot, with the reason.

Every bundle has a portable chain, for the CPU of any box, and one chain more for each target with GPUs. The portable
chain is built by backends of the CPU; a target's by those of its GPU first and then by those of the CPU, so that what
a GPU backend refuses is taken in the middle of the chain.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nndeploy.errors import UnavailableError, UsageError, did_you_mean
from nndeploy.plugin.interface import FALLBACK_TIER, Backend, Probe
from nndeploy.plugin.pacing import HasPacePoints
from nndeploy.plugin.registry import backend_names, backends_in_order
from nndeploy.target.target import ANY_VERSION, Target


@dataclass(frozen=True, slots=True)
class TargetBackends:
    """The backends that build for `target`, best first, and what each that was asked said, by name."""

    target: Target
    backends: tuple[Backend, ...]
    probes: Mapping[str, Probe]

    @property
    def left_out(self) -> dict[str, Probe]:
        """What those said that cannot build for the target."""
        return {name: probe for name, probe in self.probes.items() if not probe.can_build}

    @property
    def versions(self) -> dict[str, str]:
        """The version of each builder's library."""
        return {backend.name: self.probes[backend.name].version for backend in self.backends}

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each backend that was left out, or whose library the box has in another version."""
        left_out = [
            f"{name} is left out: {'; '.join(filter(None, (probe.reason, probe.hint)))}"
            for name, probe in self.left_out.items()
        ]
        there = dict(self.target.libraries)
        other = [
            f"{self.target.name} has {name} {there[name]}, here is {version}: what it builds may not load there"
            for name, version in self.versions.items()
            if there.get(name, version) not in (version, ANY_VERSION)
        ]
        return (*left_out, *other)


def backends_for(target: Target, names: Sequence[str] | None, without: Sequence[str]) -> TargetBackends:
    """Returns the backends of `names` (all installed ones where None) for a target; those for no device of it aside.

    Raises:
        UsageError: a name is unknown or given twice.
        UnavailableError: a backend of `names` cannot be loaded.
    """
    kinds = ("cuda", "cpu") if target.gpus else ("cpu",)
    candidates = [backend for backend in backends_in_order(names, without) if backend.device_kind in kinds]
    if names is None:
        candidates.sort(key=lambda backend: kinds.index(backend.device_kind))  # by tier and name within a kind
    probes = {backend.name: backend.probe(target) for backend in candidates}
    return TargetBackends(target, tuple(b for b in candidates if probes[b.name].can_build), probes)


def with_points_first(backends: Sequence[Backend]) -> tuple[Backend, ...]:
    """Returns the backends that a bundle is made of whose runs are to be paced: those with points, best first.

    Behind them stand the others, as far as there is no fallback with points that takes what these are for.
    """
    paced = [backend for backend in backends if isinstance(backend, HasPacePoints)]
    others = [backend for backend in backends if backend not in paced]
    if any(backend.tier == FALLBACK_TIER for backend in paced):
        others = [backend for backend in others if backend.tier > FALLBACK_TIER]
    return (*paced, *others)


Pins = Sequence[tuple[str, str]]
"""(glob of node names, backend)."""


def pins_for(pins: Pins, backends: Sequence[Backend]) -> Pins:
    """Returns the pins that a chain built by `backends` can follow: one to a GPU means nothing where there is none."""
    names = {backend.name for backend in backends}
    return [(glob, name) for glob, name in pins if name in names]


def check_known(option: str, names: Iterable[str], chains: Sequence[TargetBackends]) -> None:
    """Checks that each of the backends that an option names builds for some chain.

    Raises:
        UsageError: one does not.
    """
    known = {backend.name for chain in chains for backend in chain.backends}
    for name in names:
        if name not in known:
            raise UsageError(f"{option} names the backend {name!r}", hint=did_you_mean(name, known))


def check_libraries(targets: Iterable[Target]) -> None:
    """Checks that a backend has the name of each library that somebody says a target has, on the command line.

    Raises:
        UsageError: none has; what a target file lists may be of plugins that are not installed here.
    """
    known = backend_names()
    for target in targets:
        for name, version in target.libraries:
            if version == ANY_VERSION and name not in known:
                raise UsageError(f"--target {target.name}+{name:.80} names no backend", hint=did_you_mean(name, known))


def check_all_used(names: Sequence[str] | None, without: Sequence[str], chains: Sequence[TargetBackends]) -> None:
    """Checks that every backend that the user named builds for some target, and that the portable chain has one.

    `chains` begins with the portable chain.

    Raises:
        UnavailableError: a backend builds for no target, or none is left that builds for a CPU.
    """
    used = {backend.name for chain in chains for backend in chain.backends}
    for backend in backends_in_order(names, without) if names is not None else ():
        if backend.name in used:
            continue
        refusals = [chain.left_out[backend.name] for chain in chains if backend.name in chain.left_out]
        if not refusals:
            hint = "name a target: --target rtx4090"
            raise UnavailableError(f"{backend.name} builds for NVIDIA GPUs, and no target has one", hint=hint)
        names_of = ", ".join(chain.target.name for chain in chains if backend.name in chain.left_out)
        raise UnavailableError(
            f"{backend.name} cannot build here for {names_of}: {refusals[0].reason}", hint=refusals[0].hint
        )
    if not chains[0].backends:
        raise UnavailableError(
            "no remaining backend builds for CPUs, on which every bundle must run",
            hint="add onnxruntime to --backends",
        )
