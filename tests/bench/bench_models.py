# SPDX-License-Identifier: Apache-2.0
"""The real models: each compiled with every backend, run on its sample, compared with the output that ships with it.

    python tests/bench/bench_models.py [--models FOLDER]

One row a model: seconds to compile in this process, bytes of the bundle, who took which share of the compute, largest
error against the shipped output (as a part of the largest value), milliseconds of `program.run` on one thread beside
a bare ONNX Runtime session (medians of interleaved calls).
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime
from real_models import MODELS, RealModel, names_in, real_model

import nndeploy
from nndeploy.errors import NndeployError

SECONDS = 1.0


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="the real models through nndeploy")
    parser.add_argument("--models", type=Path, default=MODELS)
    options = parser.parse_args()
    print("| model | compile s | bundle bytes | compute by backend | error | run ms | ONNX Runtime ms |")
    print("| --- | ---: | ---: | --- | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for name in names_in(options.models):
            print(_row(real_model(options.models, name), Path(folder)), flush=True)


def _row(model: RealModel, folder: Path) -> str:
    name, inputs = model.name, model.inputs
    start = time.perf_counter()
    try:
        report = nndeploy.compile_model(model.path, folder / "m.nnd", samples=[inputs])
    except NndeployError as err:
        reason = str(err).replace(str(model.path.parent), "")[:160]
        return f"| {name} | | | refused, exit {err.exit_code}: {reason} | | | |"
    seconds = time.perf_counter() - start
    shares = ", ".join(f"{b} {report.share_of(b):.0%}" for b in report.backends if report.share_of(b) > 0)
    with nndeploy.load_bundle(folder / "m.nnd", threads=1) as program:
        got = program.run(inputs)
        error = max(_relative_error(got[key], want) for key, want in model.outputs.items())
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        settings.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(model.path), settings, providers=["CPUExecutionProvider"])
        ours, bare = _median_ms(lambda: program.run(inputs), lambda: session.run(None, inputs))
    count = len(report.submodels)
    return (
        f"| {name} | {seconds:.1f} | {report.bundle_bytes:,} | {shares} ({count} submodel{'s' * (count > 1)}) "
        f"| {error:.1e} | {ours:.2f} | {bare:.2f} |"
    )


def _relative_error(got: Any, want: Any) -> float:
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"shape {got.shape} instead of {want.shape}"
    largest = np.abs(want.astype(np.float64)).max(initial=0.0)
    return float(np.abs(got.astype(np.float64) - want.astype(np.float64)).max(initial=0.0) / (largest or 1.0))


def _median_ms(one: Any, other: Any) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + 2 * SECONDS
    while len(times[0]) < 5 or time.perf_counter() < end:
        for kind, call in enumerate((one, other)):
            start = time.perf_counter_ns()
            call()
            times[kind].append((time.perf_counter_ns() - start) / 1e6)
    return statistics.median(times[0]), statistics.median(times[1])


if __name__ == "__main__":
    main()
