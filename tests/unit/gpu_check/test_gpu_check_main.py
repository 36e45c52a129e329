# SPDX-License-Identifier: Apache-2.0
"""The command: no GPU is one line and status 69, wrong options are told, time is shared out."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from gpucheck.main import asked_stages, share_of_time
from gpucheck.options import Options, options_from_arguments, options_from_json, options_to_json
from gpucheck.stages import STAGES

from nndeploy.cuda import cuda_unavailable

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "tests" / "gpu" / "gpu_check.py"
NAMES = [stage.name for stage in STAGES]


@pytest.mark.skipif(not cuda_unavailable(), reason="there is a GPU")
def test_without_a_gpu_one_line_says_why_and_the_status_is_69() -> None:
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr == f"gpu-check: {cuda_unavailable()}\n"


@pytest.mark.parametrize("arguments", [["--only", "probe,spead"], ["--tiers", "cuda"], ["--no-such-option"]])
def test_a_wrong_option_is_status_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        options_from_arguments(arguments, NAMES, 4)
    assert caught.value.code == 2


def test_options_come_back_from_json() -> None:
    options = options_from_arguments(["--only", "kernels, speed", "--bundle", "a.nnd", "--match", "x"], NAMES, 16)
    assert options_from_json(options_to_json(options)) == options
    assert (options.only, options.jobs, options.match) == (("kernels", "speed"), 8, "x")
    assert options.bundles == (str(Path("a.nnd").resolve()),)


def test_a_stage_brings_the_one_that_prepares_it() -> None:
    assert [stage.name for stage in asked_stages(["speed"])] == ["networks", "speed"]
    assert [stage.name for stage in asked_stages([])] == NAMES


def test_time_is_shared_in_proportion_and_all_of_it_is_used() -> None:
    left, stages = Options().total_seconds, list(STAGES)
    for number in range(len(stages)):
        share = share_of_time(stages[number:], left)
        assert share > 15
        left -= share
    assert left == pytest.approx(0)


def test_make_calls_the_script_with_the_environment_that_is_there(tmp_path: Path) -> None:
    def planned(*arguments: str) -> str:
        command = [shutil.which("make") or "make", "-n", "-f", str(ROOT / "Makefile"), "gpu-check", *arguments]
        alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # not make's child
        return subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, text=True, check=True).stdout

    for name in ("requirements-demo.lock", "requirements.lock", "pyproject.toml"):
        (tmp_path / name).touch()
    assert planned("ARGS=--only probe").endswith("\n.venv/bin/python tests/gpu/gpu_check.py --only probe\n")
    environment = tmp_path / "build" / "gpu-check" / "bin" / "python"
    environment.parent.mkdir(parents=True)
    environment.touch()
    assert planned() == "build/gpu-check/bin/python tests/gpu/gpu_check.py \n"


def test_every_option_and_stage_is_in_the_documentation() -> None:
    page = (ROOT / "docs" / "internals" / "gpu-check.md").read_text()
    source = (SCRIPT.parent / "gpucheck" / "options.py").read_text()
    options = re.findall(r'add\("(--[a-z-]+)"', source)
    assert len(options) > 10
    assert [name for name in options if f"`{name}" not in page] == []
    assert [name for name in NAMES if f"| {name} |" not in page] == []
