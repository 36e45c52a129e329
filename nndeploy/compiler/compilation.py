# SPDX-License-Identifier: Apache-2.0
"""One compile as its steps share it: what was asked for, what it is built on, and what was learnt on the way.

Comes in: options and the workers that run backends' libraries. Goes out: findings for the report, seconds by stage.
Law: a stage is known by its name from the moment it begins, so that who fails can say where.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from nndeploy.bundle.report import CheckReport
from nndeploy.compiler.chains.as_it_is import described
from nndeploy.compiler.chains.chain_setting import Events
from nndeploy.compiler.options import CompileOptions
from nndeploy.compiler.pack import Findings
from nndeploy.errors import NndeployError
from nndeploy.jobs.workers import Workers
from nndeploy.target.target import Target

T = TypeVar("T")


@dataclass(slots=True)
class Compilation:
    """What every step of one compile may use, on the machine `here`; `stage` is the one that runs or that failed.

    `out` is None where nothing is to be written.
    """

    options: CompileOptions
    workers: Workers
    events: Events
    here: Target
    out: Path | None
    stage: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    checks: list[CheckReport] = field(default_factory=list)
    shapes_of_pipeline: dict[str, str] = field(default_factory=dict)
    """Shapes of inputs, as `--shape` takes them, of which the pipeline fixed a size."""

    @property
    def host(self) -> Target:
        """This machine without its GPUs and their places: what the portable chain is built for and checked on."""
        places = () if any(place.is_gpu for place in self.here.places) else self.here.places
        return replace(self.here, gpus=(), places=places)

    @contextmanager
    def in_stage(self, name: str) -> Iterator[None]:
        """Runs what is inside as the stage `name`: it is announced, and its seconds are kept."""
        self.events(name, "")
        start = time.perf_counter()
        self.stage = name
        try:
            yield
            self.stage = ""
        finally:
            self.seconds[name] = round(time.perf_counter() - start, 4)

    def or_else(self, what: str, call: Callable[[], T], otherwise: T) -> T:
        """Returns what `call` does; `otherwise`, and a warning, where it meets what it does not know."""
        try:
            return call()
        except NndeployError:
            raise
        except Exception as err:
            self.warnings.append(f"{what}: {described(err)}")
            return otherwise

    def findings(self, checks: Sequence[CheckReport] = ()) -> Findings:
        """Returns what was learnt so far, with `checks` before those that are known already."""
        return Findings((*checks, *self.checks), tuple(self.warnings), self.shapes_of_pipeline)
