# SPDX-License-Identifier: Apache-2.0
"""What guards the tree works itself: hooks run files that exist, a serial test runs alone."""

import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent

RECORDS = """
import time
from pathlib import Path
import pytest

def record(name):
    start = time.monotonic()
    time.sleep(0.1)
    Path(__file__).with_name(name + ".times").write_text(f"{start} {time.monotonic()}")

@pytest.mark.parametrize("number", range(6))
def test_beside(number):
    record(f"beside{number}")

@pytest.mark.serial
@pytest.mark.parametrize("number", range(2))
def test_alone(number):
    record(f"alone{number}")
"""


def test_hooks_run_files_that_are_there() -> None:
    entries = re.findall(r"entry: (.*)", (ROOT / ".pre-commit-config.yaml").read_text())
    named = [word for entry in entries for word in entry.split() if word.startswith("tests/")]
    assert named
    assert [name for name in named if not (ROOT / name.partition("::")[0]).is_file()] == []


def test_a_serial_test_runs_alone(tmp_path: Path) -> None:
    (tmp_path / "test_times.py").write_text(RECORDS)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["serial_tests"]\n')
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = serial: alone\n")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(TESTS), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    times = {file.stem: tuple(map(float, file.read_text().split())) for file in tmp_path.glob("*.times")}
    assert len(times) == 8
    for alone in ("alone0", "alone1"):
        start, end = times.pop(alone)
        assert [name for name, (first, last) in times.items() if first < end and start < last] == []
