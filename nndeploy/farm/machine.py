# SPDX-License-Identifier: Apache-2.0
"""A machine that builds: how much at once, and what it has that a job may need.

Comes in: the slots of a machine, and the machine as a target. Goes out: whether a job will ever be built there, and
whether it may begin now. Law: `machine_from_json(machine_to_json(machine)) == machine`.
"""

import dataclasses
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nndeploy.errors import UsageError
from nndeploy.farm.build_job import Build, Tell
from nndeploy.farm.job import Job
from nndeploy.farm.resources import Slots, slots_of
from nndeploy.sandbox.memory import machine_memory_bytes
from nndeploy.target.target import Target, host_target, num_cores

GPU = "gpu"
OS = "os"


@dataclass(frozen=True, slots=True)
class Machine:
    """`has` is need -> value -> how many jobs that need it may run at once: of builds that time a GPU, one."""

    slots: Slots
    has: Mapping[str, Mapping[str, int]]

    def why_never(self, job: Job) -> str:
        """Returns why a job will never be built here, "" where it may be."""
        for need, wanted in sorted(job.needs.items()):
            have = self.has.get(need, {})
            if wanted not in have:
                return f"needs {need} {wanted!r:.60}; there is {', '.join(sorted(have)) or 'none'}"
        return ""

    def admits(self, job: Job, running: Sequence[Job]) -> bool:
        """Returns whether a job may begin beside those that run."""
        taken = Counter(item for one in running for item in one.needs.items())
        if any(taken[need, wanted] >= self.has.get(need, {}).get(wanted, 0) for need, wanted in job.needs.items()):
            return False
        return self.slots.admits(job, running)

    def build_of(self, job: Job, tell: Tell) -> Build:
        """Returns a build of a job with this machine's share of cores and memory."""
        mine = replace(job, limits={"jobs": self.slots.builds_each, **job.limits})
        return Build(mine, tell, self.slots.memory_of(job))


def machine_of(slots: Slots, here: Target) -> Machine:
    """Returns the machine that a target describes."""
    gpus = Counter(f"sm{gpu.compute_capability.replace('.', '')}" for gpu in here.gpus)
    system = f"{platform.system().lower()}-{here.arch}"
    return Machine(slots, {GPU: dict(gpus), OS: {system: slots.num_jobs}})


def this_machine(asked: int | None, more: Iterable[str] = ()) -> Machine:
    """Returns this machine; `asked` is how many builds at once, None for what cores and memory allow.

    `more` says what else it has, "need=value"; as many jobs may need that as run at once.

    Raises:
        UsageError: a text says nothing.
    """
    slots = slots_of((), asked, num_cores(), machine_memory_bytes())
    machine = machine_of(slots, host_target())
    has = {need: dict(values) for need, values in machine.has.items()}
    for text in more:
        need, is_said, value = text.partition("=")
        if not is_said or not need or not value:
            raise UsageError(f"--has: {text!r:.80} says nothing", hint="for example --has site=lab")
        has.setdefault(need, {})[value] = slots.num_jobs
    return replace(machine, has=has)


def machine_to_json(machine: Machine) -> dict[str, Any]:
    """Returns a machine as plain data."""
    return dataclasses.asdict(machine)


def machine_from_json(data: Mapping[str, Any]) -> Machine:
    """Returns the machine that plain data describe."""
    return Machine(Slots(**data["slots"]), {need: dict(values) for need, values in data["has"].items()})
