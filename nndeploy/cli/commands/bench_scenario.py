# SPDX-License-Identifier: Apache-2.0
"""`nndeploy bench --scenario`: LoadGen asks, the bundle answers; the verdict as a table or as JSON."""

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nndeploy.cli.commands.bench_inputs import bench_inputs
from nndeploy.cli.commands.loading import load
from nndeploy.cli.console import print_json, print_table, tell, warn
from nndeploy.cli.options.option_fields import given
from nndeploy.cli.views.choices_json import chain_to_json, choice_to_json
from nndeploy.errors import CheckError
from nndeploy.loadgen.accuracy import Accuracy, accuracy_from_log
from nndeploy.loadgen.driver import drive, log_folder
from nndeploy.loadgen.library import loadgen
from nndeploy.loadgen.rehearsal import rehearse
from nndeploy.loadgen.samples import NamedSample
from nndeploy.loadgen.settings import (
    DEFAULT_SECONDS,
    SUBMISSION_SECONDS,
    Request,
    Scenario,
    Settings,
    settings_from_request,
)
from nndeploy.loadgen.verdict import Verdict, verdict_from_log, version_from_log
from nndeploy.runtime.batching import JoinedCalls
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import Program

MAX_SAMPLES = 1024
MAX_SAMPLE_BYTES = 1 << 30
NUM_MADE_UP = 16


def bench_scenario(
    bundle: Path,
    inputs: Sequence[str],
    scenario: str,
    how: LoadOptions,
    options: dict[str, Any],
    *,
    seconds: float | None,
    warmup: int,
    as_json: bool,
) -> None:
    """Runs one test of LoadGen and prints what it says.

    `how` is how the bundle is loaded, `options` what else the command was told.

    Raises:
        CheckError: LoadGen does not call the result valid, or outputs differ.
        NndeployError: the options, the bundle, an input or LoadGen do not allow it.
    """
    loadgen()  # if it is missing, that is said before anything takes time
    asked = given(Request, options)
    request = Request(Scenario(scenario), seconds=seconds or DEFAULT_SECONDS, **asked)
    with load(bundle, how) as program, log_folder(options["output"]) as folder:
        if request.inflight is None and not request.scenario.is_stream and program.stages:
            request = dataclasses.replace(request, inflight=program.calls_at_once)
        samples, origin = bench_inputs(
            program, inputs, most=MAX_SAMPLES, most_bytes=MAX_SAMPLE_BYTES, num_made_up=NUM_MADE_UP
        )
        calls = _joined(program, request, samples)
        settings = settings_from_request(request, rehearse(calls, samples, request, warmup))
        _tell_plan(settings, len(samples))
        began = time.monotonic()
        drive(
            calls,
            samples,
            settings,
            folder,
            num_workers=request.num_workers,
            tell=lambda count: _say(f"{count:,} samples answered in {time.monotonic() - began:.0f} s"),
        )
        report = _report(program, settings, request, calls) | {
            "threads": how.threads,
            "inputs": origin,
            "samples": len(samples),
            "log_folder": None if options["output"] is None else str(options["output"]),
        }
        if settings.accuracy:
            accuracy = accuracy_from_log(folder, calls, samples)
            report["loadgen_version"] = version_from_log(folder)
        else:
            verdict = verdict_from_log(folder, settings.scenario)
    title = f"{bundle}: LoadGen {{version}}, {scenario}, on {origin}"
    if settings.accuracy:
        _finish_accuracy(report, accuracy, title, as_json)
    else:
        _finish_performance(report, verdict, settings, title, as_json)


def _joined(program: Program, request: Request, samples: Sequence[NamedSample]) -> JoinedCalls:
    """Returns the calls, as large as the bundle allows; where the user asked for larger ones, a warning says why not.

    Raises:
        NndeployError: the program cannot run a sample.
    """
    calls = JoinedCalls(program, request.most_rows)
    reason = calls.check([sample.values for sample in samples])
    if request.batch is not None and calls.most_rows < request.batch:
        reason = reason or "the model supports no more"
        warn(f"--batch {request.batch}: {calls.most_rows} a call: {reason}")
    return calls


def _tell_plan(settings: Settings, num_samples: int) -> None:
    if settings.accuracy:
        _say(f"{settings.scenario}, {num_samples:,} samples once")
        return
    _say(
        f"{settings.scenario} for at least {settings.seconds:g} s "
        f"(--duration; MLPerf requires {SUBMISSION_SECONDS} for a submission)"
    )
    for note in settings.notes:
        _say(note)


def _say(text: str) -> None:
    tell(f"nndeploy: {text}")


def _report(program: Program, settings: Settings, request: Request, calls: JoinedCalls) -> dict[str, Any]:
    chosen: dict[str, Any] = {"inflight": max(1, request.num_workers), "batch": calls.most_rows}
    if not settings.accuracy:
        chosen |= {"duration_s": settings.seconds, "min_queries": settings.min_queries}
        if settings.scenario is not Scenario.OFFLINE:
            chosen["percentile"] = settings.percentile
        if settings.scenario is Scenario.SERVER:
            chosen["target_latency_ms"] = settings.target_latency_ms
        if not settings.scenario.is_stream:
            chosen["target_qps"] = settings.target_qps
    if settings.scenario is Scenario.MULTI_STREAM:
        chosen["samples_per_query"] = settings.samples_per_query
    return {
        "bundle": str(program.path),
        "chain": chain_to_json(program.chain),
        "choices": [choice_to_json(choice) for choice in program.choices],
        "scenario": str(settings.scenario),
        "mode": "accuracy" if settings.accuracy else "performance",
        "settings": chosen,
    }


def _finish_performance(
    report: dict[str, Any], verdict: Verdict, settings: Settings, title: str, as_json: bool
) -> None:
    """Prints the verdict.

    Raises:
        CheckError: it is not VALID.
    """
    if as_json:
        print_json(
            report
            | {"ok": verdict.is_valid, "valid": verdict.is_valid, "reason": verdict.reason}
            | {"figures": verdict.figures, "loadgen_version": verdict.version, "loadgen": verdict.results}
            | {"errors": list(verdict.errors), "warnings": list(verdict.warnings)}
        )
    else:
        rows = [("result", "VALID" if verdict.is_valid else "INVALID")]
        rows += [_row(name, value, settings) for name, value in verdict.figures.items()]
        print_table(title.format(version=verdict.version), ("figure", "value"), rows, right=("value",))
    if not verdict.is_valid:
        raise CheckError(f"LoadGen calls the result INVALID: {verdict.reason}", where=report["bundle"])
    for error in verdict.errors:
        warn(f"LoadGen: {error}")


def _row(name: str, value: float, settings: Settings) -> tuple[str, str]:
    """Returns a figure as people read it."""
    if name == "early_stopping_latency_ms":
        return f"latency at {settings.percentile:g}%, by early stopping", f"{value:.3f} ms"
    if name.endswith("_ms"):
        subject = "query latency" if settings.scenario is Scenario.MULTI_STREAM else "latency"
        bound = settings.scenario is Scenario.SERVER and name == f"p{settings.percentile:g}_ms"
        return f"{subject} {name[:-3]}", f"{value:.3f} ms" + f" (bound {settings.target_latency_ms:g})" * bound
    if name.endswith("_per_second"):
        noun = {"queries_per_second": "rate, queries/s", "samples_per_second": "rate, samples/s"}.get(name)
        return noun or f"{name.removesuffix('_per_second')}, samples/s", f"{value:,.1f}"
    return name.replace("_", " "), f"{value:,}"


def _finish_accuracy(report: dict[str, Any], accuracy: Accuracy, title: str, as_json: bool) -> None:
    """Prints how the answers compare.

    Raises:
        CheckError: an output differs.
    """
    if as_json:
        outputs = [
            {"output": output.output, "failed": output.num_failed, **dataclasses.asdict(output.worst)}
            for output in accuracy.outputs
        ]
        print_json(report | {"ok": accuracy.ok, "answers": accuracy.num_answers, "outputs": outputs})
    else:
        columns = ("output", "answers", "", "max abs", "max rel", "note")
        rows = [
            (
                output.output,
                f"{accuracy.num_answers:,}",
                f"{output.num_failed} FAILED" if output.num_failed else "ok",
                _figure(output.worst.max_abs),
                _figure(output.worst.max_rel),
                output.worst.note,
            )
            for output in accuracy.outputs
        ]
        print_table(
            title.format(version=report["loadgen_version"]) + ", against direct calls",
            columns,
            rows,
            right=columns[1:5],
        )
    if not accuracy.ok:
        failed = max(output.num_failed for output in accuracy.outputs)
        raise CheckError(
            f"{failed} of {accuracy.num_answers} answers differ from direct calls of the bundle", where=report["bundle"]
        )


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
