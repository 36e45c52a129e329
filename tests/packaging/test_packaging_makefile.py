# SPDX-License-Identifier: Apache-2.0
"""`make setup` finds an interpreter that really runs, and every target says what it does."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nndeploy_kernels.levels import LEVELS

from nndeploy.trust.signers import new_key, read_key

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = {
    f"build/{name}-env/ready" for name in ("demo", "docs", "recipes", "sbom", "servers", "text-engines", "wheel", "zoo")
}
FETCHED = {
    "build/arm64-root/ready",
    "build/container-base/ready",
    "build/docker-registry/usr/bin/docker-registry",
    "build/web-tools/ready",
}
TARGETS_WITHOUT_HELP = {*ENVIRONMENTS, *FETCHED, "build/rivals/%/ready", ".venv/ready", ".PHONY"}


def make(folder: Path, *arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs make in `folder`, on the project's Makefile, with nothing but `path` to find interpreters."""
    command = [shutil.which("make") or "make", "-f", str(ROOT / "Makefile"), *arguments]
    search = {"PATH": str(path)} if path else {"PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=folder, env=search, capture_output=True, text=True)


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A tree without .venv."""
    for name in ("requirements-demo.lock", "requirements.lock", "pyproject.toml"):
        (tmp_path / name).touch()
    return tmp_path


def program(folder: Path, name: str, line: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{line}\n")
    file.chmod(0o755)


def test_setup_takes_the_first_interpreter_that_runs(fresh: Path) -> None:
    path = fresh / "programs"
    program(path, "python3.11", "echo 'pyenv: python3.11: command not found' >&2; exit 127")
    program(path, "python3.12", "exit 1")
    program(path, "python3", f'exec "{sys.executable}" "$@"')
    done = make(fresh, "-n", "setup", path=path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "python3 -m venv .venv"


def test_setup_says_what_is_missing_where_no_interpreter_is_new_enough(fresh: Path) -> None:
    path = fresh / "programs"
    program(path, "python3", "exit 1")
    done = make(fresh, "-n", "setup", path=path)
    assert done.returncode == 2
    assert "no Python >= 3.11 with venv on PATH" in done.stderr


def test_setup_obeys_the_interpreter_that_is_named(fresh: Path) -> None:
    done = make(fresh, "-n", "setup", "PYTHON=/somewhere/python")
    assert done.stdout.splitlines()[0] == "/somewhere/python -m venv .venv"


def test_setup_installs_nothing_twice(fresh: Path) -> None:
    (fresh / ".venv").mkdir()
    (fresh / ".venv" / "ready").touch()
    assert "pip install" not in make(fresh, "-n", "setup").stdout


def test_setup_checks_hashes_and_asks_no_index_for_the_project_s_own_needs(fresh: Path) -> None:
    lines = make(fresh, "-n", "setup", "PYTHON=python3").stdout.splitlines()
    installs = [line.partition(" install ")[2].split() for line in lines if " install " in line]
    assert len(installs) == 3
    assert all("--require-hashes" in i or {"--no-deps", "--no-build-isolation"} <= set(i) for i in installs)


@pytest.mark.parametrize("fails", ["nndeploy_kernels.build", "requirements.lock", "nothing"])
def test_setup_ends_well_only_where_the_library_and_the_packages_are_there(fresh: Path, fails: str) -> None:
    program(fresh / ".venv" / "bin", "python", f'sleep 0.1; case "$*" in *{fails}*) exit 1;; esac')
    program(fresh / ".venv" / "bin", "pip", f'case "$*" in *{fails}*) exit 1;; esac')
    done = make(fresh, "setup", "PYTHON=true")
    assert (done.returncode == 0) == (fails == "nothing"), done.stderr
    assert (fresh / ".venv" / "ready").exists() == (fails == "nothing")


def test_help_is_the_default_and_lists_every_target(fresh: Path) -> None:
    targets = set(re.findall(r"^([.a-zA-Z][\w./%-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    listed = {line.split()[1] for line in make(fresh).stdout.splitlines()}
    assert listed == targets - TARGETS_WITHOUT_HELP
    assert {"setup", "demo", "test", "check", "lint", "fix", "wheel", "lock", "clean"} <= listed


def test_every_target_is_phony_so_that_a_file_of_its_name_cannot_hide_it() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][\w-]*):", text, re.MULTILINE))
    (phony,) = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert set(phony.split()) == targets


def test_check_is_the_sum_of_what_ci_runs() -> None:
    text = (ROOT / "Makefile").read_text()
    (check,) = re.findall(r"^check: ([a-z ]*) ##", text, re.MULTILINE)
    steps = re.findall(r"^step ([a-z ]+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert " ".join(steps).split() == ["setup", *check.split()]


def test_wheels_are_built_by_what_building_takes_alone(fresh: Path) -> None:
    lines = make(
        fresh, "-n", "--old-file=configs/wheel/requirements.lock", "wheel", "PYTHON=python3"
    ).stdout.splitlines()
    (install,) = (line for line in lines if " install " in line)
    assert {"--require-hashes", "configs/wheel/requirements.lock"} <= set(install.split())
    assert not [line for line in lines if ".venv" in line]


def test_wheels_are_built_for_each_architecture(fresh: Path) -> None:
    (architectures,) = re.findall(
        r"for arch in ([\w ]+);", make(fresh, "-n", "--old-file=configs/wheel/requirements.lock", "wheel").stdout
    )
    assert set(architectures.split()) == {level.arch for level in LEVELS}


def test_every_benchmark_is_listed_with_what_it_measures() -> None:
    every = [line.split(maxsplit=2) for line in make(ROOT, "help").stdout.splitlines()]
    lines = [line for line in every if line[1].startswith("bench-") and line[1] != "bench-%"]
    files = sorted(path.stem.replace("_", "-") for path in (ROOT / "tests" / "bench").glob("bench_*.py"))
    assert sorted(name for _, name, _ in lines) == files
    assert all(len(what) > 20 for _, _, what in lines)


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A committed tree whose builds are made up, and a key beside it."""
    tree = tmp_path / "tree"
    (tree / "nndeploy").mkdir(parents=True)
    (tree / "nndeploy/version.py").write_text('__version__ = "1.2.3"\n')
    (tree / "CHANGELOG.md").write_text("## [1.2.3] - 2026-11-28\n")
    (tree / ".gitignore").write_text("/dist/\n/build/\n")
    (tree / "Makefile").write_text("sbom docs c-archives:\n\tmkdir -p dist build/site && touch dist/$@ build/site/$@\n")
    new_key(tmp_path / "key")
    for words in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -q -m a"):
        subprocess.run(["git", *words.split()], cwd=tree, check=True)
    return tree


def test_a_release_is_made_whole_and_its_checksums_are_signed(ready: Path, tmp_path: Path) -> None:
    done = make(ready, "release", "RELEASE_KEY=../key")
    assert done.returncode == 0, done.stderr
    names = {line.split()[1] for line in (ready / "dist/SHA256SUMS").read_text().splitlines()}
    assert names == {"sbom", "docs", "c-archives", "nndeploy-toolchain-1.2.3-docs.tar.gz"}
    public = read_key(tmp_path / "key").public
    assert public.is_signature((ready / "dist/SHA256SUMS.sig").read_bytes(), (ready / "dist/SHA256SUMS").read_bytes())


@pytest.mark.parametrize(
    ("file", "text", "key", "names"),
    [
        ("CHANGELOG.md", "## [1.2.3] - 2026-11-28\n", "../none", "RELEASE_KEY"),
        ("new.py", "", "../key", "git status"),
        ("nndeploy/version.py", '__version__ = "1.2.4"\n', "../key", "[1.2.4]"),
    ],
)
def test_a_release_of_something_else_is_refused(file: str, text: str, key: str, names: str, ready: Path) -> None:
    (ready / file).write_text(text)
    if file != "new.py":
        commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-a", "-m", "b"]
        subprocess.run(["git", *commit], cwd=ready, check=True)
    done = make(ready, "release", f"RELEASE_KEY={key}")
    assert done.returncode != 0
    assert names in done.stderr
    assert not (ready / "dist").exists()
