# SPDX-License-Identifier: Apache-2.0
"""Models x targets x variants -> the jobs of a batch.

What is asked of a job is, in this order and each in place of what came before: [options] and [farm], the [[models]]
tables that find its model, its values of the [matrix], the [[override]] tables that match it. Law: the same file on the
same tree gives the same jobs in the same order, by id.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from nndeploy.errors import DataError, NndeployError, UsageError, did_you_mean
from nndeploy.farm.fleet import Fleet, Match, Publish, Settings
from nndeploy.farm.job import HOST, Job, job_id, job_to_json
from nndeploy.farm.job_filter import Shard
from nndeploy.farm.job_options import check_given, known_box, with_paths
from nndeploy.farm.matching_files import matching_files
from nndeploy.farm.rooted_path import rooted_path
from nndeploy.farm.template import PLACEHOLDERS, filled
from nndeploy.farm.unique_names import unique_names
from nndeploy.files.strict_json import canonical_json
from nndeploy.registry.reference import Reference, reference_from_text
from nndeploy.target.known_targets import target_of

MAX_JOBS = 1 << 18
"""More than a farm builds in a night; a matrix multiplies quickly."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The jobs of a call, sorted by id; those that a filter left out; what a user should know.

    `digest` is that of the jobs, `whole_digest` that of the whole batch, of which they may be a part.
    """

    jobs: tuple[Job, ...]
    filtered: tuple[Job, ...]
    notes: tuple[str, ...]
    digest: str
    whole_digest: str

    @property
    def told_digest(self) -> str:
        """The digest of the jobs that a report tells of, those that a filter left out among them."""
        return self.whole_digest if self.filtered else self.digest


@dataclass(frozen=True, slots=True)
class _Named:
    """A job, and its names by key: model, target, variant and the axes."""

    names: Mapping[str, str]
    job: Job


def expand(fleet: Fleet, filters: Sequence[Match] = (), shard: Shard | None = None, only: str = "") -> Plan:
    """Returns the jobs of a fleet that match one of the filters, and of these those of a shard, which may be none.

    `only` is the id of the one that is meant.

    Raises:
        MissingInputError: a glob finds nothing, or a file that options name is not there.
        DataError: two jobs would write one output, or options do not go together; or no job is left.
        UsageError: no job matches a filter, or is called `only`.
    """
    try:
        named, notes = _expanded(fleet)
    except NndeployError as err:
        raise err.about(fleet.where) from err
    chosen = [one.job for one in named if _is_chosen(one, filters)]
    if not chosen:
        raise UsageError("no job matches the filter", hint="`nndeploy batch --plan` lists the jobs")
    filtered = [one.job for one in named if not _is_chosen(one, filters)]
    if shard is not None:
        chosen = shard.part_of(chosen)
    if only:
        chosen, filtered = [job_called(only, chosen)], []
    every = digest_of((one.job for one in named), fleet.folder)
    digest = every if len(chosen) == len(named) else digest_of(chosen, fleet.folder)
    return Plan(tuple(chosen), tuple(filtered), tuple(notes), digest, every)


def job_called(job_id: str, jobs: Sequence[Job]) -> Job:
    """Returns the job of an id.

    Raises:
        UsageError: there is none.
    """
    for job in jobs:
        if job.id == job_id:
            return job
    raise UsageError(
        f"there is no job {job_id!r:.80}",
        hint=did_you_mean(job_id, [job.id for job in jobs]),
    )


def digest_of(jobs: Iterable[Job], folder: Path) -> str:
    """Returns the hex SHA-256 of jobs as canonical JSON, paths relative to `folder`, without their estimates.

    The same file on a copy of the tree in another folder, or on another machine, gives the same.
    """
    return hashlib.sha256(canonical_json([_portable(job_to_json(job), str(folder)) for job in jobs])).hexdigest()


def _portable(data: dict[str, Any], folder: str) -> dict[str, Any]:
    del data["estimate"]
    for key in ("source", "output"):
        data[key] = os.path.relpath(data[key], folder)
    data["given"] = with_paths(data["given"], lambda path: os.path.relpath(path, folder))
    return data


def _is_chosen(one: _Named, filters: Sequence[Match]) -> bool:
    return not filters or any(match.matches(one.names) for match in filters)


def _expanded(fleet: Fleet) -> tuple[list[_Named], list[str]]:
    models, targets = _models(fleet), _targets(fleet)
    if (num_jobs := len(models) * len(targets) * prod(len(axis.values) for axis in fleet.axes)) > MAX_JOBS:
        raise DataError(f"makes {num_jobs} jobs; at most {MAX_JOBS} are allowed")
    variants = _variants(fleet)
    used, made, are_right = set[str](), list[_Named](), set[bytes]()
    for (model, (source, of_model)), (target, text), (variant, values, given) in product(
        models.items(), targets.items(), variants
    ):
        names = {"model": model, "target": target, "variant": variant, **values}
        excluding = [match for match in fleet.excludes if match.matches(names)]
        used |= {match.place for match in excluding}
        if excluding:
            continue
        settings = of_model.then(Settings(given))
        for override in fleet.overrides:
            if override.match.matches(names):
                used.add(override.match.place)
                settings = settings.then(override.settings)
        made.append(_Named(names, _job(fleet, names, source, text, settings, are_right)))
    if not made:
        raise DataError("every job is excluded")
    made.sort(key=lambda one: one.job.id)
    _check_outputs(fleet, made)
    places = [match.place for match in (*fleet.excludes, *(override.match for override in fleet.overrides))]
    return made, [f"{place} matches no job" for place in places if place not in used]


def _models(fleet: Fleet) -> dict[str, tuple[str, Settings]]:
    """Returns name -> file and what is asked of its jobs, of every model; one that is found twice is there once."""
    settings: dict[str, Settings] = {}
    for models in fleet.models:
        try:
            files = matching_files(fleet.folder, models.globs)
        except NndeployError as err:
            raise err.about(models.place) from err
        for file in files:
            settings[file] = settings.get(file, fleet.settings).then(models.settings)
    relative = {os.path.relpath(file, fleet.folder): file for file in sorted(settings)}
    names = unique_names(relative, "models", fleet.where)
    return {name: (relative[path], settings[relative[path]]) for path, name in names.items()}


def _targets(fleet: Fleet) -> dict[str, str]:
    """Returns name -> what `--target` would take, "" for the machine that runs it; each was read."""
    where = f"{fleet.where}: targets"
    targets = {name: "" if name == HOST else name for name in fleet.target_names}
    try:
        files = matching_files(fleet.folder, fleet.target_globs) if fleet.target_globs else []
        for name in targets.values():
            if name:
                known_box(name)
        for file in files:
            target_of(file)
    except NndeployError as err:
        raise err.about(where) from err
    relative = {os.path.relpath(file, fleet.folder): file for file in files}
    names = unique_names(relative, "targets", where, targets.keys() | ({HOST} if files else set()))
    return targets | {name: relative[path] for path, name in names.items()} or {HOST: ""}


def _variants(fleet: Fleet) -> list[tuple[str, Mapping[str, str], Mapping[str, Any]]]:
    """Returns name, value by axis, and what is given, of every combination of the axes."""
    variants: dict[str, tuple[Mapping[str, str], Mapping[str, Any]]] = {}
    for values in product(*(axis.values.items() for axis in fleet.axes)):
        name = "-".join(value for value, _ in values)
        by_axis = {axis.name: value for axis, (value, _) in zip(fleet.axes, values, strict=True)}
        if name in variants:
            both = f"{variants[name][0]} and {by_axis}"
            raise DataError(f"two variants are called {name!r:.80}: {both:.200}", where=f"{fleet.where}: matrix")
        variants[name] = by_axis, {field: one for _, given in values for field, one in given.items()}
    return [(name, *found) for name, found in variants.items()]


def _job(
    fleet: Fleet, names: Mapping[str, str], source: str, target: str, settings: Settings, are_right: set[bytes]
) -> Job:
    """Returns a job whose options were checked; `are_right` remembers those that were, as most jobs share theirs."""
    model, box, variant = (names[key] for key in PLACEHOLDERS)
    job = Job(
        id=job_id(model, box, variant),
        model=model,
        target=box,
        variant=variant,
        source=source,
        given=with_paths(settings.given, lambda text: rooted_path(fleet.folder, filled(text, names))),
        limits=dict(settings.limits),
        output=rooted_path(fleet.folder, filled(fleet.output, names)),
        needs=dict(settings.needs),
    )
    options = canonical_json(job.given)
    if options not in are_right:
        try:
            check_given(job.given)
        except UsageError as err:
            raise DataError(err.what, where=f"{fleet.where}: job {job.id}", hint=err.hint) from err
        except NndeployError as err:
            raise err.within(f"{fleet.where}: job {job.id}") from err
        are_right.add(options)
    return replace(job, given={**job.given, "targets": [target]}) if target else job


def _check_outputs(fleet: Fleet, named: Sequence[_Named]) -> None:
    """Refuses two jobs that would write one file, or one that would write over a model."""
    outputs: dict[str, Job] = {}
    hint = "output may hold {model}, {target} and {variant}"
    for job in (one.job for one in named):
        if (other := outputs.setdefault(job.output, job)) is not job:
            raise DataError(f"{other.id} and {job.id} have one output, {job.output!r:.200}", hint=hint)
    sources = {job.source for job in outputs.values()}
    for output, job in outputs.items():
        if output in sources:
            raise DataError(f"{job.id} would write over the model {output!r:.200}", hint=hint)
    if fleet.publish is not None and fleet.publish.oci:
        _check_references(fleet.publish, outputs.values())


def _check_references(publish: Publish, jobs: Iterable[Job]) -> None:
    references: dict[str, Job] = {}
    for job in jobs:
        text = str(reference_of(publish, job))
        if (other := references.setdefault(text, job)) is not job:
            raise DataError(f"publish: {other.id} and {job.id} have one reference, {text}")


def reference_of(publish: Publish, job: Job) -> Reference:
    """Returns where in a registry the bundle of a job goes.

    Raises:
        DataError: the names of the job make no reference.
    """
    names = {"model": job.model, "target": job.target, "variant": job.variant}
    try:
        return reference_from_text(filled(publish.oci, names))
    except UsageError as err:
        raise DataError(f"publish: {job.id} makes no reference: {err.what}", hint=err.hint) from err
