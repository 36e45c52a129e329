# SPDX-License-Identifier: Apache-2.0
"""The wheel and the source archive, built offline by hatchling, hold exactly what a user needs."""

import configparser
import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from check_sbom import LOCK
from wheel_builds import ROOT, base_needs, built

from nndeploy.cli.main import COMMANDS
from nndeploy.version import __version__

KERNELS = ROOT / "backends" / "nndeploy_kernels"
PACKAGES = {"nndeploy": ROOT / "nndeploy"} | {p.name: p for p in (ROOT / "backends").glob("nndeploy_*")}
CONFIGURATIONS = ("targets", "pipelines")
"""The folders of configs/ that a user needs."""
BACKENDS = ("cudnn", "native", "onnxruntime", "openvino", "reference", "tensorrt", "triton")
SHARE = ".data/data/share/"
MAN = f"{SHARE}man/man1"
EXTRAS = {"compile", "cpu", "gpu", "openvino", "tensorrt-rtx", "tensorrt", "cudnn", "triton", "vision", "dev"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    shutil.unpack_archive(wheel, folder, "zip")
    return folder


def dist_info(unpacked: Path, name: str) -> str:
    (file,) = unpacked.glob(f"nndeploy_toolchain-*.dist-info/{name}")
    return file.read_text()


def package_files() -> Iterator[str]:
    """Yields every file of our packages by its path in a wheel."""
    for name, folder in PACKAGES.items():
        for file in folder.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts and not file.is_relative_to(KERNELS):
                yield f"{name}/{file.relative_to(folder).as_posix()}"
    for file in (file for name in CONFIGURATIONS for file in (ROOT / "configs" / name).rglob("*")):
        if file.is_file():
            yield f"nndeploy/{file.relative_to(ROOT / 'configs').as_posix()}"  # where an installed package looks
    yield "nndeploy/cli/help/completion_index.json"  # made by the build
    for section in ("guide", "reference"):
        for file in (ROOT / "docs" / section).iterdir():
            yield f"nndeploy/pages/{section}/{file.name}"


def test_wheel_holds_our_packages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    found = {name for name in names if ".dist-info/" not in name and SHARE not in name}
    assert {name for name in found if not name.startswith("nndeploy_kernels/")} == set(package_files())
    assert len(names) == len(set(names))


def test_the_lock_of_the_base_install_is_what_the_wheel_needs(wheel: Path) -> None:
    names = {line.partition("==")[0] for line in LOCK.read_text().splitlines() if line[:1].isalpha()}
    assert names == base_needs(wheel)


def test_wheel_brings_a_man_page_of_every_command_to_where_man_looks(wheel: Path) -> None:
    names = [name for name in zipfile.ZipFile(wheel).namelist() if MAN in name]
    pages = {name.rpartition("/")[2] for name in names}
    assert {name.rpartition("/")[0] for name in names} == {f"nndeploy_toolchain-{__version__}{MAN}"}
    assert pages >= {"nndeploy.1", *(f"nndeploy-{command}.1" for command in COMMANDS)}


def test_wheel_brings_the_units_and_the_container_file(wheel: Path) -> None:
    folders = ("systemd", "container")
    names = [name for name in zipfile.ZipFile(wheel).namelist() if f"{SHARE}nndeploy/" in name]
    wanted = [file for folder in folders for file in sorted((ROOT / "configs" / folder).iterdir())]
    assert sorted(names) == sorted(
        f"nndeploy_toolchain-{__version__}{SHARE}nndeploy/{file.parent.name}/{file.name}" for file in wanted
    )


def test_man_pages_need_nothing_but_what_a_build_asks_for() -> None:
    """An isolated build (`pip install` of the source archive) has only these."""
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    names = {re.split(r"[^\w-]", need)[0] for need in needs}
    code = (
        "import sys; from nndeploy.cli.main import run_command;"
        "code = run_command(['help', '--man', sys.argv[1]]); assert code == 0;"
        "print(*{name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names)"
    )
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-S", "-c", code, folder]
        paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        done = subprocess.run(command, env=paths, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) - {"__main__"} <= {"nndeploy", *names}


@pytest.mark.slow
def test_a_build_finds_what_pip_installed_for_it_alone(tmp_path: Path) -> None:
    """pip names a folder of its own in PYTHONPATH; here all but the bare environment is found so."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    command = [str(tmp_path / "bare/bin/python"), "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "NNDEPLOY_KERNELS_ARCH": "none"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert [name for name in zipfile.ZipFile(wheel).namelist() if MAN in name]


def test_wheel_holds_the_schema_and_the_type_markers(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "nndeploy/bundle/manifest.schema.json" in names
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)


def test_wheel_names_every_backend_and_the_command_as_entry_points(unpacked: Path) -> None:
    entries = configparser.ConfigParser()
    entries.read_string(dist_info(unpacked, "entry_points.txt"))
    backends = {name: f"nndeploy_{name}.plugin:Plugin" for name in BACKENDS}
    assert dict(entries["nndeploy.backends"]) == backends
    assert dict(entries["console_scripts"]) == {"nndeploy": "nndeploy.__main__:main"}


def test_every_backend_in_the_tree_is_packaged() -> None:
    assert {f"nndeploy_{name}" for name in BACKENDS} == set(PACKAGES) - {"nndeploy", KERNELS.name}


def test_wheel_offers_the_extras_and_its_name_is_not_the_one_taken_on_the_index(unpacked: Path) -> None:
    metadata = email.message_from_string(dist_info(unpacked, "METADATA"))
    assert metadata["Name"] == "nndeploy-toolchain"
    assert metadata["Requires-Python"] == ">=3.11"
    assert set(metadata.get_all("Provides-Extra") or []) >= EXTRAS


def test_description_has_no_link_that_would_be_dead_on_a_page_of_an_index(unpacked: Path) -> None:
    metadata = email.message_from_string(dist_info(unpacked, "METADATA"))
    text = str(metadata.get_payload())
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert re.findall(r"\]\((?![a-z]+://)[^)]*\)", text) == []
    pages = set(re.findall(r"`nndeploy help ([\w/-]+)`", text))
    assert pages
    assert [page for page in pages if not (unpacked / "nndeploy" / "pages" / f"{page}.md").is_file()] == []


def test_wheel_says_on_which_pythons_it_is_tested(unpacked: Path) -> None:
    metadata = email.message_from_string(dist_info(unpacked, "METADATA"))
    minors = re.findall(r"^Classifier: Programming Language :: Python :: 3\.(\d+)$", str(metadata), re.MULTILINE)
    (first,) = re.findall(r">=3\.(\d+)", metadata["Requires-Python"])
    assert sorted(map(int, minors)) == list(range(int(first), 14))
    assert "Operating System :: POSIX :: Linux" in (metadata.get_all("Classifier") or [])


def test_command_runs_from_the_wheel_s_own_files(unpacked: Path) -> None:
    code = "import nndeploy, nndeploy.cli.main as m; print(nndeploy.__file__, flush=True); m.main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"],
        cwd=unpacked,
        env={"PYTHONPATH": str(unpacked), "ORT_DISABLE_TELEMETRY": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    file, version = done.stdout.splitlines()
    assert Path(file) == unpacked / "nndeploy" / "__init__.py"
    assert email.message_from_string(dist_info(unpacked, "METADATA"))["Version"] in version


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_configurations_are_found_in_an_installed_package(name: str, unpacked: Path) -> None:
    code = f"from nndeploy.files.shipped_configs import config_files; print(*config_files({name!r}), sep='\\n')"
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=unpacked, env={"PYTHONPATH": str(unpacked)}, capture_output=True, text=True, check=True
    )
    found = [Path(line) for line in done.stdout.splitlines()]
    assert [file.name for file in found] == sorted(file.name for file in (ROOT / "configs" / name).glob("*.toml"))
    assert {file.parent for file in found} == {unpacked / "nndeploy" / name}


def test_help_is_found_in_an_installed_package(unpacked: Path) -> None:
    command = [sys.executable, "-m", "nndeploy", "help", "reference/targets"]
    environment = {"PYTHONPATH": os.pathsep.join((str(unpacked), *filter(None, sys.path)))}
    done = subprocess.run(command, cwd=unpacked, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (ROOT / "docs" / "reference" / "targets.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_wheel_built_from_the_source_archive_is_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    # objects are taken from here where all that they are made of is the same
    shutil.copytree(KERNELS / "lib" / "objects", source / "backends" / KERNELS.name / "lib" / "objects")
    again = built("wheel", source, tmp_path / "again")
    assert (again.name, again.read_bytes()) == (wheel.name, wheel.read_bytes())


def test_source_archive_brings_the_licence_and_the_target_files(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "configs/targets/x86-64-v3.toml"} <= names
    assert not [name for name in names if name.startswith("tests/")]
