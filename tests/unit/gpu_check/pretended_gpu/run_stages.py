# SPDX-License-Identifier: Apache-2.0
"""Runs items of the check's stages in this one process, over the pretended GPU, and prints the rows as JSON.

python run_stages.py WORKDIR        WORKDIR/models holds an index and a network, as the real models' folder does
"""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from gpucheck import (
    kernel_models,
    stage_bundle,
    stage_conformance,
    stage_cuda,
    stage_kernels,
    stage_networks,
    stage_operators,
    stage_probe,
    stage_speed,
)
from gpucheck.onnx_text import model_of
from gpucheck.options import Options
from gpucheck.reference import outputs_of, random_inputs, session_of
from gpucheck.rows import Row, row_to_json

NETWORK = """g ({t}[4,6] x, {t}[6] w1) => ({t}[4,6] y)
    { a = Mul (x, w1) b = Softmax <axis = -1> (a) c = Cos (b) y = Relu (c) }"""


def write_network(folder: Path) -> None:
    """Writes one network with its sample and index."""
    (folder / "samples").mkdir(parents=True)
    proto = model_of(NETWORK)
    onnx.save(proto, folder / "tiny.onnx")
    session = session_of(proto)
    inputs = random_inputs(session)
    np.savez(folder / "samples" / "tiny.npz", in0=inputs["x"], out0=outputs_of(session, inputs)["y"])
    index = {"models": [{"name": "tiny", "sample_keys": {"in0": "x", "out0": "y"}}]}
    (folder / "index.json").write_text(json.dumps(index))


def rows_of_all(options: Options) -> Iterator[Row]:
    """Yields the rows of some items of each stage."""
    for item in stage_probe.items(options):
        yield from stage_probe.run(item, options)
    for item in stage_cuda.items(options):
        if item != "errors":  # the pretended driver takes any bytes for code
            yield from stage_cuda.run(item, options)
    for item in ("triton: two_inputs", "triton: loop_with_scan_output", "triton: test_takes_something"):
        yield from stage_conformance.run(item, options)
    for item in ("triton: pointwise/float32", "triton: softmax/float16", "triton: largest/float32", "tensorrt"):
        yield from stage_operators.run(item, options)
    kernel_models.problems = stage_kernels.problems = _small_problems
    stage_kernels.COPY_BYTES, stage_kernels.SECONDS, stage_speed.SECONDS = 1 << 20, 0.01, 0.01
    for item in stage_kernels.items(options):
        yield from stage_kernels.run(item, options)
    for stage in (stage_networks, stage_speed):
        for item in stage.items(replace(options, match="tiny")):
            yield from stage.run(item, options)
    bundles = tuple(map(str, Path(options.workdir).glob("*.nnd")))
    stage_bundle.SECONDS = 0.01
    for item in stage_bundle.items(replace(options, bundles=bundles)):
        yield from stage_bundle.run(item, options)


def _small_problems() -> dict[str, kernel_models.Separable]:
    found = [kernel_models.Separable(version, 1, 6, 4, 5, 2, "float32") for version in ("v1", "v2")]
    return {problem.name: problem for problem in found}


def main() -> None:
    """Prints a row a line."""
    workdir = Path(sys.argv[1])
    write_network(workdir / "models")
    options = Options(tiers=("triton",), models=str(workdir / "models"), workdir=str(workdir))
    start = time.monotonic()
    for row in rows_of_all(options):
        print("row", json.dumps({**row_to_json(row), "at": time.monotonic() - start}))


if __name__ == "__main__":
    main()
