# SPDX-License-Identifier: Apache-2.0
"""What came of jobs that an engine elsewhere built: from the journal that they share, and from the cache.

Comes in: planned jobs. Goes out: an outcome of each, with its bundle in its place where there is one. Law: nothing is
built.
"""

from collections.abc import Sequence
from pathlib import Path

from nndeploy.build_cache.local_cache import LocalCache
from nndeploy.compiler.cached_compile import bundle_from_cache
from nndeploy.errors import BusyError, NndeployError, told_error
from nndeploy.farm.build_job import status_of
from nndeploy.farm.job import Job
from nndeploy.farm.job_options import given_here
from nndeploy.farm.outcome import Outcome, fields_of, outcome_of
from nndeploy.farm.planned import HIT, Planned
from nndeploy.files.whole_files import make_folder_of

NOT_BUILT = BusyError("is not built yet")


def collected(jobs: Sequence[Planned], cache: LocalCache | None) -> list[Outcome]:
    """Returns the outcomes of jobs; one that nobody built is "skipped"."""
    return [_collected(one, cache) for one in jobs]


def _collected(one: Planned, cache: LocalCache | None) -> Outcome:
    if one.known is not None:
        return one.outcome
    if one.state == HIT and cache is not None:
        return _taken(one, cache)
    return _missing(one.job, "skipped", NOT_BUILT)


def _taken(one: Planned, cache: LocalCache) -> Outcome:
    job = one.job
    try:
        make_folder_of(Path(job.output))
        found = bundle_from_cache(cache, one.key, job.output, given_here(job.given))
    except NndeployError as err:
        return _missing(job, status_of(err), err)
    if found is None:
        return _missing(job, "skipped", NOT_BUILT)
    report, sha256 = found
    return outcome_of({**fields_of(job), "status": "hit", "key": one.key, "sha256": sha256}, report)


def _missing(job: Job, status: str, why: NndeployError) -> Outcome:
    return Outcome(**fields_of(job), status=status, error=told_error(why))
