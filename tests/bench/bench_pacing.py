# SPDX-License-Identifier: Apache-2.0
"""What pacing does for whoever shares the core, beside nice 19, SCHED_IDLE, a CPU quota and SIGSTOP; and for pipelines.

A network runs again and again on one core, one thread, in a process of its own:

    neighbour   on the same core somebody wakes every 5 to 15 ms and needs 1 ms of processor time (10% of the core);
                the budget is twice the time that a run takes with nothing else there
    hog         on the same core somebody works without end; the budget is 2.5 times, of which the fair share is half
    threads     two threads on two cores, the neighbour on one of them; beside pacing: one thread
    pipelines   files through faces and text, each budget a multiple of the baseline of an item: latency of the items,
                load of the process
    stream      photos through ppocr_det, all of the process: processor time in windows of 10 ms beside the same work
                spread evenly, at --granted times the calm time of an item, and which part of the work (reading, each
                step, the network, writing) windows above 80% of a core consist of (paced_stream.py)
    branches    two branches of convolutions that do not wait for each other, each on a backend or on a pool of cores of
                its own, by each policy: latency of the runs, whether the branches worked at the same time
    starts      `nndeploy run --pace` beside as many busy processes as --load says: how many start, granted twice what
                a run takes with nothing else there (which must be so when it begins)

The processor clock of the network's threads, read four times a millisecond from another core, gives its load in
windows of 10 ms; the neighbour measures how long each of its milliseconds took. The ways take turns; medians of the
rounds. Outputs are compared with those of runs without delays, bit by bit. Needs two cores and ../shared/models.
"""

import argparse
import contextlib
import ctypes
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
from bench_stream import CASES
from model_sets import compiled, paced_bundle, real_model
from paced_branches import race_branches
from paced_stream import PHOTOS, SETTLING, stream
from report import MODELS, Report, bench_parser, words

import nndeploy
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.run.achieved import achieved
from nndeploy.pacing.run.paced_program import PacedProgram
from nndeploy.pacing.stream.paced_stream import BASELINE_ITEMS

NAMES = "ppocr_det_mobile_v2,basic_pitch,magika_standard_v3_3,unet_stress_field,ultraface_rfb320"
CORE, OTHER_CORE = 0, 1
WINDOW_NS, NEIGHBOUR_NS = 10_000_000, 1_000_000
QUOTA, QUOTA_US, PERIOD_US = Path("/sys/fs/cgroup/cpu/nndeploy-bench"), 5_000, 10_000
BASELINE_RUNS = 30
WIDE_MS = 2000.0
"""A budget that no item comes near to, to learn the baseline."""
NOTHING, PACED, ONE_THREAD = "nothing", "paced", "one thread"
LIMITS = ("nice 19", "SCHED_IDLE")
Figures = dict[str, Any]


@dataclass(frozen=True)
class Scene:
    """Who shares the core, the budget as a multiple of the baseline, and the ways that are compared."""

    other: str
    granted: float
    threads: int
    ways: tuple[str, ...]


SCENES = {
    "neighbour": Scene("neighbour", 2.0, 1, (NOTHING, PACED, *LIMITS, "CPU quota 50%", "SIGSTOP 2 ms of 4")),
    "hog": Scene("hog", 2.5, 1, (NOTHING, PACED, *LIMITS)),
    "threads": Scene("neighbour", 2.0, 2, (NOTHING, PACED, ONE_THREAD)),
}


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        children: dict[str, Callable[..., None]] = {
            "network": _network, "other": _other, "items": _items, "stream": stream, "busy": _busy,
        }  # fmt: skip
        children[sys.argv[2]](*json.loads(sys.argv[3]))
        return
    parser = bench_parser(__doc__)
    others = ("pipelines", "stream", "branches", "starts")
    parser.add_argument("scenes", nargs="*", default=[*SCENES, *others], help=f"of: {' '.join((*SCENES, *others))}")
    parser.add_argument("--only", type=words, default=NAMES, help="models by name")
    parser.add_argument("--backends", type=words, default="native,onnxruntime")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each way and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=100, help="of `branches`, in each round")
    parser.add_argument(
        "--budgets", type=words, default="2,4", help="of `pipelines`, `branches`: multiples of the baseline"
    )
    parser.add_argument("--items", type=int, default=120, help="of `pipelines`")
    parser.add_argument("--photos", type=words, default=",".join(PHOTOS), help="of `stream`, each by itself")
    parser.add_argument("--granted", type=float, default=2.0, help="of `stream`: multiple of the calm time")
    parser.add_argument("--starts", type=int, default=200, help="of `starts`")
    parser.add_argument("--load", type=int, default=20, help="of `starts`")
    options = parser.parse_args()
    if not MODELS.exists() or (os.cpu_count() or 1) < 2:
        parser.error("this needs ../shared/models and two cores")
    with Report(options, "pacing.md", "Pacing") as report, tempfile.TemporaryDirectory() as folder:
        scenes = [name for name in options.scenes if name in SCENES]
        if scenes:
            _scenes(report, scenes, Path(folder), options)
        for name in ("faces", "text") if "pipelines" in options.scenes else ():
            _pipeline(report, name, folder, options)
        if "stream" in options.scenes:
            _stream(report, Path(folder), options)
        if "branches" in options.scenes:
            race_branches(report, Path(folder), options)
        if "starts" in options.scenes:
            _starts(report, Path(folder), options)


@contextlib.contextmanager
def _child(kind: str, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, __file__, "--child", kind, json.dumps([str(one) for one in arguments])]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


# A network beside somebody


def _scenes(report: Report, scenes: list[str], folder: Path, options: argparse.Namespace) -> None:
    probe = _probe(folder)
    os.sched_setaffinity(0, {OTHER_CORE})
    with _child("other", "neighbour", probe, options.seconds) as neighbour:
        waits = json.loads(neighbour.communicate()[0])
    report.text(f"The neighbour alone on its core, p50 / p90 / p99 ms: {_waits_text(waits)}.")
    for name in options.only:
        bundle = paced_bundle(real_model(MODELS, name), folder, options.backends)
        for scene in scenes:
            _race(report, Measured(name, bundle, probe, options.seconds), scene, options.rounds)


def _probe(folder: Path) -> Path:
    probe, source = folder / "probe.so", Path(__file__).with_name("pacing_probe.c")
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-O2", "-shared", "-fPIC", "-o", probe, source], check=True)
    return probe


def _waits_text(waits: Any) -> str:
    return " / ".join(f"{np.quantile(waits, share):.2f}" for share in (0.5, 0.9, 0.99))


@dataclass(frozen=True)
class Measured:
    name: str
    bundle: Path
    probe: Path
    seconds: float

    def once(self, way: str, budget_ms: float, threads: int, other: str) -> Figures:
        """Runs the network in one way; returns the figures."""
        granted, count = budget_ms if way == PACED else 0.0, 1 if way == ONE_THREAD else threads
        cores = "0" if threads == 1 else "0,1"
        waits = [0.0]
        with _child("network", self.name, self.bundle, self.probe, granted, self.seconds, count, cores) as network:
            _expect(network, "ready")
            with _limited(network.pid, way), contextlib.ExitStack() as stack:
                if other:
                    beside = stack.enter_context(_child("other", other, self.probe, self.seconds))
                _tell(network, "go")
                _expect(network, "done")
                if other:
                    waits = json.loads(beside.communicate()[0]) or waits
        result = json.loads(self.bundle.with_suffix(".json").read_text(encoding="utf-8"))
        if not result["is_right"]:
            sys.exit(f"{self.name}, {way}: the outputs differ")
        latency, at, used = (np.array(result[key]) for key in ("latency_ms", "at", "used"))
        begins = np.arange(at[0], at[-1] - WINDOW_NS, 1_000_000)
        windows = (np.interp(begins + WINDOW_NS, at, used) - np.interp(begins, at, used)) / WINDOW_NS
        return {
            "p50": float(np.median(latency)), "p99": float(np.quantile(latency, 0.99)), "runs": len(latency),
            "over": float(np.mean(latency > budget_ms)) if budget_ms else 0.0, "load": float(np.mean(windows)),
            "w50": float(np.median(windows)), "w99": float(np.quantile(windows, 0.99)), "most": float(windows.max()),
            "waits": waits, "paced": result["paced"],
        }  # fmt: skip


def _expect(process: "subprocess.Popen[str]", word: str) -> None:
    assert process.stdout is not None
    if process.stdout.readline() != f"{word}\n":
        sys.exit(f"a process did not come to {word!r}")


def _tell(process: "subprocess.Popen[str]", word: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{word}\n")
    process.stdin.flush()


def _race(report: Report, measured: Measured, name: str, num_rounds: int) -> None:
    scene = SCENES[name]
    baseline = measured.once(NOTHING, 0.0, scene.threads, "")
    budget_ms = scene.granted * baseline["p50"]
    report.text(f"**{measured.name}, {name}**: baseline {baseline['p50']:.2f} ms, budget {budget_ms:.2f} ms")
    table = report.table("way", "run p50 / p99 ms", "over the budget:", "neighbour p50 / p90 / p99 ms", "load:",
                         "peak 10 ms: p50 / p99 / most")  # fmt: skip
    rows: dict[str, list[Figures]] = {way: [] for way in scene.ways}
    for _ in range(num_rounds):
        for way, rounds in rows.items():
            rounds.append(measured.once(way, budget_ms, scene.threads, scene.other))
    for way, rounds in rows.items():
        row = _medians(rounds, ("p50", "p99", "load", "w50", "w99", "most"))
        waits = [wait for one in rounds for wait in one["waits"]]
        over = sum(one["over"] * one["runs"] for one in rounds) / sum(one["runs"] for one in rounds)
        beside = _waits_text(waits) if scene.other == "neighbour" else "-"
        peaks = " / ".join(f"{row[key]:.0%}" for key in ("w50", "w99", "most"))
        table.row(way, f"{row['p50']:.2f} / {row['p99']:.2f}", f"{over:.1%}", beside, f"{row['load']:.0%}", peaks)
    paced = [one["paced"] for one in rows[PACED]]
    of = _medians(paced, paced[0])
    report.text(
        f"Paced: {of['sleeps_a_run']:.1f} sleeps a run, {of['waiting']:.1%} of the processor time; delays wrong by "
        f"{of['p50_delay_error_us']:.0f} us (p50), {of['p99_delay_error_us']:.0f} us (p99); longest run of the thread "
        f"{of['p99_longest_run_ms']:.2f} ms (p99 of the runs)."
    )
    report.sample(model=measured.name, scene=name, baseline=baseline, budget_ms=budget_ms, rounds=rows)


def _medians(rounds: list[Figures], keys: Any) -> dict[str, float]:
    return {key: float(np.median([one[key] for one in rounds])) for key in keys}


@contextlib.contextmanager
def _limited(pid: int, way: str) -> Iterator[None]:
    """What a user has today, applied to a process that is there already."""
    tasks, is_over = [int(one.name) for one in Path(f"/proc/{pid}/task").iterdir()], threading.Event()
    stopper = threading.Thread(target=_stop_and_continue, args=(pid, is_over))
    if way == "nice 19":
        for task in tasks:
            os.setpriority(os.PRIO_PROCESS, task, 19)
    elif way == "SCHED_IDLE":
        for task in tasks:
            os.sched_setscheduler(task, os.SCHED_IDLE, os.sched_param(0))
    elif way.startswith("CPU quota"):
        QUOTA.mkdir(exist_ok=True)
        (QUOTA / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (QUOTA / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
        (QUOTA / "tasks").write_text(str(pid))  # the thread that computes, not the one that will watch it
    elif way.startswith("SIGSTOP"):
        stopper.start()
    try:
        yield
    finally:
        is_over.set()
        if stopper.ident:
            stopper.join()
        if way.startswith("CPU quota"):
            with contextlib.suppress(OSError):
                (QUOTA.parent / "tasks").write_text(str(pid))
                QUOTA.rmdir()


def _stop_and_continue(pid: int, is_over: threading.Event) -> None:
    with contextlib.suppress(ProcessLookupError):
        while not is_over.is_set():
            for number in (signal.SIGSTOP, signal.SIGCONT):
                os.kill(pid, number)
                time.sleep(0.002)
        os.kill(pid, signal.SIGCONT)


def _network(name: str, bundle: str, probe: str, budget_ms: str, seconds: str, threads: str, cores: str) -> None:
    """The network: says "ready", waits for "go", runs, writes what it did, says "done"."""
    os.sched_setaffinity(0, set(map(int, cores.split(","))))
    inputs, options = real_model(MODELS, name).inputs, nndeploy.LoadOptions(threads=int(threads))
    goal = PaceGoal(round(float(budget_ms) * 1e6)) if float(budget_ms) else None
    with nndeploy.load_bundle(bundle, options) as program:
        want = program.run(inputs)
    with nndeploy.load_bundle(bundle, options, pace=goal) as program:
        for _ in range(BASELINE_RUNS):
            program.run(inputs)
        pacer = program.pacing.pacer if isinstance(program.pacing, PacedProgram) else None
        if pacer is not None:
            pacer.forget()
        tasks = [int(one.name) for one in Path("/proc/self/task").iterdir()]
        print("ready", flush=True)
        sys.stdin.readline()
        end = time.monotonic() + float(seconds)
        readings, latency_ms = _watched(probe, tasks, end), []
        while time.monotonic() < end:
            begin = time.perf_counter()
            got = program.run(inputs)
            latency_ms.append((time.perf_counter() - begin) * 1e3)
        found = achieved(pacer.records) if pacer is not None else None
    at, used = readings()
    is_right = all(np.array_equal(got[key], want[key]) for key in want)
    paced = {} if found is None else {key: getattr(found, key) for key in found.__dataclass_fields__}
    result = {"latency_ms": latency_ms, "is_right": is_right, "paced": paced, "at": at.tolist(), "used": used.tolist()}
    Path(bundle).with_suffix(".json").write_text(json.dumps(result), encoding="utf-8")
    print("done", flush=True)


def _watched(probe: str, tasks: list[int], end: float) -> Callable[[], Any]:
    """Reads clocks on another core until `end`; returns what waits for that and returns (when, processor time)."""
    library, readings, count = ctypes.CDLL(probe), np.zeros((2, 1_000_000), np.int64), [0]
    library.watch.restype = ctypes.c_int64
    threads = np.array(tasks, np.int32)

    def watch() -> None:
        os.sched_setaffinity(0, {OTHER_CORE})
        count[0] = library.watch(
            ctypes.c_void_p(threads.ctypes.data), ctypes.c_int64(len(threads)), ctypes.c_int64(round(end * 1e9)),
            *(ctypes.c_void_p(one.ctypes.data) for one in readings), ctypes.c_int64(readings.shape[1]),
        )  # fmt: skip

    watcher = threading.Thread(target=watch)
    watcher.start()

    def finished() -> Any:
        watcher.join()
        return readings[:, : count[0]]

    return finished


def _other(kind: str, probe: str, seconds: str) -> None:
    """Who shares the core; the neighbour prints what its milliseconds took, in milliseconds."""
    os.sched_setaffinity(0, {CORE})
    library, waits, count = ctypes.CDLL(probe), np.zeros(100_000, np.int64), 0
    library.neighbour.restype = ctypes.c_int64
    end = ctypes.c_int64(time.monotonic_ns() + round(float(seconds) * 1e9))
    if kind == "hog":
        library.hog(end)
    else:
        into = (ctypes.c_void_p(waits.ctypes.data), ctypes.c_int64(waits.size))
        count = library.neighbour(end, ctypes.c_int64(NEIGHBOUR_NS), *into)
    print(json.dumps((waits[:count] / 1e6).tolist()), flush=True)


# A stream, all of its process


def _stream(report: Report, folder: Path, options: argparse.Namespace) -> None:
    bundle, probe, count = folder / "find.nnd", _probe(folder), SETTLING + options.items
    how = {"backends": options.backends, "pace": True, "keep_fallback": True}
    compiled(MODELS / "ppocr_det_mobile_v2.onnx", bundle, **how)

    def streamed(photo: str, budget_ms: float, count: int) -> Figures:
        with _child("stream", bundle, probe, photo, budget_ms, count) as child:
            return dict(json.loads(child.communicate()[0]))

    table = report.table("photo", "calm / granted ms", "item p50 / p99 ms", "over:", "ideal:", "load:",
                         "10 ms: p50 / p98 / most", "above 80%:")  # fmt: skip
    every: dict[str, list[Figures]] = {NOTHING: [], PACED: []}
    for photo in options.photos:
        calm = [streamed(photo, WIDE_MS, BASELINE_ITEMS + 1)["calm_ms"] for _ in range(options.rounds)]
        budget_ms = options.granted * float(np.median(calm))
        rows: dict[str, list[Figures]] = {way: [] for way in every}
        for _ in range(options.rounds):
            for way, rounds in rows.items():
                rounds.append(streamed(photo, budget_ms if way == PACED else 0.0, count))
        if len({one["digest"] for rounds in rows.values() for one in rounds}) > 1:
            sys.exit(f"{photo}: the outputs differ")
        for way, rounds in rows.items():
            every[way] += rounds
            took = np.concatenate([one["took_ms"] for one in rounds])
            of = _medians(rounds, ("load", "p50", "p98", "most", "crowded"))
            is_paced = way == PACED
            ideal = float(np.median([sum(one["item_ms"].values()) for one in rounds])) / budget_ms
            table.row(
                f"{photo}, {'paced' if is_paced else 'not paced'}",
                f"{budget_ms / options.granted:.1f} / {budget_ms:.1f}" if is_paced else "-",
                f"{np.median(took):.1f} / {np.quantile(took, 0.99):.1f}",
                f"{np.mean(took > budget_ms):.1%}" if is_paced else "-", f"{ideal:.0%}" if is_paced else "-",
                f"{of['load']:.0%}", " / ".join(f"{of[key]:.0%}" for key in ("p50", "p98", "most")),
                f"{of['crowded']:.1%}",
            )  # fmt: skip
        report.sample(scene="stream", photo=photo, budget_ms=budget_ms, rounds=rows)
    parts = report.table("part", "ms of an item, not paced / paced:", "of a window above 80%, not paced / paced:")
    for name in every[PACED][0]["item_ms"]:
        costs = (f"{np.mean([one['item_ms'].get(name, 0.0) for one in rounds]):.2f}" for rounds in every.values())
        shares = (
            sum(one["in_crowded"].get(name, 0.0) * one["crowded"] for one in rounds)
            / max(1e-9, sum(one["crowded"] for one in rounds))
            for rounds in every.values()
        )
        parts.row(name, " / ".join(costs), " / ".join(f"{share:.0%}" for share in shares))


# Starts


def _starts(report: Report, folder: Path, options: argparse.Namespace) -> None:
    subject = real_model(MODELS, options.only[0])
    bundle, inputs = paced_bundle(subject, folder, options.backends), folder / "inputs.npz"
    arrays: dict[str, Any] = dict(subject.inputs)
    np.savez(inputs, **arrays)
    with nndeploy.load_bundle(bundle, pace=PaceGoal(cpu_limit=0.5)) as program:
        assert isinstance(program.pacing, PacedProgram)
        baseline_ms = program.pacing.pacer.known()[0] / 1e6
    command = [sys.executable, "-m", "nndeploy", "run", str(bundle), "--input", str(inputs), "--json", "--pace"]
    codes = list[int]()
    with contextlib.ExitStack() as stack:
        for _ in range(options.load):
            stack.enter_context(_child("busy"))
        for _ in range(options.starts):
            run = subprocess.run([*command, "--max-latency", f"{2 * baseline_ms:.2f}ms"], stdout=subprocess.DEVNULL)
            codes.append(run.returncode)
    report.text(
        f"**{subject.name}**: paced starts at a load of {options.load}: {codes.count(0)} of {len(codes)}, granted "
        f"{2 * baseline_ms:.1f} ms, twice the baseline of a quiet machine."
    )
    report.sample(model=subject.name, scene="starts", baseline_ms=baseline_ms, codes=codes)


def _busy() -> None:
    """Works until it or its parent is killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    while True:
        pass


# Pipelines


def _pipeline(report: Report, name: str, folder: str, options: argparse.Namespace) -> None:
    for model in CASES[name].models.values():
        how = {"backends": options.backends, "pace": True, "keep_fallback": True}
        compiled(MODELS / f"{model}.onnx", Path(folder) / f"{model}.nnd", **how)
    baseline_ms = _measured(name, folder, WIDE_MS, 0)["calm_ms"]
    budgets = [0.0, *(baseline_ms * float(times) for times in options.budgets)]
    rows: dict[float, list[Figures]] = {budget: [] for budget in budgets}
    for _ in range(options.rounds):
        for budget, rounds in rows.items():
            rounds.append(_measured(name, folder, budget, options.items))
    if len({one["digest"] for rounds in rows.values() for one in rounds}) > 1:
        sys.exit(f"{name}: the outputs differ")
    report.text(f"**{name}**: the baseline of an item is {baseline_ms:.1f} ms; {options.items} items, outputs equal.")
    table = report.table("budget", "item p50 / p99 ms", "over the budget:", "items a second:", "process load:")
    for budget, rounds in rows.items():
        of = _medians(rounds, ("p50", "p99", "over", "rate", "load"))
        granted, over = (f"{budget:.0f} ms", f"{of['over']:.1%}") if budget else ("not paced", "-")
        table.row(granted, f"{of['p50']:.1f} / {of['p99']:.1f}", over, f"{of['rate']:.1f}", f"{of['load']:.0%}")


def _measured(name: str, folder: str, budget_ms: float, count: int) -> Figures:
    with _child("items", name, folder, budget_ms, count) as child:
        return dict(json.loads(child.communicate()[0]))


class _Outcomes:
    def __init__(self) -> None:
        self.ended: dict[int, float] = {}
        self.digest = hashlib.sha256()

    def write(self, outcome: Any) -> None:
        from nndeploy.stream.formats.json_lines import line_from_outcome

        self.ended[outcome.index] = time.perf_counter()
        self.digest.update(line_from_outcome(outcome).encode())

    def finish(self) -> None: ...

    discard = finish


def _items(name: str, folder: str, budget_ms: str, count: str) -> None:
    """One stream; an item's time is from where its file is read until its outcome is written. Prints its figures."""
    from nndeploy.pacing.stream.paced_stream import PacedStream
    from nndeploy.stream.engine.engine import Stream
    from nndeploy.stream.pipeline.bundled_pipeline import pipeline_of_path
    from nndeploy.stream.pipeline.pipeline_sources import Reading, pipeline_source
    from nndeploy.stream.run.loaded import load_pipeline
    from nndeploy.stream.run.options import RunOptions
    from nndeploy.stream.stopping import Stop

    case, budget, began = CASES[name], float(budget_ms), dict[int, float]()
    num_items = int(count) or BASELINE_ITEMS + 1
    goal = PaceGoal(max_latency_ns=round(budget * 1e6)) if budget else None
    models = {pipeline: Path(folder) / f"{model}.nnd" for pipeline, model in case.models.items()}
    file = pipeline_of_path(Path(case.pipeline))
    with contextlib.ExitStack() as stack:
        options = RunOptions(models=models, threads=case.threads(), device="cpu", cache_dir="", pace=goal)
        loaded = load_pipeline(stack, file, None, options, nndeploy.load_bundle)
        paths = case.paths * -(-num_items // len(case.paths))
        items = pipeline_source(file, paths, loaded.types, Reading(lambda _: sys.stdin.buffer, Stop())).items

        def noted(item: Any) -> Any:
            began[item.index] = time.perf_counter()
            return item.load()

        sink, stream = _Outcomes(), Stream(loaded.plan, loaded.programs, pacing=loaded.pacing)
        cpu, wall = time.process_time(), time.perf_counter()
        stream.run((replace(one, load=lambda one=one: noted(one)) for one in islice(items, num_items)), sink)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        found = loaded.pacing.achieved() if isinstance(loaded.pacing, PacedStream) else None
    took = np.array([(sink.ended[index] - began[index]) * 1e3 for index in sorted(began)][BASELINE_ITEMS:])
    print(json.dumps({
        "p50": float(np.median(took)), "p99": float(np.quantile(took, 0.99)), "over": float(np.mean(took > budget)),
        "rate": num_items / wall, "load": found.process_load if found else cpu / wall,
        "calm_ms": found.calm_ms if found else 0.0, "digest": sink.digest.hexdigest(),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
