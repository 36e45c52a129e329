# SPDX-License-Identifier: Apache-2.0
"""Finished bundles where boxes find them: signed, in a folder with a page about them, or in a registry.

Comes in: what came of the jobs. Goes out: the same, but that a job whose bundle could not be published failed. Laws:
jobs are published in their order, and one that fails stops no other; what is published is what was built, and signing
changes a copy alone; a file that is there already with the same bytes is left as it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from nndeploy.errors import (
    BundleError,
    BusyError,
    InputOutputError,
    NndeployError,
    UnavailableError,
    told_error,
)
from nndeploy.farm.expand import reference_of
from nndeploy.farm.fleet import Publish
from nndeploy.farm.job import Job
from nndeploy.farm.outcome import Outcome
from nndeploy.farm.reports.batch import Batch
from nndeploy.farm.reports.page import batch_page
from nndeploy.farm.run_batch import repeating
from nndeploy.files.page import write_page
from nndeploy.files.pieces import pieces_of, sha256_of, written
from nndeploy.files.whole_files import make_folder_of, new_file, wrapped_io
from nndeploy.jobs.temporary import temporary_folder
from nndeploy.registry.connection import NoAnswerError
from nndeploy.registry.options import RegistryOptions
from nndeploy.registry.push import push
from nndeploy.trust.signers import FileSigner, read_key
from nndeploy.trust.signing import sign_bundle

INDEX = "index.html"
_OF_THE_MACHINE = (BusyError, InputOutputError, UnavailableError)


class Publisher:
    """Publishes bundles as a fleet file says."""

    def __init__(self, where: Publish, fleet_file: str, options: RegistryOptions = RegistryOptions()) -> None:
        """Reads the key, so that one that is missing ends a batch before it begins; `options` are the registry's.

        `fleet_file` is what the command that repeats a job names.

        Raises:
            MissingInputError, DataError, PolicyError: the key cannot be read, or others may read it.
        """
        self._where, self._fleet_file, self._options = where, fleet_file, options
        self._signer: FileSigner | None = read_key(Path(where.sign)) if where.sign else None
        self._silent: dict[str, NndeployError] = {}

    def published(self, jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Returns the outcomes, after every bundle that there is was published; `jobs` are in their order."""
        found = {one.job: one for one in outcomes}
        for job in jobs:
            if job.id in found and found[job.id].is_good:
                found[job.id] = self._published(job, found[job.id])
        return list(found.values())

    def write_index(self, jobs: Sequence[Job], batch: Batch) -> None:
        """Writes the page about a batch into the folder, with links to the bundles that stand there.

        Raises:
            CannotCreateError, InputOutputError: it cannot be written.
        """
        if not self._where.folder:
            return
        places = {job.id: str(self._place(job)) for job in jobs}
        outcomes = tuple(replace(one, output=places.get(one.job, "")) for one in batch.outcomes)
        page = Path(self._where.folder) / INDEX
        make_folder_of(page)
        write_page(page, batch_page(replace(batch, outcomes=outcomes), page, page.parent))

    def _published(self, job: Job, outcome: Outcome) -> Outcome:
        try:
            with self._signed(Path(job.output), outcome.sha256) as bundle:
                if self._where.folder:
                    _copy(bundle, self._place(job))
                if self._where.oci:
                    self._push(bundle, job)
        except NndeployError as err:
            status = "infra" if isinstance(err, _OF_THE_MACHINE) else "failed"
            error: Mapping[str, object] = told_error(err)
            error = {**error, "message": f"not published: {error['message']}"}
            repeat = repeating(self._fleet_file, job)
            return replace(outcome, status=status, exit_code=err.exit_code, error=error, repeat=repeat)
        return outcome

    def _place(self, job: Job) -> Path:
        return Path(self._where.folder) / f"{job.id}.nnd"

    @contextmanager
    def _signed(self, built: Path, sha256: str) -> Iterator[Path]:
        """Yields the bundle as it is to be published: itself, or a signed copy."""
        if self._signer is None:
            _check(sha256_of(built), sha256, built)
            yield built
            return
        with temporary_folder("publish") as folder:
            copy = folder / "signed.nnd"
            with copy.open("xb") as file:
                _check(_written(built, file, copy), sha256, built)
            sign_bundle(copy, [self._signer])
            yield copy

    def _push(self, bundle: Path, job: Job) -> None:
        reference = reference_of(self._where, job)
        if reference.registry in self._silent:  # a thousand jobs need not wait for it one by one
            raise self._silent[reference.registry]
        try:
            push(bundle, reference, options=self._options)
        except NoAnswerError as err:
            self._silent[reference.registry] = err
            raise


def _check(found: str, expected: str, path: Path) -> None:
    if expected and found != expected:
        raise BundleError("is not the bundle that the batch built", where=str(path), hint="run the batch again")


def _written(source: Path, file: BinaryIO, place: Path) -> str:
    """Writes what a file holds to another one, which is to stand at `place`; returns its SHA-256."""

    def write(piece: bytes) -> None:
        with wrapped_io(place):
            file.write(piece)

    return written(pieces_of(source), write)[0]


def _copy(bundle: Path, place: Path) -> None:
    """Copies a bundle to its place, whole, unless it is there."""
    if place.is_file() and place.stat().st_size == bundle.stat().st_size and sha256_of(place) == sha256_of(bundle):
        return
    make_folder_of(place)
    new = new_file(place)
    try:
        _written(bundle, new.file, place)
        new.finish()
    finally:
        new.discard()
