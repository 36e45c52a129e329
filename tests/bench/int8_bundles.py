# SPDX-License-Identifier: Apache-2.0
"""The int8 bundle of models that people deploy beside our own float32 one: time, memory, and what the task loses.

Both are compiled for the size of the samples. Times are processor time on one thread, in turns.
"""

import argparse
import json
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import deployments
import model_sets
import numpy as np
from commands import ran
from deployments import Deployment, Sample
from interleaved import cpu_seconds, rotated
from report import Report, geometric_mean, matching

import nndeploy
from nndeploy.bundle.report import report_to_json
from nndeploy.errors import NndeployError
from nndeploy.stream.pipeline.bundled_pipeline import carried_pipeline

BACKENDS = ("native", "onnxruntime", "reference")
MEMORY = """
import sys, nndeploy, numpy
with numpy.load(sys.argv[2]) as arrays:
    inputs = dict(arrays)
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
before = resident()
program = nndeploy.load_bundle(sys.argv[1], nndeploy.LoadOptions(threads=1, device="cpu", cache_dir=""))
program.run(inputs)
print(resident() - before)
"""


def int8_table(report: Report, options: argparse.Namespace) -> None:
    """Adds a row for each model that is there, and the geometric mean of the ratios."""
    table = report.table(
        "model", "float32 ms:", "int8 ms:", "ratio:", "compute in integers:", "SNR dB:", "float layers:",
        "float32 MB:", "int8 MB:", "of the task",
    )  # fmt: skip
    media, ratios = deployments.Media(options.models), []
    for name in matching([one.name for one in deployments.ALL], options.only or ()):
        one = next(one for one in deployments.ALL if one.name == name)
        with tempfile.TemporaryDirectory() as folder:
            model = one.model(options.models, options.wheels, Path(folder))
            if model is None:
                continue
            samples = list(one.samples(media))
            try:
                bundles, found = _compiled(one, model, samples, options.least_db)
            except NndeployError as err:
                table.row(name, *[""] * 8, f"refused: {err.what:.80}")
                continue
            rounds = _rounds(bundles, samples[-1], options)
            memory = [_resident(bundle, samples[-1], Path(folder)) for bundle in bundles]
        ratio = statistics.median(a / b for a, b in rounds)
        ratios.append(ratio)
        told, layers = found["quantisation"], found["quantisation"]["layers"]
        integers = {layer["name"] for layer in layers if layer["quantised"]}
        share = sum(node["share"] for node in found["nodes"] if node["name"] in integers)
        measures = "; ".join(f"{one['kind']} {one['agreement']:.3f} of {one['count']}" for one in told["measures"])
        ms = (f"{1e3 * statistics.median(times):.2f}" for times in zip(*rounds, strict=True))
        num_float = len(layers) - len(integers)
        table.row(
            name, *ms, f"{ratio:.2f}", f"{share:.0%}", told["bundle_db"], f"{num_float} of {len(layers)}",
            *(f"{each / 1e6:.1f}" for each in memory), measures,
        )  # fmt: skip
        report.sample(model=name, rounds=rounds, memory=memory, quantisation=told)
    report.text(
        f"{len(ratios)} models, geometric mean {geometric_mean(ratios):.2f}, least {min(ratios, default=0):.2f}."
    )


def _compiled(one: Deployment, model: Path, samples: list[Sample], least_db: float) -> tuple[list[Path], Any]:
    """Returns the bundles, of float32 and int8, and the report of the second as plain data."""
    bundles = [model.with_suffix(f".{kind}.nnd") for kind in ("float32", "int8")]
    how: dict[str, Any] = {"backends": BACKENDS, "objective": "priority", "shapes": model_sets.fixed_shapes(samples[0])}
    model_sets.compiled(model, bundles[0], samples=samples[-1:], **how)
    path = one.pipeline(model)
    carried = None if path is None else carried_pipeline(path)
    how |= {"quantise": "int8", "quantise_tolerance": least_db, "pipeline": carried}
    made = model_sets.compiled(model, bundles[1], samples=samples, **how)
    return bundles, report_to_json(made)


def _rounds(bundles: list[Path], sample: Sample, options: argparse.Namespace) -> list[list[float]]:
    """Returns processor seconds of a call of each bundle, round by round."""
    load = nndeploy.LoadOptions(threads=1, device="cpu", cache_dir="")
    calls = [partial(nndeploy.load_bundle(bundle, load).run, sample) for bundle in bundles]
    times = [max(2, round(options.seconds / min(cpu_seconds(call, 2) for _ in range(2)))) for call in calls]
    rounds = []
    for number in range(options.rounds):
        found = {i: cpu_seconds(calls[i], times[i]) for i in rotated([0, 1], number)}
        rounds.append([found[0], found[1]])
    return rounds


def _resident(bundle: Path, sample: Sample, folder: Path) -> int:
    """Returns the bytes that a process has more of when it loaded a bundle and ran it once."""
    np.savez(folder / "sample.npz", allow_pickle=False, **sample)
    return int(json.loads(ran([sys.executable, "-c", MEMORY, bundle, folder / "sample.npz"]).answer))
