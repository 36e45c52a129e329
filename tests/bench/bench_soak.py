# SPDX-License-Identifier: Apache-2.0
"""One run fed without a pause for minutes or days: its memory, files, speed, every answer; many streams on and off."""

import argparse
import itertools
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import figures
from native_engines import machine_name

sys.path.append(str(figures.ROOT / "tests" / "unit" / "stream"))
DIGITS = figures.ROOT / "examples" / "digits"
BROKEN = b'{"image": 3}\n'
BROKEN_EVERY = 1009
"""One line of so many is no input: errors are records too."""
WARM = 0.25
"""Part of the time after which memory counts: by then libraries, buffers and lists of limited length are full."""
NUM_WINDOWS = 60
"""Into so many parts the time is cut to find the fastest: other work on the machine makes a part slow, none fast."""
NUM_SHOWN = 9
MAX_SLOPE_MB, MAX_DROP = 1.0, 0.02

PAGE = """{header}# Soak: figures

`make bench-soak ARGS="--minutes {minutes:g} --write"` ([tests/bench/bench_soak.py](../../tests/bench/bench_soak.py)).
One `nndeploy run` of the digit reader is fed JSON lines through a pipe without a pause, one of {every:,} no input, and
its results are read from another one: each is compared with what it must be, in its place. Memory is what is in RAM of
the process, its slope the straight line through all samples after the first quarter of the time, with twice its
standard error. Speed is records a second of the run's processor time; other work on the machine slows parts of it and
makes none faster, so the fastest of thirty parts of each half of the time are compared.

**It ran for {ran:.0f} minutes**, no longer: {records:,} records, {failed:,} of them errors as they should be, {lost}
lost, doubled, wrong or out of order. Memory {slope:+.2f} ± {error:.2f} MB an hour (goal: below {max_slope:g}), open
files {fewest} to {most}, threads {threads}, a change of speed of {drop:+.1%} (goal: a drop below {max_drop:.0%}).

{table}
## Streams that start and end

{cycles:,} streams of a loader, a runner and, in every other one, a post-processor, each with one to three workers, were
started and ended in one process ([start_stop.py](../../tests/unit/stream/start_stop.py)): at the end of their input, by
a wish that came at any moment, at a record that failed, at a sink that failed, by a bug. {cycle_seconds:.0f} s; none
stuck, no thread or open file stayed, each gave one outcome for each item in order.
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a process is like at one moment; `records` are those that it answered so far."""

    seconds: float
    resident_bytes: int
    num_open: int
    num_threads: int
    cpu_seconds: float
    records: int


def sample(pid: int, began: float, records: int) -> Sample:
    folder = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    ticks = (folder / "stat").read_text().rpartition(")")[2].split()
    cpu = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
    resident = int(status["VmRSS"].split()[0]) << 10
    num_open = len(list((folder / "fd").iterdir()))
    seconds, num_threads = time.monotonic() - began, int(status["Threads"])
    return Sample(seconds, resident, num_open, num_threads, cpu, records)


def lines() -> Iterator[bytes]:
    """Yields the lines of the digits for ever, one now and then broken."""
    whole = (DIGITS / "lines.jsonl").read_bytes().splitlines(keepends=True)
    for index, line in enumerate(itertools.cycle(whole), 1):
        yield line if index % BROKEN_EVERY else BROKEN


class Answers:
    """Compares what a run answers with what it must, record by record."""

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
            outputs = answer["outputs"]
            self.num_wrong += self._first.setdefault(index % self._num_kinds, outputs) != outputs


def soak(seconds: float, every: float) -> tuple[list[Sample], Answers, int]:
    """Returns samples of a run that was fed for so long, its answers, and how many lines it was given."""
    given, samples, is_over = 0, [], threading.Event()
    with tempfile.TemporaryDirectory() as name:
        bundle = Path(name, "digits.nnd")
        command = [sys.executable, "-m", "nndeploy"]
        subprocess.run([*command, "compile", DIGITS / "digits.onnx", "-o", bundle], check=True, capture_output=True)
        run = subprocess.Popen(
            [*command, "run", bundle, "-i", "-", "-o", "-"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert run.stdin is not None
        assert run.stdout is not None
        feed, began = run.stdin, time.monotonic()
        answers = Answers((DIGITS / "lines.jsonl").read_bytes().count(b"\n"))

        def give() -> None:
            nonlocal given
            for line in lines():
                if time.monotonic() - began > seconds:
                    break
                feed.write(line)
                given += 1
            is_over.set()
            feed.close()

        def watch() -> None:
            while not is_over.wait(every):
                samples.append(sample(run.pid, began, answers.num))

        workers = [threading.Thread(target=work, daemon=True) for work in (give, watch)]
        for worker in workers:
            worker.start()
        for line in run.stdout:
            answers.take(line)
        for worker in workers:
            worker.join()
        assert run.wait() == 1  # some items failed, as they should
    return samples, answers, given


def start_and_end(num_cycles: int) -> float:
    """Returns how long so many streams took to start and end; fails where one of them sticks or leaves something."""
    from start_stop import cycle

    dice, began = random.Random(20261126), time.monotonic()  # noqa: S311 - no secret
    num_open = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(num_cycles):
        cycle(dice)
    assert len(list(Path("/proc/self/fd").iterdir())) <= num_open
    return time.monotonic() - began


def slope_of(samples: list[Sample]) -> tuple[float, float]:
    """Returns by how many MB an hour memory grows, and twice the standard error of that."""
    hours = [one.seconds / 3600 for one in samples]
    sizes = [one.resident_bytes / 1e6 for one in samples]
    mean_hour, mean_size = sum(hours) / len(hours), sum(sizes) / len(sizes)
    spread = sum((hour - mean_hour) ** 2 for hour in hours)
    slope = sum((h - mean_hour) * (s - mean_size) for h, s in zip(hours, sizes, strict=True)) / spread
    rest = sum((s - mean_size - slope * (h - mean_hour)) ** 2 for h, s in zip(hours, sizes, strict=True))
    return slope, 2 * math.sqrt(rest / (len(hours) - 2) / spread)


def rate(samples: list[Sample]) -> float:
    """Returns how many records were answered for each second of processor time."""
    first, last = samples[0], samples[-1]
    return (last.records - first.records) / (last.cpu_seconds - first.cpu_seconds)


def fastest(samples: list[Sample], num_windows: int) -> float:
    """Returns the highest rate of all parts of the time."""
    step = max(1, len(samples) // num_windows)
    return max(rate(samples[i : i + step + 1]) for i in range(0, len(samples) - step, step))


def table(samples: list[Sample]) -> str:
    step = max(1, len(samples) // NUM_SHOWN)
    shown = samples[step - 1 :: step]
    rows = [
        "| minutes | records | MB in RAM | open files | threads | records a second of processor time |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    before = samples[0]
    for one in shown:
        a_second = f"{rate([before, one]):,.0f}" if one is not before else ""
        rows.append(
            f"| {one.seconds / 60:.1f} | {one.records:,} | {one.resident_bytes / 1e6:.1f} | {one.num_open} | "
            f"{one.num_threads} | {a_second} |"
        )
        before = one
    return "\n".join(rows) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--cycles", type=int, default=10_000, help="how many streams are started and ended after that")
    parser.add_argument("--write", action="store_true", help="write docs/figures/soak-results.md")
    options = parser.parse_args()
    seconds = options.minutes * 60
    header = figures.header(figures.figure("soak-results.md"), machine_name())
    samples, answers, given = soak(seconds, max(0.05, min(5.0, seconds / 200)))
    warm = [one for one in samples if one.seconds >= WARM * seconds]
    slope, error = slope_of(warm)
    half = len(samples) // 2
    drop = fastest(samples[half:], NUM_WINDOWS // 2) / fastest(samples[:half], NUM_WINDOWS // 2) - 1
    lost = abs(given - answers.num) + answers.num_wrong
    opened, threads = {one.num_open for one in warm}, {one.num_threads for one in warm}
    page = PAGE.format(
        header=header, minutes=options.minutes, every=BROKEN_EVERY, ran=samples[-1].seconds / 60,
        records=answers.num, failed=answers.num_failed, lost=lost, slope=slope, error=error, fewest=min(opened),
        most=max(opened), threads=" to ".join(map(str, sorted({min(threads), max(threads)}))), drop=drop,
        max_slope=MAX_SLOPE_MB, max_drop=MAX_DROP, table=table(samples),
        cycles=options.cycles, cycle_seconds=start_and_end(options.cycles),
    )  # fmt: skip
    sys.stdout.write(page)
    if options.write:
        (figures.FIGURES / "soak-results.md").write_text(page)
    grew = slope - error > MAX_SLOPE_MB
    return int(lost > 0 or len(opened) > 1 or grew or drop < -MAX_DROP)


if __name__ == "__main__":
    sys.exit(main())
