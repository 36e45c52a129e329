# SPDX-License-Identifier: Apache-2.0
"""Runs a stage's items in child processes: what crashes or hangs is a row, and the items after it run in a new child.

Comes in: a stage, the options, a deadline. Goes out: rows, in the order of the items. Law: `run_stage` returns by the
deadline plus a second or two, and every item is in at least one row.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpucheck.options import ROOT, Options, options_to_json
from gpucheck.rows import CRASHED, FAILED, NOT_RUN, TIMED_OUT, Row, row_from_json, row_of
from gpucheck.stages import Stage

POLL_SECONDS = 0.1
MAX_CRASHES = 6
LAST_WORDS = 200
HERE = Path(__file__).resolve().parents[1]

_keeping = threading.Lock()

Progress = Callable[[str], None]


@dataclass(slots=True)
class _Answers:
    """What one child said so far."""

    rows: dict[str, list[Row]] = field(default_factory=dict)  # by item
    done: list[str] = field(default_factory=list)
    items: list[str] | None = None
    begun: str = ""
    again: bool = False

    def take(self, event: dict[str, Any]) -> None:
        if "begin" in event:
            self.begun = event["begin"]
            self.rows[self.begun] = []
        elif "end" in event:
            self.done.append(event["end"])
            self.begun = ""
        elif "row" in event:
            self.rows[self.begun].append(row_from_json(event["row"]))
        elif "items" in event:
            self.items = event["items"]
        elif "again" in event:
            self.again = True


def run_stage(stage: Stage, options: Options, deadline: float, progress: Progress) -> list[Row]:
    """Returns the rows of a stage; `deadline` is a time of `time.monotonic`."""
    listed, listing = _listed(stage, options, deadline)
    if listed is None:
        return listing
    if not listed:
        return []
    shards = [listed[n :: options.jobs] for n in range(options.jobs)] if stage.is_parallel else [listed]
    shards = [shard for shard in shards if shard]
    with ThreadPoolExecutor(len(shards)) as pool:
        found = pool.map(lambda shard: _run_items(stage, shard, options, deadline, progress), shards)
        by_item = {item: rows for part in found for item, rows in part.items()}
    return [row for item in listed for row in by_item.get(item, [])]


def _listed(stage: Stage, options: Options, deadline: float) -> tuple[list[str] | None, list[Row]]:
    """Returns the stage's items, or None and the row that says why there are none."""
    answers, ending = _run_child(stage, (), options, deadline)
    if answers.items is not None:
        return answers.items, []
    status, reason = ending or (FAILED, "it listed no items")
    return None, [row_of(stage.name, "(its items)", status, reason)]


def _run_items(
    stage: Stage, items: Sequence[str], options: Options, deadline: float, progress: Progress
) -> dict[str, list[Row]]:
    """Returns item -> rows; starts a new child after each crash, hang or lost GPU."""
    found: dict[str, list[Row]] = {}
    left, crashes = list(items), 0
    while left and crashes <= MAX_CRASHES and time.monotonic() < deadline:
        answers, ending = _run_child(stage, left, options, deadline)
        found.update(answers.rows)
        done = [item for item in left if item in answers.done]
        if ending is None and not answers.again and len(done) < len(left):
            ending = (FAILED, "the process ended early")
        if ending is not None and (broken := answers.begun or next((i for i in left if i not in done), "")):
            crashes += 1
            found.setdefault(broken, []).append(row_of(stage.name, broken, *ending))
            done.append(broken)
            progress(f"{stage.name}: {broken}: {ending[0]}: {ending[1]}")
        left = [item for item in left if item not in done]
    why = "no time was left" if time.monotonic() >= deadline else f"after {crashes} crashes no more were tried"
    found.update({item: [row_of(stage.name, item, NOT_RUN, why)] for item in left})
    return found


def _run_child(
    stage: Stage, items: Sequence[str], options: Options, deadline: float
) -> tuple[_Answers, tuple[str, str] | None]:
    """Returns what a child said and, where it did not end well, the status and the reason."""
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        log, said = Path(folder, "log"), Path(folder, "answers")
        said.touch()
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "gpucheck.child", stage.module, options_to_json(options), str(said), *items],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=child_environment(),
                cwd=ROOT,
                start_new_session=True,
            )
        try:
            return _followed(process, stage, said, log, deadline)
        finally:
            _end(process)
            _keep_log(stage, log, options)


def _followed(
    process: "subprocess.Popen[bytes]", stage: Stage, said: Path, log: Path, deadline: float
) -> tuple[_Answers, tuple[str, str] | None]:
    """Reads a child's answers until it ends or its time is over."""
    answers, last_change = _Answers(), time.monotonic()
    with said.open(encoding="utf-8") as lines:
        rest = ""
        while True:
            has_ended = process.poll() is not None
            rest, num_events = _taken(answers, rest + lines.read())
            now = time.monotonic()
            last_change = now if num_events else last_change
            if has_ended:
                return answers, _ending(process.returncode, log)
            if now > deadline:
                return answers, (NOT_RUN, "no time was left while it ran")
            if now - last_change > stage.item_seconds:
                return answers, (TIMED_OUT, f"nothing new for {stage.item_seconds:g} s")
            time.sleep(POLL_SECONDS)


def _taken(answers: _Answers, text: str) -> tuple[str, int]:
    """Takes the whole lines of `text`; returns what is left and how many there were."""
    *whole, rest = text.split("\n")
    for line in whole:
        answers.take(json.loads(line))
    return rest, len(whole)


def _ending(returncode: int, log: Path) -> tuple[str, str] | None:
    if returncode == 0:
        return None
    words = last_words(log.read_text(encoding="utf-8", errors="replace").splitlines())[:LAST_WORDS]
    if returncode < 0:
        return CRASHED, f"{_signal_name(-returncode)}: {words}"
    return CRASHED, f"ended with status {returncode}: {words}"


def last_words(lines: Sequence[str]) -> str:
    """Returns the last line of a log; of a crash the line before it, and where Python was."""
    said = [line.strip() for line in lines if line.strip()]
    crash = next((n for n, line in enumerate(said) if line.startswith("Fatal Python error")), len(said))
    frame = next((line for line in said[crash:] if line.startswith("File ")), "")
    return "; ".join(filter(None, (*said[crash - 1 : crash], frame)))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _keep_log(stage: Stage, log: Path, options: Options) -> None:
    if options.log_file and log.stat().st_size:
        text = log.read_text(encoding="utf-8", errors="replace")
        with _keeping, Path(options.log_file).open("a", encoding="utf-8") as kept:
            kept.write(f"---- {stage.name}\n{text}\n")


def child_environment() -> dict[str, str]:
    """Returns the environment of a child: this one's, with the package on the path and nothing that reports home."""
    paths = [str(HERE), str(ROOT), str(ROOT / "backends"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        "ORT_DISABLE_TELEMETRY": "1",
    }


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kills the child and whatever it started in its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
