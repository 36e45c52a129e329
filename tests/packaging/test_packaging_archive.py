# SPDX-License-Identifier: Apache-2.0
"""The archive for C programs: unpacked anywhere, programs build with it by pkg-config and by CMake."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest
from nndeploy_kernels.build import level_here
from nndeploy_kernels.build_archive import write_archive

import nndeploy

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "examples" / "c" / "digits.c"
PROJECT = """
cmake_minimum_required(VERSION 3.16)
project(digits C CXX)
find_package(nndeploy 1.2 REQUIRED)
add_executable(digits {source})
target_link_libraries(digits nndeploy::{target})
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_archive("1.2.3", tmp_path_factory.mktemp("dist"), level_here().arch)


@pytest.fixture(scope="module")
def unpacked(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert archive.name == f"nndeploy-1.2.3-linux-{level_here().arch}.tar.gz"
    elsewhere = tmp_path_factory.mktemp("some where else")
    with tarfile.open(archive) as files:
        assert all((one.uid, one.mtime, one.isfile()) == (0, 0, True) for one in files)
        files.extractall(elsewhere, filter="data")
    return elsewhere / archive.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bundle = tmp_path_factory.mktemp("digits") / "digits.nnd"
    model = ROOT / "examples" / "digits" / "digits.onnx"
    nndeploy.compile_model(model, bundle, backends=("native",), objective="priority", threads=1)
    return bundle


def needed(*tools: str) -> None:
    if missing := [tool for tool in tools if shutil.which(tool) is None]:
        pytest.skip(f"no {missing[0]} here")


def assert_reads_a_digit(program: Path, digits: Path, library: Path) -> None:
    surroundings = {**os.environ, "LD_LIBRARY_PATH": str(library)}
    done = subprocess.run([program, digits], capture_output=True, text=True, check=False, env=surroundings)
    assert (done.returncode, done.stderr) == (0, "")
    stroke = np.zeros((1, 1, 8, 8), np.float32)
    stroke[..., 3:5] = 16
    with nndeploy.load_bundle(digits, threads=1) as loaded:
        wanted = loaded.run({"image": stroke})["probabilities"]
    assert int(done.stdout.split(",")[0]) == wanted.argmax()


@pytest.mark.parametrize("how", [(), ("--static",)])
def test_a_program_builds_by_pkg_config(unpacked, digits, tmp_path, how) -> None:
    needed("cc", "pkg-config")
    moved = tmp_path / "moved"  # blanks in a folder are pkg-config's own affair
    shutil.copytree(unpacked, moved)
    surroundings = {**os.environ, "PKG_CONFIG_PATH": str(moved / "lib" / "pkgconfig")}
    if how:
        (moved / "lib" / "libnndeploy.so").unlink()
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", *how, "nndeploy"],
        capture_output=True,
        text=True,
        check=True,
        env=surroundings,
    ).stdout.split()
    subprocess.run(["cc", SOURCE, *flags, "-o", tmp_path / "digits"], check=True)
    assert_reads_a_digit(tmp_path / "digits", digits, moved / "lib")


@pytest.mark.parametrize(("target", "source"), [("nndeploy", SOURCE), ("static", ROOT / "examples/cpp/digits.cc")])
def test_a_program_builds_by_cmake(unpacked, digits, tmp_path, target, source) -> None:
    needed("cc", "c++", "cmake")
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(source=source, target=target))
    configure = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={unpacked}"]
    subprocess.run(configure, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tmp_path / "build"], check=True, capture_output=True)
    assert_reads_a_digit(tmp_path / "build" / "digits", digits, unpacked / "lib")


def test_cmake_refuses_a_version_that_is_older_than_wanted(unpacked, tmp_path) -> None:
    needed("cc", "c++", "cmake")
    project = PROJECT.format(source=SOURCE, target="nndeploy").replace("nndeploy 1.2", "nndeploy 1.3")
    (tmp_path / "CMakeLists.txt").write_text(project)
    configure = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={unpacked}"]
    done = subprocess.run(configure, check=False, capture_output=True, text=True)
    assert done.returncode != 0
    assert "1.2.3" in done.stderr


def test_the_program_in_the_archive_runs(unpacked, digits) -> None:
    done = subprocess.run([unpacked / "bin" / "nndeploy-run", digits, "--info"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_archive_that_was_made_twice_is_the_same(archive, tmp_path) -> None:
    assert write_archive("1.2.3", tmp_path, level_here().arch).read_bytes() == archive.read_bytes()
