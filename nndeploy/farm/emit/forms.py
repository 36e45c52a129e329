# SPDX-License-Identifier: Apache-2.0
"""The forms in which the commands of a batch are written, by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nndeploy.farm.emit.hyperqueue import hyperqueue
from nndeploy.farm.emit.job_command import JobCommand
from nndeploy.farm.emit.json_lines import json_lines
from nndeploy.farm.emit.make import make
from nndeploy.farm.emit.ninja import ninja
from nndeploy.farm.emit.slurm import slurm


@dataclass(frozen=True, slots=True)
class Form:
    """A form: what writes it, and the command that runs the file, "" where there is none."""

    text: Callable[[Sequence[JobCommand]], str]
    run_with: str


FORMS = {
    "slurm": Form(slurm, "sh {file}"),
    "hq": Form(hyperqueue, "hq job submit-file {file}"),
    "ninja": Form(ninja, "ninja -k 0 -f {file}"),
    "make": Form(make, "make -k -j 4 -f {file}"),
    "jsonl": Form(json_lines, ""),
}
