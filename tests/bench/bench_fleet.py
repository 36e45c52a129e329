# SPDX-License-Identifier: Apache-2.0
"""Real models for five boxes, cold, from the cache and again; what a cluster of up to 128 simulated workers costs.

fleet      every call is the command as a user calls it; every bundle is verified, those of the second call are byte
           for byte those of the first, every job has one outcome. Needs ../shared/models and, for more than its
           models, build/zoo (`make zoo`)
cluster    the scheduler and the coordinator with its journal are the real ones; workers do all that real ones do
           but for the build, which is a sleep (log-normal). Each has one slot. The coordinator sends the model
           where it is not yet, fetches a bundle for each job and checks it whole. Efficiency is sleep over workers
           times wall clock; "ideal" is that of the same order of jobs without any overhead. Workers over the mean
           of a build is how many jobs a second pass through one coordinator
"""

import argparse
import contextlib
import hashlib
import heapq
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx.parser
import psutil
from commands import NNDEPLOY, ran
from report import MODELS, ZOO, Part, Report, bench_parser, numbers, run_parts

from nndeploy.build_cache.file_digests import FileDigests
from nndeploy.compiler.cached_compile import CacheOptions, compile_cached
from nndeploy.compiler.job import Onlooker
from nndeploy.compiler.options import CompileLimits
from nndeploy.farm.cluster.engine import ClusterEngine
from nndeploy.farm.cluster.place import Place
from nndeploy.farm.job import Job
from nndeploy.farm.journal import Journal
from nndeploy.farm.planned import BUILD, Planned
from nndeploy.farm.run_batch import BatchRun, Events

FROM_ZOO = (
    "mobilenet_v2", "resnet18", "squeezenet", "shufflenet_v2", "mnasnet", "mlp", "word_spotter", "minilm",
    "distilbert", "mobilenet_v3_small", "yolov8n", "efficientnet_lite0", "ghostnet", "vit", "bert", "lstm_tagger",
)  # fmt: skip
NEEDS_A_LIBRARY = "superres_ortext"
TARGETS = ("host", "x86-64-v3", "x86-64-v4", "raspberry-pi-5", "x86-64-v3+openvino")
NOT_HERE = "raspberry-pi-5"
FLEET = """[farm]
output = "dist/{{model}}/{{target}}.nnd"
cache = ["{cache}"]
[[models]]
files = ["models/*.onnx"]
[targets]
names = {targets}
[options]
goldens = {goldens}
objective = "{objective}"
[report]
json = "batch.json"
"""
MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,4] x) => (float[N,3] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}> { h = MatMul(x, w) y = Softmax(h) }"""
SIMULATED = Path(__file__).with_name("simulated_workers.py")
A_PROCESS, JOBS_A_WORKER, SPREAD, IDLE_SECONDS = 32, 8, 0.6, 5.0


def main() -> None:
    parts: dict[str, Part] = {"fleet": _fleet, "cluster": _cluster}
    parser = bench_parser(__doc__, parts)
    parser.add_argument("--models", type=int, default=26, help="of `fleet`")
    parser.add_argument("--objective", default="latency", help="what placements are raced for; priority: no race")
    parser.add_argument("--workers", type=numbers, default="8,32,128", help="of `cluster`")
    parser.add_argument("--mean", type=float, default=4.0, help="of `cluster`: seconds of a build")
    run_parts(parser.parse_args(), "farm.md", "Fleets and clusters", parts)


# A fleet


def _fleet(report: Report, options: argparse.Namespace) -> None:
    folder = options.folder
    models = _models(folder / "models", options.models)
    num_jobs, first = len(models) * len(TARGETS), dict[str, str]()
    report.text(f"{len(models)} models ({', '.join(models)}) for {', '.join(TARGETS)}, {num_jobs} jobs, two at once.")
    table = report.table("call", "seconds:", "what came of the jobs")
    for what, goldens, removed in (
        ("cold: an empty cache", 1, ()),
        ("again, in an empty folder: all from the cache", 1, ("dist", ".nndeploy")),
        ("again as it is", 1, ()),
        ("one option of all jobs changed (`goldens`)", 0, ()),
    ):
        for name in removed:
            shutil.rmtree(folder / name)
        told = {"cache": folder / "cache", "targets": json.dumps(TARGETS), "goldens": goldens}
        (folder / "fleet.toml").write_text(FLEET.format(objective=options.objective, **told))
        seconds, jobs = _called(folder)
        counts = Counter(job["status"] for job in jobs)
        table.row(what, f"{seconds:.1f}", ", ".join(f"{counts[status]} {status}" for status in sorted(counts)))
        assert len({job["job"] for job in jobs}) == len(jobs) == num_jobs
        failures = [(job["job"], job["error"]) for job in jobs if job["status"] not in ("ok", "hit", "unsupported")]
        assert not failures, failures
        found = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("dist/*/*.nnd")}
        _verify([] if first else [Path(path) for path in found])
        first = first or found
        assert (found == first) == (goldens == 1)


def _models(folder: Path, number: int) -> list[str]:
    """Copies models, with what lies beside them, and returns their names."""
    folder.mkdir()
    every = [*sorted(MODELS.glob("*.onnx")), *(ZOO / f"{name}.onnx" for name in FROM_ZOO)]
    found = [path for path in every if path.exists() and path.stem != NEEDS_A_LIBRARY][:number]
    for path in found:
        for beside in path.parent.glob(f"{path.stem}.onnx*"):
            shutil.copyfile(beside, folder / beside.name)
    assert len(found) == number, f"only {len(found)} models are here: make zoo"
    return [path.stem for path in found]


def _called(folder: Path) -> tuple[float, list[Any]]:
    began, cache = time.perf_counter(), {"NNDEPLOY_CACHE_DIR": str(folder / "cache")}
    done = ran([*NNDEPLOY, "batch", "fleet.toml", "--retry-failed"], cwd=folder, env=cache)
    seconds = time.perf_counter() - began
    assert done.code in (0, 1), done.err
    return seconds, json.loads((folder / "batch.json").read_text())["jobs"]


def _verify(bundles: Sequence[Path]) -> None:
    for path in bundles:
        done = ran([*NNDEPLOY, "verify", path, *(["--no-run"] if path.stem == NOT_HERE else [])])
        assert done.code == 0, (path, done.err)


# A cluster


def _cluster(report: Report, options: argparse.Namespace) -> None:
    folder = options.folder
    onnx.save(onnx.parser.parse_model(MODEL), folder / "m.onnx")
    compile_cached(
        str(folder / "m.onnx"), str(folder / "m.nnd"), {"objective": "priority"}, CompileLimits(),
        CacheOptions(cache=False), Onlooker(), print,
    )  # fmt: skip
    size = (folder / "m.nnd").stat().st_size
    report.text(f"Builds of {options.mean:g} s on average (sigma {SPREAD}), {A_PROCESS} workers a process, "
                f"{JOBS_A_WORKER} jobs a worker, bundles of {size:,} bytes.")  # fmt: skip
    table = report.table("workers:", "jobs:", "wall s:", "efficiency:", "ideal:", "of the ideal:", "lost:")
    for workers in options.workers:
        lengths = _lengths(workers, options.mean)
        with _workers(folder, workers) as (address, _):
            wall = _wall(folder, address, lengths)
        efficiency, ideal = (sum(lengths) / workers / seconds for seconds in (wall, makespan(lengths, workers)))
        shares = (f"{one:.3f}" for one in (efficiency, ideal, efficiency / ideal))
        table.row(workers, len(lengths), f"{wall:.1f}", *shares, 0)
    few = min(options.workers)
    with _workers(folder, few) as (address, processes):
        idle = [(what, *_idle(process)) for what, process in processes]
        wall = _wall(folder, address, [0.0] * 50 * few)
    report.text(f"Jobs that take no time, on {few} workers: {50 * few / wall:.0f} jobs/s.")
    table = report.table("idle", "memory MB:", "processor %:")
    for row in idle:
        table.row(*row)


def _lengths(workers: int, mean: float) -> list[float]:
    drawn = random.Random(workers)  # noqa: S311 - the same lengths in every run
    lengths = [drawn.lognormvariate(0, SPREAD) for _ in range(workers * JOBS_A_WORKER)]
    scale = mean / statistics.fmean(lengths)
    return sorted((scale * one for one in lengths), reverse=True)


def makespan(lengths: Sequence[float], workers: int) -> float:
    """Returns how long jobs take, the first one first, each on the worker that is free first."""
    free = [0.0] * workers
    for length in lengths:
        heapq.heapreplace(free, free[0] + length)
    return max(free)


def _wall(folder: Path, address: str, lengths: Sequence[float]) -> float:
    """Returns the seconds of a batch of jobs of these lengths; each has its outcome and its bundle."""
    with tempfile.TemporaryDirectory(dir=folder) as own, Journal(Path(own)) as journal:
        jobs = [
            Job(
                f"m{number}/host", f"m{number}", "host", "", str(folder / "m.onnx"), {}, {},
                str(Path(own) / "dist" / f"{number}.nnd"), estimate=length,
            )
            for number, length in enumerate(lengths)
        ]  # fmt: skip
        engine = ClusterEngine(Place(address), lambda *_: None, print, FileDigests(), 60.0)
        batch = BatchRun(engine, journal, Events(), "fleet.toml")
        begin = time.perf_counter()
        batch.run([Planned(job, f"{number:064x}", BUILD) for number, job in enumerate(jobs)])
        wall = time.perf_counter() - begin
        engine.close()
        wrong = [one for one in batch.outcomes if one.status != "ok" or not Path(one.output).exists()]
        assert not wrong, wrong[:3]
        assert len(batch.outcomes) == len(jobs)
        return wall


@contextlib.contextmanager
def _workers(folder: Path, workers: int) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Yields the address of a scheduler with workers, and (what, process id) of each process."""
    with contextlib.ExitStack() as held:

        def start(*command: str) -> "subprocess.Popen[str]":
            python = [sys.executable, "-P", *command]
            process = held.enter_context(subprocess.Popen(python, stdout=subprocess.PIPE, text=True))
            held.callback(process.kill)
            return process

        scheduler = start("-m", "nndeploy", "farm", "scheduler", "tcp://127.0.0.1:0")
        address = _said(scheduler).split()[-1]
        own = held.enter_context(tempfile.TemporaryDirectory(dir=folder))
        hosts = []
        for first in range(0, workers, A_PROCESS):
            number = min(A_PROCESS, workers - first)
            hosts.append((start(str(SIMULATED), address, own, str(folder / "m.nnd"), f"p{first}", str(number)), number))
        assert [_said(process) for process, _ in hosts] == ["ready"] * len(hosts)
        found = [(f"scheduler of {workers} workers", scheduler.pid)]
        yield address, found + [(f"a process of {number} workers", process.pid) for process, number in hosts]


def _said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _idle(pid: int) -> tuple[str, str]:
    """Returns the memory and the processor time of a process that has nothing to do."""
    process = psutil.Process(pid)
    process.cpu_percent()
    time.sleep(IDLE_SECONDS)
    return f"{process.memory_info().rss / 1e6:.0f}", f"{process.cpu_percent():.1f}"


if __name__ == "__main__":
    main()
