# SPDX-License-Identifier: Apache-2.0
"""What a run may be told, with the defaults that the command has too."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from nndeploy.options.described import described
from nndeploy.options.texts import assignments_in
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.plan.plan_file import PacePlanFile
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import Program
from nndeploy.stream.engine.non_finite import NanPolicy

Pace: TypeAlias = PaceGoal | PacePlanFile | None
"""How much is granted to sleep in, or a plan of how; None: nothing is paced."""

_ENDS, _PIPELINES = "Inputs and outputs", "Pipelines and batches"


class Load(Protocol):
    """Opens a bundle, as `load_bundle` does."""

    def __call__(self, path: Path, options: LoadOptions, *, pace: Pace) -> Program:
        """Returns its program."""


def models_in(texts: Sequence[str]) -> dict[str, str]:
    """Returns the bundles that texts of `--model` name, by pipeline; it raises a UsageError."""
    return dict(assignments_in("--model", "NAME=BUNDLE", "faces=faces.nnd")(texts))


def seconds_of_tuning() -> float:
    """Returns the field of `--tune`."""
    found: float = described(
        0.0,
        "Tune meanwhile: between calls, in at most 5% of the time, other ways of doing the work are tried, for so long "
        "in all at each set of input shapes; calls then go on in the fastest (0: never).",
        section="Machine", flags=("--tune",), least=0, most=86_400, metavar="SECONDS",
    )  # fmt: skip
    return found


@dataclass(frozen=True, slots=True)
class RunOptions(LoadOptions):
    """How items go through a bundle or a pipeline; what each option means is its help.

    `models` names bundles of a pipeline by its stages. Of a pipeline, `threads` None means a share of the cores for
    each. `pace` lets runs sleep between their operators.
    """

    resume: bool = described(
        False,
        "Resume an interrupted run after its last durable output. Pass it on the first run too.",
        section=_ENDS,
    )
    is_ordered: bool = described(
        True, "Write results as they complete, not in input order.", section=_ENDS, flags=("--unordered",)
    )
    on_error: Literal["continue", "stop"] = described(
        "continue", "What to do after an item fails.", section=_ENDS, choices=("continue", "stop")
    )
    nan: NanPolicy = described(
        "flag", "How to treat NaN and infinity in inputs.", section=_ENDS, choices=("pass", "flag", "reject")
    )
    drop: Literal["none", "oldest"] | None = described(
        None, "Overflow policy of all sources: wait, or drop the oldest item.",
        section=_ENDS, choices=("none", "oldest"),
    )  # fmt: skip
    max_age_ms: float = described(
        0.0, "Drop items that have waited longer than this for a model, in milliseconds (0: never).",
        section=_ENDS, least=0, most=86_400_000,
    )  # fmt: skip
    models: Mapping[str, str | os.PathLike[str]] = described(
        dict, "Bundle to use for a model of the pipeline (repeatable).",
        section=_PIPELINES, flags=("--model",), metavar="NAME=BUNDLE", from_texts=models_in,
    )  # fmt: skip
    follow: bool = described(
        False, "Switch to a newly installed version of NAME@ between records; fall back if it fails.",
        section=_PIPELINES,
    )  # fmt: skip
    batch: int = described(
        1, "Number of items batched into one call of a bundle.", section=_PIPELINES, least=1, most=4096
    )
    batch_delay_ms: float = described(
        0.0, "How long an item waits for its batch to fill, in milliseconds.", section=_PIPELINES, least=0, most=60_000
    )
    tune_seconds: float = seconds_of_tuning()
    pace: Pace = None
