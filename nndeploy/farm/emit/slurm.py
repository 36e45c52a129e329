# SPDX-License-Identifier: Apache-2.0
"""Jobs as arrays of SLURM, in one script that submits itself: an array for all jobs of the same limits.

    sh FILE --partition=night     submits; options of sbatch are passed on
    sh FILE task FIRST            what a task of an array runs: the job FIRST + $SLURM_ARRAY_TASK_ID

Source: sbatch(1) and scontrol(1) of SLURM 24.11. `MaxArraySize` is 1001 where a site says nothing.
"""

import math
import shlex
from collections.abc import Iterator, Sequence

from nndeploy.farm.emit.job_command import JobCommand

MAX_ARRAY = 1000
MAX_REQUEUES = 3
SPARE_MINUTES, SPARE_BYTES = 5, 1 << 30
"""Beside the limits of the compile: to begin, look in the cache and write the journal; and the command itself."""
_HEAD = """\
#!/bin/sh
# `sh FILE [options of sbatch]` submits these jobs, the longest first; results: nndeploy batch FLEET --collect
set -u
if [ "${1-}" != task ]; then
    submit() {
        first=$1
        shift
        sbatch --job-name=nndeploy --requeue "$@" "$0" task "$first" || exit
    }
"""
_MIDDLE = """\
    exit 0
fi
case $(($2 + SLURM_ARRAY_TASK_ID)) in
"""
_TAIL = f"""\
*) echo "there is no such job" >&2; exit 2 ;;
esac
"$@"
status=$?
if [ "$status" -eq 75 ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {MAX_REQUEUES} ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
fi
exit "$status"
"""


def slurm(commands: Sequence[JobCommand]) -> str:
    """Returns the script."""
    groups: dict[tuple[str, ...], list[JobCommand]] = {}
    for one in commands:
        groups.setdefault(tuple(_limits(one)), []).append(one)
    submits, cases = [], list[JobCommand]()
    for limits, group in groups.items():
        for start in range(0, len(group), MAX_ARRAY):
            part = group[start : start + MAX_ARRAY]
            submits.append(f'    submit {len(cases)} --array=0-{len(part) - 1} {" ".join(limits)} "$@"\n')
            cases += part
    lines = (f"{number}) set -- {shlex.join((*one.words, '-j', '1'))} ;;\n" for number, one in enumerate(cases))
    return "".join([_HEAD, *submits, _MIDDLE, *lines, _TAIL])


def _limits(one: JobCommand) -> Iterator[str]:
    yield f"--time={math.ceil(one.time_limit / 60) + SPARE_MINUTES}"
    if one.memory_limit is not None:
        yield f"--mem={-(-(one.memory_limit + SPARE_BYTES) >> 20)}M"
    if one.needs_gpu:
        yield "--gres=gpu:1"
