# SPDX-License-Identifier: Apache-2.0
"""Real models under MLPerf's LoadGen: every scenario through `nndeploy bench`, LoadGen's verdicts as a table.

    python tests/bench/bench_loadgen.py [--models FOLDER] [--only MODEL ...] [--scenario SCENARIO ...] [--duration S]
    python tests/bench/bench_loadgen.py --served [--models FOLDER] [--only MODEL ...] [--duration S] [--rounds N]

Streams get both cores for one call; offline and server two calls at once with one thread each. The library of samples
is the sample that ships with the model. One row a model and scenario: the verdict, the figure that MLPerf takes as the
result, median and 99th percentile of the latencies; below the table LoadGen's reason where a result is not valid.
With `--served` the same questions go to the bundle in the process and through the service (`served_loadgen.py`).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import served_loadgen
from real_models import MODELS, RealModel, real_model

import nndeploy

CHOSEN = ("ultraface_rfb320", "fastestdet", "magika_standard_v3_3")
SCENARIOS = ("single-stream", "multi-stream", "offline", "server")
RESULT = {
    "single-stream": ("early_stopping_latency_ms", "p90 {:.2f} ms"),
    "multi-stream": ("early_stopping_latency_ms", "p99 {:.2f} ms a query"),
    "offline": ("samples_per_second", "{:,.1f} samples/s"),
    "server": ("completed_per_second", "{:,.1f} queries/s"),
}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="real models under MLPerf's LoadGen")
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--only", nargs="+", default=CHOSEN)
    parser.add_argument("--scenario", nargs="+", default=SCENARIOS, choices=SCENARIOS)
    parser.add_argument("--duration", type=float, default=10.0)
    parser.add_argument("--served", action="store_true", help="in the process beside through the service")
    parser.add_argument("--rounds", type=int, default=5, help="with --served: tests of each way (default: 5)")
    options = parser.parse_args()
    if options.served:
        print_served(options)
        return
    print("| model | scenario | LoadGen says | result | queries | p50 ms | p99 ms | calls |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | --- |")
    reasons: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only:
            bundle, sample = _compiled(real_model(options.models, name), Path(folder))
            for scenario in options.scenario:
                report = _report(bundle, sample, scenario, options.duration)
                print(_row(name, scenario, report), flush=True)
                reasons += [f"{name}, {scenario}: {report['reason']}"] if report["reason"] else []
    print("\n".join(["", *reasons]))


def print_served(options: argparse.Namespace) -> None:
    """Prints what the same questions find in the process and through the service."""
    print("\n".join(served_loadgen.HEAD))
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only:
            model = real_model(options.models, name)
            bundle, _ = _compiled(model, Path(folder))
            print(
                "\n".join(served_loadgen.rows(name, bundle, model.inputs, options.duration, options.rounds)), flush=True
            )


def _compiled(model: RealModel, folder: Path) -> tuple[Path, Path]:
    """Returns the bundle of a model and a file with its sample."""
    bundle, sample = folder / f"{model.name}.nnd", folder / f"{model.name}.npz"
    nndeploy.compile_model(model.path, bundle, nndeploy.CompileOptions(samples=[model.inputs]))
    np.savez(sample, **model.inputs)  # type: ignore[arg-type]  # one called allow_pickle is none of ours
    return bundle, sample


def _report(bundle: Path, sample: Path, scenario: str, duration: float) -> dict[str, Any]:
    """Returns what `nndeploy bench` says in a process of its own; exit code 1 is a verdict too."""
    shares = ("--threads", "2") if scenario.endswith("stream") else ("--threads", "1", "--inflight", "2")
    command = [sys.executable, "-m", "nndeploy", "bench", str(bundle), "--scenario", scenario, "--input", str(sample)]
    done = subprocess.run(
        [*command, "--duration", str(duration), *shares, "--json"], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(f"{bundle.stem}, {scenario}: exit {done.returncode}: {done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _row(name: str, scenario: str, report: dict[str, Any]) -> str:
    figures, settings = report["figures"], report["settings"]
    key, text = RESULT[scenario]
    result = text.format(figures[key]) if key in figures else ""
    queries = figures.get("queries", figures.get("samples", 0))
    calls = f"{settings['inflight']} at once, up to {settings['batch']} rows, {report['threads']} threads"
    latencies = " | ".join(f"{figures[p]:.2f}" if p in figures else "" for p in ("p50_ms", "p99_ms"))
    verdict = "VALID" if report["valid"] else "INVALID"
    return f"| {name} | {scenario} | {verdict} | {result} | {queries:,} | {latencies} | {calls} |"


if __name__ == "__main__":
    main()
