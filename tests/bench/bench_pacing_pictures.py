# SPDX-License-Identifier: Apache-2.0
"""Pictures of the load of real models before and after pacing, for docs.

    python tests/bench/bench_pacing_pictures.py [MODEL ...] [--backends native,onnxruntime] [--runs 60]
        [--baseline-times 2] [--out docs/figures]

Each model is compiled for this machine, run on its sample on one thread and granted so many times the baseline. Writes
pacing-MODEL.svg: the load in windows of 10 ms of a baseline run, as the plan makes us expect it, and of the run whose
peak is the median; prints the figures.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

from figures import Figure, header
from native_engines import machine_line, machine_name
from real_models import MODELS, real_model

import nndeploy
from nndeploy.cli.load_picture import load_svg
from nndeploy.files.page import write_page
from nndeploy.options.texts import names_in
from nndeploy.pacing.achieved import achieved
from nndeploy.pacing.goal import PaceGoal
from nndeploy.pacing.load_curve import Loads

NAMES = ("ppocr_det_mobile_v2", "unet_stress_field")
DOCS = Path(__file__).resolve().parents[2] / "docs" / "figures"


def main() -> None:
    """Writes the pictures and prints a row for each."""
    options = _options()
    if not MODELS.exists():
        sys.exit("this needs ../shared/models")
    print(machine_line())
    print("\n| model | granted ms | load: mean, peak in 10 ms | expected | measured | over the budget |")
    print("| --- | ---: | --- | --- | --- | ---: |")
    for name in options.models or NAMES:
        loads, budget_ms, over_cap = _measured(name, options)
        text = load_svg(loads, budget_ms * 1e6, f"{name}, granted {options.baseline_times:g} times the baseline")
        file = options.out / f"pacing-{name}.svg"
        write_page(file, header(Figure(file.name, ("make bench-pacing-pictures",), ()), machine_name()) + text + "\n")
        cells = (f"{run.mean:.0%}, {run.peak:.0%}" for run in loads.named().values())
        print(f"| {name} | {budget_ms:.3g} | {' | '.join(cells)} | {over_cap:.1%} |", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="the load before and after pacing", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("models", nargs="*")
    parser.add_argument("--backends", type=names_in, default=("native", "onnxruntime"))
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--baseline-times", type=float, default=2.0, help="what is granted, in baselines")
    parser.add_argument("--out", type=Path, default=DOCS)
    return parser.parse_args()


def _measured(name: str, options: argparse.Namespace) -> tuple[Loads, float, float]:
    """Returns the load of a model, the milliseconds that a run may take, and the share of the runs that took longer."""
    model, goal = real_model(MODELS, name), PaceGoal(cpu_limit=1 / options.baseline_times)
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder) / f"{name}.nnd"
        nndeploy.compile_model(
            model.path,
            bundle,
            nndeploy.CompileOptions(
                backends=options.backends,
                pace=True,
                keep_fallback=False,
                shapes={key: value.shape for key, value in model.inputs.items()},
            ),
        )
        with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=1), pace=goal) as program:
            pacer = program.pacer
            assert pacer is not None
            for _ in range(options.runs):
                program.run(model.inputs)
            loads, found = pacer.loads(), achieved(pacer.records)
    if loads is None or found is None:
        sys.exit(f"{name}: too few runs to pace it")
    return loads, found.cap_ms, found.over_cap


if __name__ == "__main__":
    main()
