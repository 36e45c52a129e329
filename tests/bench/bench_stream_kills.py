# SPDX-License-Identifier: Apache-2.0
"""`run --resume` under kill -9 at random moments: the same bytes as a run that was never killed.

    python tests/bench/bench_stream_kills.py [--kills 1000]

A run of 5,000 records is killed at a random moment, from 0.3 of the time that a whole one takes (by then Python has
started) to all of it, and started again until it ends; then the next one. One writes JSON lines, the next one JSON
lines, csv, statistics and arrays, and so on in turn.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "flow"))

CASES = {"y.jsonl": [], "y": ["--pipeline", "p.toml"]}


def kill(count: int) -> int:
    from resumed_runs import COMMAND, SEVERAL, content, lines
    from tests_flow_bundles import write_double

    dice, killed = random.Random(20261120), 0  # noqa: S311 - no secret
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        out = folder / "out"
        write_double(folder / "m.nnd")
        (folder / "x.jsonl").write_text(lines(5_000))
        (folder / "p.toml").write_text(SEVERAL)
        quiet: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

        def command(case: str) -> list[str]:
            return [*COMMAND, *CASES[case], "-i", "x.jsonl", "-o", f"out/{case}"]

        def taken() -> dict[str, bytes]:
            found = content(out)
            shutil.rmtree(out)
            return found

        runs, want, seconds = 0, {}, {}
        for case in CASES:
            began = time.perf_counter()
            subprocess.run(command(case), check=True, **quiet)
            seconds[case], want[case] = time.perf_counter() - began, taken()
        while killed < count:
            case = list(CASES)[runs % len(CASES)]
            process = subprocess.Popen([*command(case), "--resume"], **quiet)
            try:
                assert process.wait(seconds[case] * dice.uniform(0.3, 1)) == 0
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                killed += 1
                continue
            runs += 1
            assert taken() == want[case]
        print(f"{killed} kills, {runs} runs ended in between, each with the same bytes as one that was never killed")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    return kill(parser.parse_args().kills)


if __name__ == "__main__":
    sys.exit(main())
