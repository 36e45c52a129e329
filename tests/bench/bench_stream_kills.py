# SPDX-License-Identifier: Apache-2.0
"""`run --resume` under kill -9 at random moments: the same bytes as a run that was never killed.

    python tests/bench/bench_stream_kills.py [--kills 10000]

A run is killed at a random moment of the time that a whole one takes, and started again until it ends; then the next
one. One writes 1,000 records as JSON lines, the next one 400 as JSON lines, csv, statistics and arrays, and so on in
turn. Each is a process of its own, forked from one that has imported everything and opened nothing, so that kills hit
the work and not the start of Python.
"""

import argparse
import gc
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from pathlib import Path

from crash_case import command
from imported_modules import imported_by
from resumed_runs import SEVERAL, content, lines

CHECKPOINT_SECONDS = 0.005
FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class Run:
    """A run of so many records, below the folder `out`."""

    output: str
    num_records: int
    more: tuple[str, ...] = ()

    def __call__(self) -> int:
        """Runs it in this process, from where the one before came to; returns the exit code."""
        from nndeploy.stream.sinks import resume

        resume.CHECKPOINT_SECONDS = CHECKPOINT_SECONDS  # often enough for kills to fall between them
        source = f"{self.num_records}.jsonl"
        return command(
            "run", "m.nnd", "--threads", "1", *self.more, "-i", source, "-o", f"out/{self.output}", "--resume"
        )()

    @property
    def journal(self) -> Path:
        """Where it notes how far it came."""
        return Path("out", self.output, ".nndeploy-resume") if self.more else Path("out", f"{self.output}.resume")


RUNS = (Run("y.jsonl", 1000), Run("y", 400, ("--pipeline", "p.toml")))


def started(run: Run) -> ForkProcess:
    """Returns a process that does a run."""
    process = FORK.Process(target=lambda: sys.exit(run()))
    process.start()
    return process


def taken() -> dict[str, bytes]:
    """Returns all that was written, and removes it."""
    found = content(Path("out"))
    shutil.rmtree("out")
    Path("out").mkdir()
    return found


def goes_on(run: Run) -> bool:
    """Returns whether the journal holds records that the next run need not do again."""
    try:
        last = run.journal.read_bytes().rpartition(b"\n")[0].splitlines()[-1]
    except (OSError, IndexError):
        return False
    return bool(json.loads(last.rpartition(b" ")[0]).get("records"))


def kill(count: int, seed: int) -> str:
    """Returns what came of so many kills, in the current folder.

    Raises:
        AssertionError: a run ended with other bytes than one that was never killed, or with an error.
    """
    from tests_flow_bundles import write_double

    write_double(Path("m.nnd"))
    Path("p.toml").write_text(SEVERAL)
    Path("out").mkdir()
    want, seconds = {}, {}
    for run in RUNS:
        Path(f"{run.num_records}.jsonl").write_text(lines(run.num_records))
        imported_by(run)
        taken()
    gc.freeze()  # a collection in a child would copy every page of this process
    for run in RUNS:
        began = time.perf_counter()
        process = started(run)
        process.join()
        assert process.exitcode == 0
        seconds[run], want[run] = time.perf_counter() - began, taken()
    dice = random.Random(seed)  # noqa: S311 - no secret
    killed = went_on = runs = 0
    while killed < count:
        run = RUNS[runs % len(RUNS)]
        process = started(run)
        process.join(seconds[run] * dice.random())
        process.kill()
        process.join()
        if process.exitcode == -9:
            killed += 1
            went_on += goes_on(run)
            continue
        assert process.exitcode == 0, f"exit {process.exitcode} after {killed} kills"
        runs += 1
        assert taken() == want[run], f"other bytes after {killed} kills"
    return (
        f"{killed:,} kills, after {went_on:,} of which the next run went on from records that were done; {runs:,} runs"
        " ended in between, each with the same bytes as one that was never killed"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=20261126)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:  # noqa: S108
        os.chdir(folder)
        print(kill(options.kills, options.seed))
        os.chdir("/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
