# SPDX-License-Identifier: Apache-2.0
"""The whole check on one page: is there a GPU -> each stage in children -> the table, the JSON, the exit status.

Exit status: 0 nothing was wrong (refusals with a reason are fine), 1 something was, 69 there is no GPU.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from gpucheck.children import child_environment, run_stage
from gpucheck.options import ROOT, Options, options_from_arguments
from gpucheck.rows import GPU_TIERS, NOT_RUN, Row, exit_status, row_to_json, summary
from gpucheck.stages import STAGES, Stage
from gpucheck.table import lines_of

EX_UNAVAILABLE = 69
NEEDS = {"speed": "networks"}
"""Stages that another one prepares."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what the command line asks for and returns the exit status."""
    num_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    options = options_from_arguments(arguments, [stage.name for stage in STAGES], num_cores)
    if why := why_no_gpu():
        print(f"gpu-check: {why}", file=sys.stderr)
        return EX_UNAVAILABLE
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as workdir:
        rows = run_all(replace(options, workdir=workdir))
    print("\n".join(["", *lines_of(rows), "", summary(rows)]))
    return exit_status(rows)


def why_no_gpu() -> str:
    """Returns why no CUDA device can be used here, one line, or ""; asked in this process, which allocates nothing."""
    sys.path[:0] = [str(ROOT), str(ROOT / "backends")]
    os.environ.update(child_environment())
    try:
        from nndeploy.cuda import cuda_unavailable
    except ImportError as err:
        return f"nndeploy cannot be imported: {err} (hint: docs/internals/gpu-check.md)"
    return cuda_unavailable() or _why_no_backends()


def _why_no_backends() -> str:
    from nndeploy.plugin.registry import is_installed

    missing = [tier for tier in GPU_TIERS if not is_installed(tier)]
    hint = "(hint: python3 tests/gpu/environment.py, then make gpu-check)"
    return f"the backends {', '.join(missing)} are not installed {hint}" if missing else ""


def run_all(options: Options) -> list[Row]:
    """Returns the rows of all stages that were asked for; a stage that no time is left for says so."""
    deadline, rows = time.monotonic() + options.total_seconds, list[Row]()
    stages = asked_stages(options.only)
    for number, stage in enumerate(stages):
        begun = time.monotonic()
        limit = share_of_time(stages[number:], deadline - begun)
        if limit <= 1:
            rows.append(Row(stage.name, "(all)", status=NOT_RUN, reason="no time was left"))
            continue
        found = run_stage(stage, options, begun + limit, _progress)
        _progress(f"{stage.name}: {len(found)} rows, {summary(found)}, {time.monotonic() - begun:.1f} s")
        rows += found
        _write_json(rows, options)  # after each stage: the machine may go before the end
    return rows


def asked_stages(only: Sequence[str]) -> list[Stage]:
    """Returns the stages of `only` and those that prepare them, in order; all where `only` is empty."""
    asked = {*only, *(NEEDS[name] for name in only if name in NEEDS)}
    return [stage for stage in STAGES if not asked or stage.name in asked]


def share_of_time(stages: Sequence[Stage], seconds_left: float) -> float:
    """Returns the seconds for the first of `stages`, so that all get theirs in proportion; unused time goes on."""
    return seconds_left * stages[0].seconds / sum(stage.seconds for stage in stages)


def _write_json(rows: Sequence[Row], options: Options) -> None:
    if options.json_file:
        written = {"options": asdict(options), "rows": [row_to_json(row) for row in rows]}
        Path(options.json_file).write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
