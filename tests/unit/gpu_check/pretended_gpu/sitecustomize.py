# SPDX-License-Identifier: Apache-2.0
"""With this folder on PYTHONPATH a Python process has a GPU: host memory, and Triton's interpreter for its kernels.

gpu-check's own processes inherit PYTHONPATH, so the whole check runs without a GPU: all but the speed of it is real.
"""

import os
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
TESTS = Path(__file__).resolve().parents[2]
sys.path.append(str(TESTS / "triton" / "interpreted"))

_whole_process = ExitStack()  # never closed: the GPU is there as long as the process


def _pretend() -> None:
    from gpu_on_numpy import Interpreter
    from nndeploy_triton import autotune

    from nndeploy.cuda.current_driver import injected_driver
    from nndeploy.testing.host_driver import HostDriver, HostGpu, Launch

    interpreter = Interpreter()
    autotune.compile_kernel = interpreter.compile
    attributes = {
        "COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0, "MEMORY_POOLS_SUPPORTED": 1,
        "MULTIPROCESSOR_COUNT": 132, "CLOCK_RATE": 1980000, "MEMORY_CLOCK_RATE": 3201000,
        "GLOBAL_MEMORY_BUS_WIDTH": 6144, "L2_CACHE_SIZE": 60 << 20, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
        "MAX_GRID_DIM_X": 2**31 - 1, "MAX_GRID_DIM_Y": 65535, "MAX_GRID_DIM_Z": 65535,
    }  # fmt: skip

    one_at_a_time = threading.Lock()  # the interpreter keeps the grid in a global

    def run(launch: Launch) -> None:
        if launch.kernel == "add_one":
            _add_one(launch)
            return
        with one_at_a_time:
            interpreter.run(launch)

    gpu = HostGpu("Pretended H200", 4 << 30, attributes)
    _whole_process.enter_context(injected_driver(HostDriver([gpu], run)))


def _add_one(launch: object) -> None:
    """Does on numpy what the kernel in PTX of the stage `cuda` does."""
    import ctypes

    import numpy as np

    target, source, size = (int.from_bytes(arg, "little") for arg in launch.args)  # type: ignore[attr-defined]
    arrays = [np.ctypeslib.as_array((ctypes.c_float * size).from_address(at)) for at in (target, source)]
    arrays[0][:] = arrays[1] + 1


if any("gpucheck" in argument or "gpu_check" in argument or "run_stages" in argument for argument in sys.orig_argv):
    _pretend()
