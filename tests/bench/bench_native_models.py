# SPDX-License-Identifier: Apache-2.0
"""Real networks of depthwise-separable blocks: the bundle that `--objective latency` makes, and single engines.

    python tests/bench/bench_native_models.py [--models FOLDER] [--only name,name] [--threads 1,2] [--seconds S]
        [--rounds N] [--json out.json]

Each model is compiled as `nndeploy compile --objective latency --threads N --samples ...` does it, its bundle raced
against native alone, ONNX Runtime and OpenVINO (float32) on the recorded sample: one process an engine, the others
stopped, interleaved rounds (interleaved.py). The first ratio is the faster of ONNX Runtime and OpenVINO over native,
the second the fastest single engine over the bundle; medians over rounds. Single engines get the model with weights
that are listed as inputs made constants, which nndeploy does by itself: ONNX Runtime would take them for variable, and
run ultraface_rfb320 at a fifth of the speed. Error is the largest difference from the
recorded output over its largest value, the worst of bundle and native; a larger one than the bound ends the command.
"""

import argparse
import json
import os
import sys
import tempfile
from contextlib import closing
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnx
from constant_weights import with_constant_weights
from interleaved import Engine, EngineDiedError, Pace, Race, largest_error, race
from native_engines import machine_line
from real_models import MODELS, RealModel, real_model

import nndeploy
from nndeploy.jobs.workers import ChildWorkers

NAMES = "ultraface_rfb320,fastestdet,ppocr_det_mobile_v2"
"""The models whose index entry counts pairs of a depthwise and a pointwise convolution, but for a recogniser's."""
SINGLES = ("native", "onnxruntime", "openvino")
BOUND = 1e-4
"""Other kernels sum in another order: OpenVINO is 4e-5 off on ppocr_det (docs/figures/results.md)."""


def main() -> None:
    """Prints the table, and why an engine refused."""
    options = _options()
    rows = []
    print(machine_line(), end="\n\n")
    print("| model | threads | bundle made of | bundle ms | native ms | ONNX Runtime ms | OpenVINO ms "
          "| faster / native | fastest / bundle | error |")  # fmt: skip
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    refusals: dict[str, str] = {}
    for model in [real_model(options.models, name) for name in options.only.split(",")]:
        for threads in map(int, options.threads.split(",")):
            made_of, found = _raced(model, threads, Pace(options.seconds, options.rounds))
            error = _checked(model, found)
            print(_row(model.name, threads, made_of, found, error), flush=True)
            refusals |= {f"{model.name}: {name}": reason for name, reason in found.refused.items()}
            rows.append({"model": model.name, "threads": threads, "bundle": made_of, "error": error,
                         "refused": found.refused, "rounds": found.rounds})  # fmt: skip
            if options.json:
                options.json.write_text(json.dumps({"machine": machine_line(), "rows": rows}, indent=1))
    for who, reason in refusals.items():
        print(f"\n{who} refuses: {reason}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="real networks: the chosen bundle, native, ONNX Runtime, OpenVINO",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--models", type=Path, default=MODELS, help="folder with index.json and samples/")
    parser.add_argument("--only", default=NAMES, help="models by name")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=0.3, help="an engine and round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="where the seconds of every round are written")
    return parser.parse_args()


def _raced(model: RealModel, threads: int, pace: Pace) -> tuple[str, Race]:
    """Returns who runs which part of the bundle, and the race."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{model.name}.nnd"
        with closing(ChildWorkers(num_parallel=1, seconds_limit=300.0)) as workers:
            report = nndeploy.compile_model(
                model.path,
                path,
                nndeploy.CompileOptions(
                    objective="latency",
                    samples=[model.inputs],
                    shapes={name: array.shape for name, array in model.inputs.items()},
                    threads=threads,
                    keep_fallback=False,
                ),
                workers=workers,
            )
        backends = sorted({submodel.backend for submodel in report.submodels})
        made_of = ", ".join(f"{name} {report.share_of(name):.0%}" for name in backends)
        made_of += f" ({len(report.submodels)})"
        alone = Path(folder) / model.path.name
        onnx.save(with_constant_weights(model.path), alone)
        try:
            return made_of, race(_engines(model, alone, path, threads), model.inputs, pace)
        except EngineDiedError as err:
            sys.exit(f"{model.name}, {threads} threads: {err}")


def _engines(model: RealModel, alone: Path, bundle: Path, threads: int) -> list[Engine]:
    asked = {"model": str(alone), "threads": threads}
    of_bundle = {"path": str(bundle), "threads": threads, "outputs": list(model.outputs)}
    singles = [Engine(name, f"native_engines:{name}", asked) for name in SINGLES]
    return [Engine("bundle", "native_engines:bundle", of_bundle), *singles]


def _checked(model: RealModel, found: Race) -> float:
    """Returns the larger error of bundle and native; ends the command where any engine's numbers are wrong."""
    errors = {name: largest_error(got, list(model.outputs.values())) for name, got in found.outputs.items()}
    for name, error in errors.items():
        if not error <= BOUND:
            sys.exit(f"{model.name}: {name} is wrong: error {error:.1e} of the largest value, bound {BOUND:.0e}")
    return max(errors["bundle"], errors.get("native", 0.0))


def _row(name: str, threads: int, made_of: str, found: Race, error: float) -> str:
    times = " | ".join(f"{found.ms(one):.3f}" if one in found.outputs else "refused" for one in ("bundle", *SINGLES))
    native = f"{found.ratio('native', SINGLES[1:]):.2f}" if "native" in found.outputs else ""
    whole = f"{found.ratio('bundle', SINGLES):.2f}"
    return f"| {name} | {threads} | {made_of} | {times} | {native} | {whole} | {error:.1e} |"


if __name__ == "__main__":
    main()
