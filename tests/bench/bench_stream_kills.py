# SPDX-License-Identifier: Apache-2.0
"""`run --resume` under kill -9 at random moments: the same bytes as a run that was never killed.

    python tests/bench/bench_stream_kills.py [--kills 1000]

A run of 30,000 records is killed 0.3 to 0.9 s after its start and started again until it ends; then the next one.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "flow"))


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
        (folder / "x.jsonl").write_text("".join(f'{{"image": [[{i}, 2, 3]]}}\n' for i in range(30_000)))
        command = [sys.executable, "-c", code, "run", "m.nnd", "--threads", "1", "-i", "x.jsonl", "-o"]
        quiet: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([*command, "want.jsonl"], check=True, **quiet)
        want, runs = (folder / "want.jsonl").read_bytes(), 0
        while killed < count:
            process = subprocess.Popen([*command, "y.jsonl", "--resume"], **quiet)
            try:
                assert process.wait(0.3 + 0.6 * dice.random()) == 0
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                killed += 1
                continue
            runs += 1
            assert (folder / "y.jsonl").read_bytes() == want
            assert sorted(path.name for path in folder.iterdir()) == ["m.nnd", "want.jsonl", "x.jsonl", "y.jsonl"]
            (folder / "y.jsonl").unlink()
        print(f"{killed} kills, {runs} runs ended in between, each with the same bytes as one that was never killed")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    return kill(parser.parse_args().kills)


if __name__ == "__main__":
    sys.exit(main())
