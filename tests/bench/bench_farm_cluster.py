# SPDX-License-Identifier: Apache-2.0
"""What a cluster costs: efficiency with up to 128 simulated workers, jobs a second, memory and processor when idle."""

import argparse
import contextlib
import heapq
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import figures
import onnx.parser
import psutil
from native_engines import machine_name

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

PAGE = "farm-cluster-results.md"
MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,4] x) => (float[N,3] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}> { h = MatMul(x, w) y = Softmax(h) }"""
SIMULATED = Path(__file__).with_name("simulated_workers.py")
A_PROCESS, JOBS_A_WORKER, SPREAD, IDLE_SECONDS = 32, 8, 0.6, 5.0
TEXT = """# A cluster: figures

`make bench-farm-cluster ARGS="{arguments}"`
([tests/bench/bench_farm_cluster.py](../../tests/bench/bench_farm_cluster.py)).
The scheduler is the real one in a process of its own; workers do all that real ones do but for the build, which is a
sleep of {mean:g} s on average (log-normal, sigma {spread}), {a_process} workers a process. Each has one slot; there
are {jobs_a_worker} jobs for each. The coordinator is the real one with its journal: it sends the model where it is not
yet, fetches a bundle of {bundle_bytes:,} bytes for each job and checks it whole. All of it shares {num_cores} cores,
{load}. Efficiency is sleep over workers times wall clock; "ideal" is that of the same order of jobs without any
overhead, which the last jobs keep below 1.

Workers over the mean of a build is how many jobs a second pass through one coordinator; where that is more than the
rate below, the rate is what limits.

| workers | jobs | wall s | efficiency | ideal | of the ideal | lost |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{rows}

Jobs that take no time, on {rate_workers} workers: **{rate:.0f} jobs/s**, {each:.1f} ms a job.

| idle | memory MB | processor % |
| --- | ---: | ---: |
{idle}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[8, 32, 128])
    parser.add_argument("--mean", type=float, default=4.0, help="seconds of a build")
    parser.add_argument("--write", action="store_true", help=f"write docs/figures/{PAGE}")
    options = parser.parse_args()
    before = psutil.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="nndeploy-bench-") as name:
        folder = Path(name)
        onnx.save(onnx.parser.parse_model(MODEL), folder / "m.onnx")
        compile_cached(
            str(folder / "m.onnx"), str(folder / "m.nnd"), {"objective": "priority"}, CompileLimits(),
            CacheOptions(cache=False), Onlooker(), print,
        )  # fmt: skip
        bundle_bytes = (folder / "m.nnd").stat().st_size
        rows = [row(folder, number, options.mean) for number in options.workers]
        rate_workers, rate_jobs = min(options.workers), 50 * min(options.workers)
        with cluster(folder, rate_workers) as (address, processes):
            idle = [idle_of(what, process) for what, process in processes]
            wall = run(folder, address, [0.0] * rate_jobs)
    text = TEXT.format(
        arguments=" ".join(sys.argv[1:]), mean=options.mean, spread=SPREAD,
        a_process=A_PROCESS, jobs_a_worker=JOBS_A_WORKER, bundle_bytes=bundle_bytes,
        num_cores=psutil.cpu_count(), rows="\n".join(rows),
        load=f"which had a load of {before:.0f} from others" if before > 1 else "which had nothing else to do",
        rate_workers=rate_workers, rate=rate_jobs / wall, each=1e3 * wall / rate_jobs, idle="\n".join(idle),
    )  # fmt: skip
    print(text)
    if options.write:
        write_page(text)


def row(folder: Path, workers: int, mean: float) -> str:
    """Returns a line of the table: a batch of as many jobs as that many workers have."""
    drawn = random.Random(workers)  # noqa: S311 - the same lengths in every run
    lengths = [drawn.lognormvariate(0, SPREAD) for _ in range(workers * JOBS_A_WORKER)]
    scale = mean / statistics.fmean(lengths)
    lengths = sorted((scale * one for one in lengths), reverse=True)
    with cluster(folder, workers) as (address, _):
        wall = run(folder, address, lengths)
    efficiency, ideal = sum(lengths) / workers / wall, sum(lengths) / workers / makespan(lengths, workers)
    found = f"{workers} | {len(lengths)} | {wall:.1f} | {efficiency:.3f} | {ideal:.3f} | {efficiency / ideal:.3f} | 0"
    print(f"| {found} |", flush=True)
    return f"| {found} |"


def makespan(lengths: Sequence[float], workers: int) -> float:
    """Returns how long jobs take, the first one first, each on the worker that is free first."""
    free = [0.0] * workers
    for length in lengths:
        heapq.heapreplace(free, free[0] + length)
    return max(free)


def run(folder: Path, address: str, lengths: Sequence[float]) -> float:
    """Returns the seconds of a batch of jobs of these lengths; each has its outcome and its bundle."""
    digests = FileDigests()
    with tempfile.TemporaryDirectory(dir=folder) as own, Journal(Path(own)) as journal:
        jobs = [
            Job(
                f"m{number}/host", f"m{number}", "host", "", str(folder / "m.onnx"), {}, {},
                str(Path(own) / "dist" / f"{number}.nnd"), estimate=length,
            )
            for number, length in enumerate(lengths)
        ]  # fmt: skip
        engine = ClusterEngine(Place(address), lambda *_: None, print, digests, 60.0)
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
def cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Yields the address of a scheduler with workers, and (what, process id) of each process."""
    python = [sys.executable, "-P"]
    with contextlib.ExitStack() as held:

        def start(*command: str) -> "subprocess.Popen[str]":
            process = held.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            held.callback(process.kill)
            return process

        scheduler = start(*python, "-m", "nndeploy", "farm", "scheduler", "tcp://127.0.0.1:0")
        address = said(scheduler).split()[-1]
        own = held.enter_context(tempfile.TemporaryDirectory(dir=folder))
        hosts = []
        for first in range(0, workers, A_PROCESS):
            number = min(A_PROCESS, workers - first)
            command = (*python, str(SIMULATED), address, own, str(folder / "m.nnd"), f"p{first}", str(number))
            hosts.append((start(*command), number))
        assert [said(process) for process, _ in hosts] == ["ready"] * len(hosts)
        found = [(f"scheduler of {workers} workers", scheduler.pid)]
        yield address, found + [(f"a process of {number} workers", process.pid) for process, number in hosts]


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def idle_of(what: str, pid: int) -> str:
    """Returns a line of the table of a process that has nothing to do."""
    process = psutil.Process(pid)
    process.cpu_percent()
    time.sleep(IDLE_SECONDS)
    return f"| {what} | {process.memory_info().rss / 1e6:.0f} | {process.cpu_percent():.1f} |"


def write_page(text: str) -> None:
    """Writes the page."""
    (figures.FIGURES / PAGE).write_text(figures.header(figures.figure(PAGE), machine_name()) + text)


if __name__ == "__main__":
    main()
