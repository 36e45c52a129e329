# SPDX-License-Identifier: Apache-2.0
"""What pacing does for whoever shares the core, beside nothing, nice 19, SCHED_IDLE, a CPU quota and SIGSTOP.

    python tests/bench/bench_pacing.py [MODEL ...] [--backends native,onnxruntime] [--seconds 6] [--rounds 3]
        [--json out.json]

A network runs again and again on one core, one thread, in a process of its own; on the same core a neighbour wakes
every 5 to 15 ms and needs 1 ms of processor time (10% of the core). Pacing is granted twice the time that a run takes
with nothing else there. Told by the system's own accounting, from another core: the network's processor clock, read
every half millisecond, gives its load in windows of 10 ms; the neighbour tells how long each of its milliseconds took.
The ways are interleaved, and the medians of the rounds told. Outputs are compared with those of a run without delays,
bit by bit. Before that: what points cost whose delays are all zero, against a program without points, interleaved.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
from native_engines import machine_line
from real_models import MODELS, real_model

import nndeploy
from nndeploy.pacing.pacer import PaceGoal

NAMES = ("ppocr_det_mobile_v2", "basic_pitch", "magika_standard_v3_3", "unet_stress_field", "ultraface_rfb320")
CORE = 0
WINDOW_S = 0.01
LONGEST_READING_S = 20e-6
NEIGHBOUR_MS = 1.0
WAYS = ("nothing", "paced", "nice 19", "SCHED_IDLE", "CPU quota 50%", "SIGSTOP 2 ms of 4")
QUOTA = Path("/sys/fs/cgroup/cpu/nndeploy-bench")
QUOTA_US, PERIOD_US = 5_000, 10_000
CALM_RUNS = 30
NO_SLEEP, POINT_RUNS = 0.98, 200


def main() -> None:
    """Prints a table for each model."""
    options = _options()
    if options.child:
        _child(*options.child)
        return
    if options.neighbour:
        _neighbour(float(options.neighbour))
        return
    if not MODELS.exists() or (os.cpu_count() or 1) < 2:
        sys.exit("this needs ../shared/models and two cores")
    os.sched_setaffinity(0, {1})
    print(machine_line(), end="\n\n")
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models or NAMES:
            bundle = Path(folder) / f"{name}.nnd"
            nndeploy.compile_model(
                real_model(MODELS, name).path, bundle, backends=options.backends, pace=True, keep_fallback=False,
                shapes={key: value.shape for key, value in real_model(MODELS, name).inputs.items()},
            )  # fmt: skip
            found[name] = _race(name, bundle, options)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="pacing beside what else lowers a load")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--backends", default="native,onnxruntime")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each way and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--neighbour", help=argparse.SUPPRESS)
    return parser.parse_args()


def _race(name: str, bundle: Path, options: argparse.Namespace) -> dict[str, Any]:
    calm = _measured(name, bundle, "nothing", 0.0, 2.0, with_neighbour=False)
    cap_ms = 2 * calm["p50_ms"]
    print(f"### {name}: {calm['p50_ms']:.2f} ms calm (p99 {calm['p99_ms']:.2f}), cap {cap_ms:.2f} ms\n")
    _tell_points(name, bundle)
    print(
        "| way | run p50 / p99 ms | over the cap | neighbour p50 / p90 / p99 ms | load | peak 10 ms: p50 / p99 / most |"
    )
    print("| --- | --- | ---: | --- | ---: | --- |")
    rows: dict[str, list[dict[str, float]]] = {way: [] for way in options.ways.split(",")}
    for _ in range(options.rounds):
        for way, rounds in rows.items():
            rounds.append(_measured(name, bundle, way, cap_ms, options.seconds, with_neighbour=True))
    medians = {
        way: {key: float(np.median([one[key] for one in rounds])) for key in rounds[0]} for way, rounds in rows.items()
    }
    for way, row in medians.items():
        print(
            f"| {way} | {row['p50_ms']:.2f} / {row['p99_ms']:.2f} | {row['over']:.1%} "
            f"| {row['neighbour_p50']:.2f} / {row['neighbour_p90']:.2f} / {row['neighbour_p99']:.2f} "
            f"| {row['load']:.0%} "
            f"| {row['window_p50']:.0%} / {row['window_p99']:.0%} / {row['window_most']:.0%} |",
            flush=True,
        )
    paced = medians.get("paced")
    if paced:
        print(
            f"\npaced: {paced['sleeps']:.1f} sleeps a run, late p50 {paced['late_us']:.0f} us, "
            f"p99 {paced['late_p99_us']:.0f} us; longest run of the thread p99 {paced['longest_p99_ms']:.2f} ms\n"
        )
    return {"calm": calm, "cap_ms": cap_ms, "rounds": rows, "medians": medians}


def _tell_points(name: str, bundle: Path) -> None:
    """Prints what points cost; with 2% granted, all of which is kept in reserve, no run ever sleeps."""
    inputs, ms = real_model(MODELS, name).inputs, {"without": list[float](), "with": list[float]()}
    with (
        nndeploy.load_bundle(bundle, threads=1) as without,
        nndeploy.load_bundle(bundle, threads=1, pace=PaceGoal(cpu_limit=NO_SLEEP)) as with_points,
    ):
        assert with_points.pacer is not None
        programs = {"without": without, "with": with_points}
        for _ in range(POINT_RUNS):
            for key, program in programs.items():
                begin = time.thread_time()
                program.run(inputs)
                ms[key].append((time.thread_time() - begin) * 1e3)
        count, sleeps = len(with_points.pacer.points), sum(one.sleeps for one in with_points.pacer.records)
    plain, pointed = (float(np.median(ms[key])) for key in ("without", "with"))
    print(
        f"{count} points with no delay: {pointed:.3f} ms for {plain:.3f}, {pointed / plain - 1:+.2%}, "
        f"{(pointed - plain) * 1e6 / count:.0f} ns a point; {sleeps} sleeps\n"
    )


def _measured(
    name: str, bundle: Path, way: str, cap_ms: float, seconds: float, *, with_neighbour: bool
) -> dict[str, float]:
    """Runs a network for some seconds in one way; returns the figures."""
    granted = str(cap_ms if way == "paced" else 0.0)
    arguments = [sys.executable, __file__, "--child", name, str(bundle), granted, str(seconds)]
    network = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert network.stdin is not None
    assert network.stdout is not None
    neighbour = None
    try:
        if network.stdout.readline() != "ready\n":
            sys.exit(f"{name}: the network did not start")
        with _limited(network.pid, way):
            if with_neighbour:
                neighbour = subprocess.Popen(
                    [sys.executable, __file__, "--neighbour", str(seconds)], stdout=subprocess.PIPE, text=True
                )
            stop = threading.Event()
            stopping = threading.Thread(target=_stopped_and_continued, args=(network.pid, stop))
            network.stdin.write("go\n")
            network.stdin.flush()
            if way.startswith("SIGSTOP"):
                stopping.start()
            windows = _windows(network.pid, seconds * 0.9)
            stop.set()
            if way.startswith("SIGSTOP"):
                stopping.join()
            result = json.loads(network.stdout.readline())
            waits = json.loads(neighbour.communicate()[0]) if neighbour is not None else [0.0]
    finally:
        network.kill()
        network.wait()
        if neighbour is not None:
            neighbour.kill()
            neighbour.wait()
    if not result["is_right"]:
        sys.exit(f"{name}, {way}: the outputs differ")
    latency = np.array(result["latency_ms"])
    return {
        "p50_ms": float(np.median(latency)), "p99_ms": float(np.quantile(latency, 0.99)),
        "over": float(np.mean(latency > cap_ms)) if cap_ms else 0.0,
        "neighbour_p50": float(np.median(waits)), "neighbour_p90": float(np.quantile(waits, 0.9)),
        "neighbour_p99": float(np.quantile(waits, 0.99)),
        "load": float(np.mean(windows)), "window_p50": float(np.median(windows)),
        "window_p99": float(np.quantile(windows, 0.99)), "window_most": float(windows.max()),
        **result["paced"],
    }  # fmt: skip


def _windows(pid: int, seconds: float) -> "np.ndarray[Any, Any]":
    """Returns the process's load in each window of 10 ms that begins at one of the readings of its clock."""
    clock, marks = ~pid << 3 | 2, []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before, used = time.monotonic(), time.clock_gettime(clock)
        after = time.monotonic()
        if after - before < LONGEST_READING_S:  # else this process was held up, nobody knows when the clock was read
            marks.append((0.5 * (before + after), used))
        time.sleep(0.0005)
    at, used = np.array(marks).T
    later = np.arange(at[0], at[-1] - WINDOW_S, 0.001)
    return (np.interp(later + WINDOW_S, at, used) - np.interp(later, at, used)) / WINDOW_S


@contextlib.contextmanager
def _limited(pid: int, way: str) -> Iterator[None]:
    """What a user has today, applied to a process that is there already."""
    if way == "nice 19":
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(thread.name), 19)
    elif way == "SCHED_IDLE":
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setscheduler(int(thread.name), os.SCHED_IDLE, os.sched_param(0))
    elif way.startswith("CPU quota"):
        QUOTA.mkdir(exist_ok=True)
        (QUOTA / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (QUOTA / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
        (QUOTA / "cgroup.procs").write_text(str(pid))
    try:
        yield
    finally:
        if way.startswith("CPU quota"):
            with contextlib.suppress(OSError):
                (QUOTA.parent / "cgroup.procs").write_text(str(pid))
                QUOTA.rmdir()


def _stopped_and_continued(pid: int, stop: threading.Event) -> None:
    with contextlib.suppress(ProcessLookupError):
        while not stop.is_set():
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.002)
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.002)
        os.kill(pid, signal.SIGCONT)


def _child(name: str, bundle: str, cap_ms: str, seconds: str) -> None:
    """The network: says "ready", waits for "go", runs, says what it did."""
    os.sched_setaffinity(0, {CORE})
    inputs, goal = real_model(MODELS, name).inputs, PaceGoal(round(float(cap_ms) * 1e6)) if float(cap_ms) else None
    with nndeploy.load_bundle(bundle, threads=1) as program:
        want = program.run(inputs)
    latency, is_right = [], True
    with nndeploy.load_bundle(bundle, threads=1, pace=goal) as program:
        for _ in range(CALM_RUNS):
            program.run(inputs)
        if program.pacer is not None:
            program.pacer.records.clear()
        print("ready", flush=True)
        sys.stdin.readline()
        end = time.monotonic() + float(seconds)
        while time.monotonic() < end:
            begin = time.perf_counter()
            got = program.run(inputs)
            latency.append((time.perf_counter() - begin) * 1e3)
        is_right = all(np.array_equal(got[key], want[key]) for key in want)
        records = list(program.pacer.records) if program.pacer is not None else []
    paced = {
        "sleeps": float(np.mean([one.sleeps for one in records])),
        "late_us": float(np.median([one.late / max(1, one.sleeps) for one in records])) / 1e3,
        "late_p99_us": float(np.quantile([one.most_late for one in records], 0.99)) / 1e3,
        "longest_p99_ms": float(np.quantile([one.longest_run for one in records], 0.99)) / 1e6,
    } if records else {}  # fmt: skip
    print(json.dumps({"latency_ms": latency, "is_right": is_right, "paced": paced}), flush=True)


def _neighbour(seconds: float) -> None:
    """Wakes now and then, works for a millisecond of processor time, and tells how long each took."""
    os.sched_setaffinity(0, {CORE})
    random, waits = np.random.default_rng(0), []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        wake = time.monotonic() + random.uniform(0.005, 0.015)
        time.sleep(wake - time.monotonic())
        until = time.thread_time() + NEIGHBOUR_MS / 1e3
        while time.thread_time() < until:
            pass
        waits.append((time.monotonic() - wake) * 1e3)
    print(json.dumps(waits), flush=True)


if __name__ == "__main__":
    main()
