# SPDX-License-Identifier: Apache-2.0
"""Whole networks, end to end: our own CPU kernels against ONNX Runtime and OpenVINO.

    python tests/bench/bench_native_networks.py [--networks v1,v2] [--sizes 224,640] [--batches 1,8] [--threads 1,2]
        [--no-largest] [--precision fp32|bf16] [--seconds S] [--rounds N] [--json out.json]

MobileNetV1 and V2 (width 1.0, 1000 classes, seeded weights: the numbers cost what trained ones cost), ordinary input in
and classes out, layout conversions included. One process an engine, the others stopped, interleaved rounds
(interleaved.py). The ratio is the faster of ONNX Runtime and OpenVINO over native, median over rounds, with the least
and the largest round. Errors, of native and of OpenVINO, are the largest difference from ONNX Runtime's output over its
largest value, on the same input in the same run; a larger one than the bound ends the command.

`--precision bf16` sets native and OpenVINO to bf16; ONNX Runtime stays at float32, as the reference.
"""

import argparse
import itertools
import json
import os
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
from interleaved import Engine, EngineDiedError, Pace, Race, largest_error, race
from native_engines import machine_line
from native_models import NETWORKS

BOUNDS = {"fp32": 1e-4, "bf16": 2e-2}
"""Largest error. bf16 keeps 8 bits: one rounding is 4e-3, and 28 or 53 layers in a row came to 5e-3 on 2026-11-20."""
PEERS = ("onnxruntime", "openvino")
LARGEST = (640, 8)


@dataclass(frozen=True)
class Case:
    """One row."""

    network: str
    size: int
    batch: int
    threads: int


def main() -> None:
    """Prints the table, and the geometric means of its ratios."""
    options = _options()
    rows = []
    print(machine_line(), end="\n\n")
    print(
        "| network | size | batch | threads | native ms | ONNX Runtime ms | OpenVINO ms | ratio | (rounds) | error "
        "| OpenVINO error |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | :---: | ---: | ---: |")
    for case in _cases(options):
        found = _raced(case, options.precision, Pace(options.seconds, options.rounds))
        errors = _checked(case, found, options.precision)
        print(_row(case, found, errors), flush=True)
        rows.append({**asdict(case), "errors": errors, "notes": found.notes, "rounds": found.rounds,
                     "ratio": found.ratio("native", PEERS)})  # fmt: skip
        if options.json:
            options.json.write_text(json.dumps({"machine": machine_line(), "rows": rows}, indent=1))
    _print_means(rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="whole networks: native against ONNX Runtime and OpenVINO",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--networks", default="v1,v2", help=f"of {', '.join(NETWORKS)}")
    parser.add_argument("--sizes", default="224,640", help="rows and columns of the image")
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--no-largest", action="store_true", help="leave out size 640 at batch 8")
    parser.add_argument("--precision", choices=tuple(BOUNDS), default="fp32", help="of native and OpenVINO")
    parser.add_argument("--seconds", type=float, default=0.3, help="an engine and round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="where the seconds of every round are written")
    return parser.parse_args()


def _cases(options: argparse.Namespace) -> list[Case]:
    sizes, batches, threads = ([int(n) for n in text.split(",")] for text in (options.sizes, options.batches,
                                                                              options.threads))  # fmt: skip
    product = itertools.product(options.networks.split(","), sizes, batches, threads)
    return [Case(*one) for one in product if not (options.no_largest and one[1:3] == LARGEST)]


def _raced(case: Case, precision: str, pace: Pace) -> Race:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{case.network}.onnx"
        onnx.save(NETWORKS[case.network](case.size, case.batch), path)
        x = np.random.default_rng(1).standard_normal((case.batch, 3, case.size, case.size), dtype=np.float32)
        asked = {"model": str(path), "threads": case.threads}
        engines = [
            Engine("native", "native_engines:native", {**asked, "precision": precision}),
            Engine("onnxruntime", "native_engines:onnxruntime", asked),
            Engine("openvino", "native_engines:openvino", {**asked, "precision": precision}),
        ]
        try:
            return race(engines, {"x": x}, pace)
        except EngineDiedError as err:
            sys.exit(f"{case}: {err}")


def _checked(case: Case, found: Race, precision: str) -> dict[str, float]:
    """Returns the errors of native and OpenVINO; ends the command where an engine refused or is wrong."""
    for name, reason in found.refused.items():
        sys.exit(f"{case}: {name} refuses: {reason}")
    want = found.outputs["onnxruntime"]
    errors = {name: largest_error(found.outputs[name], want) for name in ("native", "openvino")}
    for name, error in errors.items():
        if not error <= BOUNDS[precision]:
            sys.exit(f"{case}: {name} is wrong: error {error:.1e} of the largest value, bound {BOUNDS[precision]:.0e}")
    return errors


def _row(case: Case, found: Race, errors: dict[str, float]) -> str:
    times = " | ".join(f"{found.ms(name):.2f}" for name in ("native", *PEERS))
    ratios = found.ratios("native", PEERS)
    return (
        f"| {case.network} | {case.size} | {case.batch} | {case.threads} | {times} | {statistics.median(ratios):.2f} "
        f"| {min(ratios):.2f} to {max(ratios):.2f} | {errors['native']:.1e} | {errors['openvino']:.1e} |"
    )


def _print_means(rows: list[dict[str, float]]) -> None:
    print()
    for network, batch in sorted({(row["network"], row["batch"]) for row in rows}):
        ratios = [row["ratio"] for row in rows if (row["network"], row["batch"]) == (network, batch)]
        print(f"{network}, batch {batch}: geometric mean of the ratios {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
