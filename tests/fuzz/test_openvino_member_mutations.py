# SPDX-License-Identifier: Apache-2.0
"""Members for OpenVINO that say something else, hashes made right: refused by one line, or of the right shapes.

In forked children of a process of its own, for what is believed wrongly ends it; more: `make fuzz-openvino-members`.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

MUTANTS = Path(__file__).with_name("fuzz_openvino_members.py")


@pytest.mark.skipif(find_spec("openvino") is None, reason="openvino is not installed")
@pytest.mark.slow
def test_mutants_with_right_hashes_are_refused_or_of_the_right_shape(tmp_path: Path) -> None:
    command = [sys.executable, str(MUTANTS), "--small", "--count", "112", "--seeds", str(tmp_path / "seeds.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]} {done.stderr[-1000:]}"
    assert "'ran': " in done.stdout
    assert "'refused 65': " in done.stdout
