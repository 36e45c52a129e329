# SPDX-License-Identifier: Apache-2.0
"""`nndeploy bench`: latency and rate of a bundle on this machine, one call after the other.

With `--scenario` MLPerf's LoadGen asks instead (`nndeploy.cli.commands.bench_scenario`).
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from nndeploy.cli.commands.bench_inputs import bench_inputs
from nndeploy.cli.commands.loading import BUNDLE, load
from nndeploy.cli.console import print_json, print_line
from nndeploy.cli.options.help_sections import SectionedCommand
from nndeploy.cli.options.option_fields import options_given, options_of, sections_of
from nndeploy.cli.options.value_types import ANY_FILE, Number
from nndeploy.cli.views.choices_json import chain_to_json, choice_to_json
from nndeploy.errors import NndeployError, UsageError
from nndeploy.loadgen.samples import NamedSample
from nndeploy.loadgen.settings import Request
from nndeploy.runtime.latency import Latencies
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import Program

MAX_INPUTS = 64
DEFAULT_SECONDS = 3.0

EXAMPLES = """\b
Examples:
  nndeploy bench model.nnd
  nndeploy bench model.nnd --input x.npz --iterations 1000 --threads 1
  nndeploy bench model.nnd --duration 30 --json > bench.json
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
MEASURED_ALONE = ("duration", "min_queries", "percentile", "target_latency_ms", "target_qps")
"""What has no meaning with --accuracy, which asks every sample once."""


SECTIONS = sections_of(
    {
        "Measurement": ("inputs", "iterations", "duration", "warmup", "operators"),
        "MLPerf's LoadGen": ("scenario",),
    },
    Request,
    {"MLPerf's LoadGen": ("output",)},
    LoadOptions,
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
@options_of(Request)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder for LoadGen's logs.")
@options_of(LoadOptions)
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
    if scenario is not None:
        from nndeploy.cli.commands.bench_scenario import bench_scenario

        bench_scenario(bundle, inputs, scenario, how, options, seconds=duration, warmup=warmup, as_json=as_json)
        return
    if iterations is None and duration is None:
        duration = DEFAULT_SECONDS
    if operators:
        from nndeploy.cli.commands.bench_operators import bench_operators

        bench_operators(bundle, inputs, how, iterations=iterations, seconds=duration, warmup=warmup, as_json=as_json)
        return
    began_ns = time.perf_counter_ns()
    with load(bundle, how) as program:
        load_ms = (time.perf_counter_ns() - began_ns) / 1e6
        samples, origin = bench_inputs(program, inputs, most=MAX_INPUTS)
        first_ms = _timed_ns(program, samples[0]) / 1e6
        _warm_up(program, samples, warmup, first_ms, duration)
        latencies, seconds = _measure(program, samples, iterations, duration)
        report = {
            "bundle": str(bundle),
            "chain": chain_to_json(program.chain),
            "choices": [choice_to_json(choice) for choice in program.choices],
            "threads": how.threads,
            "inputs": origin,
            "load_ms": load_ms,
            "first_ms": first_ms,
            "iterations": len(latencies),
            "seconds": seconds,
            "calls_per_second": len(latencies) / seconds,
            "latency_ms": latencies.percentiles_ms(),
        }
    if as_json:
        print_json(report | {"durations_ns": latencies.to_json()})
        return
    print_line(f"{bundle}: {report['iterations']:,} calls on {origin} in {seconds:.2f} s")
    print_line("latency   " + ", ".join(f"{name} {value:.3f} ms" for name, value in latencies.percentiles_ms().items()))
    print_line(f"rate      {report['calls_per_second']:,.1f} calls/s")
    print_line(f"load      {load_ms:.1f} ms, first call {first_ms:.3f} ms")
    for choice in program.choices:
        print_line(f"submodel  {choice.submodel}: {choice.backend} ({choice.variant}) on {choice.device}")


def _refuse_meaningless(scenario: str | None, options: dict[str, Any]) -> None:
    """Refuses options that would be ignored.

    Raises:
        UsageError: an option has no meaning with the others.
    """
    if scenario is not None and options["operators"]:
        raise UsageError("--operators cannot be used with --scenario")
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


def _warm_up(
    program: Program, samples: Sequence[NamedSample], count: int, first_ms: float, duration: float | None
) -> None:
    """Runs `count` calls, fewer where they would take longer than the measurement itself."""
    if duration is not None and count * first_ms > duration * 1000:
        print(f"nndeploy: one call takes {first_ms:.0f} ms: fewer warm-up calls", file=sys.stderr)
        count = int(duration * 1000 / first_ms)
    for i in range(count):
        _timed_ns(program, samples[i % len(samples)])


def _measure(
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
