# SPDX-License-Identifier: Apache-2.0
"""What a call of a submodel costs in a process of its own, beside the same call here, by the size of its values.

python tests/bench/bench_isolation.py [--calls 400]
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser

import nndeploy

SIZES = (2, 1 << 10, 1 << 14, 3 * 224 * 224, 1 << 22)
"""Numbers of floats that come in, and go out."""
MODEL = '<ir_version: 10, opset_import: ["" : 21]> g (float[n] x) => (float[n] y) { y = Neg(x) }'


def us_of(run: Callable[[dict[str, Any]], object], inputs: dict[str, Any]) -> float:
    start = time.perf_counter_ns()
    run(inputs)
    return (time.perf_counter_ns() - start) / 1e3


def main() -> None:
    """Prints the table: medians, and the tenth of the calls that are fastest, in microseconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=400)
    calls = parser.parse_args().calls
    print("| bytes in, and out | here (us) | in a worker | more, median | more, fastest tenth |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(onnx.parser.parse_model(MODEL), Path(folder, "m.onnx"))
        bundle = Path(folder, "m.nnd")
        options = nndeploy.CompileOptions(backends=("onnxruntime",), objective="priority")
        nndeploy.compile_model(Path(folder, "m.onnx"), bundle, options)
        how = [nndeploy.LoadOptions(threads=1, isolate=isolate) for isolate in ("none", "all")]
        with nndeploy.load_bundle(bundle, how[0]) as here, nndeploy.load_bundle(bundle, how[1]) as there:
            for size in SIZES:
                x = {"x": np.ones(size, np.float32)}
                for program in (here, there):
                    program.run(x)
                pairs = [(us_of(here.run, x), us_of(there.run, x)) for _ in range(calls)]
                medians = [statistics.median(column) for column in zip(*pairs, strict=True)]
                tenths = [statistics.quantiles(column, n=10)[0] for column in zip(*pairs, strict=True)]
                more = medians[1] - medians[0], tenths[1] - tenths[0]
                print(f"| {4 * size:,} | {medians[0]:.1f} | {medians[1]:.1f} | {more[0]:.1f} | {more[1]:.1f} |")


if __name__ == "__main__":
    main()
