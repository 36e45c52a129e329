# SPDX-License-Identifier: Apache-2.0
"""The farm under torture: hostile models, kills, planted entries of the cache; and how long what is known takes.

    times     a compile that is a cache hit, a forked and a fresh process of a compile, the time to the first build,
              Ctrl-C, jobs that are there already
    kills     the command, or a process below it, is killed at random moments and called again until all is built
    torture   models that crash their compile, kill it, hang, fork, take memory, go to a full disk, or are no models
              (hostile_fleet.py)
    mutants   entries of a cache that are flipped, cut, longer or swapped, or signed by a key that is not trusted

All but the mutants run as commands, with child processes that really crash, hang, fork and are killed. Lost are jobs
without an outcome, doubled those with two, wrong those with another one than the model's. Orphans are processes that
outlive their batch. A mutant is served where another content comes out than was put in. Exit code 1 where anything is
lost, doubled, wrong or served.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from commands import NNDEPLOY, ran
from figures import ROOT
from hostile_fleet import EXPECTED, with_full_disks, write_fleet, write_hostile_fleet, write_hostile_plugin, write_model
from report import Report, bench_parser, run_parts, words

from nndeploy.build_cache.entry import Blob, Entry, encode
from nndeploy.build_cache.local_cache import LocalCache
from nndeploy.bundle.report import Report as BundleReport
from nndeploy.compiler import cached_compile
from nndeploy.compiler.compile_server import compile_server
from nndeploy.compiler.job import Onlooker, compile_in_child
from nndeploy.compiler.options import CompileLimits
from nndeploy.errors import BusyError
from nndeploy.farm.batch_flow import opened_batch
from nndeploy.farm.options import BatchOptions
from nndeploy.farm.reports import Gates
from nndeploy.farm.run_batch import MAX_TRIES, Events
from nndeploy.sandbox.child_process import children_of, start_child
from nndeploy.trust.signers import new_key
from nndeploy.trust.trust_store import CODE, TrustedKey, TrustStore

sys.path.append(str(ROOT / "tests"))
SHARES = {
    "garbage": 20, "crash": 24, "gate": 12, "good": 16, "orphan": 12, "hang": 4, "memory": 4, "killed": 4, "full": 4,
}  # fmt: skip
"""How many of a hundred jobs are of which kind."""
ORPHAN_SECONDS, PATIENCE_SECONDS = 1.0, 15.0
NUM_KILLED_JOBS, CHILD_SHARE = 10, 0.3
DICE = random.Random(20261126)  # noqa: S311 - no secret
Row = tuple[str, str, bool]
"""What was done, what came of it, and whether that is right."""


@dataclass(frozen=True)
class Place:
    """Where jobs are built: how it is told, what the command says, and after how many seconds at most it is killed."""

    told: str
    options: tuple[str, ...]
    seconds: tuple[float, float]


PLACES = {
    "here": Place("on this machine", ("-j", "2"), (0.2, 3.0)),
    "cluster": Place("by `--cluster local`", ("-j", "2", "--cluster", "local"), (0.5, 6.0)),
}


def main() -> int:
    every = {"times": times, "kills": kills, "torture": torture, "mutants": mutants}
    parts = {name: partial(_table, rows) for name, rows in every.items()}
    parser = bench_parser(__doc__, parts)
    parser.add_argument("--places", type=words, default=",".join(PLACES), help="of `kills` and `torture`")
    numbers = {
        "jobs": 200, "kills": 20, "mutants": 1_000_000, "known": 10_000, "interrupts": 5, "hits": 10, "small": 16,
    }  # fmt: skip
    for name, number in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=number)
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored, and so by all below
    return run_parts(options, "farm.md", "The farm", parts)


def _table(rows: Callable[[argparse.Namespace], Iterator[Row]], report: Report, options: argparse.Namespace) -> bool:
    """Writes the rows of a part as they come; returns whether one is wrong."""
    table, is_wrong = report.table("what", "result"), False
    for what, result, is_right in rows(options):
        table.row(what, result if is_right else f"WRONG: {result}")
        is_wrong |= not is_right
    return is_wrong


@contextlib.contextmanager
def workshop() -> Iterator[Path]:
    """Yields a folder in which everything happens, temporary files of commands too."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        yield Path(name)


def environment(folder: Path, *import_paths: Path) -> dict[str, str]:
    own = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), "TMPDIR": str(folder / "tmp")}
    (folder / "tmp").mkdir(exist_ok=True)
    paths = os.pathsep.join([*map(str, import_paths), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, **own, "PYTHONPATH": paths, "ORT_DISABLE_TELEMETRY": "1"}


def started(fleet: Path, env: Mapping[str, str], *more: str) -> "subprocess.Popen[bytes]":
    return logged([*NNDEPLOY, "batch", str(fleet), *more], fleet.parent, env)


def logged(command: Sequence[str], folder: Path, env: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    with (folder / "log.txt").open("ab") as log:
        return subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)


def left(folder: Path) -> list[int]:
    """Returns the processes that work for a folder: what they were started with, or their environment, names it."""
    mark, found = os.fsencode(folder), []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (path / "cmdline").read_bytes() + (path / "environ").read_bytes():
                found.append(int(path.name))
    return [pid for pid in found if pid != os.getpid()]


def _described(pid: int) -> Iterator[str]:
    """Yields what the system says of a process: its state, its name, what it was started with."""
    with contextlib.suppress(OSError):
        path = Path(f"/proc/{pid}")
        status = dict(line.split(":\t", 1) for line in (path / "status").read_text().splitlines() if ":\t" in line)
        yield from (status["State"], status["Name"], f"VmRSS {status.get('VmRSS', '-').strip()}")
        yield (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]


@dataclass
class Orphans:
    """How many processes of batches that ended were there after `ORPHAN_SECONDS`, and after `PATIENCE_SECONDS`."""

    soon: int = 0
    late: int = 0

    def count(self, folder: Path) -> None:
        began = time.monotonic()
        time.sleep(ORPHAN_SECONDS)
        found = left(folder)
        self.soon += len(found)
        for pid in found:
            print("left:", *_described(pid), file=sys.stderr)
        while (found := left(folder)) and time.monotonic() - began < PATIENCE_SECONDS:
            time.sleep(0.2)
        self.late += len(found)

    def __str__(self) -> str:
        return f"{self.soon} orphans after {ORPHAN_SECONDS:g} s, {self.late} after {PATIENCE_SECONDS:g} s"


def rows_of(folder: Path) -> list[dict[str, Any]]:
    (path,) = (folder / ".nndeploy" / "batch").glob("*/journal.jsonl")
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def finals(folder: Path) -> Counter[str]:
    rows = rows_of(folder)
    return Counter(row["outcome"]["job"] for row in rows if row["row"] == "finished" and row["outcome"]["final"])


def torture(options: argparse.Namespace) -> Iterator[Row]:
    counts = {kind: max(1, share * options.jobs // 100) for kind, share in SHARES.items()}
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    for place in (PLACES[name] for name in options.places):
        with workshop() as folder:
            fleet, began, orphans = write_hostile_fleet(folder, counts), time.monotonic(), Orphans()
            command = with_full_disks(folder, [*NNDEPLOY, "batch", str(fleet), *place.options])
            code = logged(command, folder, environment(folder, write_hostile_plugin(folder / "plugin"))).wait()
            seconds = time.monotonic() - began
            orphans.count(folder)
            jobs = json.loads((folder / "report" / "batch.json").read_text())["jobs"]
            found = Counter(job["job"] for job in jobs)
            wrong = [job for job in jobs if job["status"] != EXPECTED[job["model"].partition("-")[0]]]
            tries = [job for job in jobs if job["tries"] != (MAX_TRIES if job["status"] == "infra" else 1)]
            lost, doubled = sum(counts.values()) - len(found), _doubled(Counter(finals(folder) | found))
            for job in (*wrong, *tries):
                print("wrong:", job["job"], job["status"], job["tries"], job["error"], file=sys.stderr)
        yield (
            f"{sum(counts.values())} jobs {place.told}, of them {kinds}",
            f"{lost} lost, {doubled} doubled, {len(wrong)} wrong, {len(tries)} tried too often or too seldom, "
            f"{orphans}, exit code {code}, {seconds:.0f} s",
            not (lost or doubled or wrong or tries),
        )


def _doubled(counts: Counter[str]) -> int:
    return sum(one > 1 for one in counts.values())


@dataclass
class Killed:
    """What came of batches that were killed, or a process of theirs, again and again."""

    commands: int = 0
    children: int = 0
    jobs: int = 0
    lost: int = 0
    doubled: int = 0
    repeated: int = 0
    failed: int = 0

    def run(self, fleet: Path, place: Place, orphans: Orphans) -> None:
        """Runs a batch to its end, killed after a random time, and called again."""
        folder, before = fleet.parent, 0
        env = environment(folder)
        while True:
            process = started(fleet, env, *place.options)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(DICE.uniform(*place.seconds))
            children = children_of(process.pid)
            below = [*children, *(one for child in children for one in children_of(child))]
            if process.poll() is None and below and DICE.random() < CHILD_SHARE:
                self.children += 1
                with contextlib.suppress(ProcessLookupError):
                    os.kill(DICE.choice(below), signal.SIGKILL)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(DICE.uniform(*place.seconds))
            if process.poll() == 0:
                break
            if process.poll() is None:
                self.commands += 1
                process.kill()
                process.wait()
                again = _unfinished(folder)
                self.repeated, before = self.repeated + again - before, again
            elif process.returncode != BusyError.exit_code:  # a cluster that was killed is one that is busy
                self.failed += 1
                log = (folder / "log.txt").read_text(errors="replace").strip().splitlines()[-3:]
                print(f"exit code {process.returncode}:", *log, sep="\n", file=sys.stderr)
                break
            orphans.count(folder)
        done, good = finals(folder), {
            row["outcome"]["job"] for row in rows_of(folder)
            if row["row"] == "finished" and row["outcome"]["status"] in ("ok", "hit")
        }  # fmt: skip
        self.jobs += NUM_KILLED_JOBS
        self.lost += NUM_KILLED_JOBS - len(good)
        self.doubled += _doubled(done)


def kills(options: argparse.Namespace) -> Iterator[Row]:
    for place in (PLACES[name] for name in options.places):
        killed, orphans = Killed(), Orphans()
        while killed.commands + killed.children < options.kills:
            with workshop() as folder:
                killed.run(write_fleet(folder, NUM_KILLED_JOBS, 1), place, orphans)
        yield (
            f"{killed.commands:,} kill -9 of the command and {killed.children:,} of processes below it {place.told}; "
            f"resumed until {killed.jobs:,} jobs are built",
            f"{killed.lost} lost, {killed.doubled} doubled, {killed.failed} batches ended otherwise, {killed.repeated} "
            f"builds begun again ({killed.repeated / max(1, killed.commands):.1f} a kill, 2 run at once), {orphans}",
            not (killed.lost or killed.doubled or killed.failed),
        )


def _unfinished(folder: Path) -> int:
    there = rows_of(folder) if list(folder.glob(".nndeploy/batch/*/*")) else []
    kinds = Counter(row["row"] for row in there)
    return kinds["started"] - kinds["finished"]


def mutants(options: argparse.Namespace) -> Iterator[Row]:
    from byte_mutants import KINDS, mutant

    num_served, began = 0, time.monotonic()
    with workshop() as folder:
        signer, stranger = new_key(folder / "a.key"), new_key(folder / "b.key")
        store = TrustStore({signer.public.id: TrustedKey(signer.public, "farm", frozenset((CODE,)))})
        cache, content = LocalCache(folder / "cache", store, signer), DICE.randbytes(300)
        (folder / "bundle").write_bytes(content)
        blob = cache.add_file(folder / "bundle")
        entry, other = (Entry({"model": name, "tool:a": "1.0"}, {"bundle": blob}, 1.5) for name in "mn")
        for one in (entry, other):
            cache.add(one, "near")
        place, whole = cache.folder / "ac" / entry.key[:2] / entry.key, encode(entry, signer)
        planted = {
            1: encode(replace(entry, outputs={"bundle": Blob("ab" * 32, 300)}), stranger),
            3: encode(other, signer),  # of another key
        }
        for number in range(options.mutants):
            if number % 2:
                place.write_bytes(planted.get(number % 10) or mutant(whole, DICE, DICE.randrange(KINDS)))
                found = cache.entry(entry.key)
                num_served += found is not None and found != entry
            else:
                path = cache.place(blob)
                path.unlink(missing_ok=True)
                path.write_bytes(mutant(content, DICE, DICE.randrange(KINDS)))
                taken = cache.content(blob)
                num_served += taken is not None and taken != content
        place.write_bytes(whole)
        assert cache.entry(entry.key) == entry, "the cache would serve nothing at all"
    yield (
        f"{options.mutants:,} entries and files of a cache, flipped, cut, longer, swapped or planted",
        f"{num_served} served, {time.monotonic() - began:.0f} s",
        not num_served,
    )


# Times


def times(options: argparse.Namespace) -> Iterator[Row]:
    for part in (_second_compile, _small_compiles, _first_build, _interrupts, _known):
        for what, result in part(options):
            yield what, result, True


def _second_compile(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    with workshop() as folder:
        write_model(folder / "m.onnx", 1)
        command = [*NNDEPLOY, "compile", "m.onnx", "-o", "m.nnd", "--cache-dir", "cache"]
        yield "the first compile of a small model", timed(command, folder)
        yield "the second one, a hit: the whole command", timed(command, folder, options.hits)


def _small_compiles(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Compares processes of compiles that are forked with such that are started anew, in turns."""
    used: dict[bool, list[float]] = {True: [], False: []}
    with workshop() as folder:
        for number in range(options.small):
            write_model(folder / f"{number}.onnx", number)
        for is_forked in (True, False) * 3:
            before = _children_seconds()
            with contextlib.closing(compile_server()) as server:
                start = server.start_child if is_forked else start_child
                for model in folder.glob("*.onnx"):
                    how = (str(model), str(model.with_suffix(".nnd")), {"objective": "priority"})
                    compile_in_child(*how, CompileLimits(), Onlooker(), start=start)
            used[is_forked].append((_children_seconds() - before) / options.small)
    forked, anew = (statistics.median(used[which]) for which in (True, False))
    yield (
        f"processor time of a small compile, the mean of {options.small} with `--objective priority`, medians of three "
        "rounds",
        f"{forked:.2f} s where its process is forked, {anew:.2f} s where it is started anew",
    )


def _first_build(_: argparse.Namespace) -> Iterator[tuple[str, str]]:
    seconds = []
    with workshop() as folder:
        fleet, env, events = write_fleet(folder, 100, 10), environment(folder), folder / "events.jsonl"
        for _round in range(4):
            events.unlink(missing_ok=True)
            began = time.monotonic()
            process = started(fleet, env, "--events", str(events))
            _heard(events, lambda found: any(one["event"] == "started" for one in found), process)
            seconds.append(time.monotonic() - began)
            process.kill()
            process.wait()
            time.sleep(2)  # digests of younger files are not remembered
    yield (
        "start of the command to its first build, 100 models with 10 variants, digests kept",
        f"{min(seconds[1:]):.2f} s",
    )


def _interrupts(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    seconds, orphans = list[float](), Orphans()
    for _ in range(options.interrupts):
        with workshop() as folder:
            fleet, events = write_fleet(folder, 40), folder / "events.jsonl"
            process = started(fleet, environment(folder), "-j", "2", "--events", str(events))
            _heard(events, lambda found: sum(one["event"] == "stage" for one in found) >= 2, process)
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130, process.returncode
            seconds.append(time.monotonic() - began)
            orphans.count(folder)
    yield (
        f"Ctrl-C to the end of the command, 2 builds running, {options.interrupts} times",
        f"median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s; {orphans}",
    )


def _heard(path: Path, is_enough: Callable[[list[dict[str, Any]]], bool], process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None:
        text = path.read_text() if path.exists() else ""
        if is_enough([json.loads(line) for line in text.split("\n")[:-1]]):
            return
        time.sleep(0.005)
    raise AssertionError(f"ended with {process.returncode} before")


def _known(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    with workshop() as folder:
        fleet = write_fleet(folder, max(1, options.known // 10), 10)
        code = "import bench_farm, pathlib, sys; bench_farm.fill(pathlib.Path(sys.argv[1]))"
        env = environment(folder, Path(__file__).parent)
        assert ran([sys.executable, "-c", code, fleet], cwd=folder, env=env).code == 0
        batch, journal = [*NNDEPLOY, "batch", str(fleet)], ["--journal", str(folder / "another")]
        jobs = f"{options.known:,} jobs"
        yield (
            f"{jobs} that are there already, by the journal: the whole command with its reports",
            timed(batch, folder, 3),
        )
        yield f"{jobs} in the cache, no journal: `--plan`", timed([*batch, "--plan", "--json", *journal], folder, 2)
        yield f"{jobs} in the cache, no journal: every bundle copied and synced", timed([*batch, *journal], folder)


def fill(fleet: Path) -> None:
    """Fills a cache and a journal with all jobs of a fleet, none of which is built."""
    cached_compile.compile_in_child = _stand_in  # type: ignore[assignment]
    with opened_batch(fleet, BatchOptions(), Gates(), print) as opened:
        opened.run(Events(), {}, datetime.now(UTC))


def _stand_in(source: str, out: str, given: Mapping[str, Any], _l: Any, _o: Any, keeper: Any, *_: Any) -> BundleReport:
    Path(out).write_text(f"bundle of {source} {given}")
    report = BundleReport(
        backends=("native",), nodes=(), submodels=(), model="m", objective="latency", shapes=(), bundle=out,
        bundle_bytes=Path(out).stat().st_size, seconds={"build": 1.5},
    )  # fmt: skip
    keeper.keep_bundle(report, {"bundle": Path(out)})
    return report


def timed(command: list[str], folder: Path, times: int = 1) -> str:
    """Returns the least time that a command took, and its processor time."""
    best = (float("inf"), 0.0)
    for _ in range(times):
        began, before = time.monotonic(), _children_seconds()
        assert ran(command, 600, cwd=folder, env=environment(folder)).code == 0
        best = min(best, (time.monotonic() - began, _children_seconds() - before))
    return f"{best[0]:.2f} s, of processor time {best[1]:.2f} s"


def _children_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


if __name__ == "__main__":
    sys.exit(main())
