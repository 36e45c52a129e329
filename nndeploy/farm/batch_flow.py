# SPDX-License-Identifier: Apache-2.0
"""A call of `nndeploy batch` on one page: fleet file -> jobs -> plan -> run -> publish -> gates -> reports.

Comes in: a fleet file and options. Goes out: a batch, and its reports where they were asked for. Laws: what a call did
is in the journal whatever ends it; reports tell of every job, those that were not run too.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path

from nndeploy.build_cache.file_digests import FileDigests
from nndeploy.build_cache.local_cache import LocalCache
from nndeploy.build_cache.remote_cache import RemoteCache
from nndeploy.compiler.cache_key import parts_of_machine
from nndeploy.compiler.cached_compile import CacheOptions, opened_cache, opened_remote
from nndeploy.compiler.compile_half import check_compile_half
from nndeploy.errors import (
    BusyError,
    CheckError,
    NndeployError,
    UnavailableError,
    UsageError,
    full_disk,
    tells_of_full_disk,
)
from nndeploy.farm.cluster.half import check_cluster_half
from nndeploy.farm.cluster.place import place_of
from nndeploy.farm.collect import collected
from nndeploy.farm.emit.commands import commands_of
from nndeploy.farm.emit.forms import FORMS
from nndeploy.farm.engine import Engine
from nndeploy.farm.expand import Plan, expand, job_called
from nndeploy.farm.fleet import Fleet
from nndeploy.farm.fleet_file import fleet_from_toml
from nndeploy.farm.hits_here import HitsHere
from nndeploy.farm.job_filter import filter_from_text, shard_from_text
from nndeploy.farm.journal import Journal
from nndeploy.farm.local_engine import LocalEngine
from nndeploy.farm.machine import machine_of
from nndeploy.farm.noted_signals import NotedSignals
from nndeploy.farm.options import BatchOptions
from nndeploy.farm.outcome import Outcome
from nndeploy.farm.planned import AFTER, BUILD, HIT, Planned, Planner
from nndeploy.farm.publish import Publisher
from nndeploy.farm.reports import Batch, Gates, check_reports, judged, read_batch, write_reports
from nndeploy.farm.resources import Slots, slots_of
from nndeploy.farm.run_batch import BatchRun, Events, left_out
from nndeploy.sandbox.memory import machine_memory_bytes
from nndeploy.target.target import host_target, num_cores
from nndeploy.values.amounts import counted

DIGESTS = "digests.json"
"""Beside the journals, which are the fleet's own: a cache may be one that others write to."""
Warn = Callable[[str], None]


@dataclass(frozen=True)
class Ended:
    """A batch that ended, or what was collected of it: then `num_missing` jobs are still to be built."""

    batch: Batch
    num_missing: int = 0

    def raise_if_failed(self) -> None:
        """Ends the command as its outcomes say.

        Raises:
            InputOutputError: a disk is full.
            UnavailableError: no worker can build what is not built.
            BusyError: a machine is to blame for what is not built; another call may do it.
            CheckError: jobs or gates failed.
        """
        counts, gates = self.batch.counts, len(self.batch.failed_gates)
        failed = sum(counts[status] for status in ("failed", "unsupported", "crash", "timeout", "memory"))
        if counts["infra"] and not failed:
            if any(one.error and tells_of_full_disk(one.error["message"]) for one in self.batch.outcomes):
                raise full_disk()
            if all(not one.sha256 and one.exit_code == UnavailableError.exit_code for one in self.batch.failures):
                hint = "`nndeploy batch --plan` says what they need"
                raise UnavailableError(f"no worker can build {counted(counts['infra'], 'job')}", hint=hint)
            told = f"{counted(counts['infra'], 'job')} could not be built or published: a machine failed"
            raise BusyError(told, hint="run it again")
        if self.num_missing and not (failed or gates):
            hint = "run the commands of --emit, or build them here without --collect"
            raise BusyError(f"{counted(self.num_missing, 'job')} {_are(self.num_missing)} not built yet", hint=hint)
        parts = [
            text
            for number, text in (
                (failed, f"{counted(failed + counts['infra'], 'job')} failed"),
                (counts["cancelled"], f"{counts['cancelled']} cancelled"),
                (self.num_missing, f"{self.num_missing} {_are(self.num_missing)} not built yet"),
                (gates, f"{counted(gates, 'gate')} failed"),
            )
            if number
        ]
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

    def planned(self, journal: Journal, digests: FileDigests, *, on_any_machine: bool = False) -> list[Planned]:
        """Returns the jobs in the order in which they are to be begun; `on_any_machine` as for `Planner`."""
        planner = Planner(self.cache, journal, digests, on_any_machine=on_any_machine)
        return planner.planned(self.jobs.jobs, retries_failed=self.options.retry_failed)

    @property
    def slots(self) -> Slots:
        """What this machine gives to the batch."""
        return slots_of(self.jobs.jobs, self.options.jobs or self.fleet.jobs, num_cores(), machine_memory_bytes())

    def why_no_worker(self) -> Mapping[str, str]:
        """Returns why this machine will never build some jobs, by id: none with a cluster, which is not asked."""
        machine = machine_of(self.slots, host_target())
        return (
            {}
            if self.options.cluster
            else {job.id: reason for job in self.jobs.jobs if (reason := machine.why_never(job))}
        )

    def run(self, events: Events, environment: Mapping[str, str], now: datetime) -> Ended:
        """Runs the batch to its end and writes the reports.

        Raises:
            KeyboardInterrupt, SystemExit: a signal came; what had ended is in the journal and the reports, and no child
                is left.
            NndeployError: nothing could be begun, or the journal or a report not be written; no child is left.
        """
        check_compile_half()
        began, before, publisher = time.monotonic(), self._begun(), self._publisher()
        with (
            Journal(self.journal_folder, job=self.options.only, is_fresh=self.options.fresh) as journal,
            ExitStack() as held,
        ):
            digests = self.digests()
            planned = self.planned(journal, digests)
            digests.keep()
            engine = self._engine(planned, self.slots, events)
            held.callback(engine.close)
            journal.plan(self.jobs.digest, len(self.jobs.jobs), parts_of_machine())
            most = 1 if self.options.fail_fast else self.options.max_failures
            run = BatchRun(engine, journal, events, self.fleet.where, most)
            try:
                with NotedSignals() as signals:
                    run.run(planned, signals.check)
            except BaseException as err:  # also what a full disk makes of the journal
                if isinstance(err, KeyboardInterrupt | SystemExit):
                    signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # a second one ends at once
                run.interrupt()
                if run.outcomes:  # else a report of an earlier call says more
                    with suppress(NndeployError):
                        self._reported(run.outcomes, before, None, environment, now, began)
                raise
        return Ended(self._reported(run.outcomes, before, publisher, environment, now, began))

    def collect(self, environment: Mapping[str, str], now: datetime) -> Ended:
        """Takes what was built elsewhere and writes the reports; builds nothing.

        Raises:
            NndeployError: the journal cannot be read, or a report not be written.
        """
        began, before, publisher = time.monotonic(), self._begun(), self._publisher()
        outcomes = collected(planned_batch(self, on_any_machine=True), self.cache)
        batch = self._reported(outcomes, before, publisher, environment, now, began)
        return Ended(batch, sum(one.status == "skipped" for one in outcomes))

    def _begun(self) -> Batch | None:
        """Returns the batch before; what keeps the reports from being made ends the call before anything is done."""
        if not self.options.only:
            check_reports(self.fleet.reports)
        return read_batch(Path(self.options.against)) if self.options.against is not None else None

    def _reported(
        self,
        outcomes: Sequence[Outcome],
        before: Batch | None,
        publisher: Publisher | None,
        environment: Mapping[str, str],
        now: datetime,
        began: float,
    ) -> Batch:
        """Returns the batch of these outcomes, published, held against the gates and reported.

        What the reports tell of jobs that a filter left out is what the last one did.
        """
        ended = outcomes if publisher is None else publisher.published(self.jobs.jobs, outcomes)
        told = [self._told(one) for one in (*ended, *left_out(self.jobs.filtered))]
        batch = Batch(
            plan=self.jobs.told_digest, started=now.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - began, 3), outcomes=tuple(told),
        )  # fmt: skip
        is_part = bool(self.options.filters or self.options.shard or self.options.only)
        gates = self.gates if before is not None or not self.options.only else self.gates.of_one_batch
        batch = judged(batch, before, gates, is_part=is_part)
        if not self.options.only:
            write_reports(self._with_last(batch), self.fleet.reports, self.fleet.folder, environment)
        if publisher is not None and not is_part:  # a page about a part would hide the others
            publisher.write_index(self.jobs.jobs, batch)
        return batch

    def _with_last(self, batch: Batch) -> Batch:
        """Returns a batch with what the last report of the same jobs says of those that were left out."""
        path = self.fleet.reports.json
        if not self.jobs.filtered or path is None or not path.exists():
            return batch
        try:
            last = read_batch(path)
        except NndeployError as err:
            self.warn(f"the last report is not kept: {err}")
            return batch
        if last.plan != batch.plan:
            self.warn(f"{path}: is of other jobs or options: those that were not selected are skipped in the new one")
            return batch
        return batch.with_kept(last)

    def _engine(self, planned: Sequence[Planned], slots: Slots, events: Events) -> Engine:
        options = self.options
        here = LocalEngine(slots, host_target(), self.caching, events.stage, self.remote)
        if not options.cluster:
            return here
        place = place_of(options.cluster, options.certificates, self.fleet.cluster, insecure=options.insecure)
        check_cluster_half()
        from nndeploy.farm.cluster.engine import cluster_engine

        cluster = cluster_engine(place, slots, events.stage, self.warn, self.digests(), options.worker_wait)
        return HitsHere({one.job.id for one in planned if one.state == HIT}, here, cluster)

    def digests(self) -> FileDigests:
        """Returns the digests of files that earlier calls left."""
        return FileDigests(self.journal_folder.parent / DIGESTS)

    def _publisher(self) -> Publisher | None:
        """Returns who publishes; one job alone does not, as the machine that builds it needs no key for that."""
        if self.fleet.publish is None or self.options.only:
            return None
        return Publisher(self.fleet.publish, self.fleet.where)

    def _told(self, outcome: Outcome) -> Outcome:
        """Returns an outcome with its output as the fleet file's folder sees it."""
        inside = f"{self.fleet.folder}{os.sep}"
        output = outcome.output
        return replace(outcome, output=output[len(inside) :]) if output.startswith(inside) else outcome


@contextmanager
def opened_batch(path: Path, options: BatchOptions, gates: Gates, warn: Warn) -> Iterator[OpenedBatch]:
    """Yields the batch of a fleet file.

    Raises:
        NndeployError: the file or an option is malformed, or does not exist.
    """
    if gates.comparing and options.against is None:
        asked = ", ".join(f"--{name.replace('_', '-')}" for name in gates.comparing)
        raise UsageError(f"{asked}: there is nothing to compare with", hint="--against batch.json, of an earlier batch")
    fleet = fleet_from_toml(path)
    filters = [filter_from_text(text, fleet.keys) for text in options.filters]
    shard = shard_from_text(options.shard) if options.shard else None
    jobs = expand(fleet, filters, shard, options.only)
    for note in jobs.notes:
        warn(note)
    caching = _caching(fleet)
    try:
        cache, remote = opened_cache(caching, warn), opened_remote(caching, warn)
    except NndeployError as err:
        warn(f"no cache is used: {err}")
        cache, remote, caching = None, None, replace(caching, cache=False)
    root = Path(options.journal) if options.journal is not None else fleet.folder / ".nndeploy" / "batch"
    # parts of one batch know of each other's work
    folder = root / jobs.whole_digest[:16]
    try:
        yield OpenedBatch(fleet, options, _joined(fleet, gates), jobs, caching, cache, remote, folder, warn)
    finally:
        if cache is not None:
            cache.tell_unused()


def _caching(fleet: Fleet) -> CacheOptions:
    folder = next((text for text in fleet.cache if text.startswith("/")), None)
    address = next((text for text in fleet.cache if "://" in text), "")
    return CacheOptions(cache_dir=folder, cache_remote=address, cache_push=fleet.push, cache_ca=fleet.cache_ca)


def planned_batch(opened: OpenedBatch, *, on_any_machine: bool = False) -> list[Planned]:
    """Returns what a batch would do; nothing is written."""
    with Journal(opened.journal_folder, is_fresh=opened.options.fresh, is_read=True) as journal:
        return opened.planned(journal, opened.digests(), on_any_machine=on_any_machine)


def emitted(opened: OpenedBatch, form: str) -> tuple[str, int]:
    """Returns the commands of the jobs that are to be built, in a form of `nndeploy.farm.emit`, and how many they are.

    Raises:
        UsageError: the path of the fleet file holds what no form can.
    """
    to_build = [one for one in planned_batch(opened, on_any_machine=True) if one.state in (BUILD, AFTER)]
    return FORMS[form].text(commands_of(to_build, opened.fleet, opened.options)), len(to_build)


def why_of(opened: OpenedBatch, job: str) -> Planned:
    """Returns a job of the plan by its id.

    Raises:
        UsageError: there is none of that name.
    """
    found = job_called(job, opened.jobs.jobs)
    return next(one for one in planned_batch(opened) if one.job.id == found.id)


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _joined(fleet: Fleet, gates: Gates) -> Gates:
    """Returns the gates of a fleet file, with those of the command line in their place."""
    usual = Gates()
    given = {
        field.name: value
        for field in fields(Gates)
        if (value := getattr(gates, field.name)) != getattr(usual, field.name)
    }
    return replace(fleet.gates, **given)
