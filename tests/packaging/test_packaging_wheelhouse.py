# SPDX-License-Identifier: Apache-2.0
"""A wheelhouse of real wheels installs on a machine like this one, or in a container, without a network, and runs."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from container_build import CONTAINER_FILE, builder
from wheel_builds import ROOT, wheelhouse_of_this_machine

import nndeploy

pytestmark = pytest.mark.slow

DIGITS = ROOT / "examples" / "digits"
NO_INDEX = {"PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null", "PYTHON": sys.executable}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheelhouse_of_this_machine(tmp_path_factory.mktemp("carried"))


def compiled(bundle: Path) -> None:
    options = nndeploy.CompileOptions(backends=("native",), objective="priority", keep_fallback=False)
    nndeploy.compile_model(DIGITS / "digits.onnx", bundle, options)


def test_the_script_installs_what_runs_a_bundle(house: Path, tmp_path: Path) -> None:
    script = ["sh", str(house / "install.sh"), str(tmp_path / "box")]
    done = subprocess.run(script, cwd=tmp_path, env=NO_INDEX, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"nndeploy {nndeploy.__version__}\n"
    compiled(tmp_path / "digits.nnd")
    run = [tmp_path / "box/bin/nndeploy", "run", "digits.nnd", "--input", DIGITS / "lines.jsonl", "--output", "-"]
    done = subprocess.run([*map(str, run)], cwd=tmp_path, env={}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len([json.loads(line) for line in done.stdout.splitlines()]) == 4


GUIDE = (ROOT / "docs" / "guide" / "edge-box.md").read_text()


@pytest.mark.parametrize("line", re.findall(r"^pip (install .*)$", GUIDE, re.MULTILINE))
def test_a_line_of_the_guide_installs_from_the_folder_alone(line: str, house: Path, tmp_path: Path) -> None:
    (tmp_path / "wheels").symlink_to(house)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "box")], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(tmp_path / "box/bin/python")]
    indexed = {"PATH": "/usr/bin:/bin", "PIP_CONFIG_FILE": "/dev/null"}  # the line itself must keep pip from it
    done = subprocess.run([*pip, *line.split()], cwd=tmp_path, env=indexed, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    run = [str(tmp_path / "box/bin/nndeploy"), "--version"]
    assert subprocess.run(run, env={}, capture_output=True, text=True).stdout.split()[-1] == nndeploy.__version__


def test_the_script_installs_no_wheel_that_was_changed(house: Path, tmp_path: Path) -> None:
    shutil.copytree(house, tmp_path / "house")
    (wheel,) = (tmp_path / "house").glob("nndeploy_toolchain-*.whl")
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    script = ["sh", "house/install.sh", "box"]
    done = subprocess.run(script, cwd=tmp_path, env=NO_INDEX, capture_output=True, text=True)
    assert done.returncode != 0
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr
    assert not (tmp_path / "box/bin/nndeploy").exists()


def test_the_container_file_makes_a_container_that_runs_a_bundle_and_writes_where_it_is_told_alone(
    house: Path, tmp_path: Path
) -> None:
    context, given, results = (tmp_path / name for name in ("context", "given", "results"))
    for folder in (context, given, results):
        folder.mkdir()
    shutil.copytree(house, context / "wheels")
    compiled(given / "digits.nnd")
    shutil.copy(DIGITS / "lines.jsonl", given)
    results.chmod(0o777)  # to whom it belongs in there is of no account here
    with builder(tmp_path / "buildah") as buildah:
        build = ["--isolation", "chroot", "--pull-never", "--quiet", "--tag", "nndeploy"]
        buildah("build", *build, "--file", str(CONTAINER_FILE), str(context))
        container = buildah("from", "--pull-never", "nndeploy")
        run = ["run", "--isolation", "chroot", "--volume", f"{given}:/given:ro", "--volume", f"{results}:/results"]
        words = ["run", "/given/digits.nnd", "--input", "/given/lines.jsonl", "--output", "/results/out.jsonl"]
        buildah(*run, container, "--", "/opt/nndeploy/bin/nndeploy", *words)
        inside = {path.lstat().st_uid for path in Path(buildah("mount", container)).rglob("*")}
    written = results / "out.jsonl"
    assert (written.stat().st_uid, len(written.read_text().splitlines())) == (65532, 4)
    assert 65532 not in inside, "it wrote into the container"
