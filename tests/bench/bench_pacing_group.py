# SPDX-License-Identifier: Apache-2.0
"""What several processes take of the processor that share one limit, beside each having it by itself.

    python tests/bench/bench_pacing_group.py [MODEL ...] [--members 3] [--limit 60%] [--seconds 6] [--kill]

Each member is a process that runs the network again and again on one thread. Told by the clock of each process's
processor time, from when all have learnt how long their operators take until they end: what all took together, as a
share of one processor, and what the busiest second had. With `--kill` one member is killed half way.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
from native_engines import machine_line
from real_models import MODELS, real_model

import nndeploy
from nndeploy.options.texts import share_in
from nndeploy.pacing.goal import PaceGoal

NAMES = ("ppocr_det_mobile_v2", "magika_standard_v3_3")
WINDOW_NS = 1_000_000_000


def main() -> None:
    """Prints a table of each model."""
    options = _options()
    if options.child:
        _child(*options.child)
        return
    if not MODELS.exists():
        sys.exit("this needs ../shared/models")
    print(machine_line(), end="\n\n")
    print("| model | who | took, of one processor | busiest second | runs | p50 ms |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models or NAMES:
            bundle = Path(folder) / f"{name}.nnd"
            shapes = {key: value.shape for key, value in real_model(MODELS, name).inputs.items()}
            nndeploy.compile_model(
                real_model(MODELS, name).path, bundle,
                nndeploy.CompileOptions(pace=True, keep_fallback=False, shapes=shapes),
            )  # fmt: skip
            for who in ("each by itself", "a group"):
                group = f"bench-{os.getpid()}" if who == "a group" else ""
                _row(name, who, _raced(name, bundle, group, options))
    Path(f"/dev/shm/nndeploy-pace-{os.geteuid()}-bench-{os.getpid()}").unlink(missing_ok=True)  # noqa: S108


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="processes that share a limit")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--limit", type=share_in("--limit"), default=0.6)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    return parser.parse_args()


def _raced(name: str, bundle: Path, group: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Returns what each member that was not killed says."""
    arguments = ["--child", name, str(bundle), group, str(options.limit), str(options.seconds)]
    members = [
        subprocess.Popen(
            [sys.executable, __file__, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(options.members)
    ]
    for member in members:
        assert member.stdout is not None
        if member.stdout.readline() != "ready\n":
            sys.exit(f"{name}: a member did not start")
    for member in members:
        assert member.stdin is not None
        member.stdin.write("go\n")
        member.stdin.flush()
    if options.kill:
        time.sleep(options.seconds / 2)
        members[-1].kill()
    said = [member.communicate()[0] for member in members]
    return [json.loads(text) for text in said if text]


def _row(name: str, who: str, members: list[dict[str, Any]]) -> None:
    begin, end = min(one["at"][0] for one in members), max(one["at"][-1] for one in members)
    seconds = np.arange(begin, max(begin + 1, end - WINDOW_NS), WINDOW_NS / 10)
    busy = sum(
        np.interp(seconds + WINDOW_NS, one["at"], one["used"]) - np.interp(seconds, one["at"], one["used"])
        for one in members
    )
    took = sum(one["used"][-1] - one["used"][0] for one in members) / (end - begin)
    latency = np.concatenate([one["latency_ms"] for one in members])
    print(
        f"| {name} | {who} | {took:.1%} | {np.max(busy) / WINDOW_NS:.1%} | {len(latency)} | {np.median(latency):.1f} |",
        flush=True,
    )


def _child(name: str, bundle: str, group: str, limit: str, seconds: str) -> None:
    inputs = real_model(MODELS, name).inputs
    goal = PaceGoal(cpu_limit=float(limit), group=group)
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=1), pace=goal) as program:
        print("ready", flush=True)
        sys.stdin.readline()
        at, used, latency_ms = [time.monotonic_ns()], [time.process_time_ns()], []
        while at[-1] < at[0] + float(seconds) * 1e9:
            program.run(inputs)
            latency_ms.append((time.monotonic_ns() - at[-1]) / 1e6)
            at.append(time.monotonic_ns())
            used.append(time.process_time_ns())
    print(json.dumps({"at": at, "used": used, "latency_ms": latency_ms}), flush=True)


if __name__ == "__main__":
    main()
