# SPDX-License-Identifier: Apache-2.0
"""`run --resume` under kill -9 at random moments: the same bytes as a run that was never killed.

    python tests/bench/bench_stream_kills.py [--kills 1000]

A run of 5,000 records is killed at a random moment, from 0.3 of the time that a whole one takes (by then Python has
started) to all of it, and started again until it ends; then the next one. One writes JSON lines, the next one JSON
lines, csv and statistics, and so on in turn.
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

SEVERAL = """
[source]
kind = "json-lines"
[[level]]
[[level.pipeline]]
name = "double"
[[sink]]
kind = "json-lines"
[[sink]]
kind = "csv"
[[sink]]
kind = "statistics"
"""
CASES = {"y.jsonl": [], "y": ["--pipeline", "p.toml"]}


def taken(folder: Path, before: set[Path]) -> dict[str, bytes]:
    """Returns the files that were not there before, and removes them."""
    found = {}
    for path in set(folder.iterdir()) - before:
        for file in path.rglob("*") if path.is_dir() else [path]:
            found[str(file.relative_to(folder))] = file.read_bytes()
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return found


def kill(count: int) -> int:
    from tests_flow_bundles import write_double

    dice, killed = random.Random(20261120), 0  # noqa: S311 - no secret
    code = (
        "from nndeploy.stream import resume; resume.CHECKPOINT_SECONDS = 0.05;"
        "from nndeploy.cli.main import main; main()"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_double(folder / "m.nnd")
        (folder / "x.jsonl").write_text("".join(f'{{"image": [[{i}, 2, 3]]}}\n' for i in range(5_000)))
        (folder / "p.toml").write_text(SEVERAL)
        command = [sys.executable, "-c", code, "run", "m.nnd", "--threads", "1", "-i", "x.jsonl"]
        quiet: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        before, runs, want, seconds = set(folder.iterdir()), 0, {}, {}
        for output, options in CASES.items():
            began = time.perf_counter()
            subprocess.run([*command, *options, "-o", output], check=True, **quiet)
            seconds[output], want[output] = time.perf_counter() - began, taken(folder, before)
        while killed < count:
            output = list(CASES)[runs % len(CASES)]
            process = subprocess.Popen([*command, *CASES[output], "-o", output, "--resume"], **quiet)
            try:
                assert process.wait(seconds[output] * dice.uniform(0.3, 1)) == 0
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                killed += 1
                continue
            runs += 1
            assert taken(folder, before) == want[output]
        print(f"{killed} kills, {runs} runs ended in between, each with the same bytes as one that was never killed")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    return kill(parser.parse_args().kills)


if __name__ == "__main__":
    sys.exit(main())
