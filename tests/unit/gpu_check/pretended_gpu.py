# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E402
"""A plugin of pytest (`-p pretended_gpu`): a GPU of host memory, and Triton's interpreter for its kernels.

All of tests/gpu but its speed is real then; problems are small.
"""

import ctypes
import os
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
TESTS = Path(__file__).resolve().parents[2]
sys.path += [str(TESTS / "unit" / "triton" / "interpreted"), str(TESTS / "gpu")]

import gpu_backends
import gpu_networks
import gpu_operator_models
import gpu_problems
import numpy as np
from gpu_on_numpy import Interpreter
from nndeploy_triton import autotune

from nndeploy.cuda.current_driver import injected_driver
from nndeploy.testing.host_driver import HostDriver, HostGpu, Launch

ATTRIBUTES = {
    "COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0, "MEMORY_POOLS_SUPPORTED": 1,
    "MULTIPROCESSOR_COUNT": 132, "CLOCK_RATE": 1980000, "MEMORY_CLOCK_RATE": 3201000,
    "GLOBAL_MEMORY_BUS_WIDTH": 6144, "L2_CACHE_SIZE": 60 << 20, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
    "MAX_GRID_DIM_X": 2**31 - 1, "MAX_GRID_DIM_Y": 65535, "MAX_GRID_DIM_Z": 65535,
}  # fmt: skip
interpreter, one_at_a_time = Interpreter(), threading.Lock()  # the interpreter keeps the grid in a global


def run(launch: Launch) -> None:
    """Runs a kernel on host memory."""
    if launch.kernel == "add_one":  # in PTX
        target, source, size = (int.from_bytes(arg, "little") for arg in launch.args)
        arrays = [np.ctypeslib.as_array((ctypes.c_float * size).from_address(at)) for at in (target, source)]
        arrays[0][:] = arrays[1] + 1
        return
    with one_at_a_time:
        interpreter.run(launch)


autotune.compile_kernel = interpreter.compile
gpu_backends.TIERS = ("triton",)
gpu_problems.problems = lambda: {
    one.name: one for one in (gpu_problems.Separable(version, 1, 6, 4, 5, 2, "float32") for version in ("v1", "v2"))
}
TINY = gpu_operator_models.model_of(
    "g ({t}[4,6] x, {t}[6] w1) => ({t}[4,6] y) { a = Mul (x, w1) b = Softmax <axis = -1> (a) c = Cos (b) y = Relu (c) }"
)
sample = gpu_backends.random_inputs(gpu_backends.ort_session(TINY))
gpu_networks.names = lambda: ["tiny"]
gpu_networks.network = lambda name: gpu_networks.Network(TINY, sample, {}, quantised=False)
whole_process = ExitStack()  # never closed: the GPU is there as long as the process
whole_process.enter_context(injected_driver(HostDriver([HostGpu("Pretended H200", 4 << 30, ATTRIBUTES)], run)))
