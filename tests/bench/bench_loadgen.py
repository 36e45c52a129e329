# SPDX-License-Identifier: Apache-2.0
"""Real models under MLPerf's LoadGen: every scenario through `nndeploy bench`, LoadGen's verdicts as a table.

Streams get both cores for one call; offline and server two calls at once with one thread each. The library of samples
is the sample that ships with the model. One row a model and scenario: the verdict, the figure that MLPerf takes as the
result, median and 99th percentile of the latencies; below the table LoadGen's reason where a result is not valid.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from commands import NNDEPLOY, ran
from model_sets import Subject, real_model
from report import Report, add_models, bench_parser, words

import nndeploy

RESULT = {
    "single-stream": ("early_stopping_latency_ms", "p90 {:.2f} ms"),
    "multi-stream": ("early_stopping_latency_ms", "p99 {:.2f} ms a query"),
    "offline": ("samples_per_second", "{:,.1f} samples/s"),
    "server": ("completed_per_second", "{:,.1f} queries/s"),
}


def main() -> None:
    parser = bench_parser(__doc__)
    add_models(parser)
    parser.add_argument("--only", type=words, default="ultraface_rfb320,fastestdet,magika_standard_v3_3")
    parser.add_argument("--scenarios", type=words, default=",".join(RESULT))
    parser.add_argument("--duration", type=float, default=10.0)
    options = parser.parse_args()
    with Report(options, "speed.md", "Under LoadGen") as report, tempfile.TemporaryDirectory() as folder:
        table = report.table("model", "scenario", "LoadGen says", "result:", "queries:", "p50 ms:", "p99 ms:", "calls")
        reasons = []
        for name in options.only:
            bundle, sample = _compiled(real_model(options.models, name), Path(folder))
            for scenario in options.scenarios:
                said = _said(bundle, sample, scenario, options.duration)
                table.row(name, scenario, *_row(scenario, said))
                reasons += [f"{name}, {scenario}: {said['reason']}"] if said["reason"] else []
        report.text("\n".join(reasons))


def _compiled(model: Subject, folder: Path) -> tuple[Path, Path]:
    bundle, sample = folder / f"{model.name}.nnd", folder / f"{model.name}.npz"
    nndeploy.compile_model(model.path, bundle, nndeploy.CompileOptions(samples=[model.inputs]))
    arrays: dict[str, Any] = dict(model.inputs)
    np.savez(sample, **arrays)
    return bundle, sample


def _said(bundle: Path, sample: Path, scenario: str, duration: float) -> dict[str, Any]:
    """Returns what `nndeploy bench` says in a process of its own; exit code 1 is a verdict too."""
    shares = ("--threads", "2") if scenario.endswith("stream") else ("--threads", "1", "--inflight", "2")
    done = ran([*NNDEPLOY, "bench", bundle, "--scenario", scenario, "--input", sample, "--duration", str(duration),
                *shares, "--json"])  # fmt: skip
    return dict(json.loads(done.out if done.code == 1 and done.out else done.answer))


def _row(scenario: str, said: dict[str, Any]) -> list[str]:
    figures, settings = said["figures"], said["settings"]
    key, text = RESULT[scenario]
    result = text.format(figures[key]) if key in figures else ""
    queries = figures.get("queries", figures.get("samples", 0))
    latencies = [f"{figures[p]:.2f}" if p in figures else "" for p in ("p50_ms", "p99_ms")]
    calls = f"{settings['inflight']} at once, up to {settings['batch']} rows, {said['threads']} threads"
    return ["VALID" if said["valid"] else "INVALID", result, f"{queries:,}", *latencies, calls]


if __name__ == "__main__":
    main()
