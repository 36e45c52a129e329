# SPDX-License-Identifier: Apache-2.0
"""What a batch would do: each job with its key, whether its bundle is known, and why not.

Comes in: jobs, the cache, what the journal knows. Goes out: planned jobs, the longest first. Law: the same jobs, files,
packages and cache give the same plan.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nndeploy.build_cache.entry import Entry
from nndeploy.build_cache.file_digests import FileDigests
from nndeploy.build_cache.key import Parts, key_of, least_differing
from nndeploy.build_cache.local_cache import LocalCache
from nndeploy.compiler.cache_key import MACHINE, parts_of_model, parts_of_options
from nndeploy.compiler.outputs import BUNDLE
from nndeploy.errors import NndeployError
from nndeploy.farm.job import Job, limits_of
from nndeploy.farm.job_options import given_here
from nndeploy.farm.journal import Journal
from nndeploy.farm.outcome import Outcome

BUILD, HIT, BUILT, FAILED, AFTER = "build", "hit", "built", "failed", "after"
"""To be built; in the cache; there already; known to fail; with a job that has the same key."""
SECONDS_A_MEGABYTE, LEAST_SECONDS = 2.0, 3.0
"""What a build is taken to need where no other of the model is known."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A job and its `key`, "" where it cannot be told; `state` is one of those above.

    `differs` names what differs from the nearest known build, None where none is known or asked for. `known` is what
    came of it before, where that is final.
    """

    job: Job
    key: str
    state: str
    differs: tuple[str, ...] | None = None
    known: Outcome | None = None

    @property
    def outcome(self) -> Outcome:
        """What came of a job that is built, or known to fail, as this call tells it."""
        assert self.known is not None, "it was not built before"
        status = "hit" if self.state == BUILT else self.known.status
        return replace(self.known, status=status, seconds=0.0, output=self.job.output)


class Planner:
    """Plans jobs; what several of them share is looked at once.

    With `on_any_machine` a job counts as built, or as known to fail, also where another machine built it, whose facts
    are parts of its key.
    """

    def __init__(
        self, cache: LocalCache | None, journal: Journal | None, digests: FileDigests, *, on_any_machine: bool = False
    ) -> None:
        self._cache = cache
        self._journal = journal
        self._digests = digests
        self._on_any_machine = on_any_machine
        self._of_models: dict[str, Parts] = {}
        self._of_options: dict[str, Parts] = {}
        self._near: dict[str, list[Entry]] = {}

    def planned(self, jobs: Sequence[Job], *, retries_failed: bool) -> list[Planned]:
        """Returns the jobs in the order in which they are to be begun."""
        leaders: dict[str, str] = {}
        found = []
        for job in jobs:
            one = self._planned(job, retries_failed)
            if one.state == BUILD and one.key:
                leader = leaders.setdefault(one.key, job.id)
                one = one if leader == job.id else replace(one, state=AFTER)
            found.append(one)
        return sorted(found, key=lambda one: (one.state == AFTER, one.state == BUILD, -one.job.estimate, one.job.id))

    def _planned(self, job: Job, retries_failed: bool) -> Planned:
        try:
            parts = self._parts(job)
        except NndeployError:  # the compile will say what is wrong
            return Planned(replace(job, estimate=LEAST_SECONDS), "", BUILD)
        key = key_of(parts)
        known = self._known(job, parts, key)
        if known is not None and known.is_good and self._journal is not None:
            if self._journal.is_untouched(known, job.output):
                return Planned(job, key, BUILT, known=known)
        elif known is not None and not retries_failed:
            return Planned(job, key, FAILED, known=known)
        entry = self._cache.entry(key) if self._cache is not None else None
        if entry is not None and self._cache is not None and BUNDLE in entry.outputs and self._cache.has_all(entry):
            return Planned(job, key, HIT)
        entries = self._builds_near(job.source)
        differs = least_differing(parts, (entry.parts for entry in entries))
        return Planned(replace(job, estimate=_seconds(job, entries)), key, BUILD, differs)

    def _known(self, job: Job, parts: Parts, key: str) -> Outcome | None:
        if self._journal is None:
            return None
        known = self._journal.known(job.id, key)
        if known is not None or not self._on_any_machine:
            return known
        inputs = {name: text for name, text in parts.items() if not name.startswith(MACHINE)}
        elsewhere = [
            outcome
            for outcome, machine in self._journal.all_known(job.id)
            if machine and outcome.key == key_of({**inputs, **machine})
        ]
        return max(elsewhere, key=lambda one: one.is_good, default=None)

    def _parts(self, job: Job) -> Parts:
        options = json.dumps([job.given, job.limits], sort_keys=True)
        ofs = _once(self._of_options, options, lambda: self._parts_of_options(job))
        return {**_once(self._of_models, job.source, lambda: parts_of_model(Path(job.source), self._digests)), **ofs}

    def _parts_of_options(self, job: Job) -> Parts:
        return parts_of_options(given_here(job.given), limits_of(job), self._digests)

    def _builds_near(self, source: str) -> list[Entry]:
        cache = self._cache
        return [] if cache is None else _once(self._near, source, lambda: cache.near(source))


def _once(known: dict[str, Any], key: str, make: Callable[[], Any]) -> Any:
    if key not in known:
        known[key] = make()
    return known[key]


def _seconds(job: Job, entries: Sequence[Entry]) -> float:
    """Returns how long a build will take: as the longest known one of the model, or by the model's size."""
    known = [entry.seconds for entry in entries if entry.seconds]
    if known:
        return max(known)
    try:
        return max(LEAST_SECONDS, Path(job.source).stat().st_size / 1e6 * SECONDS_A_MEGABYTE)
    except OSError:
        return LEAST_SECONDS
