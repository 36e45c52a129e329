# SPDX-License-Identifier: Apache-2.0
"""What the reports of a batch take, in processor time and bytes, as a table in Markdown.

    python tests/bench/bench_batch_reports.py [--jobs 10000] [--failing 5]

The batch is made up: ten boxes, jobs of which some percent fail with an error and twenty lines of log. Figures are the
medians of five times; processor time, because it does not depend on who else uses the machine. Writing includes the
disk's part that this process does.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from nndeploy.farm.outcome import Outcome
from nndeploy.farm.reports import Batch, Gates, ReportFiles, judged, read_batch, write_reports

REPEATS = 5
BOXES = 10
FILES = {
    "json": "batch.json", "junit": "junit.xml", "markdown": "summary.md", "metrics": "metrics.txt",
    "page": "index.html",
}  # fmt: skip
GATES = Gates(max_slowdown=0.05, max_error_growth=2.0, max_size_growth=0.1, max_share_drop={"native": 0.05})


def made_up_batch(jobs: int, failing: int) -> Batch:
    """Returns a batch of so many jobs, of which `failing` of each hundred fail."""
    return Batch(
        plan="ab" * 32,
        started="2026-11-26T02:00:00+00:00",
        seconds=3600.0,
        outcomes=tuple(_failed(i) if i % 100 < failing else _built(i) for i in range(jobs)),
    )


def _built(number: int) -> Outcome:
    model, target = f"model_{number // BOXES}", f"box-{number % BOXES}"
    return Outcome(
        job=f"{model}/{target}/fp32", model=model, target=target, variant="fp32", status="hit" if number % 3 else "ok",
        seconds=2.5, key="cd" * 32, sha256="ef" * 32, size=4_000_000 + number, output=f"dist/{model}/{target}/fp32.nnd",
        worker="w1", cpu="one", peak_mb=300.0, backends={"native": 0.9, "onnxruntime": 0.1}, latency_ms=2.0,
        max_error=1e-6,
    )  # fmt: skip


def _failed(number: int) -> Outcome:
    model, target = f"model_{number // BOXES}", f"box-{number % BOXES}"
    message = "node 'Conv_3': the attribute 'pads' has 3 values, 4 were expected"
    return Outcome(
        job=f"{model}/{target}/fp32", model=model, target=target, variant="fp32", status="failed", exit_code=65,
        seconds=2.5, key="cd" * 32, output=f"dist/{model}/{target}/fp32.nnd", worker="w1", cpu="one", log="logs/1.txt",
        error={"code": "bad-model", "exit_code": 65, "message": message, "where": f"{model}.onnx", "hint": "again"},
        log_tail=tuple(f"line {line} of the log of a build, with some words in it" for line in range(20)),
        repeat=f"nndeploy compile {model}.onnx -o dist/{model}.nnd --target {target}",
    )  # fmt: skip


def milliseconds(work: Callable[[], object]) -> float:
    """Returns the processor time that something takes."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time_ns()
        work()
        times.append((time.process_time_ns() - start) / 1e6)
    return statistics.median(times)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="what the reports of a batch take")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--failing", type=int, default=5, help="percent")
    arguments = parser.parse_args()
    batch = made_up_batch(arguments.jobs, arguments.failing)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{arguments.jobs:,} jobs, {arguments.failing}% failed\n")
        print("| what | ms | bytes |")
        print("| --- | ---: | ---: |")
        for key, file in FILES.items():
            files = ReportFiles(**{key: folder / file})
            taken = milliseconds(lambda files=files: write_reports(batch, files, folder, {}))
            print(f"| {file} | {taken:.0f} | {(folder / file).stat().st_size:,} |")
        every = ReportFiles(**{key: folder / file for key, file in FILES.items()})
        summary = {"GITHUB_STEP_SUMMARY": str(folder / "step")}
        print(f"| all, and the summary of a step | {milliseconds(lambda: _afresh(batch, every, summary)):.0f} | |")
        print(f"| batch.json, read | {milliseconds(lambda: read_batch(folder / 'batch.json')):.0f} | |")
        print(f"| gates against an equal batch | {milliseconds(lambda: judged(batch, batch, GATES)):.0f} | |")


def _afresh(batch: Batch, files: ReportFiles, summary: dict[str, str]) -> None:
    Path(summary["GITHUB_STEP_SUMMARY"]).unlink(missing_ok=True)
    assert files.json is not None
    write_reports(batch, files, files.json.parent, summary)


if __name__ == "__main__":
    main()
