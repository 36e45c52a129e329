# SPDX-License-Identifier: Apache-2.0
"""What a run may be told, with the defaults that the command has too."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from nndeploy.bundle.pace_plan_file import PacePlanFile
from nndeploy.pacing.goal import PaceGoal
from nndeploy.runtime.program import Program
from nndeploy.stream.engine.non_finite import NanPolicy

Pace: TypeAlias = PaceGoal | PacePlanFile | None
"""How much is granted to sleep in, or a plan of how; None: nothing is paced."""


class Load(Protocol):
    """Opens a bundle, as `load_bundle` does."""

    def __call__(self, path: Path, *, threads: int | None, device: str, pace: Pace) -> Program:
        """Returns its program."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How items go through a bundle or a pipeline.

    `models` names bundles of a pipeline by its stages. Up to `batch` items of a bundle that runs alone go in at once,
    the first of them waiting `batch_delay_ms` for others. `nan` says what becomes of NaN and infinity in inputs,
    `on_error` what comes after an item that failed. With `resume` a run goes on after the last durable output of the
    same call. `threads` is what each session may use (None: its library's default, of a pipeline a share of the cores),
    `device` "auto", "cpu" or "cuda:N"; `pace` lets runs sleep between their operators. The rest is as in `load_bundle`.
    """

    models: Mapping[str, str | os.PathLike[str]] = field(default_factory=dict)
    batch: int = 1
    batch_delay_ms: float = 0.0
    nan: NanPolicy = "flag"
    on_error: Literal["continue", "stop"] = "continue"
    is_ordered: bool = True
    resume: bool = False
    threads: int | None = None
    device: str = "auto"
    pace: Pace = None
    strict: bool = False
    custom_op_libraries: tuple[str | os.PathLike[str], ...] = ()
    allow_native_code: bool = True
    cache_dir: str | os.PathLike[str] | None = None
