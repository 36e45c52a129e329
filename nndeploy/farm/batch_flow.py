# SPDX-License-Identifier: Apache-2.0
"""A call of `nndeploy batch` on one page: fleet file -> jobs -> plan -> run -> publish -> gates -> reports.

Comes in: a fleet file and options. Goes out: a batch, and its reports where they were asked for. Laws: what a call did
is in the journal whatever ends it; reports tell of every job, those that were not run too.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path

from nndeploy.build_cache.file_digests import FileDigests
from nndeploy.build_cache.local_cache import LocalCache
from nndeploy.build_cache.remote_cache import RemoteCache
from nndeploy.compiler.cached_compile import CacheOptions, opened_cache, opened_remote
from nndeploy.compiler.compile_half import check_compile_half
from nndeploy.errors import BusyError, CheckError, NndeployError, UsageError, did_you_mean
from nndeploy.farm.cluster_half import check_cluster_half
from nndeploy.farm.cluster_place import place_of
from nndeploy.farm.engine import Engine
from nndeploy.farm.expand import Plan, expand
from nndeploy.farm.fleet import Fleet
from nndeploy.farm.fleet_file import fleet_from_toml
from nndeploy.farm.hits_here import HitsHere
from nndeploy.farm.job_filter import filter_from_text, shard_from_text
from nndeploy.farm.journal import Journal
from nndeploy.farm.local_engine import LocalEngine
from nndeploy.farm.options import BatchOptions
from nndeploy.farm.outcome import Outcome
from nndeploy.farm.planned import HIT, Planned, Planner
from nndeploy.farm.publish import Publisher
from nndeploy.farm.reports import Batch, Gates, judged, read_batch, write_reports
from nndeploy.farm.resources import Slots, slots_of
from nndeploy.farm.run_batch import BatchRun, Events, left_out
from nndeploy.jobs.memory import machine_memory_bytes
from nndeploy.target.target import host_target, num_cores

DIGESTS = "digests.json"
"""Beside the journals, which are the fleet's own: a cache may be one that others write to."""
Warn = Callable[[str], None]


@dataclass(frozen=True)
class Ended:
    """A batch that ended; `slots` is what the machine gave to it."""

    batch: Batch
    slots: Slots

    def raise_if_failed(self) -> None:
        """Ends the command as its outcomes say.

        Raises:
            BusyError: a machine is to blame for what is not built; another call may do it.
            CheckError: jobs or gates failed.
        """
        counts, gates = self.batch.counts, len(self.batch.failed_gates)
        failed = sum(counts[status] for status in ("failed", "unsupported", "crash", "timeout", "memory"))
        if counts["infra"] and not failed:
            raise BusyError(
                f"{counts['infra']} jobs could not be built or published for want of a machine", hint="run it again"
            )
        parts = [
            f"{number} {what}"
            for number, what in (
                (failed + counts["infra"], "jobs failed"), (counts["cancelled"], "were cancelled"),
                (gates, "gates failed"),
            )
            if number
        ]  # fmt: skip
        if parts:
            raise CheckError(", ".join(parts))


@dataclass(frozen=True)
class OpenedBatch:
    """A fleet, its jobs, and what is known of them."""

    fleet: Fleet
    options: BatchOptions
    gates: Gates
    jobs: Plan
    caching: CacheOptions
    cache: LocalCache | None
    remote: RemoteCache | None
    journal_folder: Path
    warn: Warn

    def planned(self, journal: Journal) -> list[Planned]:
        """Returns the jobs in the order in which they are to be begun."""
        planner = Planner(self.cache, journal, self._digests())
        return planner.planned(self.jobs.jobs, retries_failed=self.options.retry_failed)

    @property
    def slots(self) -> Slots:
        """What this machine gives to the batch."""
        return slots_of(self.jobs.jobs, self.options.jobs or self.fleet.jobs, num_cores(), machine_memory_bytes())

    def run(self, events: Events, environment: Mapping[str, str], now: datetime) -> Ended:
        """Runs the batch to its end and writes the reports.

        Raises:
            KeyboardInterrupt, SystemExit: a signal came; what had ended is in the journal, and no child is left.
            NndeployError: nothing could be begun, or the journal or a report not be written; no child is left.
        """
        check_compile_half()
        began, slots = time.monotonic(), self.slots
        publisher = self._publisher()
        before = read_batch(Path(self.options.against)) if self.options.against is not None else None
        with Journal(self.journal_folder, is_fresh=self.options.fresh) as journal, ExitStack() as held:
            planned = self.planned(journal)
            engine = self._engine(planned, slots, events)
            held.callback(engine.close)
            journal.write("plan", digest=self.jobs.digest, jobs=len(self.jobs.jobs))
            most = 1 if self.options.fail_fast else self.options.max_failures
            run = BatchRun(engine, journal, events, self.fleet.where, most)
            try:
                run.run(planned)
            except BaseException as err:  # also what a full disk makes of the journal
                if isinstance(err, KeyboardInterrupt | SystemExit):
                    signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # a second one ends at once
                run.interrupt()
                raise
        ended = run.outcomes if publisher is None else publisher.published(self.jobs.jobs, run.outcomes)
        outcomes = [self._told(one) for one in (*ended, *left_out(self.jobs.filtered))]
        batch = Batch(
            plan=self.jobs.digest, started=now.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - began, 3), outcomes=tuple(outcomes),
        )  # fmt: skip
        is_part = bool(self.options.filters or self.options.shard)
        batch = judged(batch, before, self.gates, is_part=is_part)
        write_reports(batch, self.fleet.reports, self.fleet.folder, environment)
        if publisher is not None and not is_part:  # a page about a part would hide the others
            publisher.write_index(self.jobs.jobs, batch)
        return Ended(batch, slots)

    def _engine(self, planned: Sequence[Planned], slots: Slots, events: Events) -> Engine:
        options = self.options
        here = LocalEngine(slots, host_target(), self.caching, events.stage, self.remote)
        if not options.cluster:
            return here
        place = place_of(options.cluster, options.certificates, self.fleet.cluster, insecure=options.insecure)
        check_cluster_half()
        from nndeploy.farm.cluster_engine import cluster_engine

        cluster = cluster_engine(place, slots, events.stage, self.warn, self._digests(), options.worker_wait)
        return HitsHere({one.job.id for one in planned if one.state == HIT}, here, cluster)

    def _digests(self) -> FileDigests:
        return FileDigests(self.journal_folder.parent / DIGESTS)

    def _publisher(self) -> Publisher | None:
        return None if self.fleet.publish is None else Publisher(self.fleet.publish, self.fleet.where)

    def _told(self, outcome: Outcome) -> Outcome:
        """Returns an outcome with its output as the fleet file's folder sees it."""
        inside = f"{self.fleet.folder}{os.sep}"
        output = outcome.output
        return replace(outcome, output=output[len(inside) :]) if output.startswith(inside) else outcome


@contextmanager
def opened_batch(path: Path, options: BatchOptions, gates: Gates, warn: Warn) -> Iterator[OpenedBatch]:
    """Yields the batch of a fleet file.

    Raises:
        NndeployError: the file or an option is malformed, or names what is not there.
    """
    fleet = fleet_from_toml(path)
    filters = [filter_from_text(text, fleet.keys) for text in options.filters]
    shard = shard_from_text(options.shard) if options.shard else None
    jobs = expand(fleet, filters, shard)
    for note in jobs.notes:
        warn(note)
    caching = _caching(fleet)
    try:
        cache, remote = opened_cache(caching, warn), opened_remote(caching, warn)
    except NndeployError as err:
        warn(f"no cache is used: {err}")
        cache, remote, caching = None, None, replace(caching, cache=False)
    root = Path(options.journal) if options.journal is not None else fleet.folder / ".nndeploy" / "batch"
    is_whole = not (filters or shard)
    every = jobs.digest if is_whole else expand(fleet).digest  # parts of one batch know of each other's work
    yield OpenedBatch(fleet, options, _joined(fleet, gates), jobs, caching, cache, remote, root / every[:16], warn)


def _caching(fleet: Fleet) -> CacheOptions:
    folder = next((text for text in fleet.cache if text.startswith("/")), None)
    address = next((text for text in fleet.cache if "://" in text), "")
    return CacheOptions(cache_dir=folder, cache_remote=address, cache_push=fleet.push, cache_ca=fleet.cache_ca)


def planned_batch(opened: OpenedBatch) -> list[Planned]:
    """Returns what a batch would do; nothing is written."""
    with Journal(opened.journal_folder, is_read=True) as journal:
        return opened.planned(journal)


def why_of(opened: OpenedBatch, job: str) -> Planned:
    """Returns a job of the plan by its id.

    Raises:
        UsageError: there is none of that name.
    """
    planned = {one.job.id: one for one in planned_batch(opened)}
    if job not in planned:
        raise UsageError(f"there is no job {job!r:.80}", hint=did_you_mean(job, sorted(planned)))
    return planned[job]


def _joined(fleet: Fleet, gates: Gates) -> Gates:
    """Returns the gates of a fleet file, with those of the command line in their place."""
    given = {field.name: value for field in fields(Gates) if (value := getattr(gates, field.name))}
    return replace(fleet.gates, **given)
