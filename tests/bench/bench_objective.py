# SPDX-License-Identifier: Apache-2.0
"""`--objective latency` against every single backend that can run the whole model, on the real models.

    python tests/bench/bench_objective.py [--models FOLDER] [--threads N]

The bundle that the objective chose and those of the single backends are measured again after the compile, one process
at a time, in interleaved rounds; the ratio is the best single backend's median over ours (1 or more: not slower, but
for noise). Outputs are checked by the compile itself.
"""

import argparse
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

from real_models import MODELS, RealModel, names_in, real_model

import nndeploy
from nndeploy.errors import NndeployError
from nndeploy.jobs.tasks import MeasureOptions
from nndeploy.jobs.workers import ChildWorkers

ROUNDS = 5


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="measured placement against single backends")
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    print("| model | chosen | ms | openvino ms | onnxruntime ms | best single / ours |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        workers = ChildWorkers(num_parallel=2, seconds_limit=300.0)
        for name in names_in(options.models):
            row = _row(real_model(options.models, name), Path(folder), options.threads, workers)
            if row:
                print(row, flush=True)
        workers.close()


def _row(model: RealModel, folder: Path, threads: int, workers: ChildWorkers) -> str:
    sample = model.inputs
    bundles, chosen = {}, ""
    for name in ("chosen", "openvino", "onnxruntime"):
        options: dict[str, Any] = {"objective": "latency"} if name == "chosen" else {"backends": (name,)}
        bundles[name] = folder / f"{name}.nnd"
        try:
            report = nndeploy.compile_model(
                model.path,
                bundles[name],
                nndeploy.CompileOptions(samples=[sample], threads=threads, keep_fallback=False, **options),
                workers=workers,
            )
        except NndeployError:
            del bundles[name]
        else:
            chosen = chosen or "+".join(sorted({submodel.backend for submodel in report.submodels}))
    if "chosen" not in bundles:
        return ""
    times: dict[str, list[float]] = {name: [] for name in bundles}
    for _ in range(ROUNDS):
        for name, path in bundles.items():
            times[name] += workers.measure([path], [sample], MeasureOptions(seconds=0.2, threads=threads))[0]
    medians = {name: statistics.median(values) for name, values in times.items()}
    best = min((ms for name, ms in medians.items() if name != "chosen"), default=medians["chosen"])
    cells = [f"{medians[name]:.3f}" if name in medians else "refused" for name in ("openvino", "onnxruntime")]
    ours = medians["chosen"]
    return f"| {model.name} | {chosen} | {ours:.3f} | {' | '.join(cells)} | {best / ours:.2f} |"


if __name__ == "__main__":
    main()
