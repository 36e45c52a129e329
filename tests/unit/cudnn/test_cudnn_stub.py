# SPDX-License-Identifier: Apache-2.0
"""The stand-in for libcuda.so.1, which comes with the kernel library: what it answers, and who gets it."""

import ctypes
import json
import subprocess
import sys
from pathlib import Path

import pytest
from c_library import zig_missing
from nndeploy_cudnn import planner as planner_module
from nndeploy_cudnn.library import installed_path
from nndeploy_cudnn.plugin import Plugin
from nndeploy_kernels import loading
from nndeploy_kernels.build import build_driver_stub

from nndeploy.errors import UnavailableError
from nndeploy.target.known_targets import target_of
from nndeploy.target.target import host_target


@pytest.fixture(scope="module")
def built() -> Path:
    """The library, built where it is not."""
    if reason := zig_missing():
        pytest.skip(reason)
    return build_driver_stub(host_target().arch)


ANSWERS = """
import ctypes, json, sys
cuda, number, handle, name = ctypes.CDLL(sys.argv[1]), ctypes.c_int(7), ctypes.c_void_p(0), ctypes.c_char_p()
tensor_map = ctypes.create_string_buffer(b"x" * 128, 128)
said = {"init": cuda.cuInit(0), "launch": cuda.cuLaunchKernel()}
said["version"] = (cuda.cuDriverGetVersion(ctypes.byref(number)), number.value)
said["count"] = (cuda.cuDeviceGetCount(ctypes.byref(number)), number.value)
said["load"] = (cuda.cuModuleLoadData(ctypes.byref(handle), b""), handle.value)
said["map"] = (cuda.cuTensorMapEncodeTiled(tensor_map), tensor_map.raw == bytes(128))
said["error"] = (cuda.cuGetErrorString(1, ctypes.byref(name)), name.value.decode())
print(json.dumps(said))
"""


def test_it_says_that_there_is_no_device_and_loads_whatever_it_gets(built: Path) -> None:
    command = [sys.executable, "-I", "-c", ANSWERS, str(built)]
    said = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert said["init"] == 100
    assert said["launch"] == 801
    assert said["version"] == [0, 13000]
    assert said["count"] == [0, 0]
    assert said["load"] == [0, 1]
    assert said["map"] == [0, True]
    assert said["error"] == [0, "no driver on this machine"]


def test_it_is_known_by_the_name_that_cudnn_looks_for(built: Path) -> None:
    assert b"libcuda.so.1\0" in built.read_bytes()


def test_this_process_never_loads_it(built: Path) -> None:
    assert str(built) not in Path("/proc/self/maps").read_text()


def test_child_gets_the_stand_in_only_where_there_is_no_driver(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/hostile.so")
    monkeypatch.setattr(planner_module, "has_driver", lambda: False)
    assert planner_module.child_environment()["LD_LIBRARY_PATH"] == str(built.parent)
    monkeypatch.setattr(planner_module, "has_driver", lambda: True)
    assert set(planner_module.child_environment()) == {"PATH", "LANG", "PYTHONHASHSEED"}


def test_without_the_stand_in_the_package_that_brings_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner_module, "has_driver", lambda: False)
    monkeypatch.setattr(loading, "LIBRARIES", tmp_path)
    with pytest.raises(UnavailableError) as caught:
        planner_module.child_environment()
    assert "nndeploy-toolchain" in caught.value.hint
    if installed_path():
        probe = Plugin().probe(target_of("rtx4090"))
        assert (probe.can_build, probe.reason, probe.hint) == (False, caught.value.what, caught.value.hint)


def test_driver_is_what_the_loader_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: None)
    assert planner_module.has_driver()

    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert not planner_module.has_driver()
