# SPDX-License-Identifier: Apache-2.0
"""`nndeploy bench`: latency and rate of a bundle on this machine, one call after the other.

With `--scenario` MLPerf's LoadGen asks instead (`nndeploy.cli.commands.bench_scenario`).
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from nndeploy.cli.commands.bench_gates import BenchGates, raise_if_failed
from nndeploy.cli.commands.bench_inputs import MAX_INPUTS, bench_inputs
from nndeploy.cli.commands.loading import BUNDLE, load
from nndeploy.cli.console import note, print_json, print_line
from nndeploy.cli.options.ci_options import CI_SECTION, ci_options, ci_report
from nndeploy.cli.options.help_sections import SectionedCommand
from nndeploy.cli.options.option_fields import options_given, options_of, sections_of
from nndeploy.cli.options.quiet_option import QUIET
from nndeploy.cli.options.value_types import ANY_FILE, Number
from nndeploy.cli.views.choices_json import chain_to_json, choice_to_json
from nndeploy.errors import NndeployError, UsageError
from nndeploy.loadgen.samples import NamedSample
from nndeploy.loadgen.settings import Request
from nndeploy.runtime.latency import Latencies
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import Program
from nndeploy.target.cpu_name import cpu_name
from nndeploy.values.types import shapes_text

DEFAULT_SECONDS = 3.0

EXAMPLES = """\b
Examples:
  nndeploy bench model.nnd
  nndeploy bench model.nnd --input x.npz --iterations 1000 --threads 1
  nndeploy bench model.nnd --max-p99 5ms                                 fails (1) if it is slower
  nndeploy bench model.nnd --duration 30 --json > bench.json
  nndeploy bench model.nnd --against bench.json --max-slowdown 5%
  nndeploy bench model.nnd --operators --iterations 100
  nndeploy bench model.nnd --scenario offline --input photos/
  nndeploy bench model.nnd --scenario server --target-qps 50 --target-latency-ms 30 -o logs/
"""

SCENARIOS = ("single-stream", "multi-stream", "offline", "server")
MEANT_FOR = {
    "accuracy": SCENARIOS,
    "min_queries": SCENARIOS,
    "output": SCENARIOS,
    "inflight": ("multi-stream", "offline", "server"),
    "batch": ("multi-stream", "offline", "server"),
    "percentile": ("single-stream", "multi-stream", "server"),
    "samples_per_query": ("multi-stream",),
    "target_latency_ms": ("server",),
    "target_qps": ("offline", "server"),
}
"""Option -> the scenarios in which it means something."""
GATES = ("max_p99", "against", "max_slowdown")
"""What judges plain calls alone."""
MEASURED_ALONE = ("duration", "min_queries", "percentile", "target_latency_ms", "target_qps")
"""What has no meaning with --accuracy, which asks every sample once."""


SECTIONS = sections_of(
    {
        "Measurement": ("inputs", "iterations", "duration", "warmup", "operators"),
        "MLPerf's LoadGen": ("scenario",),
    },
    BenchGates,
    Request,
    {"MLPerf's LoadGen": ("output",)},
    LoadOptions,
    CI_SECTION,
)


@click.command("bench", cls=SectionedCommand, sections=SECTIONS, epilog=EXAMPLES)
@BUNDLE
@click.option(
    "-i", "--input", "inputs", type=ANY_FILE, multiple=True, metavar="WHAT",
    help="Inputs to run, as for `nndeploy run`. Default: the bundle's stored sample inputs, or generated ones.",
)  # fmt: skip
@click.option(
    "--iterations",
    type=click.IntRange(min=1),
    help="Number of measured calls. Default: as many as fit into --duration.",
)
@click.option(
    "--duration", type=Number(min=0, min_open=True), metavar="SECONDS",
    help=f"How long to measure. Default: {DEFAULT_SECONDS:g}, or until --iterations are done. "
         "With --scenario: the minimum; default: 10 (MLPerf requires 600 for a submission).",
)  # fmt: skip
@click.option("--warmup", type=click.IntRange(min=0), default=10, show_default=True, help="Number of warm-up calls.")
@click.option(
    "--operators", is_flag=True, help="Profile each operator instead; requires a bundle compiled with --pace."
)
@click.option(
    "--scenario", type=click.Choice(SCENARIOS),
    help="Run this MLPerf scenario with LoadGen (requires the `loadgen` extra).",
)  # fmt: skip
@options_of(BenchGates)
@options_of(Request)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder for LoadGen's logs.")
@options_of(LoadOptions)
@ci_options
@QUIET
@click.option("--json", "as_json", is_flag=True, help="Print the results and every duration as JSON.")
def bench(
    bundle: Path,
    inputs: tuple[str, ...],
    iterations: int | None,
    duration: float | None,
    warmup: int,
    operators: bool,
    scenario: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Benchmark a BUNDLE here: latency and throughput.

    Calls run one after the other, from arrays to arrays; reading and writing files is not measured. --operators runs
    the first input and reports the time and rate of each operator. --scenario runs MLPerf's LoadGen, and exits with 1
    unless its log says VALID.
    """
    how = options_given(LoadOptions, options)
    _refuse_meaningless(scenario, options | {"iterations": iterations, "duration": duration, "operators": operators})
    if scenario is None and iterations is None and duration is None:
        duration = DEFAULT_SECONDS
    with ci_report("bench", bundle, options) as told:
        if scenario is not None:
            from nndeploy.cli.commands.bench_scenario import bench_scenario

            bench_scenario(bundle, inputs, scenario, how, options, seconds=duration, warmup=warmup, as_json=as_json)
        elif operators:
            from nndeploy.cli.commands.bench_operators import bench_operators

            bench_operators(
                bundle, inputs, how, iterations=iterations, seconds=duration, warmup=warmup, as_json=as_json
            )
        else:
            gates = options_given(BenchGates, options)
            report = _measured(bundle, inputs, how, gates, iterations, duration, warmup)
            judged = gates.judged(report["latency_ms"], report.get("p50_before_ms"))
            told.checks += judged
            told.figures += _figures(report)
            if as_json:
                print_json(report)
            else:
                _print(report)
            raise_if_failed(str(bundle), judged)


def _measured(
    bundle: Path,
    inputs: Sequence[str],
    how: LoadOptions,
    gates: BenchGates,
    iterations: int | None,
    duration: float | None,
    warmup: int,
) -> dict[str, Any]:
    """Returns what calls of the bundle took, as plain data."""
    began_ns = time.perf_counter_ns()
    with load(bundle, how) as program:
        load_ms = (time.perf_counter_ns() - began_ns) / 1e6
        samples, origin = bench_inputs(program, inputs, most=MAX_INPUTS)
        report = _facts(program, samples, how) | {"inputs": origin, "load_ms": load_ms}
        median_before = gates.median_before(report)
        firsts = list({_shapes(sample): sample for sample in reversed(samples)}.values())[::-1]
        report["first_ms"], *_ = [_timed_ns(program, sample) / 1e6 for sample in firsts]
        _warm_up(program, samples, warmup, duration)
        latencies, seconds = _called(program, samples, iterations, duration)
    durations_ns = latencies.to_json()
    return report | {
        "iterations": len(latencies),
        "seconds": seconds,
        "calls_per_second": len(latencies) / seconds,
        "mean_ms": sum(durations_ns) / len(latencies) / 1e6,
        "latency_ms": latencies.percentiles_ms(),
        **({} if median_before is None else {"p50_before_ms": median_before}),
        "durations_ns": durations_ns,
    }


def _figures(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns what people read first: latency and rate."""
    latency = [(name, f"{value:.3f} ms") for name, value in report["latency_ms"].items()]
    return [*latency, ("mean", f"{report['mean_ms']:.3f} ms"), ("rate", f"{report['calls_per_second']:,.1f} calls/s")]


def _facts(program: Program, samples: Sequence[NamedSample], how: LoadOptions) -> dict[str, Any]:
    """Returns what is measured, on what and how."""
    return {
        "bundle": str(program.path),
        "model": program.manifest.model_name,
        "chain": chain_to_json(program.chain),
        "choices": [choice_to_json(choice) for choice in program.choices],
        "threads": how.threads,
        "cpu": cpu_name(),
        "shapes": sorted(set(map(_shapes, samples))),
    }


def _shapes(sample: NamedSample) -> str:
    return shapes_text(dict(sorted(sample.values.items())))


def _print(report: dict[str, Any]) -> None:
    latency = ", ".join(f"{name} {value:.3f} ms" for name, value in report["latency_ms"].items())
    before = report.get("p50_before_ms")
    than = "" if before is None else f"; p50 before {before:.3f} ms"
    print_line(f"{report['bundle']}: {report['iterations']:,} calls on {report['inputs']} in {report['seconds']:.2f} s")
    print_line(f"latency   {latency}, mean {report['mean_ms']:.3f} ms{than}")
    print_line(f"rate      {report['calls_per_second']:,.1f} calls/s")
    print_line(f"load      {report['load_ms']:.1f} ms, first call {report['first_ms']:.3f} ms")
    for choice in report["choices"]:
        print_line(f"submodel  {choice['submodel']}: {choice['backend']} ({choice['variant']}) on {choice['device']}")


def _refuse_meaningless(scenario: str | None, options: dict[str, Any]) -> None:
    """Refuses options that would be ignored.

    Raises:
        UsageError: an option has no meaning with the others.
    """
    if scenario is not None and options["operators"]:
        raise UsageError("--operators cannot be used with --scenario")
    for name in GATES:
        if options[name] is not None and (scenario is not None or options["operators"]):
            other = "--operators" if scenario is None else "--scenario"
            raise UsageError(f"--{name.replace('_', '-')} cannot be used with {other}")
    if scenario is not None and options["iterations"] is not None:
        raise UsageError("--iterations cannot be used with --scenario", hint="--min-queries")
    for name, scenarios in MEANT_FOR.items():
        if options[name] and scenario not in scenarios:
            option = f"--{name.replace('_', '-')}"
            if scenario is None:
                raise UsageError(f"{option} requires --scenario")
            raise UsageError(f"{option} does not apply to {scenario}", hint=f"it is for {', '.join(scenarios)}")
    if options["accuracy"]:
        for name in MEASURED_ALONE:
            if options[name]:
                raise UsageError(f"--{name.replace('_', '-')} cannot be used with --accuracy, which measures no time")


def _timed_ns(program: Program, sample: NamedSample) -> int:
    began = time.perf_counter_ns()
    try:
        program.run(sample.values)
    except NndeployError as err:
        raise err.about(sample.origin) from err
    return time.perf_counter_ns() - began


def _warm_up(program: Program, samples: Sequence[NamedSample], count: int, duration: float | None) -> None:
    """Runs `count` calls, fewer where they take longer than the measurement itself."""
    began = time.perf_counter()
    for i in range(count):
        if duration is not None and time.perf_counter() - began > duration:
            note(f"{i} calls took {time.perf_counter() - began:.2f} s: fewer warm-up calls than {count}")
            return
        _timed_ns(program, samples[i % len(samples)])


def _called(
    program: Program, samples: Sequence[NamedSample], iterations: int | None, duration: float | None
) -> tuple[Latencies, float]:
    """Returns the latencies of the calls, at least one, and the seconds that they took together."""
    latencies = Latencies()
    began = time.perf_counter()
    seconds = 0.0
    while (iterations is None or len(latencies) < iterations) and (duration is None or seconds < duration):
        latencies.add(_timed_ns(program, samples[len(latencies) % len(samples)]))
        seconds = time.perf_counter() - began
    return latencies, seconds
