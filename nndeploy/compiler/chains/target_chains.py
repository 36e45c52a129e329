# SPDX-License-Identifier: Apache-2.0
"""The chains of a bundle beside the portable one: for each target with GPUs the model is cut and built anew.

    target -> backends of its GPUs, then those of the CPU -> settle (place, build, check) -> one chain

What can run on this machine is compared with the reference as in the portable chain; what needs a GPU that is not here
is built, listed and not compared, which the report says of each submodel.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from nndeploy.bundle.manifest import PORTABLE
from nndeploy.compiler.chains.backend_order import Pins, TargetBackends, pins_for
from nndeploy.compiler.chains.built_chain import Settled
from nndeploy.compiler.chains.chain_plan import ChainPlan, plan_for
from nndeploy.compiler.chains.chain_setting import Setting
from nndeploy.compiler.chains.lower import settle

MAX_ID = 40


@dataclass(frozen=True, slots=True)
class PlannedChain:
    """Who would run what on a target."""

    id: str
    backends: TargetBackends
    plan: ChainPlan


@dataclass(frozen=True, slots=True)
class SettledChain:
    """A chain for one target that was built."""

    id: str
    backends: TargetBackends
    settled: Settled

    @property
    def plan(self) -> ChainPlan:
        """Who runs what."""
        return self.settled.plan

    @property
    def uses_gpu(self) -> bool:
        """Whether any submodel runs on a GPU; a chain without one is not kept, the portable chain serves the target."""
        on_gpu = {backend.name for backend in self.backends.backends if backend.device_kind == "cuda"}
        return any(built.piece.backend in on_gpu for built in self.settled.pieces)


def plan_chains(
    setting: Setting, model: ir.Model, targets: Sequence[TargetBackends], pins: Pins
) -> tuple[PlannedChain, ...]:
    """Returns for each target who would run what; nothing is built."""

    def planned(name: str, who: TargetBackends) -> PlannedChain:
        plan = plan_for(_setting(setting, name, who), model, who.backends, pins_for(pins, who.backends))
        return PlannedChain(name, who, plan)

    return tuple(planned(name, who) for name, who in _with_ids(targets))


def settle_chains(
    setting: Setting, model: ir.Model, targets: Sequence[TargetBackends], pins: Pins
) -> tuple[SettledChain, ...]:
    """Returns a chain for each target.

    Raises:
        ModelError: a node has no backend left on a target.
    """

    def settled(name: str, who: TargetBackends) -> SettledChain:
        found = settle(_setting(setting, name, who), model, who.backends, pins_for(pins, who.backends))
        return SettledChain(name, who, found)

    return tuple(settled(name, who) for name, who in _with_ids(targets))


def _setting(setting: Setting, name: str, backends: TargetBackends) -> Setting:
    def events(stage: str, detail: str) -> None:
        setting.events(stage, f"{name}: {detail}")

    return replace(setting, target=backends.target, prefix=f"{name}.", events=events)


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
