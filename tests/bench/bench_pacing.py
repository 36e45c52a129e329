# SPDX-License-Identifier: Apache-2.0
"""What pacing does for whoever shares the core, beside nothing, nice 19, SCHED_IDLE, a CPU quota and SIGSTOP.

    python tests/bench/bench_pacing.py [MODEL ...] [--backends native,onnxruntime] [--seconds 6] [--rounds 3]
        [--scenes neighbour,hog,threads] [--json out.json]

A network runs again and again on one core, one thread, in a process of its own. Scenes:

    neighbour  on the same core somebody wakes every 5 to 15 ms and needs 1 ms of processor time (10% of the core);
               pacing is granted twice the time that a run takes with nothing else there
    hog        on the same core somebody works without end; granted is 2.5 times, of which the fair share is half
    threads    two threads on two cores, the neighbour on one of them; beside pacing: one thread

Told by the system's own accounting: the processor clock of the network's threads, read four times a millisecond from
another core, gives its load in windows of 10 ms; the neighbour tells how long each of its milliseconds took, also
where it is alone: that is the floor. The ways are interleaved, and the medians of the rounds told. Outputs are compared
with those of a run without delays, bit by bit. What points cost is told by bench_pace_points.py.
"""

import argparse
import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
from native_engines import machine_line
from real_models import MODELS, real_model

import nndeploy
from nndeploy.options.texts import names_in
from nndeploy.pacing.achieved import achieved
from nndeploy.pacing.goal import PaceGoal

NAMES = ("ppocr_det_mobile_v2", "basic_pitch", "magika_standard_v3_3", "unet_stress_field", "ultraface_rfb320")
CORE, OTHER_CORE = 0, 1
WINDOW_NS = 10_000_000
NEIGHBOUR_NS = 1_000_000
QUOTA = Path("/sys/fs/cgroup/cpu/nndeploy-bench")
QUOTA_US, PERIOD_US = 5_000, 10_000
BASELINE_RUNS = 30
_Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Scene:
    """Who shares the core, what is granted as a multiple of the baseline, and the ways that are compared."""

    other: str
    granted: float
    threads: int
    ways: tuple[str, ...]


SCENES = {
    "neighbour": Scene(
        "neighbour", 2.0, 1, ("nothing", "paced", "nice 19", "SCHED_IDLE", "CPU quota 50%", "SIGSTOP 2 ms of 4")
    ),
    "hog": Scene("hog", 2.5, 1, ("nothing", "paced", "nice 19", "SCHED_IDLE")),
    "threads": Scene("neighbour", 2.0, 2, ("nothing", "paced", "one thread")),
}


def main() -> None:
    """Prints tables for each model."""
    options = _options()
    if options.child:
        _child(*options.child)
        return
    if options.other:
        _other(*options.other)
        return
    if not MODELS.exists() or (os.cpu_count() or 1) < 2:
        sys.exit("this needs ../shared/models and two cores")
    os.sched_setaffinity(0, {OTHER_CORE})
    print(machine_line(), end="\n\n")
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        probe = _built_probe(Path(folder))
        found["alone"] = _neighbour_alone(probe, options.seconds)
        for name in options.models or NAMES:
            bundle = Path(folder) / f"{name}.nnd"
            nndeploy.compile_model(
                real_model(MODELS, name).path,
                bundle,
                nndeploy.CompileOptions(
                    backends=options.backends,
                    pace=True,
                    keep_fallback=False,
                    shapes={key: value.shape for key, value in real_model(MODELS, name).inputs.items()},
                ),
            )
            found[name] = {
                scene: _race(Measured(name, bundle, probe, options.seconds), scene, options.rounds)
                for scene in options.scenes.split(",")
            }
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="pacing beside what else lowers a load")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--backends", type=names_in, default=("native", "onnxruntime"))
    parser.add_argument("--seconds", type=float, default=6.0, help="of each way and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scenes", default=",".join(SCENES))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=6, help=argparse.SUPPRESS)
    parser.add_argument("--other", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


def _built_probe(folder: Path) -> Path:
    library = folder / "probe.so"
    source = Path(__file__).with_name("pacing_probe.c")
    subprocess.run(
        [sys.executable, "-m", "ziglang", "cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True
    )
    return library


def _neighbour_alone(probe: Path, seconds: float) -> list[float]:
    with _started("--other", "neighbour", str(probe), str(seconds)) as neighbour:
        waits: list[float] = json.loads(neighbour.communicate()[0])
    print(f"the neighbour alone on its core: {_waits_text(waits)}\n")
    return waits


def _waits_text(waits: Any) -> str:
    return " / ".join(f"{np.quantile(waits, share):.2f}" for share in (0.5, 0.9, 0.99))


@dataclass(frozen=True)
class Measured:
    """A network that is measured for some seconds in different ways."""

    name: str
    bundle: Path
    probe: Path
    seconds: float

    def baseline(self, threads: int) -> dict[str, Any]:
        """Returns the figures with nothing else there."""
        return self.once("nothing", 0.0, threads, "")

    def once(self, way: str, budget_ms: float, threads: int, other: str) -> dict[str, Any]:
        """Runs the network in one way; returns the figures."""
        granted, count = str(budget_ms if way == "paced" else 0.0), str(1 if way == "one thread" else threads)
        cores = "0" if threads == 1 else "0,1"
        child = (
            "--child",
            self.name,
            str(self.bundle),
            str(self.probe),
            granted,
            str(self.seconds),
            f"{count}:{cores}",
        )
        waits = [0.0]
        with _started(*child) as network:
            assert network.stdin is not None
            assert network.stdout is not None
            if network.stdout.readline() != "ready\n":
                sys.exit(f"{self.name}: the network did not start")
            with _limited(network.pid, way), contextlib.ExitStack() as stack:
                if other:
                    beside = stack.enter_context(_started("--other", other, str(self.probe), str(self.seconds)))
                if way.startswith("SIGSTOP"):
                    stack.enter_context(_stopped_and_continued(network.pid))
                network.stdin.write("go\n")
                network.stdin.flush()
                if network.stdout.readline() != "done\n":
                    sys.exit(f"{self.name}, {way}: the network did not finish")
                result = json.loads(_result_of(self.bundle).read_text(encoding="utf-8"))
                if other:
                    waits = json.loads(beside.communicate()[0]) or waits
        if not result["is_right"]:
            sys.exit(f"{self.name}, {way}: the outputs differ")
        latency = np.array(result["latency_ms"])
        at, used = np.array(result["at"]), np.array(result["used"])
        later = np.arange(at[0], at[-1] - WINDOW_NS, 1_000_000)
        windows = (np.interp(later + WINDOW_NS, at, used) - np.interp(later, at, used)) / WINDOW_NS
        return {
            "p50_ms": float(np.median(latency)), "p99_ms": float(np.quantile(latency, 0.99)),
            "most_ms": float(latency.max()), "runs": len(latency),
            "over": float(np.mean(latency > budget_ms)) if budget_ms else 0.0, "waits": waits,
            "load": float(np.mean(windows)), "window_p50": float(np.median(windows)),
            "window_p99": float(np.quantile(windows, 0.99)), "window_most": float(windows.max()),
            "paced": result["paced"],
        }  # fmt: skip


def _race(measured: Measured, name: str, num_rounds: int) -> dict[str, Any]:
    scene = SCENES[name]
    baseline = measured.baseline(scene.threads)
    budget_ms = scene.granted * baseline["p50_ms"]
    print(
        f"### {measured.name}, {name}: baseline {baseline['p50_ms']:.2f} ms "
        f"(p99 {baseline['p99_ms']:.2f}), budget {budget_ms:.2f} ms\n"
    )
    print(
        "| way | run p50 / p99 ms | over the budget | neighbour p50 / p90 / p99 ms | load "
        "| peak 10 ms: p50 / p99 / most |"
    )
    print("| --- | --- | ---: | --- | ---: | --- |")
    rows: dict[str, list[dict[str, Any]]] = {way: [] for way in scene.ways}
    for _ in range(num_rounds):
        for way, rounds in rows.items():
            rounds.append(measured.once(way, budget_ms, scene.threads, scene.other))
    for way, rounds in rows.items():
        row = {
            key: float(np.median([one[key] for one in rounds])) for key in rounds[0] if key not in ("waits", "paced")
        }
        waits = [wait for one in rounds for wait in one["waits"]]
        over = sum(one["over"] * one["runs"] for one in rounds) / sum(one["runs"] for one in rounds)
        print(
            f"| {way} | {row['p50_ms']:.2f} / {row['p99_ms']:.2f} | {over:.1%} "
            f"| {_waits_text(waits) if scene.other == 'neighbour' else '-'} | {row['load']:.0%} "
            f"| {row['window_p50']:.0%} / {row['window_p99']:.0%} / {row['window_most']:.0%} |",
            flush=True,
        )
    paced = [one["paced"] for one in rows["paced"]]
    of = {key: float(np.median([one[key] for one in paced])) for key in paced[0]}
    print(
        f"\npaced: {of['sleeps_a_run']:.1f} sleeps a run, which took {of['waiting']:.1%} of the processor time; "
        f"delays wrong by {of['p50_delay_error_us']:.0f} us (p50), {of['p99_delay_error_us']:.0f} us (p99); "
        f"longest run of the thread {of['p99_longest_run_ms']:.2f} ms (p99 of the runs)\n",
        flush=True,
    )
    return {"calm": baseline, "cap_ms": budget_ms, "rounds": rows}


@contextlib.contextmanager
def _started(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, __file__, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


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
        (QUOTA / "tasks").write_text(str(pid))  # the thread that computes, not the one that will watch it
    try:
        yield
    finally:
        if way.startswith("CPU quota"):
            with contextlib.suppress(OSError):
                (QUOTA.parent / "tasks").write_text(str(pid))
                QUOTA.rmdir()


@contextlib.contextmanager
def _stopped_and_continued(pid: int) -> Iterator[None]:
    stop = threading.Event()

    def every_four_milliseconds() -> None:
        with contextlib.suppress(ProcessLookupError):
            while not stop.is_set():
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.002)
                os.kill(pid, signal.SIGCONT)
                time.sleep(0.002)
            os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=every_four_milliseconds)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _child(name: str, bundle: str, probe: str, budget_ms: str, seconds: str, where: str) -> None:
    """The network: says "ready", waits for "go", runs, says what it did."""
    num_threads, cores = where.split(":")
    os.sched_setaffinity(0, set(map(int, cores.split(","))))
    inputs = real_model(MODELS, name).inputs
    goal = PaceGoal(round(float(budget_ms) * 1e6)) if float(budget_ms) else None
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=int(num_threads))) as program:
        want = program.run(inputs)
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=int(num_threads)), pace=goal) as program:
        for _ in range(BASELINE_RUNS):
            program.run(inputs)
        if program.pacer is not None:
            program.pacer.forget()
        threads = [int(one.name) for one in Path("/proc/self/task").iterdir()]
        print("ready", flush=True)
        sys.stdin.readline()
        end = time.monotonic() + float(seconds)
        watcher = _Watcher(probe, threads, end)
        latency = []
        while time.monotonic() < end:
            begin = time.perf_counter()
            got = program.run(inputs)
            latency.append((time.perf_counter() - begin) * 1e3)
        is_right = all(np.array_equal(got[key], want[key]) for key in want)
        found = achieved(program.pacer.records) if program.pacer is not None else None
    at, used = watcher.readings()
    figures = {} if found is None else {key: getattr(found, key) for key in found.__dataclass_fields__}
    result = {"latency_ms": latency, "is_right": is_right, "paced": figures, "at": at.tolist(), "used": used.tolist()}
    _result_of(Path(bundle)).write_text(json.dumps(result), encoding="utf-8")
    print("done", flush=True)


def _result_of(bundle: Path) -> Path:
    return bundle.with_suffix(".json")


class _Watcher:
    """Reads clocks on another core until `end`."""

    def __init__(self, probe: str, threads: list[int], end: float) -> None:
        self._library = ctypes.CDLL(probe)
        self._library.watch.restype = ctypes.c_int64
        self._at, self._used = np.zeros((2, 1_000_000), np.int64)
        self._count = 0
        self._thread = threading.Thread(target=self._watch, args=(np.array(threads, np.int32), round(end * 1e9)))
        self._thread.start()

    def _watch(self, threads: "_Array", end: int) -> None:
        os.sched_setaffinity(0, {OTHER_CORE})
        self._count = self._library.watch(
            ctypes.c_void_p(threads.ctypes.data), ctypes.c_int64(len(threads)), ctypes.c_int64(end),
            ctypes.c_void_p(self._at.ctypes.data), ctypes.c_void_p(self._used.ctypes.data),
            ctypes.c_int64(self._at.size),
        )  # fmt: skip

    def readings(self) -> tuple["_Array", "_Array"]:
        """Waits for the end; returns when what was read."""
        self._thread.join()
        return self._at[: self._count], self._used[: self._count]


def _other(kind: str, probe: str, seconds: str) -> None:
    """Who shares the core; the neighbour prints what its milliseconds took, in milliseconds."""
    os.sched_setaffinity(0, {CORE})
    library, waits = ctypes.CDLL(probe), np.zeros(100_000, np.int64)
    library.neighbour.restype = ctypes.c_int64
    end = ctypes.c_int64(time.monotonic_ns() + round(float(seconds) * 1e9))
    count = 0
    if kind == "hog":
        library.hog(end)
    else:
        count = library.neighbour(
            end, ctypes.c_int64(NEIGHBOUR_NS), ctypes.c_void_p(waits.ctypes.data), ctypes.c_int64(waits.size)
        )
    print(json.dumps((waits[:count] / 1e6).tolist()), flush=True)


if __name__ == "__main__":
    main()
