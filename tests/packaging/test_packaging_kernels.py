# SPDX-License-Identifier: Apache-2.0
"""The wheels: each holds the kernel libraries of one architecture, runs where its tag says, and gives the numbers.

The library for aarch64 computes under qemu where this machine is none: `make arm64-root` fetches it.
"""

import email
import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from arm64_root import before_arm64_program
from elf_file import needs_of
from nndeploy_kernels import build_web
from nndeploy_kernels.levels import (
    GLIBC,
    LEVELS,
    WASM_LEVELS,
    WEB_ARCH,
    WINDOWS_ARCH,
    driver_stub,
    pace_library,
    runner,
    wasm_module,
)
from nndeploy_native.plan import PLAN_FILE, WEIGHTS_FILE
from onnx.reference import ReferenceEvaluator
from wheel_builds import ROOT, base_needs, built, clean_environment

from nndeploy.bundle.reader import open_bundle
from nndeploy.cli.main import run_command
from nndeploy.version import __version__

pytestmark = pytest.mark.slow

ARCHITECTURES = sorted({level.arch for level in LEVELS})
ALWAYS = {"__init__.py", "levels.py", "loading.py", "plan_words.h", "py.typed"}
SYSTEM = {"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
"""Libraries that each system of the tag has. Source: PEP 599."""
DRIVER = ROOT / "tests" / "unit" / "native_backend" / "plan_driver.c"
MODEL = """<ir_version: 8, opset_import: ["": 17]>
small_mobilenet (float[1,3,37,41] x) => (float[1,10] y) <float zero = {0}, float six = {6}> {
  a1 = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w0)  a2 = Clip(a1, zero, six)
  b1 = Conv<group=19, pads=[1,1,1,1]>(a2, w1)  b2 = Clip(b1, zero, six)  b3 = Conv(b2, w2)
  c1 = Conv(b3, w3)  c2 = HardSwish(c1)
  c3 = Conv<group=66, pads=[2,2,2,2]>(c2, w4)  c4 = Relu(c3)  c5 = Conv(c4, w5)  c6 = Add(c5, b3)
  d1 = GlobalAveragePool(c6)  d2 = Flatten(d1)  y = Gemm<transB=1>(d2, w6)
}"""
SHAPES = ((19, 3, 3, 3), (19, 1, 3, 3), (22, 19, 1, 1), (66, 22, 1, 1), (66, 1, 5, 5), (22, 66, 1, 1), (10, 22))

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Returns the wheel for each architecture."""
    return {
        arch: built("wheel", ROOT, tmp_path_factory.mktemp(arch), NNDEPLOY_KERNELS_ARCH=arch) for arch in ARCHITECTURES
    }


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    made, draw = onnx.parser.parse_model(MODEL), np.random.default_rng(3)
    for number, shape in enumerate(SHAPES):
        weights = (draw.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(weights, f"w{number}"))
    return made


@pytest.fixture(scope="module")
def bundle(model: onnx.ModelProto, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the model as this checkout compiles it: one submodel for our kernels."""
    folder = tmp_path_factory.mktemp("bundle")
    onnx.save(model, folder / "m.onnx")
    assert run_command(["compile", str(folder / "m.onnx"), "-o", str(folder / "m.nnd"), "--backends", "native"]) == 0
    return folder / "m.nnd"


@pytest.fixture(scope="module")
def x() -> Array:
    return np.random.default_rng(4).standard_normal((1, 3, 37, 41)).astype(np.float32)


@pytest.fixture(scope="module")
def wanted(model: onnx.ModelProto, x: Array) -> Array:
    return np.asarray(ReferenceEvaluator(model).run(None, {"x": x})[0])


def assert_close(found: Array, wanted: Array) -> None:
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_wheel_holds_the_libraries_of_one_architecture_and_what_loads_them(arch: str, wheels: dict[str, Path]) -> None:
    names = set(zipfile.ZipFile(wheels[arch]).namelist())
    libraries = {f"lib/{level.file_name}" for level in LEVELS if level.arch == arch}
    libraries |= {f"lib/{pace_library(arch)}", f"lib/{driver_stub(arch)}", f"lib/{runner(arch)}"}
    libraries |= {f"lib/{runner(WINDOWS_ARCH)}"} if arch == "x86_64" else set()
    web = [wasm_module(level, threads=threads) for level in WASM_LEVELS for threads in (False, True)]
    web += [*build_web.PACKAGE_FILES, build_web.LICENSE.name]
    libraries |= {f"lib/{runner(WEB_ARCH)}/{name}" for name in web}
    package = {name for name in names if name.startswith("nndeploy_kernels/")}
    assert package == {f"nndeploy_kernels/{name}" for name in ALWAYS | libraries}


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_libraries_need_no_more_than_the_tag_says(arch: str, wheels: dict[str, Path]) -> None:
    tag = f"py3-none-manylinux_{GLIBC.replace('.', '_')}_{arch}"
    wheel = zipfile.ZipFile(wheels[arch])
    said = email.message_from_bytes(wheel.read(f"nndeploy_toolchain-{__version__}.dist-info/WHEEL"))
    assert (said["Tag"], said["Root-Is-Purelib"]) == (tag, "false")
    assert wheels[arch].stem.endswith(f"-{tag}")
    for name in (name for name in wheel.namelist() if ".so" in name):
        needs = needs_of(wheel.read(name))
        assert needs.machine == arch
        assert needs.libraries <= SYSTEM
        for family, _, version in (needed.partition("_") for needed in needs.versions):
            assert family == "GLIBC"
            assert tuple(map(int, version.split("."))) <= tuple(map(int, GLIBC.split(".")))


def test_a_newer_system_than_the_tag_says_would_be_noticed() -> None:
    """This Python, or the library that it is in, was built on some system, and says which symbols of it it needs."""
    needs = needs_of(Path(sys.executable).resolve().read_bytes())
    assert needs.machine == platform.machine()
    assert "libc.so.6" in needs.libraries
    assert any(version.startswith("GLIBC_2.") for version in needs.versions)


def test_box_with_the_wheel_gives_the_numbers(
    wheels: dict[str, Path], bundle: Path, x: Array, wanted: Array, tmp_path: Path
) -> None:
    wheel = wheels[platform.machine()]
    python = clean_environment(tmp_path / "box", (wheel,), base_needs(wheel))
    np.savez(tmp_path / "x.npz", x=x)
    run = [python.with_name("nndeploy"), "run", bundle, "--input", "x.npz", "--output", "y.npz", "--no-native-code"]
    done = subprocess.run([*map(str, run)], cwd=tmp_path, env={}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert_close(np.load(tmp_path / "y.npz")["y"], wanted)
    code = (
        "import nndeploy, nndeploy_kernels as k, nndeploy_native as n; print(nndeploy.__file__, k.__file__, n.__file__)"
    )
    done = subprocess.run([str(python), "-c", code], cwd=tmp_path, env={}, capture_output=True, text=True, check=True)
    assert all(Path(path).is_relative_to(tmp_path / "box") for path in done.stdout.split())


@pytest.mark.parametrize("arch", ["mips", "aarch64"])
def test_box_without_a_library_for_it_is_told_what_to_install(
    arch: str, wheels: dict[str, Path], bundle: Path, tmp_path: Path
) -> None:
    """On a system without kernels the wheel is one for any; that of another architecture was unpacked by hand."""
    if arch not in wheels:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
        environment = {**os.environ, "NNDEPLOY_KERNELS_ARCH": arch}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        assert "`native` is left out" in done.stderr
    wheel = wheels.get(arch) or next((tmp_path / "dist").glob("*-py3-none-any.whl"))
    python = clean_environment(tmp_path / "box", (), base_needs(wheel))
    (site,) = (tmp_path / "box").glob("lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    np.savez(tmp_path / "x.npz", x=np.zeros((1, 3, 37, 41), np.float32))
    run = [str(python), "-m", "nndeploy", "run", str(bundle), "--input", "x.npz", "--output", "y.npz"]
    done = subprocess.run(run, cwd=tmp_path, env={}, capture_output=True, text=True)
    assert done.returncode == 69
    (line,) = done.stderr.splitlines()
    assert "nndeploy-toolchain" in line
    assert not (tmp_path / "y.npz").exists()


@pytest.mark.parametrize("threads", [1, 3])
def test_library_for_aarch64_computes_a_plan(
    threads: int, wheels: dict[str, Path], bundle: Path, x: Array, wanted: Array, tmp_path: Path
) -> None:
    before = before_arm64_program()
    zipfile.ZipFile(wheels["aarch64"]).extractall(tmp_path)
    level, package = next(level for level in LEVELS if level.arch == "aarch64"), tmp_path / "nndeploy_kernels"
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", level.zig_target, f"-Wl,-rpath,{package}/lib"]
    arguments = [
        "-I",
        ROOT / "backends" / "nndeploy_kernels" / "c",
        DRIVER,
        package / "lib" / level.file_name,
        "-o",
        "driver",
    ]
    subprocess.run([*compiler, *map(str, arguments)], cwd=tmp_path, check=True)
    with open_bundle(bundle) as opened:
        files = opened.manifest.submodels[0].variants[0].files
        data = [bytes(opened.member(files[name])) for name in (PLAN_FILE, WEIGHTS_FILE)]
    data.append(x.tobytes())
    words = [*map(len, data), threads, 0, 2 + x.ndim, 0, x.ndim, *x.shape]
    (tmp_path / "request").write_bytes(
        np.array(words, np.int64).tobytes() + b"".join(one + bytes(-len(one) % 8) for one in data)
    )
    subprocess.run([*before, "./driver", "request", "result"], cwd=tmp_path, check=True)
    assert_close(np.fromfile(tmp_path / "result", np.float32), wanted)
