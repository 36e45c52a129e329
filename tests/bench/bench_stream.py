# SPDX-License-Identifier: Apache-2.0
"""What the stream engine itself costs, that its memory stays flat, and that no kill loses or doubles a record.

make bench-stream                     overhead of a record through each form of pipeline, 100,000 records, memory
make bench-stream ARGS="--kills 1000" kill -9 and --resume, so many times, against a run that was never killed
"""

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "unit" / "stream"))
sys.path.append(str(HERE.parent / "flow"))

from streaming import Make, Program, pipeline, plan_of, x_to_y  # noqa: E402

from nndeploy.stream.description import RunnerPlan, StreamPlan, only_the_model  # noqa: E402
from nndeploy.stream.engine import Stream, StreamOptions  # noqa: E402
from nndeploy.stream.items import Item, Outcome  # noqa: E402

NUM_RECORDS = 100_000
GOAL_US = 100.0


class Forget:
    """Takes outcomes and keeps none."""

    def write(self, outcome: Outcome) -> None:
        assert outcome.error is None

    def finish(self) -> None: ...

    def discard(self) -> None: ...


class Quiet(Program):
    """Hands its input through, and notes nothing."""

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {"y": inputs["x"]}


def items(count: int) -> Iterator[Item]:
    x = np.ones(4, np.float32)
    for index in range(count):
        yield Item(index, "made up", "x", lambda: {"x": x})


def step(takes: str, gives: str) -> Make:
    return Make((takes,), (gives,), lambda value: value)


def forms() -> dict[str, StreamPlan]:
    load, post = ([step("x", "x")], 2), ([step("y", "y")], 2)
    beside = (
        pipeline("p", [load], x_to_y()),
        pipeline("q", [([step("x", "z")], 2)], RunnerPlan({"x": "z"}, {"y": "w"})),
    )
    return {
        "basic: a bundle alone": only_the_model(Quiet(dict).manifest),
        "basic: 2 loaders, runner, 2 post": plan_of(pipeline("p", [load], x_to_y(), [post])),
        "copy + sync: 2 different loaders": plan_of(
            pipeline("p", [([step("x", "a")], 1), ([step("x", "b")], 1)], x_to_y(), [post])
        ),
        "copy + sync: 2 pipelines in a level": plan_of(beside, fields=("y", "w")),
        "batches of 8": plan_of(pipeline("p", [load], x_to_y(batch=8, batch_delay_ns=1_000_000))),
    }


def measure() -> int:
    slowest = 0.0
    for name, plan in forms().items():
        programs = {one.name: [Quiet(dict)] for one in plan.pipelines}
        Stream(plan, programs, StreamOptions("pass")).run(items(5000), Forget())
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.perf_counter()
        Stream(plan, programs, StreamOptions("pass")).run(items(NUM_RECORDS), Forget())
        each_us = (time.perf_counter() - began) / NUM_RECORDS * 1e6
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        slowest = max(slowest, each_us)
        print(f"{name:38} {each_us:6.1f} us a record, {NUM_RECORDS:,} records, memory grew by {grown} kB", flush=True)
    print(f"slowest {slowest:.1f} us, goal at most {GOAL_US:.0f} us")
    return int(slowest > GOAL_US)


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
    parser.add_argument("--kills", type=int, default=0)
    kills = parser.parse_args().kills
    return kill(kills) if kills else measure()


if __name__ == "__main__":
    sys.exit(main())
