# SPDX-License-Identifier: Apache-2.0
"""What `Program.run` costs over the library itself, on a bundle of one submodel."""

import statistics
import time

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from tests_flow_bundles import DOUBLE, write_double

from nndeploy import LoadOptions, load_bundle

LIMIT_US = 25.0
"""Measured 2026-11-20 on a shared 2-core x86-64: 3.7 microseconds."""


def overhead_us(bare, program, count=2000) -> float:
    """Returns the difference of the medians of interleaved calls."""
    tick = time.perf_counter_ns
    times: tuple[list[int], list[int]] = ([], [])
    for _ in range(count):
        begin = tick()
        bare()
        middle = tick()
        program()
        times[1].append(tick() - middle)
        times[0].append(middle - begin)
    return (statistics.median(times[1]) - statistics.median(times[0])) / 1000


@pytest.mark.serial
def test_a_run_costs_little_over_the_library(tmp_path) -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = onnx.parser.parse_model(DOUBLE).SerializeToString()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    inputs = {"image": np.ones((1, 3), np.float32)}
    with load_bundle(write_double(tmp_path / "m.nnd"), LoadOptions(threads=1)) as program:
        # The least of a few rounds: whatever else the machine does only adds.
        least = min(overhead_us(lambda: session.run(["y"], inputs), lambda: program.run(inputs)) for _ in range(5))
    assert least <= LIMIT_US
