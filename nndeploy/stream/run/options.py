# SPDX-License-Identifier: Apache-2.0
"""What a run may be told, with the defaults that the command has too."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from nndeploy.bundle.pace_plan_file import PacePlanFile
from nndeploy.options.described import described
from nndeploy.options.texts import assignments_in
from nndeploy.pacing.goal import PaceGoal
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


@dataclass(frozen=True, slots=True)
class RunOptions(LoadOptions):
    """How items go through a bundle or a pipeline; what each option means is its help.

    `models` names bundles of a pipeline by its stages. Of a pipeline, `threads` None means a share of the cores for
    each. `pace` lets runs sleep between their operators.
    """

    resume: bool = described(
        False,
        "Go on after the last durable output of the same call, if it was killed or stopped; so may this one be.",
        section=_ENDS,
    )
    is_ordered: bool = described(
        True, "Write results as they come, not in the order of the items.", section=_ENDS, flags=("--unordered",)
    )
    on_error: Literal["continue", "stop"] = described(
        "continue", "What to do after an item that failed.", section=_ENDS, choices=("continue", "stop")
    )
    nan: NanPolicy = described(
        "flag", "What to do with NaN and infinity in inputs.", section=_ENDS, choices=("pass", "flag", "reject")
    )
    drop: Literal["none", "oldest"] | None = described(
        None, "What a source does that is ahead of the models: wait, or drop its oldest item; of all sources.",
        section=_ENDS, choices=("none", "oldest"),
    )  # fmt: skip
    max_age_ms: float = described(
        0.0, "Drop an item that waited longer than this before a model has time for it (0: none).",
        section=_ENDS, least=0, most=86_400_000,
    )  # fmt: skip
    models: Mapping[str, str | os.PathLike[str]] = described(
        dict, "Bundle of one of the pipelines (repeatable).",
        section=_PIPELINES, flags=("--model",), metavar="NAME=BUNDLE", from_texts=models_in,
    )  # fmt: skip
    follow: bool = described(
        False, "Go on with the bundle that becomes current under NAME@, between two records, and back if it fails.",
        section=_PIPELINES,
    )  # fmt: skip
    batch: int = described(1, "How many items of a bundle go into one call.", section=_PIPELINES, least=1, most=4096)
    batch_delay_ms: float = described(
        0.0, "How long an item waits for others of its batch.", section=_PIPELINES, least=0, most=60_000
    )
    pace: Pace = None
