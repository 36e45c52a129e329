# SPDX-License-Identifier: Apache-2.0
"""The farm under torture: hostile models, kills, planted entries of the cache; and how long what is known takes.

    python tests/bench/bench_farm.py [--write] [--jobs 200] [--kills 20] [--mutants 1000000] [--known 10000]

Everything but the mutants runs as commands, with child processes that really crash, hang, fork and are killed.
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

import figures
from hostile_fleet import (
    EXPECTED,
    with_full_disks,
    write_fleet,
    write_hostile_fleet,
    write_hostile_plugin,
    write_model,
)
from native_engines import machine_name

from nndeploy.build_cache.entry import Blob, Entry, encode
from nndeploy.build_cache.local_cache import LocalCache
from nndeploy.bundle.report import Report
from nndeploy.compiler import cached_compile
from nndeploy.compiler.compile_server import compile_server
from nndeploy.compiler.job import Onlooker, compile_in_child
from nndeploy.compiler.options import CompileLimits
from nndeploy.errors import BusyError
from nndeploy.farm.batch_flow import opened_batch
from nndeploy.farm.options import BatchOptions
from nndeploy.farm.reports import Gates
from nndeploy.farm.run_batch import MAX_TRIES, Events
from nndeploy.options.texts import names_in
from nndeploy.sandbox.child_process import children_of, start_child
from nndeploy.trust.signers import new_key
from nndeploy.trust.trust_store import CODE, TrustedKey, TrustStore

sys.path.append(str(Path(__file__).resolve().parents[1]))
COMMAND = [sys.executable, "-m", "nndeploy"]
SHARES = {
    "garbage": 20, "crash": 24, "gate": 12, "good": 16, "orphan": 12, "hang": 4, "memory": 4, "killed": 4, "full": 4,
}  # fmt: skip
"""How many of a hundred jobs are of which kind."""


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
ORPHAN_SECONDS, PATIENCE_SECONDS = 1.0, 15.0
NUM_KILLED_JOBS, CHILD_SHARE = 10, 0.3
DICE = random.Random(20261126)  # noqa: S311 - no secret
REPORT = Report(backends=("native",), nodes=(), submodels=(), model="m", objective="latency", shapes=())
PAGE = """{header}# The farm: figures

`make bench-farm ARGS="{arguments}"` ([tests/bench/bench_farm.py](../../tests/bench/bench_farm.py)). The load average
of the machine, {cores} cores, was {loads} when the parts of this table began: times are those of a
machine that others used too, and processor time says what a quiet one needs at most.

| what | result |
| --- | --- |
{rows}

Hostile models crash the process of their compile, kill it, fork a process that ignores every signal that may be
ignored and leaves the session, hang, take memory, go to a disk that is full, or are no models
([hostile_fleet.py](../../tests/bench/hostile_fleet.py)). Lost are jobs without an outcome, doubled those with two,
wrong those with another one than the model's. Orphans are processes of the batch that outlive it: one whose
interpreter had not started yet when its parent was killed sees so once it has, which takes longer on a machine that is
busy. Processes below the command are compiles and what they start, and of a cluster its scheduler and workers. Mutants
of entries are flipped, cut, swapped and lengthened; planted ones are right in all but that the key which
signed them is not trusted; a mutant counts as served where another content came out than was put in.
"""


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
    return logged([*COMMAND, "batch", str(fleet), *more], fleet.parent, env)


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
        """Counts those of a batch that has ended now."""
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


def torture(num_jobs: int, places: Sequence[Place]) -> Iterator[tuple[str, str]]:
    """Builds models that break what builds them, here and on workers; no job may be lost, doubled or told wrong."""
    counts = {kind: max(1, share * num_jobs // 100) for kind, share in SHARES.items()}
    for place in places:
        with workshop() as folder:
            fleet = write_hostile_fleet(folder, counts)
            command = with_full_disks(folder, [*COMMAND, "batch", str(fleet), *place.options])
            began = time.monotonic()
            process = logged(command, folder, environment(folder, write_hostile_plugin(folder / "plugin")))
            code = process.wait()
            seconds = time.monotonic() - began
            orphans = Orphans()
            orphans.count(folder)
            jobs = json.loads((folder / "report" / "batch.json").read_text())["jobs"]
            found = Counter(job["job"] for job in jobs)
            wrong = [job for job in jobs if job["status"] != EXPECTED[job["model"].partition("-")[0]]]
            tries = [job for job in jobs if job["tries"] != (MAX_TRIES if job["status"] == "infra" else 1)]
            lost, doubled = (
                sum(counts.values()) - len(found),
                sum(one > 1 for one in (finals(folder) | found).values()),
            )
            for job in (*wrong, *tries):
                print("wrong:", job["job"], job["status"], job["tries"], job["error"], file=sys.stderr)
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        yield (
            f"{sum(counts.values())} jobs {place.told}, of them {kinds}",
            f"{lost} lost, {doubled} doubled, {len(wrong)} wrong, {len(tries)} tried too often or too seldom, "
            f"{orphans}, exit code {code}, {seconds:.0f} s",
        )


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
        self.doubled += sum(one > 1 for one in done.values())


def kills(count: int, places: Sequence[Place]) -> Iterator[tuple[str, str]]:
    """Kills the command, or a process below it, at random moments; it is called again until all is built."""
    for place in places:
        killed, orphans = Killed(), Orphans()
        while killed.commands + killed.children < count:
            with workshop() as folder:
                killed.run(write_fleet(folder, NUM_KILLED_JOBS, 1), place, orphans)
        yield (
            f"{killed.commands:,} kill -9 of the command and {killed.children:,} of processes below it {place.told}; "
            f"resumed until {killed.jobs:,} jobs are built",
            f"{killed.lost} lost, {killed.doubled} doubled, {killed.failed} batches ended otherwise, {killed.repeated} "
            f"builds begun again ({killed.repeated / max(1, killed.commands):.1f} a kill, 2 run at once), {orphans}",
        )


def _unfinished(folder: Path) -> int:
    """Returns how many tries began of which the journal has no end."""
    kinds = (
        Counter(row["row"] for row in rows_of(folder)) if list(folder.glob(".nndeploy/batch/*/*")) else Counter[str]()
    )
    return kinds["started"] - kinds["finished"]


def interrupts(count: int) -> Iterator[tuple[str, str]]:
    seconds, orphans = list[float](), Orphans()
    for _ in range(count):
        with workshop() as folder:
            fleet = write_fleet(folder, 40)
            process = started(fleet, environment(folder), "-j", "2", "--events", str(folder / "events.jsonl"))
            _heard(folder / "events.jsonl", lambda events: sum(one["event"] == "stage" for one in events) >= 2, process)
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130, process.returncode
            seconds.append(time.monotonic() - began)
            orphans.count(folder)
    yield (
        f"Ctrl-C to the end of the command, 2 builds running, {count} times",
        f"median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s; {orphans}",
    )


def _heard(path: Path, is_enough: Callable[[list[dict[str, Any]]], bool], process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None:
        text = path.read_text() if path.exists() else ""
        if is_enough([json.loads(line) for line in text.split("\n")[:-1]]):
            return
        time.sleep(0.005)
    raise AssertionError(f"ended with {process.returncode} before")


def mutants(count: int) -> Iterator[tuple[str, str]]:
    from byte_mutants import KINDS, mutant

    dice, num_served = random.Random(20261126), 0  # noqa: S311 - no secret
    with workshop() as folder:
        signer, stranger = new_key(folder / "a.key"), new_key(folder / "b.key")
        store = TrustStore({signer.public.id: TrustedKey(signer.public, "farm", frozenset((CODE,)))})
        cache = LocalCache(folder / "cache", store, signer)
        (folder / "bundle").write_bytes(dice.randbytes(300))
        blob = cache.add_file(folder / "bundle")
        entry, other = (Entry({"model": name, "tool:a": "1.0"}, {"bundle": blob}, 1.5) for name in "mn")
        planted = replace(entry, outputs={"bundle": Blob("ab" * 32, 300)})
        texts = {"planted": encode(planted, stranger), "of another key": encode(other, signer)}
        for one in (entry, other):
            cache.add(one, "near")
        place, whole = cache.folder / "ac" / entry.key[:2] / entry.key, encode(entry, signer)
        content = (folder / "bundle").read_bytes()
        began = time.monotonic()
        for number in range(count):
            if number % 2:
                text = (
                    texts["planted"]
                    if number % 10 == 1
                    else texts["of another key"]
                    if number % 10 == 3
                    else mutant(whole, dice, dice.randrange(KINDS))
                )
                place.write_bytes(text)
                found = cache.entry(entry.key)
                num_served += found is not None and found != entry
            else:
                data = mutant(content, dice, dice.randrange(KINDS))
                path = cache.place(blob)
                if path.exists():
                    path.unlink()
                path.write_bytes(data)
                taken = cache.content(blob)
                num_served += taken is not None and taken != content
        place.write_bytes(whole)
        assert cache.entry(entry.key) == entry, "the cache would serve nothing at all"
        yield (
            f"{count:,} entries and files of a cache, flipped, cut, longer, swapped or planted",
            f"{num_served} served, {time.monotonic() - began:.0f} s",
        )


def _stand_in(
    source: str,
    out: str,
    given: Mapping[str, Any],
    _limits: Any,
    _onlooker: Any,
    keeper: Any = None,
    start: Any = None,
) -> Report:
    """Builds nothing, so that ten thousand jobs can be there already."""

    Path(out).write_text(f"bundle of {source} {given}")
    report = replace(REPORT, bundle=out, bundle_bytes=Path(out).stat().st_size, seconds={"build": 1.5})
    keeper.keep_bundle(report, {"bundle": Path(out)})
    return report


def _filled(fleet: Path) -> None:
    """Builds all jobs of a fleet with the stand-in, in a process of its own."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import bench_farm; from pathlib import Path; "
        "bench_farm.fill(Path(sys.argv[2]))"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent), str(fleet)],
        check=True,
        cwd=fleet.parent,
        env=environment(fleet.parent),
    )


def fill(fleet: Path) -> None:
    cached_compile.compile_in_child = _stand_in  # type: ignore[assignment]
    with opened_batch(fleet, BatchOptions(), Gates(), print) as opened:
        opened.run(Events(), {}, datetime.now(UTC))


def timed(command: list[str], folder: Path, times: int = 1) -> str:
    """Returns the least time that a command took, and its processor time."""
    best = (float("inf"), 0.0)
    for _ in range(times):
        began, before = time.monotonic(), os.times()
        subprocess.run(command, check=True, cwd=folder, env=environment(folder), capture_output=True, timeout=600)
        wall, after = time.monotonic() - began, os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        best = min(best, (wall, used))
    return f"{best[0]:.2f} s, of processor time {best[1]:.2f} s"


def known(count: int) -> Iterator[tuple[str, str]]:
    with workshop() as folder:
        fleet = write_fleet(folder, max(1, count // 10), 10)
        _filled(fleet)
        batch = [*COMMAND, "batch", str(fleet)]
        yield (
            f"{count:,} jobs that are there already, by the journal: the whole command with its reports",
            timed(batch, folder, 3),
        )
        journal = ["--journal", str(folder / "another")]
        yield (
            f"{count:,} jobs in the cache, no journal: `--plan`",
            timed([*batch, "--plan", "--json", *journal], folder, 2),
        )
        yield (
            f"{count:,} jobs in the cache, no journal: every bundle copied and synced",
            timed([*batch, *journal], folder),
        )


def first_build(_count: int) -> Iterator[tuple[str, str]]:
    seconds = []
    with workshop() as folder:
        fleet, env = write_fleet(folder, 100, 10), environment(folder)
        for _ in range(4):
            events = folder / "events.jsonl"
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


def second_compile(times: int) -> Iterator[tuple[str, str]]:
    with workshop() as folder:
        write_model(folder / "m.onnx", 1)
        command = [*COMMAND, "compile", "m.onnx", "-o", "m.nnd", "--cache-dir", "cache"]
        yield "the first compile of a small model", timed(command, folder)
        yield "the second one, a hit: the whole command", timed(command, folder, times)


def small_compiles(count: int) -> Iterator[tuple[str, str]]:
    """Compares processes of compiles that are forked with such that are started anew, in turns."""
    used: dict[bool, list[float]] = {True: [], False: []}
    with workshop() as folder:
        for number in range(count):
            write_model(folder / f"{number}.onnx", number)
        for is_forked in (True, False) * 3:
            before = os.times()
            with contextlib.closing(compile_server()) as server:
                start = server.start_child if is_forked else start_child
                for model in folder.glob("*.onnx"):
                    out = str(model.with_suffix(".nnd"))
                    compile_in_child(
                        str(model), out, {"objective": "priority"}, CompileLimits(), Onlooker(), start=start
                    )
            after = os.times()
            both = after.children_user + after.children_system - before.children_user - before.children_system
            used[is_forked].append(both / count)
    forked, anew = (statistics.median(used[which]) for which in (True, False))
    yield (
        f"processor time of a small compile, the mean of {count} with `--objective priority`, medians of three rounds",
        f"{forked:.2f} s where its process is forked, {anew:.2f} s where it is started anew",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, number in (
        ("jobs", 200),
        ("kills", 20),
        ("mutants", 1_000_000),
        ("known", 10_000),
        ("interrupts", 5),
        ("hits", 10),
        ("small", 16),
    ):
        parser.add_argument(f"--{name}", type=int, default=number, help="default: %(default)s; 0 leaves it out")
    parser.add_argument(
        "--places", type=names_in, default=tuple(PLACES), help=f"of --jobs and --kills: {', '.join(PLACES)}"
    )
    parser.add_argument("--write", action="store_true", help="write docs/figures/farm-results.md")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored, and so by all below
    places = [PLACES[name] for name in options.places]
    parts: tuple[tuple[Callable[[int], Iterator[tuple[str, str]]], int], ...] = (
        (second_compile, options.hits), (small_compiles, options.small), (first_build, options.known),
        (interrupts, options.interrupts), (known, options.known),
        (partial(kills, places=places), options.kills), (partial(torture, places=places), options.jobs),
        (mutants, options.mutants),
    )  # fmt: skip
    rows, loads = [], []
    for part, count in parts:
        if count:
            loads.append(f"{os.getloadavg()[0]:.0f}")
            for row in part(count):
                rows.append("| {} | {} |".format(*row))
                print(rows[-1], flush=True)
    if options.write:
        header = figures.header(figures.figure("farm-results.md"), machine_name())
        text = PAGE.format(
            header=header,
            arguments=" ".join(sys.argv[1:]),
            cores=os.cpu_count(),
            loads=", ".join(loads),
            rows="\n".join(rows),
        )
        (figures.FIGURES / "farm-results.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
