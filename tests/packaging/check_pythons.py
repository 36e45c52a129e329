# SPDX-License-Identifier: Apache-2.0
"""Runs what a Python version can break on every other version that this machine has, each in a new environment.

All versions: the tests of the run half, and the digit reader compiled, run and verified by the command. Versions up to
the newest that the compile half is tested on: its tests too. With `--quick` the newest version alone, and of the tests
those that read and write files and are quick; that is what CI does.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
RUN_HALF = ("3.11", "3.12", "3.13", "3.14")
COMPILE_HALF = ("3.11", "3.12", "3.13")
QUICK_TESTS = ("bundle", "errors", "files", "options", "plugin", "runtime", "values")
RUN_TESTS = (*QUICK_TESTS, "cli", "cuda", "pacing", "processors", "stream", "target")
COMPILE_TESTS = ("checking", "compiler", "frontend", "graph", "jobs", "partition")
COMMANDS = (
    "compile examples/digits/digits.onnx --image examples/digits/image.toml -o {folder}/digits.nnd",
    "verify {folder}/digits.nnd",
    "run {folder}/digits.nnd --input examples/digits/png --output {folder}/results.jsonl",
)


def interpreter(version: str) -> str | None:
    """Returns a Python of this version: a name on PATH that runs, or one that pyenv keeps."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for found in (shutil.which(f"python{version}"), *sorted(pyenv.glob(f"versions/{version}.*/bin/python"))):
        asked = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
        if found and subprocess.run([found, "-c", asked], capture_output=True, text=True).stdout.strip() == version:
            return found
    return None


def check(version: str, python: str, *, quick: bool) -> None:
    """Makes the environment and runs the tests and commands; a failure is a CalledProcessError."""
    folder = REPOSITORY / "build" / f"python-{version}"
    own = folder / "bin" / "python"
    if not own.exists():
        _run(python, "-m", "venv", folder)
    pip = (own, "-m", "pip", "install", "--quiet")
    _run(*pip, "--require-hashes", "--only-binary=:all:", "-r", REPOSITORY / "requirements-pythons.lock")
    _run(*pip, "--no-deps", "--no-build-isolation", "-e", REPOSITORY)
    rooms = QUICK_TESTS if quick else RUN_TESTS + (COMPILE_TESTS if version in COMPILE_HALF else ())
    chosen = ("-m", "not slow") if quick else ()
    _run(own, "-m", "pytest", "-q", "-n", "2", *chosen, *(f"tests/unit/{room}" for room in rooms))
    for command in COMMANDS:
        _run(own, "-m", "nndeploy", *command.format(folder=folder).split())


def _run(*command: object) -> None:
    subprocess.run([str(part) for part in command], cwd=REPOSITORY, check=True)


def main() -> None:
    """Checks the versions that are here; says which are not."""
    parser = argparse.ArgumentParser(description="the tests on other versions of Python")
    parser.add_argument("--quick", action="store_true", help="the newest version, a part of the tests")
    options = parser.parse_args()
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = {version: python for version in RUN_HALF if version != here and (python := interpreter(version))}
    versions = list(found)[-1:] if options.quick else list(found)
    for version in versions:
        print(f"== Python {version}", flush=True)
        check(version, found[version], quick=options.quick)
    missing = [version for version in RUN_HALF if version not in (here, *found)]
    print(f"checked: {', '.join(versions) or 'none'}; not on this machine: {', '.join(missing) or 'none'}")


if __name__ == "__main__":
    main()
