# SPDX-License-Identifier: Apache-2.0
"""Every bench can be started: a figure in the docs counts only if its command makes it."""

import subprocess
import sys
from pathlib import Path

BENCHES = Path(__file__).resolve().parents[1] / "bench"

ASK_EACH_FOR_HELP = """
import runpy, sys
from pathlib import Path
for path in sorted(Path(sys.argv[1]).glob("bench_*.py")):
    sys.argv = [str(path), "--help"]
    sys.path[0] = str(path.parent)
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as err:
        assert not err.code, f"{path.name}: {err.code}"
    else:
        raise AssertionError(f"{path.name} says nothing when it is asked for help")
"""


def test_every_bench_says_what_it_takes() -> None:
    command = [sys.executable, "-c", ASK_EACH_FOR_HELP, str(BENCHES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("usage: ") == len(list(BENCHES.glob("bench_*.py")))
