# SPDX-License-Identifier: Apache-2.0
"""The base install brings what runs bundles of native kernels, no more; compiling asks for the rest."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from wheel_builds import ROOT, base_needs, built, clean_environment

import nndeploy
from nndeploy.plugin.registry import backend_names

pytestmark = pytest.mark.slow

DIGITS = ROOT / "examples" / "digits"
MAX_BYTES = 60e6
"""What a box may be asked for, beside NumPy and Python."""
HINT = "pip install --no-index --find-links FOLDER 'nndeploy-toolchain[compile]'"
LINES = str(DIGITS / "lines.jsonl")


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wheel", ROOT, tmp_path_factory.mktemp("toolchain"))


@pytest.fixture(scope="module")
def box(toolchain: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the Python of a box with the base install alone."""
    return clean_environment(tmp_path_factory.mktemp("box") / "env", (toolchain,), base_needs(toolchain))


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder in which the box works: a bundle of native kernels, one that can be paced, one of onnx's."""
    folder = tmp_path_factory.mktemp("work")
    for name, backend, pace in (("digits", "native", False), ("paced", "native", True), ("onnx", "reference", False)):
        options = nndeploy.CompileOptions(
            backends=(backend,), objective="priority", shapes={"image": (1, 1, 8, 8)}, keep_fallback=False, pace=pace
        )
        nndeploy.compile_model(DIGITS / "digits.onnx", folder / f"{name}.nnd", options)
    return folder


def done_on(box: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(box.with_name("nndeploy")), *arguments]
    # it trusts the machine that compiled, and knows nothing of what this account has compiled before
    environment = {"XDG_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"], "NNDEPLOY_CACHE_DIR": ""}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_it_needs_four_packages_and_what_these_need(toolchain: Path) -> None:
    of_rich, of_cryptography = {"markdown-it-py", "mdurl", "pygments"}, {"cffi", "pycparser"}
    own = {"click", "cryptography", "numpy", "rich"}
    assert base_needs(toolchain) == own | of_rich | of_cryptography


def test_it_is_small_beside_numpy(box: Path) -> None:
    (site,) = box.parents[1].glob("lib/python*/site-packages")
    parts = {part: part.stat().st_size for part in site.iterdir() if part.is_file()}
    for folder in (part for part in site.iterdir() if part.is_dir() and not part.name.startswith("numpy")):
        parts[folder] = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    assert len(parts) > 10
    assert sum(parts.values()) < MAX_BYTES, parts


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("--help", 0),
        ("run digits.nnd --input LINES --output -", 0),
        ("inspect digits.nnd --here", 0),
        ("inspect digits.nnd --html digits.html", 0),
        ("verify digits.nnd", 0),
        ("bench digits.nnd --duration 0.2", 0),
        ("bench paced.nnd --operators --duration 0.2", 0),
        ("diff digits.nnd paced.nnd", 1),
        ("pace paced.nnd --max-latency 5ms", 0),
        ("probe", 0),
        ("targets", 0),
        ("backends", 0),
        ("help guide/edge-box", 0),
        ("completion bash", 0),
        ("compile --help", 0),
    ],
    ids=str,
)
def test_a_box_with_it_alone_does_it(line: str, code: int, box: Path, work: Path) -> None:
    done = done_on(box, work, *line.replace("LINES", LINES).split())
    assert done.returncode == code, done.stderr
    assert done.stdout or "--html" in line


@pytest.mark.parametrize("line", ["-o new.nnd", "--dry-run", "-o new.nnd --quantise int8 --target t4"])
def test_compiling_without_the_extra_is_one_line_with_the_command(line: str, box: Path, work: Path) -> None:
    done = done_on(box, work, "compile", str(DIGITS / "digits.onnx"), *line.split())
    assert done.returncode == 69
    (said,) = done.stderr.splitlines()
    assert said.endswith(f"(hint: {HINT})")
    assert not (work / "new.nnd").exists()


def test_compiling_in_python_without_the_extra_is_one_line_with_the_command(box: Path, work: Path) -> None:
    code = "import nndeploy; nndeploy.compile_model('m.onnx', 'm.nnd', nndeploy.CompileOptions())"
    done = subprocess.run([str(box), "-c", code], cwd=work, env={}, capture_output=True, text=True)
    *_, said = done.stderr.splitlines()
    assert said.startswith("nndeploy.errors.UnavailableError: ")
    assert said.endswith(f"(hint: {HINT})")


def test_a_part_that_onnx_s_evaluator_runs_asks_for_the_extra(box: Path, work: Path) -> None:
    done = done_on(box, work, "run", "onnx.nnd", "--input", LINES, "--output", "-")
    assert done.returncode == 69
    assert HINT in done.stderr


def test_every_hint_names_an_extra_that_there_is(box: Path, work: Path, toolchain: Path) -> None:
    extras = set(re.findall(r"^(\S+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE))
    found = json.loads(done_on(box, work, "backends", "--json").stdout)["backends"]
    assert {one["name"] for one in found} == set(backend_names())
    hints = {one["name"]: one["hint"] for one in found if not one["can_run"]}
    for hint in hints.values():
        assert "pip install" in hint or hint == "", hints
        assert set(re.findall(r"nndeploy-toolchain\[([\w-]+)\]", hint)) <= extras
