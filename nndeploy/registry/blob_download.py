# SPDX-License-Identifier: Apache-2.0
"""One blob of a registry in a file, over as many connections as it takes; what is there already is not sent again."""

from nndeploy.errors import BundleError, InputOutputError, NndeployError
from nndeploy.registry.artifact import Layer
from nndeploy.registry.connection import ATTEMPTS, CutError, NoAnswerError, pause
from nndeploy.registry.kept_blobs import KeptBlobs
from nndeploy.registry.member_parts import Part
from nndeploy.registry.remote import Remote


class BlobDownload:
    """Fetches blobs of a repository; `num_bytes` is how many bytes came, `num_kept` how many were there before."""

    def __init__(self, remote: Remote, kept: KeptBlobs) -> None:
        self._remote, self._kept = remote, kept
        self.num_bytes = self.num_kept = 0

    def part(self, layer: Layer) -> Part:
        """Returns a blob as a part of a bundle, fetched as far as it is not here, and hashed.

        Raises:
            BundleError: the registry sends something else than it should.
            InputOutputError: it was cut again and again; what came is kept. Or the disk is full.
            UnavailableError, PolicyError, BusyError: the registry does not give it.
        """
        name, had = layer.sha256, min(self._kept.size(layer.sha256), layer.size)
        for is_again in (False, True):
            self._fill(layer)
            found, crc = self._kept.checked(name)
            if found == layer.sha256:
                self.num_kept += 0 if is_again else had
                return Part(layer.size, crc, lambda: self._kept.pieces(name))
            self._kept.remove(name)
            if not had:
                break
        raise BundleError(
            f"damaged: the SHA-256 of what the registry sends is {found:.12}..., of the member {layer.sha256:.12}...",
            where=f"{self._remote.where}: {layer.name}",
        )

    def _fill(self, layer: Layer) -> None:
        """Fetches until as many bytes are here as the blob has; gives up where attempts bring nothing."""
        if self._kept.size(layer.sha256) > layer.size:
            self._kept.remove(layer.sha256)
        failures = 0
        while (had := self._kept.size(layer.sha256)) < layer.size:
            error: NndeployError | None = None
            try:
                self._append(layer, had)
            except (CutError, NoAnswerError) as err:
                error = err
            has = self._kept.size(layer.sha256)
            if has > had:
                failures = 0
                continue
            failures += 1
            if failures >= ATTEMPTS:
                raise self._given_up(layer, has, error) from error
            pause(failures)

    def _append(self, layer: Layer, had: int) -> None:
        with (
            self._kept.opened(layer.sha256) as file,
            self._remote.blob(layer.digest, had, layer.size) as (start, pieces),
        ):
            file.seek(start)
            file.truncate()
            for piece in pieces:
                file.write(piece)
                self.num_bytes += len(piece)

    def _given_up(self, layer: Layer, has: int, error: NndeployError | None) -> NndeployError:
        if isinstance(error, NoAnswerError) and not has:
            return error
        return InputOutputError(
            f"the download was cut at {has} of {layer.size} bytes", where=f"{self._remote.where}: {layer.name}",
            hint="the same command goes on from there",
        )  # fmt: skip
