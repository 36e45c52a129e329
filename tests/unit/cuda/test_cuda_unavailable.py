# SPDX-License-Identifier: Apache-2.0
"""Where CUDA cannot be used one line says why, and nothing is loaded that costs time."""

import ctypes
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nndeploy.cuda import cuda_unavailable, device, facts
from nndeploy.cuda.current_driver import _real_driver, injected_driver
from nndeploy.cuda.driver import CudaError
from nndeploy.cuda.facts import why_no_cuda
from nndeploy.errors import UnavailableError
from nndeploy.target.target import host_target
from nndeploy.testing.host_driver import HostDriver


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


@pytest.fixture
def fresh_bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that stands for the PCI bus; it is looked at again in each test."""
    monkeypatch.setattr(facts, "_PCI_DEVICES", tmp_path)
    facts._is_nvidia_gpu_on_bus.cache_clear()
    yield tmp_path
    facts._is_nvidia_gpu_on_bus.cache_clear()


def plug_in(bus: Path, vendor: str, kind: str) -> None:
    device_folder = bus / f"0000:0{len(list(bus.iterdir()))}:00.0"
    device_folder.mkdir()
    (device_folder / "vendor").write_text(f"{vendor}\n")
    (device_folder / "class").write_text(f"{kind}\n")


@pytest.mark.usefixtures("fresh_driver")
@pytest.mark.parametrize(("devices", "lacks_gpu"), [
    ((), True),
    # another's display, NVIDIA's sound
    ((("0x8086", "0x030000"), ("0x10de", "0x040300")), True), ((("0x8086", "0x020000"), ("0x10de", "0x030000")), False),
    ((("0x10de", "0x030200"),), False),
])  # fmt: skip
def test_without_a_driver_a_hint_is_given_only_where_there_is_a_gpu(
    fresh_bus: Path, monkeypatch: pytest.MonkeyPatch, devices: tuple[tuple[str, str], ...], lacks_gpu: bool
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", no_library)
    for vendor, kind in devices:
        plug_in(fresh_bus, vendor, kind)
    why = why_no_cuda()
    assert why is not None
    assert (why.lacks_gpu, why.hint == "") == (lacks_gpu, lacks_gpu)


@pytest.mark.usefixtures("fresh_driver")
def test_a_machine_without_a_pci_bus_lacks_a_gpu(fresh_bus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", no_library)
    fresh_bus.rmdir()
    why = why_no_cuda()
    assert why is not None
    assert why.lacks_gpu


@pytest.mark.usefixtures("fresh_driver")
def test_a_missing_package_is_its_own_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: None)
    monkeypatch.setitem(sys.modules, "nndeploy.cuda.bindings_driver", None)
    why = why_no_cuda()
    assert why is not None
    assert (why.hint, why.lacks_gpu) == ("pip install cuda-bindings", False)


class AilingDriver(HostDriver):
    """A driver that finds its GPU in a bad state."""

    def device_count(self) -> int:
        raise CudaError("cuInit failed", hint="see nvidia-smi")


def test_a_driver_that_counts_tells_whether_there_is_a_gpu() -> None:
    with injected_driver(HostDriver()):
        assert why_no_cuda() is None
    with injected_driver(HostDriver(gpus=())):
        none = why_no_cuda()
    with injected_driver(AilingDriver()):
        ailing = why_no_cuda()
    assert none is not None
    assert ailing is not None
    assert (none.hint, none.lacks_gpu) == ("", True)
    assert (ailing.hint, ailing.lacks_gpu) == ("see nvidia-smi", False)


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
