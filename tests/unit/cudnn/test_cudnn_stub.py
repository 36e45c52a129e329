# SPDX-License-Identifier: Apache-2.0
"""The stand-in for libcuda.so.1: what it answers, where it is kept, and a line for each way it cannot be."""

import ctypes
import importlib.metadata
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from nndeploy_cudnn import planner as planner_module
from nndeploy_cudnn import stub

from nndeploy.errors import UnavailableError
from nndeploy.files.account_folders import cache_folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the stand-in, built once for all tests."""
    if find_spec("ziglang") is None:
        pytest.skip(f"ziglang is not installed ({stub.HINT})")
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        return stub.stub_folder()


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
    command = [sys.executable, "-I", "-c", ANSWERS, str(built / stub.LIBRARY)]
    said = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert said["init"] == 100
    assert said["launch"] == 801
    assert said["version"] == [0, 13000]
    assert said["count"] == [0, 0]
    assert said["load"] == [0, 1]
    assert said["map"] == [0, True]
    assert said["error"] == [0, "no driver on this machine"]


def test_it_is_known_by_the_name_that_cudnn_looks_for(built: Path) -> None:
    assert b"libcuda.so.1\0" in (built / stub.LIBRARY).read_bytes()


def test_this_process_never_loads_it(built: Path) -> None:
    assert str(built) not in Path("/proc/self/maps").read_text()


def test_it_is_built_once(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(built.parents[2]))
    monkeypatch.setattr(stub, "_compile", lambda folder: pytest.fail("it was built again"))
    assert stub.stub_folder() == built
    assert [path.name for path in built.iterdir()] == [stub.LIBRARY]


def test_other_source_is_another_folder(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("ziglang") is None:
        pytest.skip(f"ziglang is not installed ({stub.HINT})")
    other = tmp_path / "other.c"
    other.write_text("int cuInit(void) { return 0; }\n")
    before = stub._key()
    monkeypatch.setattr(stub, "SOURCE", other)
    assert stub._key() != before


def test_missing_compiler_is_one_line_with_the_extra(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(stub, "version", missing)
    with pytest.raises(UnavailableError, match=r"without the package ziglang.*\[cudnn\]"):
        stub.stub_folder()


def test_failing_compiler_is_one_line_with_its_words(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_spec("ziglang") is None:
        pytest.skip(f"ziglang is not installed ({stub.HINT})")
    broken = tmp_path / "broken.c"
    broken.write_text("int cuInit(void) { return\n")
    monkeypatch.setattr(stub, "SOURCE", broken)
    with pytest.raises(UnavailableError, match=r"broken\.c: ziglang cannot build it: .*error"):
        stub.stub_folder()
    assert not list((cache / "nndeploy" / "libcuda-stub").iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_cache_that_cannot_be_written_is_one_line(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stub, "_key", lambda: "key")
    cache.chmod(0o500)
    with pytest.raises(UnavailableError, match="the cache folder cannot be written"):
        stub.stub_folder()


def test_cache_that_is_a_file_is_one_line(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stub, "_key", lambda: "key")
    (cache / "nndeploy").write_text("in the way")
    with pytest.raises(UnavailableError, match="the cache folder cannot be written"):
        stub.stub_folder()


def test_folder_that_others_may_write_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stub, "_key", lambda: "key")
    folder = cache / "nndeploy" / "libcuda-stub" / "key"
    folder.mkdir(parents=True)
    (folder / stub.LIBRARY).write_bytes(b"planted")
    folder.chmod(0o777)
    with pytest.raises(UnavailableError, match="not ours alone"):
        stub.stub_folder()


def test_cache_folder_is_the_accounts_and_not_that_of_a_jobs_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tmp_path not in cache_folder().parents
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder().is_absolute()


def test_child_gets_the_stand_in_only_where_there_is_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/hostile.so")
    monkeypatch.setattr(planner_module, "stub_folder", lambda: Path("/stand-in"))
    monkeypatch.setattr(planner_module, "has_driver", lambda: False)
    assert planner_module.child_environment()["LD_LIBRARY_PATH"] == "/stand-in"
    monkeypatch.setattr(planner_module, "has_driver", lambda: True)
    assert set(planner_module.child_environment()) == {"PATH", "LANG", "PYTHONHASHSEED"}


def test_driver_is_what_the_loader_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: None)
    assert planner_module.has_driver()

    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert not planner_module.has_driver()
