# SPDX-License-Identifier: Apache-2.0
"""The chains of a bundle beside the portable one: for each target with GPUs the model is cut and built anew.

    target -> backends of its GPUs, then those of the CPU -> settle (place, build, check) -> one chain

What can run on this machine is compared with the reference as in the portable chain; what needs a GPU that is not here
is built, listed and not compared, which the report says of each submodel.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from nndeploy.bundle.manifest import PORTABLE, NamedType
from nndeploy.bundle.report import SubmodelReport
from nndeploy.checking.likely_sizes import kind_of, usual_range
from nndeploy.checking.usual_ranges import MAX_ELEMENTS, usual_ranges
from nndeploy.compiler.chains.backend_order import Pins, TargetBackends, pins_for
from nndeploy.compiler.chains.built_chain import Settled
from nndeploy.compiler.chains.chain_plan import ChainPlan, plan_for
from nndeploy.compiler.chains.chain_setting import Setting
from nndeploy.compiler.chains.lower import settle
from nndeploy.target.target import Target
from nndeploy.values.types import DimRange, TensorType, ValueType

MAX_ID = 40
LEAST_VALUES, BYTES_OF_ELEMENT = 8, 4
"""So many float32 values of the largest size of a usual range have room on a GPU at least."""


@dataclass(frozen=True, slots=True)
class PlannedChain:
    """Who would run what on a target; `ranges` are those of sizes that nobody declared."""

    id: str
    backends: TargetBackends
    plan: ChainPlan
    ranges: Mapping[str, DimRange]

    @property
    def uses_gpu(self) -> bool:
        """Whether any submodel is to run on a GPU."""
        return _uses_gpu(self.backends, (region.backend for region in self.plan.regions))


@dataclass(frozen=True, slots=True)
class SettledChain:
    """A chain for one target that was built; `ranges` are those of sizes that nobody declared."""

    id: str
    backends: TargetBackends
    settled: Settled
    ranges: Mapping[str, DimRange]

    @property
    def plan(self) -> ChainPlan:
        """Who runs what."""
        return self.settled.plan

    @property
    def uses_gpu(self) -> bool:
        """Whether any submodel runs on a GPU; a chain without one is not kept, the portable chain serves the target."""
        return _uses_gpu(self.backends, (built.piece.backend for built in self.settled.pieces))


def _uses_gpu(who: TargetBackends, chosen: Iterable[str]) -> bool:
    return not _on_gpu(who).isdisjoint(chosen)


def _on_gpu(who: TargetBackends) -> set[str]:
    return {backend.name for backend in who.backends if backend.device_kind == "cuda"}


def why_idle(
    chain: PlannedChain | SettledChain, submodels: Sequence[SubmodelReport], open_inputs: Sequence[NamedType]
) -> str:
    """Returns why nothing of a model runs on the GPUs of a chain's target, "" where something does.

    `submodels` say who refused them; `open_inputs` are those with sizes that have no range.
    """
    if chain.uses_gpu:
        return ""
    on_gpu = _on_gpu(chain.backends)
    refusals = ((name, why) for one in submodels for name, why in one.refusals.items() if name in on_gpu)
    name, why = next(refusals, ("", "no backend for GPUs builds here"))
    shapes = " ".join(f"--shape {named.name}={_with_ranges(named.type)}" for named in open_inputs)
    cure = f"; give sizes a range, e.g. {shapes}" if shapes else ""
    return f"nothing runs on the GPU of {chain.backends.target.name}: {f'{name}: ' if name else ''}{why}{cure}"


def _with_ranges(type_: ValueType) -> str:
    dims = (type_.shape if isinstance(type_, TensorType) else None) or ()
    ranges = [usual_range(kind_of(dim, axis, dims)) for axis, dim in enumerate(dims)]
    return ",".join(str(dim if isinstance(dim, int) else usual) for dim, usual in zip(dims, ranges, strict=True))


def plan_chains(
    setting: Setting, model: ir.Model, targets: Sequence[TargetBackends], pins: Pins
) -> tuple[PlannedChain, ...]:
    """Returns for each target who would run what; nothing is built."""

    def planned(name: str, who: TargetBackends) -> PlannedChain:
        ranges = _ranges(setting, model, who.target)
        plan = plan_for(_setting(setting, name, who, ranges), model, who.backends, pins_for(pins, who.backends))
        return PlannedChain(name, who, plan, ranges)

    return tuple(planned(name, who) for name, who in _with_ids(targets))


def settle_chains(
    setting: Setting, model: ir.Model, targets: Sequence[TargetBackends], pins: Pins
) -> tuple[SettledChain, ...]:
    """Returns a chain for each target.

    Raises:
        ModelError: a node has no backend left on a target.
    """

    def settled(name: str, who: TargetBackends) -> SettledChain:
        ranges = _ranges(setting, model, who.target)
        found = settle(_setting(setting, name, who, ranges), model, who.backends, pins_for(pins, who.backends))
        return SettledChain(name, who, found, ranges)

    return tuple(settled(name, who) for name, who in _with_ids(targets))


def _ranges(setting: Setting, model: ir.Model, target: Target) -> dict[str, DimRange]:
    """Returns the ranges of sizes that nobody declared, of which no value takes much of a GPU's memory."""
    memories = [gpu.memory_bytes for gpu in target.gpus if gpu.memory_bytes]
    max_elements = min([MAX_ELEMENTS, *(one // LEAST_VALUES // BYTES_OF_ELEMENT for one in memories)])
    return usual_ranges(model, setting.build_options.ranges, setting.samples, max_elements)


def _setting(setting: Setting, name: str, backends: TargetBackends, ranges: Mapping[str, DimRange]) -> Setting:
    def events(stage: str, detail: str) -> None:
        setting.events(stage, f"{name}: {detail}")

    options = replace(setting.build_options, ranges={**setting.build_options.ranges, **ranges})
    return replace(setting, target=backends.target, prefix=f"{name}.", events=events, build_options=options)


def _with_ids(targets: Sequence[TargetBackends]) -> list[tuple[str, TargetBackends]]:
    """Returns each target with an id that may begin the name of a folder and that no other has."""
    found: dict[str, TargetBackends] = {}
    for backends in targets:
        base = re.sub(r"[^a-z0-9_-]+", "-", backends.target.name.lower()).strip("-")[:MAX_ID] or "target"
        number, name = 1, base
        while name in found or name == PORTABLE:
            number += 1
            name = f"{base}-{number}"
        found[name] = backends
    return list(found.items())
