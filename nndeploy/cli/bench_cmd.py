# SPDX-License-Identifier: Apache-2.0
"""`nndeploy bench`: latency and rate of a bundle on this machine, one call after the other."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from nndeploy.cli.console import print_json, print_line
from nndeploy.cli.load_options import BUNDLE, load, load_options
from nndeploy.cli.run_view import chain_to_json, choice_to_json
from nndeploy.cli.standard_streams import binary_stdin
from nndeploy.errors import MissingInputError
from nndeploy.runtime.latency import Latencies
from nndeploy.runtime.program import Program
from nndeploy.value_types import Value

MAX_INPUTS = 64
DEFAULT_SECONDS = 3.0

EXAMPLES = """\b
Examples:
  nndeploy bench model.nnd
  nndeploy bench model.nnd --input x.npz --iterations 1000 --threads 1
  nndeploy bench model.nnd --duration 30 --json > bench.json
"""


@click.command("bench", epilog=EXAMPLES)
@BUNDLE
@click.option(
    "-i", "--input", "inputs", multiple=True, metavar="WHAT",
    help="What to run, as for `nndeploy run`. Default: the bundle's goldens, or made-up inputs.",
)  # fmt: skip
@click.option("--iterations", type=click.IntRange(min=1), help="Calls to measure. Default: as many as --duration.")
@click.option(
    "--duration", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
    help=f"How long to measure. Default: {DEFAULT_SECONDS:g}, or with --iterations until they are done.",
)  # fmt: skip
@click.option("--warmup", type=click.IntRange(min=0), default=10, show_default=True, help="Calls before measuring.")
@load_options
@click.option("--json", "as_json", is_flag=True, help="Print the figures and every duration as JSON.")
def bench(
    bundle: Path,
    inputs: tuple[str, ...],
    iterations: int | None,
    duration: float | None,
    warmup: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure latency and rate of a BUNDLE on this machine.

    One call after the other, from arrays to arrays; reading and writing files is not measured.
    """
    if iterations is None and duration is None:
        duration = DEFAULT_SECONDS
    began_ns = time.perf_counter_ns()
    with load(bundle, options) as program:
        load_ms = (time.perf_counter_ns() - began_ns) / 1e6
        samples, origin = _samples(program, inputs)
        first_ms = _timed_ns(program, samples[0]) / 1e6
        _warm_up(program, samples, warmup, first_ms, duration)
        latencies, seconds = _measure(program, samples, iterations, duration)
        report = {
            "bundle": str(bundle),
            "chain": chain_to_json(program.chain),
            "choices": [choice_to_json(choice) for choice in program.choices],
            "threads": options["threads"],
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


def _samples(program: Program, texts: Sequence[str]) -> tuple[list[dict[str, Value]], str]:
    """Returns what to run, and what it is in words."""
    from nndeploy.bundle.reader import open_bundle
    from nndeploy.runtime.sample_inputs import sample_inputs
    from nndeploy.stream.sources import source_from_texts

    if texts:
        items = source_from_texts(texts, program.manifest, binary_stdin).items
        samples = [item.load() for item, _ in zip(items, range(MAX_INPUTS), strict=False)]
        if not samples:
            raise MissingInputError("there is nothing to run", where=", ".join(texts))
        return samples, f"{len(samples)} inputs of {', '.join(texts)}"
    if program.manifest.goldens:
        with open_bundle(program.path) as opened:
            samples = [opened.values(golden.inputs) for golden in opened.manifest.goldens]
        return samples, f"{len(samples)} golden inputs"
    return [sample_inputs(program.manifest)], "made-up inputs"


def _timed_ns(program: Program, sample: dict[str, Value]) -> int:
    began = time.perf_counter_ns()
    program.run(sample)
    return time.perf_counter_ns() - began


def _warm_up(
    program: Program, samples: Sequence[dict[str, Value]], count: int, first_ms: float, duration: float | None
) -> None:
    """Runs `count` calls, fewer where they would take longer than the measurement itself."""
    if duration is not None and count * first_ms > duration * 1000:
        print(f"nndeploy: one call takes {first_ms:.0f} ms: fewer calls to warm up", file=sys.stderr)
        count = int(duration * 1000 / first_ms)
    for i in range(count):
        program.run(samples[i % len(samples)])


def _measure(
    program: Program, samples: Sequence[dict[str, Value]], iterations: int | None, duration: float | None
) -> tuple[Latencies, float]:
    """Returns the latencies of the calls, at least one, and the seconds that they took together."""
    latencies = Latencies()
    began = time.perf_counter()
    seconds = 0.0
    while (iterations is None or len(latencies) < iterations) and (duration is None or seconds < duration):
        latencies.add(_timed_ns(program, samples[len(latencies) % len(samples)]))
        seconds = time.perf_counter() - began
    return latencies, seconds
