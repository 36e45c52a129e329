# SPDX-License-Identifier: Apache-2.0
"""Where CUDA cannot be used one line says why, and nothing is loaded that costs time."""

import ctypes
import subprocess
import sys
from collections.abc import Iterator

import pytest

from nndeploy.cuda import cuda_unavailable, device
from nndeploy.cuda.current_driver import _real_driver
from nndeploy.errors import UnavailableError
from nndeploy.target.target import host_target


@pytest.fixture
def fresh_driver() -> Iterator[None]:
    _real_driver.cache_clear()
    yield
    _real_driver.cache_clear()


def no_library(name: str) -> None:
    raise OSError(f"{name}: cannot open shared object file")


@pytest.mark.usefixtures("fresh_driver")
def test_a_machine_without_a_driver_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", no_library)
    said = "no NVIDIA driver on this machine: libcuda.so.1 was not found"
    assert cuda_unavailable() == said
    with pytest.raises(UnavailableError) as caught:
        device(0)
    assert str(caught.value) == f"cuda:0: {said}"
    assert host_target.__wrapped__().gpus == ()


@pytest.mark.usefixtures("fresh_driver")
def test_a_machine_without_the_package_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: None)
    monkeypatch.setitem(sys.modules, "nndeploy.cuda.bindings_driver", None)
    assert cuda_unavailable() == ("there is an NVIDIA driver, but the package cuda-bindings is not installed")


def test_asking_on_a_machine_without_a_driver_does_not_import_the_bindings() -> None:
    program = (
        "import ctypes, sys; before = set(sys.modules)\n"  # a .pth file of cuda-bindings 12.9 loads some at the start
        "def no_library(name): raise OSError(name)\n"
        "ctypes.CDLL = no_library\n"
        "import nndeploy.cuda\n"
        "assert nndeploy.cuda.cuda_unavailable()\n"
        "heavy = {'cuda', 'onnx', 'torch', 'triton'}\n"
        "print(*sorted(name for name in set(sys.modules) - before if name.split('.')[0] in heavy))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "\n"
