# SPDX-License-Identifier: Apache-2.0
"""Long runs: one fed without a pause for minutes or days, thousands of streams on and off, thousands of kills.

    soak     one `nndeploy run` of the digit reader is fed JSON lines through a pipe without a pause, one of 1,009 no
             input; every answer is compared with what it must be, in its place. Memory growth is the slope of the
             straight line through all samples after the first quarter of the time, with twice its standard error.
             Speed is records a second of processor time; other work on the machine slows parts of the time and makes
             none faster, so the fastest of thirty parts of each half are compared.
    cycles   streams of a loader, a runner and, in every other one, a post-processor, each with one to three workers,
             are started and ended in one process: at the end of their input, stopped at any moment, at a record or a
             sink that fails, by a bug; none may stick or leave a thread or a file
    kills    `run --resume` is killed (SIGKILL) at a random moment and called again until it ends: one run writes 1,000
             records as JSON lines, the next one 400 as JSON lines, csv, statistics and arrays; the outputs are byte for
             byte those of a run that was never killed

Exit code 1 where a record is lost, doubled or wrong, files stay open, memory grows, or speed drops.
"""

import argparse
import contextlib
import gc
import itertools
import json
import math
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from pathlib import Path

from commands import NNDEPLOY, ran
from crash_case import command, imported_by, shared_memory_folder
from figures import ROOT
from report import Part, Report, bench_parser, run_parts

sys.path.append(str(ROOT / "tests" / "unit" / "stream"))

from resumed_runs import SEVERAL, content
from resumed_runs import lines as resumed_lines

DIGITS = ROOT / "examples" / "digits"
BROKEN, BROKEN_EVERY = b'{"image": 3}\n', 1009
WARM, NUM_WINDOWS, NUM_SHOWN = 0.25, 60, 9
MAX_SLOPE_MB, MAX_DROP = 1.0, 0.02
CHECKPOINT_SECONDS = 0.005
FORK = multiprocessing.get_context("fork")
SEED = 20261126


def main() -> int:
    parts: dict[str, Part] = {"soak": _soak, "cycles": _cycles, "kills": _kills}
    parser = bench_parser(__doc__, parts)
    parser.add_argument("--minutes", type=float, default=20.0, help="of `soak`")
    parser.add_argument("--cycles", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=10_000)
    return run_parts(parser.parse_args(), "robustness.md", "Long runs", parts)


@dataclass(frozen=True, slots=True)
class Sample:
    """What a process is like at one moment; `records` are those that it answered so far."""

    seconds: float
    megabytes: float
    num_open: int
    num_threads: int
    cpu_seconds: float
    records: int


def _sample(pid: int, began: float, records: int) -> Sample:
    folder = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    ticks = (folder / "stat").read_text().rpartition(")")[2].split()
    cpu = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
    resident, num_open = (int(status["VmRSS"].split()[0]) << 10) / 1e6, len(list((folder / "fd").iterdir()))
    return Sample(time.monotonic() - began, resident, num_open, int(status["Threads"]), cpu, records)


class _Answers:
    def __init__(self, num_kinds: int) -> None:
        self.num = self.num_failed = self.num_wrong = 0
        self._num_kinds = num_kinds
        self._first: dict[int, object] = {}

    def take(self, line: bytes) -> None:
        answer, index = json.loads(line), self.num
        self.num += 1
        must_fail = (index + 1) % BROKEN_EVERY == 0
        self.num_failed += must_fail
        if answer["index"] != index or ("error" in answer) != must_fail:
            self.num_wrong += 1
        elif not must_fail:
            self.num_wrong += self._first.setdefault(index % self._num_kinds, answer["outputs"]) != answer["outputs"]


def _lines() -> Iterator[bytes]:
    """Yields the lines of the digits for ever, one now and then broken."""
    whole = (DIGITS / "lines.jsonl").read_bytes().splitlines(keepends=True)
    for index, line in enumerate(itertools.cycle(whole), 1):
        yield line if index % BROKEN_EVERY else BROKEN


def _fed(seconds: float, every: float) -> tuple[list[Sample], _Answers, int]:
    """Returns samples of a run that was fed for so long, its answers, and how many lines it was given."""
    given, samples, is_over = 0, list[Sample](), threading.Event()
    with tempfile.TemporaryDirectory() as name:
        bundle = Path(name, "digits.nnd")
        assert ran([*NNDEPLOY, "compile", DIGITS / "digits.onnx", "-o", bundle]).code == 0
        run = subprocess.Popen(
            [*NNDEPLOY, "run", bundle, "-i", "-", "-o", "-"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert run.stdin is not None
        assert run.stdout is not None
        feed, began, answers = run.stdin, time.monotonic(), _Answers(len(list((DIGITS / "lines.jsonl").open())))

        def give() -> None:
            nonlocal given
            for line in _lines():
                if time.monotonic() - began > seconds:
                    break
                feed.write(line)
                given += 1
            is_over.set()
            feed.close()

        def watch() -> None:
            while not is_over.wait(every):
                samples.append(_sample(run.pid, began, answers.num))

        workers = [threading.Thread(target=work, daemon=True) for work in (give, watch)]
        for worker in workers:
            worker.start()
        for line in run.stdout:
            answers.take(line)
        for worker in workers:
            worker.join()
        assert run.wait() == 1  # some items failed, as they should
    return samples, answers, given


def _soak(report: Report, options: argparse.Namespace) -> bool:
    seconds = options.minutes * 60
    samples, answers, given = _fed(seconds, max(0.05, min(5.0, seconds / 200)))
    warm, half = [one for one in samples if one.seconds >= WARM * seconds], len(samples) // 2
    slope, error = _slope_of(warm)
    drop = _fastest(samples[half:]) / _fastest(samples[:half]) - 1
    lost, opened = abs(given - answers.num) + answers.num_wrong, {one.num_open for one in warm}
    report.text(
        f"{samples[-1].seconds / 60:.0f} minutes: {answers.num:,} records, {answers.num_failed:,} of them errors as "
        f"expected, {lost} lost, doubled, wrong or out of order. Memory {slope:+.2f} ± {error:.2f} MB an hour (goal: "
        f"below {MAX_SLOPE_MB:g}), open files {min(opened)} to {max(opened)}, change of speed {drop:+.1%} (goal: a "
        f"drop below {MAX_DROP:.0%})."
    )
    step, before = max(1, len(samples) // NUM_SHOWN), samples[0]
    table = report.table("minutes:", "records:", "MB in RAM:", "open files:", "threads:", "records a processor second:")
    for one in samples[step::step]:
        figures = (one.num_open, one.num_threads, f"{_rate([before, one]):,.0f}")
        table.row(f"{one.seconds / 60:.1f}", f"{one.records:,}", f"{one.megabytes:.1f}", *figures)
        before = one
    return not (lost == 0 and len(opened) == 1 and slope - error <= MAX_SLOPE_MB and drop >= -MAX_DROP)


def _slope_of(samples: Sequence[Sample]) -> tuple[float, float]:
    """Returns by how many MB an hour memory grows, and twice the standard error of that."""
    hours, sizes = [one.seconds / 3600 for one in samples], [one.megabytes for one in samples]
    mean_hour, mean_size = sum(hours) / len(hours), sum(sizes) / len(sizes)
    spread = sum((hour - mean_hour) ** 2 for hour in hours)
    slope = sum((h - mean_hour) * (s - mean_size) for h, s in zip(hours, sizes, strict=True)) / spread
    rest = sum((s - mean_size - slope * (h - mean_hour)) ** 2 for h, s in zip(hours, sizes, strict=True))
    return slope, 2 * math.sqrt(rest / (len(hours) - 2) / spread)


def _rate(samples: Sequence[Sample]) -> float:
    """Returns how many records were answered for each second of processor time."""
    first, last = samples[0], samples[-1]
    return (last.records - first.records) / (last.cpu_seconds - first.cpu_seconds)


def _fastest(samples: Sequence[Sample]) -> float:
    step = max(1, len(samples) // (NUM_WINDOWS // 2))
    return max(_rate(samples[i : i + step + 1]) for i in range(0, len(samples) - step, step))


def _cycles(report: Report, options: argparse.Namespace) -> bool:
    from start_stop import cycle

    dice, began = random.Random(SEED), time.monotonic()  # noqa: S311 - no secret
    num_open = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(options.cycles):
        cycle(dice)  # raises where one sticks or leaves something
    left = len(list(Path("/proc/self/fd").iterdir())) - num_open
    seconds = time.monotonic() - began
    report.text(f"{options.cycles:,} streams started and ended in {seconds:.0f} s; {max(0, left)} files stayed open.")
    return left > 0


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
        ends = ("-i", f"{self.num_records}.jsonl", "-o", f"out/{self.output}", "--resume")
        return command("run", "m.nnd", "--threads", "1", *self.more, *ends)()

    @property
    def goes_on(self) -> bool:
        """Whether its journal holds records that the next call need not do again."""
        journal = Path("out", self.output, ".nndeploy-resume") if self.more else Path("out", f"{self.output}.resume")
        try:
            last = journal.read_bytes().rpartition(b"\n")[0].splitlines()[-1]
        except (OSError, IndexError):
            return False
        return bool(json.loads(last.rpartition(b" ")[0]).get("records"))


RUNS = (Run("y.jsonl", 1000), Run("y", 400, ("--pipeline", "p.toml")))


def _kills(report: Report, options: argparse.Namespace) -> None:
    with shared_memory_folder() as folder, contextlib.chdir(folder):
        report.text(_killed(options.kills))


def _killed(count: int) -> str:
    """Returns what came of so many kills, in the current folder."""
    from tests_flow_bundles import write_double

    write_double(Path("m.nnd"))
    Path("p.toml").write_text(SEVERAL)
    Path("out").mkdir()
    want, seconds = {}, {}
    for run in RUNS:
        Path(f"{run.num_records}.jsonl").write_text(resumed_lines(run.num_records))
        imported_by(run)
        _taken()
    gc.freeze()  # a collection in a child would copy every page of this process
    for run in RUNS:
        began, process = time.perf_counter(), _started(run)
        process.join()
        assert process.exitcode == 0
        seconds[run], want[run] = time.perf_counter() - began, _taken()
    dice = random.Random(SEED)  # noqa: S311 - no secret
    killed = went_on = runs = 0
    while killed < count:
        run = RUNS[runs % len(RUNS)]
        process = _started(run)
        process.join(seconds[run] * dice.random())
        process.kill()
        process.join()
        if process.exitcode == -9:
            killed, went_on = killed + 1, went_on + run.goes_on
            continue
        assert process.exitcode == 0, f"exit {process.exitcode} after {killed} kills"
        assert _taken() == want[run], f"other bytes after {killed} kills"
        runs += 1
    return (
        f"{killed:,} kills, after {went_on:,} of which the next run went on from records that were done; {runs:,} runs "
        "ended in between, each with the same bytes as one that was never killed."
    )


def _started(run: Run) -> ForkProcess:
    process = FORK.Process(target=lambda: sys.exit(run()))
    process.start()
    return process


def _taken() -> dict[str, bytes]:
    found = content(Path("out"))
    shutil.rmtree("out")
    Path("out").mkdir()
    return found


if __name__ == "__main__":
    sys.exit(main())
