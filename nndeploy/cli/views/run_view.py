# SPDX-License-Identifier: Apache-2.0
"""What a person sees of a run: results and failures as they come, progress, and the figures at the end."""

import dataclasses
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from nndeploy.cli.console import draws_progress, err, print_line, tell, visible
from nndeploy.cli.views.choices_json import chain_to_json, choice_to_json
from nndeploy.cli.views.progress import Heartbeat
from nndeploy.cli.views.stream_figures import SOURCE_COUNTS, Share, ideal_of, limit_text, share_of, tuning_text
from nndeploy.errors import NndeployError, one_line
from nndeploy.pacing.run.protocol import ProgramPacing
from nndeploy.pacing.show.achieved_text import pace_lines, pacing_to_json
from nndeploy.pacing.show.missed_goal import missed_goal
from nndeploy.runtime.places import ChainChoice
from nndeploy.runtime.program import Program
from nndeploy.runtime.select import Choice
from nndeploy.runtime.tune_program import tuning_notes
from nndeploy.stream.description import RunnerPlan
from nndeploy.stream.engine.engine import Stream, Summary
from nndeploy.stream.engine.workers import StageFigures
from nndeploy.stream.formats.images import best_label
from nndeploy.stream.formats.json_lines import head_of
from nndeploy.stream.items import Outcome
from nndeploy.stream.run.loaded import Loaded
from nndeploy.stream.sources.input_paths import passed_over_text
from nndeploy.stream.sources.readers import SourceFigures
from nndeploy.stream.sources.sources import Source
from nndeploy.values.amounts import ms_text
from nndeploy.values.types import Value, dtype_name, ranges_text

if TYPE_CHECKING:
    from rich.progress import Progress

PLAIN_SECONDS = 5.0
"""How often a line of progress is printed where standard error is no terminal."""
BAR_SECONDS = 0.5
"""How often the busiest stage is looked for where there is a bar."""
MAX_SHOWN_VALUES = 10
MAX_RECORDS = 1000
"""How many failures, and how many results without an output, the JSON summary lists."""


class RunView:
    """Shows a run while it goes on; `first_error` is that of the first item that failed."""

    def __init__(self, loaded: Loaded, stream: Stream, source: Source, *, shows_items: bool, verbose: bool) -> None:
        """Makes a view; with `shows_items` each result is printed on standard output."""
        self.first_error: NndeployError | None = None
        self._programs = loaded.programs
        self._manifest = loaded.first.manifest if loaded.file is None and loaded.first is not None else None
        self._stream = stream
        self._source = source
        self._is_verbose = verbose
        self._has_told_outside = False
        self._shows_items = shows_items
        self._records: list[dict[str, Any]] = []
        self._num_done = 0
        self._began = self._told = time.monotonic()
        self._looked_ns = time.perf_counter_ns()
        self._before: dict[str, StageFigures] = {}
        self._limit = ""
        self._bar = None if shows_items or not draws_progress() else _bar()
        is_endless = source.num_items is None  # who feeds it need not be told that it waits
        self.heartbeat = Heartbeat("" if self._bar is not None or is_endless else "running, no item is done yet")
        if text := passed_over_text(source.passed_over):
            self._say(f"nndeploy: {text}")
        for line in dict.fromkeys(line for pacing in self._pacings for line in pacing.warnings):
            self._warn(f"nndeploy: warning: {line}")
        if verbose:
            for programs in loaded.programs.values():
                _tell_program(programs[0])
            for pipeline in loaded.plan.pipelines:
                if pipeline.runner is not None:
                    _tell_stages(pipeline.runner, loaded.programs[pipeline.name][0])

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.add_task("", total=self._source.num_items, rate="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def outcome(self, outcome: Outcome) -> None:
        """Shows one outcome."""
        self._num_done += 1
        if self._bar is None and self._source.num_items is not None:
            self.heartbeat.more(f"running, {self._num_done:,} of {self._source.num_items:,} items are done")
        if outcome.is_failed:
            self.first_error = self.first_error or outcome.error
            if outcome.error is not None and not self._source.is_one:
                self._warn(f"nndeploy: item {outcome.index}: error[{outcome.error.code}]: {outcome.error}")
        elif self._shows_items and outcome.is_taken:
            for line in self._lines(outcome):
                print_line(line)
        if outcome.non_finite:
            names = ", ".join(map(repr, outcome.non_finite))
            self._warn(f"nndeploy: warning: {one_line(outcome.origin)}: NaN or infinity in {one_line(names)}")
        if self._is_verbose:
            self._tell_outside()
        self._record(outcome)
        self._progress()

    def _tell_outside(self) -> None:
        """Says once which calls do not run on the chain that was chosen."""
        notes = {one.outside_note for programs in self._programs.values() for one in programs} - {""}
        if notes and not self._has_told_outside:
            self._has_told_outside = True
            self._say(f"nndeploy: {one_line(min(notes))}")

    def finish(self, summary: Summary) -> None:
        """Prints the figures of the whole run on standard error."""
        failed = f", {summary.num_failed} failed" if summary.num_failed else ""
        failed += f", {summary.num_not_taken} not taken" if summary.num_not_taken else ""
        figures = "" if summary.first_ns is None else f", first {summary.first_ns / 1e6:.3f} ms"
        if len(summary.latencies):
            figures += ", then"
            figures += ",".join(f" {name} {value:.3f} ms" for name, value in summary.latencies.percentiles_ms().items())
            figures += " an item" if self._manifest is None else " a call"
        items = "1 item" if summary.num_items == 1 else f"{summary.num_items:,} items"
        self._say(f"{items}{failed} in {summary.seconds:.2f} s, {summary.rate_hz:,.1f} items/s{figures}")
        for line in pace_lines(self._stream.pacing, self._pacings):
            self._say(line)
        if summary.is_stopped:
            self._say("nndeploy: stopped before the end")
        for source in summary.sources:
            if text := source_text(source):
                self._say(f"nndeploy: source {source.name!r}: {text}")
        if summary.num_forgotten:
            self._say(f"nndeploy: {summary.num_forgotten:,} sessions were dropped to keep the limit of a pipeline")
        if self._is_verbose:
            if (tuning := self._stream.tuning) is not None:
                for line in (*tuning.lines, f"tuning: {tuning_text(tuning.to_json())}"):
                    self._say(f"nndeploy: {line}")
            for stage in summary.stages:
                self._say(f"nndeploy: {stage.name}: {_busy_text(stage, summary.seconds)}")
            shares = _shares(summary)
            self._say(f"nndeploy: {limit_text(shares)}")
            if ideal := ideal_of(shares, summary.seconds, summary.num_items):
                least = f"{ms_text(ideal.ms)} an item for {ideal.stage} alone"
                self._say(f"nndeploy: {ideal.share:.0%} of the ideal, {least}")
            for queue in summary.queues:
                if waits := queue.waited_ms():
                    waited = _percentiles_text(waits)
                    self._say(f"nndeploy: {queue.name}: waited {waited}; at most {queue.max_depth} at once")

    def to_json(self, summary: Summary) -> dict[str, Any]:
        """Returns the summary that `--json` prints."""
        return {
            **self._programs_to_json(),
            "items": summary.num_items,
            "failed": summary.num_failed,
            "not_taken": summary.num_not_taken,
            "non_finite": summary.num_non_finite,
            **({"passed_over": dict(self._source.passed_over)} if self._source.passed_over else {}),
            "seconds": summary.seconds,
            "items_per_second": summary.rate_hz,
            "first_ms": None if summary.first_ns is None else summary.first_ns / 1e6,
            "latency_ms": summary.latencies.percentiles_ms(),
            "records": self._records,
            **({"sources": [dataclasses.asdict(one) for one in summary.sources]} if summary.sources else {}),
            "stages": [stage_to_json(stage, summary.seconds) for stage in summary.stages],
            **_ideal_to_json(summary),
            "queues": [queue.to_json() for queue in summary.queues],
            **({"forgotten_sessions": summary.num_forgotten} if summary.num_forgotten else {}),
            **({"stopped": True} if summary.is_stopped else {}),
            **pacing_to_json(self._stream.pacing, self._pacings),
        }

    @property
    def missed_goal(self) -> str:
        """How pacing missed what was granted, in a line; "" where it did not."""
        return missed_goal(self._stream.pacing, self._pacings)

    @property
    def _pacings(self) -> list[ProgramPacing]:
        return [one.pacing for programs in self._programs.values() for one in programs]

    def _programs_to_json(self) -> dict[str, Any]:
        if self._manifest is not None:
            (programs,) = self._programs.values()
            return _program_to_json(programs[0])
        return {"pipelines": {name: _program_to_json(programs[0]) for name, programs in self._programs.items()}}

    def _label(self, outcome: Outcome) -> tuple[str, float] | None:
        return best_label(self._manifest, outcome.outputs or {}) if self._manifest is not None else None

    def _lines(self, outcome: Outcome) -> list[str]:
        outputs = outcome.outputs or {}
        label = self._label(outcome)
        if label is not None:
            return [f"{outcome.origin}  {label[0]}  {label[1]:.1%}"]
        return [outcome.origin, *(f"  {name}  {describe(value)}" for name, value in outputs.items())]

    def _record(self, outcome: Outcome) -> None:
        if len(self._records) >= MAX_RECORDS or (outcome.error is None and self._source.num_items is None):
            return
        record = head_of(outcome)
        if outcome.error is None:
            label = self._label(outcome)
            record["run_ms"] = outcome.run_ns / 1e6
            record |= {} if label is None else {"label": label[0], "probability": round(label[1], 6)}
        self._records.append(record)

    def _progress(self) -> None:
        now = time.monotonic()
        rate = self._num_done / max(now - self._began, 1e-9)
        if self._bar is not None:
            if now - self._told > BAR_SECONDS:
                self._told, self._limit = now, self._limit_text()
            text = f"{rate:,.1f} items/s{self._limit}"
            self._bar.update(self._bar.task_ids[0], completed=self._num_done, rate=text)
        elif not self._shows_items and now - self._told > PLAIN_SECONDS:
            self._told = now
            of = f" of {self._source.num_items:,}" if self._source.num_items else ""
            self._say(f"nndeploy: {self._num_done:,}{of} items, {rate:,.1f} items/s{self._limit_text()}")
            self.heartbeat.spoke()

    def _limit_text(self) -> str:
        """Returns what was busiest since the last time, a stage or the cores, and how full the queues are."""
        now = time.perf_counter_ns()
        stages = {stage.name: stage for stage in (*self._stream.stages(), self._stream.cores())}
        seconds = (now - self._looked_ns) / 1e9
        shares = {name: share_of(stage, seconds, self._before.get(name)) for name, stage in stages.items()}
        self._looked_ns, self._before = now, stages
        depths = " ".join(f"{queue.depth}/{queue.capacity}" for queue in self._stream.queues())
        return f"; {visible(limit_text(shares))}; queues {depths}"

    def _say(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(visible(text), soft_wrap=True)
        else:
            tell(text)

    def _warn(self, text: str) -> None:
        """Says what -q does not silence."""
        if self._bar is not None:
            self._say(text)
        else:
            print(visible(text), file=sys.stderr)


def _bar() -> "Progress":
    from rich.progress import (  # which takes 30 ms, and is seen on a terminal alone
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    shown = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}", markup=False), TimeRemainingColumn())
    return Progress(*shown, console=err())


def _tell_program(program: Program) -> None:
    _tell_chain(program.chain)
    for choice in program.choices:
        _tell_choice(choice)
    for note in (*program.pacing.notes, *tuning_notes(program)):
        tell(f"nndeploy: {note}")


def _tell_stages(runner: RunnerPlan, program: Program) -> None:
    """Says whether calls follow each other over the places of a chain that spans several."""
    if runner.serial:
        tell(f"nndeploy: one call at a time on {program.chain.where}: {runner.serial}")
    elif runner.stages:
        tell(f"nndeploy: up to {runner.calls_at_once} calls at once on {program.chain.where}, one on each place")


def _program_to_json(program: Program) -> dict[str, Any]:
    return {
        "bundle": str(program.path),
        "chain": chain_to_json(program.chain),
        "choices": [choice_to_json(choice) for choice in program.choices],
    }


def _shares(summary: Summary) -> dict[str, Share]:
    return {stage.name: share_of(stage, summary.seconds) for stage in summary.stages}


def _ideal_to_json(summary: Summary) -> dict[str, Any]:
    ideal = ideal_of(_shares(summary), summary.seconds, summary.num_items)
    return {} if ideal is None else {"ideal": dataclasses.asdict(ideal)}


def stage_to_json(stage: StageFigures, seconds: float) -> dict[str, Any]:
    """Returns what the workers of a stage did as plain data."""
    return {
        "stage": stage.name,
        "workers": stage.num_workers,
        "records": stage.num_done,
        "busy_seconds": stage.busy_ns / 1e9,
        "busy_share": round(share_of(stage, seconds).busy, 4),
        **({} if stage.core_wait_ns is None else {"core_wait_seconds": stage.core_wait_ns / 1e9}),
        "worked_ms": stage.worked_ms(),
    }


def _busy_text(stage: StageFigures, seconds: float) -> str:
    workers = "1 worker" if stage.num_workers == 1 else f"{stage.num_workers} workers"
    worked = _percentiles_text(stage.worked_ms())
    share = share_of(stage, seconds)
    waits = "" if share.core_wait is None else f", {share.core_wait:.0%} waiting for a core"
    text = f"{workers}, {share.busy:.0%} busy{waits}, {stage.num_done:,} records"
    return text + (f"; worked {worked}" if worked else "")


def _percentiles_text(found: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {ms:.3f} ms" for name, ms in found.items())


def source_text(source: SourceFigures) -> str:
    """Returns what a source lost and how often it was opened again, "" where there is nothing to tell."""
    read, *lost = [(getattr(source, key), what) for key, what in SOURCE_COUNTS.items()]
    told = [f"{count:,} {what}" for count, what in (read, *lost) if count or what == "read"]
    return ", ".join(told) if any(count for count, _ in lost) else ""


def _tell_chain(chain: ChainChoice) -> None:
    tell(f"nndeploy: chain {chain.id} on {chain.where}")
    if chain.ranges:
        tell(f"nndeploy:   for {ranges_text(chain.ranges)}; other sizes run on the portable chain")
    for other in chain.passed_over:
        tell(f"nndeploy:   not {other.chain}: {one_line(other.reason)}")


def _tell_choice(choice: Choice) -> None:
    text = f"nndeploy: submodel {choice.submodel}: {choice.backend} ({choice.variant}) on {choice.device}"
    for other in choice.passed_over:
        text += f"; not {other.backend} ({other.variant}): {other.reason}"
    tell(one_line(text))


def describe(value: Value) -> str:
    """Returns a value in a line: all of it where it is small, else its type and the range of its numbers."""
    if value is None:
        return "none"
    if isinstance(value, list | tuple | dict):
        first = next(iter(value.values() if isinstance(value, dict) else value), None)
        kind = "map" if isinstance(value, dict) else "list"
        return f"{kind} of {len(value)}" + (f", first: {describe(first)}" if value else "")
    array = np.asarray(value)
    kind = f"{dtype_name(array.dtype)}[{','.join(map(str, array.shape))}]"
    if array.size <= MAX_SHOWN_VALUES:
        return f"{kind} {_shown(array)}"
    if array.dtype.kind in "OSUTc":
        return kind
    numbers = array.astype(np.float64)
    return f"{kind} min {numbers.min():.6g}, max {numbers.max():.6g}, mean {numbers.mean():.6g}"


def _shown(array: "np.ndarray[Any, Any]") -> str:
    if array.dtype.kind in "OSUT":
        return str(array.tolist())
    return np.array2string(array, separator=", ", max_line_width=10_000, precision=6).replace("\n", "")
