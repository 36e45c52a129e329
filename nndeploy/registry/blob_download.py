# SPDX-License-Identifier: Apache-2.0
"""One blob of a registry in a file, over as many connections as it takes; what is there already is not sent again."""

from nndeploy.errors import BundleError, InputOutputError, NndeployError
from nndeploy.registry.artifact import Blob
from nndeploy.registry.connection import ATTEMPTS, CutError, NoAnswerError, SlowError, pause
from nndeploy.registry.kept_blobs import KeptBlobs
from nndeploy.registry.member_parts import Part
from nndeploy.registry.remote import Remote

LEAST_PROGRESS = 16 << 10
"""An attempt that brings fewer bytes has failed."""


class BlobDownload:
    """Fetches blobs of a repository; `num_bytes` is how many bytes came, `num_kept` how many were there before."""

    def __init__(self, remote: Remote, kept: KeptBlobs) -> None:
        self._remote, self._kept = remote, kept
        self.num_bytes = self.num_kept = 0

    def part(self, blob: Blob, member: str) -> Part:
        """Returns a blob of a member as a part of a bundle, fetched as far as it is not here, and hashed.

        Raises:
            BundleError: the registry sends something else than it should.
            InputOutputError: it was cut again and again; what came is kept. Or the disk is full.
            UnavailableError, PolicyError, BusyError: the registry does not give it.
        """
        name, had = blob.sha256, min(self._kept.size(blob.sha256), blob.size)
        for is_again in (False, True):
            self._fill(blob, member)
            found, crc = self._kept.checked(name)
            if found == blob.sha256:
                self.num_kept += 0 if is_again else had
                return Part(blob.size, crc, lambda: self._kept.pieces(name))
            self._kept.remove(name)
            if not had:
                break
        raise BundleError(
            f"damaged: the SHA-256 of what the registry sends is {found:.12}..., of the member {blob.sha256:.12}...",
            where=f"{self._remote.where}: {member}",
        )

    def _fill(self, blob: Blob, member: str) -> None:
        """Fetches until as many bytes are here as the blob has; gives up where attempts bring hardly anything."""
        if self._kept.size(blob.sha256) > blob.size:
            self._kept.remove(blob.sha256)
        failures = 0
        while (had := self._kept.size(blob.sha256)) < blob.size:
            error: NndeployError | None = None
            try:
                self._append(blob, had)
            except (CutError, NoAnswerError) as err:
                error = err
            has = self._kept.size(blob.sha256)
            if has >= blob.size or (has - had >= LEAST_PROGRESS and not isinstance(error, SlowError)):
                failures = 0
                continue
            failures += 1
            if failures >= ATTEMPTS:
                raise self._given_up(blob, member, has, error) from error
            pause(failures)

    def _append(self, blob: Blob, had: int) -> None:
        with (
            self._kept.opened(blob.sha256) as file,
            self._remote.blob(blob.digest, had, blob.size) as (start, pieces),
        ):
            file.seek(start)
            file.truncate()
            for piece in pieces:
                file.write(piece)
                self.num_bytes += len(piece)

    def _given_up(self, blob: Blob, member: str, has: int, error: NndeployError | None) -> NndeployError:
        if isinstance(error, NoAnswerError) and not has:
            return error
        how = "too slow" if isinstance(error, SlowError) else "cut"
        return InputOutputError(
            f"the download was {how} at {has} of {blob.size} bytes", where=f"{self._remote.where}: {member}",
            hint="the same command goes on from there",
        )  # fmt: skip
