# SPDX-License-Identifier: Apache-2.0
"""How long a bundle of many weights takes to load with `native`, and how much memory at most.

    python tests/bench/bench_large_weights.py [--megabytes N] [--threads N] [--rounds N] [--json F]

A network of products of 2048 x 2048 is compiled; each load is a fresh process in which the library was imported and a
small bundle was loaded before, the page cache holds the file.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from native_engines import machine_line
from onnx import helper, numpy_helper

GOALS = {"load ms": 100.0, "peak / weights": 1.3}
SIZE = 2048
MEASURE = """
import json, sys, time
from pathlib import Path
import numpy as np
from nndeploy import LoadOptions, load_bundle
def megabytes(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(field))) / 1024
small, large, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
def loaded(path):
    return load_bundle(path, LoadOptions(threads=threads))
x = np.ones((1, 2048), np.float32)
loaded(small).run({"x": x[:, :16]})
before, begin = megabytes("VmRSS"), time.perf_counter()
program = loaded(large)
after = time.perf_counter()
program.run({"x": x})
end = time.perf_counter()
times = [(after - begin) * 1e3, (end - after) * 1e3]
print(json.dumps([*times, megabytes("VmHWM") - before, megabytes("VmRSS") - before]))
"""


def bundle_of(folder: Path, size: int, count: int) -> Path:
    """Returns the bundle of `count` products by matrices of size x size."""
    dice = np.random.default_rng(0)
    matrices = [dice.standard_normal((size, size), np.float32) / np.float32(size**0.5) for _ in range(count)]
    names = ["x", *(f"h{i}" for i in range(1, count)), "y"]
    graph = helper.make_graph(
        [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(count)],
        "products",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, size])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, size])],
        [numpy_helper.from_array(matrix, f"w{i}") for i, matrix in enumerate(matrices)],
    )
    path = folder / f"{size}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    bundle = path.with_suffix(".nnd")
    command = [sys.executable, "-m", "nndeploy", "compile", str(path), "-o", str(bundle), "--backends", "native"]
    subprocess.run([*command, "--goldens", "0"], check=True, capture_output=True)
    return bundle


def main() -> None:
    """Prints a table, and whether the goals are reached."""
    parser = argparse.ArgumentParser(description="time and memory of a load of many weights")
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, help="file for the raw samples")
    options = parser.parse_args()
    count = max(1, round(options.megabytes * 1e6 / (4 * SIZE * SIZE)))
    with tempfile.TemporaryDirectory() as temporary:
        small, large = bundle_of(Path(temporary), 16, 1), bundle_of(Path(temporary), SIZE, count)
        command = [sys.executable, "-c", MEASURE, str(small), str(large), str(options.threads)]
        samples = [
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            for _ in range(options.rounds)
        ]
    weights = count * 4 * SIZE * SIZE / 2**20
    load, first, peak, held = ([sample[i] for sample in samples] for i in range(4))
    columns = {
        "load ms": load, "first call ms": first,
        "peak / weights": [value / weights for value in peak], "held / weights": [value / weights for value in held],
    }  # fmt: skip
    print(machine_line())
    print(f"{weights:.0f} MiB of weights, {options.threads} threads, {options.rounds} rounds; medians, (least)\n")
    for name, values in columns.items():
        goal = f", goal {GOALS[name]:g}" if name in GOALS else ""
        print(f"{name}: {statistics.median(values):.2f} ({min(values):.2f}){goal}")
    if options.json:
        options.json.write_text(json.dumps(columns), encoding="utf-8")


if __name__ == "__main__":
    main()
