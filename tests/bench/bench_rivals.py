# SPDX-License-Identifier: Apache-2.0
"""native, ONNX Runtime, OpenVINO, MNN and ncnn, each alone on float32 models that their converters take.

    python tests/bench/bench_rivals.py [PATTERN ...] [--zoo build/zoo] [--models FOLDER] [--threads 1,2]

Each engine gets the sizes of the inputs and computes in float32. An engine whose largest difference from ONNX Runtime
is more than the bound, in parts of the largest value, has no time. The ratio is the fastest of the four others over
native. MNN and ncnn run in an environment of their own, build/rivals-env, which `make rivals` makes.
"""

import argparse
import fnmatch
import math
import os
import sys
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnx
from interleaved import Engine, EngineDiedError, Pace, Race, largest_error, race
from native_engines import machine_line
from real_models import MODELS
from zoo_graphs import Subject, all_names, subject

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / "build" / "rivals-env"
NATIVE, TRUTH = "native", "onnxruntime"
RIVALS = ("mnn", "ncnn")
HEADINGS = {TRUTH: "ONNX Runtime", "openvino": "OpenVINO", "mnn": "MNN", "ncnn": "ncnn"}
BOUND = 1e-3
"""Winograd's products of MNN and ncnn are this far off; it is no other network."""
USUAL = (
    "ultraface_rfb320", "fastestdet", "ppocr_det_mobile_v2", "ppocr_rec_en_mobile_v2", "unet_stress_field",
    "mobilenet_v2", "mobilenet_v3_large", "efficientnet_lite0", "resnet18", "resnet50", "shufflenet_v2", "ghostnet",
    "regnet_x", "repvgg", "densenet", "squeezenet", "convnext", "yolov8n", "unet", "vit", "bert_fixed",
)  # fmt: skip


def main() -> None:
    """Prints the table, the geometric means, and why an engine refused."""
    options = _options()
    if not (ENVIRONMENT / "ready").exists():
        sys.exit("there is no MNN and no ncnn: `make rivals` installs them")
    names = all_names(options.zoo, options.models)
    asked = [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in options.patterns or USUAL)]
    print(machine_line(), end="\n\n")
    print(
        f"| model | threads | native ms | {' | '.join(f'{one} ms' for one in HEADINGS.values())} | fastest / native |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    refusals: dict[str, str] = {}
    ratios: dict[int, list[float]] = {}
    for name in asked:
        for threads in map(int, options.threads.split(",")):
            found = _raced(subject(name, options.zoo, options.models), threads, Pace(options.seconds, options.rounds))
            refusals |= {f"{name}: {engine}": reason for engine, reason in found.refused.items()}
            others = [one for one in HEADINGS if one in found.outputs]
            times = " | ".join(f"{found.ms(one):.3f}" if one in others else "-" for one in HEADINGS)
            ratio = found.ratio(NATIVE, others)
            ratios.setdefault(threads, []).append(ratio)
            print(f"| {name} | {threads} | {found.ms(NATIVE):.3f} | {times} | {ratio:.2f} |", flush=True)
    print()
    for threads, some in ratios.items():
        mean = math.exp(sum(map(math.log, some)) / len(some))
        print(f"threads {threads}: geometric mean {mean:.2f} of {len(some)}, the least {min(some):.2f}")
    for who, reason in refusals.items():
        print(f"\n{who} refuses: {reason}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="native against four engines, each alone",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("patterns", nargs="*", help="names, with * and ?; none: some that converters take")
    parser.add_argument("--zoo", type=Path, default=ROOT / "build" / "zoo", help="folder that `make zoo` wrote")
    parser.add_argument("--models", type=Path, default=MODELS, help="folder with index.json and samples/")
    parser.add_argument("--threads", default="1,2", help="how many, with commas between them")
    parser.add_argument("--seconds", type=float, default=0.2, help="an engine and round")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


def _raced(one: Subject, threads: int, pace: Pace) -> Race:
    """Returns the race; engines whose numbers are others are among the refused.

    Raises:
        SystemExit: native or ONNX Runtime does not take the model.
    """
    asked = {"model": str(one.path.resolve()), "threads": threads}
    outputs = [value.name for value in onnx.load(one.path, load_external_data=False).graph.output]
    python = str(ENVIRONMENT / "bin" / "python")
    engines = [Engine(name, f"native_engines:{name}", asked) for name in (NATIVE, TRUTH, "openvino")]
    engines += [Engine(name, f"rival_engines:{name}", {**asked, "outputs": outputs}, python=python) for name in RIVALS]
    died: dict[str, str] = {}
    found: Race | None = None
    while found is None:
        try:
            found = race([engine for engine in engines if engine.name not in died], one.inputs, pace)
        except EngineDiedError as err:
            name = str(err).split(" ")[0].rstrip(":")
            if name in died or name not in RIVALS:
                sys.exit(f"{one.name}: {err}")
            died[name] = str(err)
    found.refused |= died
    if not {NATIVE, TRUTH} <= found.outputs.keys():
        sys.exit(f"{one.name}: {found.refused}")
    for name in [name for name in found.outputs if name != TRUTH]:
        error = largest_error(found.outputs[name], found.outputs[TRUTH])
        if not error <= BOUND:
            if name == NATIVE:
                sys.exit(f"{one.name}: native is wrong: error {error:.1e} of the largest value")
            del found.outputs[name]
            found.refused[name] = f"other numbers: error {error:.1e} of the largest value"
    return found


if __name__ == "__main__":
    main()
