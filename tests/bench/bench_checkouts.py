# SPDX-License-Identifier: Apache-2.0
"""Our own kernels of this tree against those of another checkout, on MobileNets and real models.

    python tests/bench/bench_checkouts.py --other FOLDER [--models FOLDER] [--only name,name] [--threads 1,2]
        [--seconds S] [--rounds N]

Each model is built whole by the backend `native` of both trees for the sizes of its recorded sample, and by this one
with the sizes open as well. One process an engine, the others stopped, interleaved rounds (interleaved.py). Ratios are
the other tree's time over this one's, medians over rounds: above 1 where this tree is faster. Error is the largest
difference between the two trees' outputs over the largest value; a larger one than the bound ends the command.
"""

import argparse
import os
import statistics
import tempfile
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
from interleaved import Engine, Pace, largest_error, race
from native_engines import machine_line
from native_models import NETWORKS
from real_models import MODELS, RealModel, real_model

MOBILENETS = tuple(f"mobilenet_{name}" for name in NETWORKS)
NAMES = ",".join((
    *MOBILENETS, "ultraface_rfb320", "fastestdet", "ppocr_det_mobile_v2", "ppocr_rec_en_mobile_v2",
    "unet_stress_field", "basic_pitch", "fsmn_vad_online", "silero_vad_v2_mini",
))  # fmt: skip
OTHER, FIXED, OPEN = "other", "this", "this, sizes open"
BOUND = 1e-4


def main() -> None:
    """Prints the table."""
    options = _options()
    pace, ratios = Pace(options.seconds, options.rounds), list[float]()
    print(machine_line(), end="\n\n")
    print("| model | threads | other ms | this ms | this, sizes open, ms | other / this | other / open | error |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only.split(","):
            model = _mobilenet(name, Path(folder)) if name in MOBILENETS else real_model(options.models, name)
            for threads in map(int, options.threads.split(",")):
                ratio = _row(model, threads, options.other, pace)
                ratios += [ratio] if ratio else []
    if ratios:
        print(f"\ngeometric mean {statistics.geometric_mean(ratios):.3f}, least {min(ratios):.3f}, {len(ratios)} rows")


def _row(model: RealModel, threads: int, other: Path, pace: Pace) -> float | None:
    """Prints the row of a model; returns the other tree's time over this one's, None where one refuses."""
    arguments = {"model": str(model.path), "threads": threads}
    engines = [
        Engine(OTHER, "native_engines:native", arguments, str(other.resolve())),
        Engine(FIXED, "native_engines:native", arguments),
        Engine(OPEN, "native_engines:native", {**arguments, "knows_sizes": False}),
    ]
    found = race(engines, model.inputs, pace)
    if OTHER in found.refused or FIXED in found.refused:
        print(f"| {model.name} | {threads} | {'; '.join(f'{who}: {why}' for who, why in found.refused.items())} |")
        return None
    error = max(largest_error(found.outputs[name], found.outputs[OTHER]) for name in found.outputs)
    if error > BOUND:
        raise SystemExit(f"{model.name}: the outputs differ by {error:.1e}")
    ratio = found.ratio(FIXED, [OTHER])
    is_open = OPEN not in found.refused
    print(
        f"| {model.name} | {threads} | {found.ms(OTHER):.3f} | {found.ms(FIXED):.3f} "
        f"| {f'{found.ms(OPEN):.3f}' if is_open else 'refused'} | {ratio:.2f} "
        f"| {f'{found.ratio(OPEN, [OTHER]):.2f}' if is_open else '-'} | {error:.0e} |",
        flush=True,
    )
    return ratio


def _mobilenet(name: str, folder: Path) -> RealModel:
    path = folder / f"{name}.onnx"
    onnx.save(NETWORKS[name.removeprefix("mobilenet_")](224, 1), path)
    x = np.random.default_rng(0).standard_normal((1, 3, 224, 224), np.float32)
    return RealModel(name, path, {"x": x}, {})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="our own kernels of two trees", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--other", type=Path, required=True, help="another checkout of this repository")
    parser.add_argument("--models", type=Path, default=MODELS, help="folder with index.json and samples/")
    parser.add_argument("--only", default=NAMES, help="models by name")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--seconds", type=float, default=0.3, help="an engine and round")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


if __name__ == "__main__":
    main()
