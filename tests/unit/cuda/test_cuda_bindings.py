# SPDX-License-Identifier: Apache-2.0
"""The real bindings over a libcuda.so.1 that pretends (fake_libcuda.c): marshalling, handles, errors.

Each test runs in a process of its own, whose dynamic linker finds the pretended library and never a real driver.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="no C compiler to build the pretended libcuda"),
    pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda-bindings is not installed"),
]
PRELUDE = "import numpy as np\nfrom nndeploy.cuda import *\nvalues = np.arange(6, dtype=np.float32)\n"


@pytest.fixture(scope="module")
def library_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("libcuda")
    source = Path(__file__).with_name("fake_libcuda.c")
    command = [str(COMPILER), "-shared", "-fPIC", "-w", "-o", str(folder / "libcuda.so.1"), str(source), "-ldl"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return folder


def run(library_folder: Path | None, program: str) -> list[str]:
    """Returns the lines that a program prints in a process with the pretended driver, or with none."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library_folder or "")}
    command = [sys.executable, "-c", PRELUDE + program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_facts_of_a_device_pass_the_bindings(library_folder: Path) -> None:
    program = (
        "from nndeploy.target.target import host_target\n"
        "gpu, = host_target().gpus\n"
        "print(device(0), gpu.memory_bytes, dict(gpu.cudnn)['multiProcessorCount'])\n"
    )
    assert run(library_folder, program) == ["Device(cuda:0: Fake 0, compute capability 9.0) 1000000 132"]


def test_a_driver_that_finds_no_device_counts_none(library_folder: Path) -> None:
    program = (
        "import os; os.environ['NO_DEVICE'] = '1'\n"
        "from nndeploy.cuda.facts import why_no_cuda\n"
        "print(why_no_cuda().lacks_gpu)\n"
    )
    assert run(library_folder, program) == ["True"]


def test_values_pass_the_bindings_both_ways(library_folder: Path) -> None:
    program = (
        "array = device(0).to_device(values)\n" "other = device(0).empty((6,), 'float32')\n" "other.write(array)\n"
        "print(*other.numpy(), *device(0).to_device(values + 1).numpy())\n"
    )  # fmt: skip
    assert run(library_folder, program) == ["0.0 1.0 2.0 3.0 4.0 5.0 1.0 2.0 3.0 4.0 5.0 6.0"]


def test_a_launch_passes_its_parameters_and_its_shared_memory(library_folder: Path) -> None:
    program = (
        "array = device(0).to_device(values)\n"
        "kernel = device(0).load_module(b'CUBIN').kernel('scale')\n"
        "kernel.launch((2, 3, 4), (32, 1, 1), 100000, [array, np.float32(0.5), np.int32(6)])\n"
        "print(*array.numpy())\n"
    )
    assert run(library_folder, program) == ["0.0 0.5 1.0 1.5 2.0 2.5"]


def test_a_graph_is_captured_and_launched(library_folder: Path) -> None:
    program = (
        "array = device(0).to_device(values)\n" "kernel = device(0).load_module(b'CUBIN').kernel('scale')\n"
        "args = [array, np.float32(2), np.int32(6)]\n"
        "graph = device(0).capture(lambda: kernel.launch((2, 3, 4), (32, 1, 1), 0, args))\n" "print(*array.numpy())\n"
        "graph.launch(); graph.launch()\n" "print(*array.numpy())\n"
    )  # fmt: skip
    assert run(library_folder, program) == ["0.0 1.0 2.0 3.0 4.0 5.0", "0.0 4.0 8.0 12.0 16.0 20.0"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            "device(0).empty((2000000,), 'uint8')",
            "cuda:0: cuMemAllocAsync failed: CUDA_ERROR_OUT_OF_MEMORY: out of memory "
            "(hint: the GPU's memory is full: smaller batches, or another --device)",
        ),
        ("device(0).load_module(b'other')", "cuda:0: cuModuleLoadData failed: CUDA_ERROR_INVALID_IMAGE: said no"),
        (
            "device(0).load_module(b'CUBIN').kernel('x')",
            "cuda:0: cuModuleGetFunction failed: CUDA_ERROR_NOT_FOUND: said no",
        ),
    ],
)
def test_a_refusal_of_the_driver_is_one_line_that_names_the_call(library_folder: Path, call: str, said: str) -> None:
    assert run(library_folder, f"try:\n    {call}\nexcept CudaError as err:\n    print(err)\n") == [said]


def test_memory_and_events_are_given_back(library_folder: Path) -> None:
    program = (
        "for _ in range(50):\n" "    array = device(0).to_device(values)\n"
        "    kernel = device(0).load_module(b'CUBIN').kernel('scale')\n"
        "    graph = device(0).capture(lambda: None)\n" "del array, kernel, graph\n" "print('done')\n"
    )  # fmt: skip
    assert run(library_folder, program) == ["done"]
