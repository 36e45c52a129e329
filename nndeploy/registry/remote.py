# SPDX-License-Identifier: Apache-2.0
"""The manifests and blobs of one repository of a registry.

Source: OCI Distribution Specification 1.1, "Endpoints".
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from nndeploy.errors import BundleError, MissingInputError, UnavailableError
from nndeploy.registry.artifact import MANIFEST_TYPE, MAX_ARTIFACT_BYTES, Blob
from nndeploy.registry.connection import ATTEMPTS, Body, Connection, CutError, NoAnswerError, Server, pause
from nndeploy.registry.failures import PASSING
from nndeploy.registry.options import RegistryOptions
from nndeploy.registry.reference import Reference, is_loopback

if TYPE_CHECKING:
    import requests

_RANGE = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19}|\*)")


def registry_of(reference: Reference, options: RegistryOptions) -> Server:
    """Returns the registry of a reference, spoken to without TLS where that was asked for, or on this machine."""
    is_plain = options.plain_http or (is_loopback(reference.registry) and not options.ca)
    root = f"{'http' if is_plain else 'https'}://{reference.address}/v2/{reference.repository}/"
    return Server("registry", str(reference), reference.registry, root, reference.repository)


class Remote:
    """A repository."""

    def __init__(self, connection: Connection, reference: Reference) -> None:
        self._connection, self._reference = connection, reference
        self.where = connection.where

    def manifest(self) -> bytes:
        """Returns the manifest that the reference names, its digest compared where the reference has one.

        Raises:
            MissingInputError: there is none.
            BundleError: it is another one.
            UnavailableError, PolicyError, BusyError: the registry gives none.
        """
        named = self._reference.manifest
        data = self._small(f"manifests/{named}", f"bundle {named}", MAX_ARTIFACT_BYTES, {"Accept": MANIFEST_TYPE})
        found = digest_of(data)
        if self._reference.digest not in ("", found):
            raise BundleError(f"damaged: the digest of the manifest is {found:.19}...", where=self.where)
        return data

    def small_blob(self, blob: Blob) -> bytes:
        """Returns a blob that is small enough for memory, its digest compared.

        Raises:
            MissingInputError: there is none.
            DataError: it is another one.
            UnavailableError, PolicyError, BusyError: the registry does not give it.
        """
        data = self._small(f"blobs/{blob.digest}", f"blob {blob.digest:.19}...", blob.size, {})
        if len(data) != blob.size or digest_of(data) != blob.digest:
            raise BundleError(f"damaged: the digest of the blob is {digest_of(data):.19}...", where=self.where)
        return data

    def _small(self, path: str, what: str, most: int, headers: dict[str, str]) -> bytes:
        """Returns the body of an answer, asked for again where it is cut."""
        for attempt in range(1, ATTEMPTS + 1):
            with self._connection.ask("GET", f"{self._connection.root}{path}", headers=headers) as answer:
                if answer.status_code != 200:
                    raise self._connection.refused(answer, what)
                try:
                    return self._connection.content(answer, most)
                except CutError:
                    if attempt == ATTEMPTS:
                        raise
            pause(attempt)
        raise AssertionError("the last attempt returns or raises")

    def put_manifest(self, data: bytes) -> None:
        """Gives a manifest the tag of the reference.

        Raises:
            UnavailableError, PolicyError, BusyError: the registry does not take it.
        """
        url = f"{self._connection.root}manifests/{self._reference.tag}"
        with self._connection.ask("PUT", url, headers={"Content-Type": MANIFEST_TYPE}, body=data) as answer:
            if answer.status_code not in (200, 201, 202):
                raise self._connection.refused(answer, f"a manifest as {self._reference.tag}")
            kept = answer.headers.get("Docker-Content-Digest", "")
        if kept not in ("", digest_of(data)):
            raise UnavailableError(f"the registry keeps another manifest, {kept!r:.80}", where=self.where)

    def has_blob(self, digest: str) -> bool:
        """Returns whether a blob is there.

        Raises:
            UnavailableError, PolicyError, BusyError: the registry does not say.
        """
        with self._connection.ask("HEAD", f"{self._connection.root}blobs/{digest}") as answer:
            if answer.status_code not in (200, 404):
                raise self._connection.refused(answer, "a question for a member")
            is_there: bool = answer.status_code == 200
            return is_there

    def put_blob(self, digest: str, body: Body | bytes) -> None:
        """Brings a blob in one piece; where that is cut, all of it again.

        Raises:
            UnavailableError, PolicyError, BusyError: the registry does not take it.
        """
        for attempt in range(1, ATTEMPTS + 1):
            url = self._upload_address(digest)
            headers = {"Content-Type": "application/octet-stream"}
            try:
                with self._connection.ask("PUT", url, headers=headers, body=body, attempts=1) as answer:
                    if answer.status_code == 201:
                        return
                    if attempt == ATTEMPTS or answer.status_code not in PASSING:
                        raise self._connection.refused(answer, "a member")
            except NoAnswerError:
                if attempt == ATTEMPTS:
                    raise
            pause(attempt)

    def _upload_address(self, digest: str) -> str:
        url = f"{self._connection.root}blobs/uploads/"
        with self._connection.ask("POST", url) as answer:
            if answer.status_code != 202:
                raise self._connection.refused(answer, "an upload")
            address = self._connection.address(answer.headers.get("Location", ""), url)
        return f"{address}{'&' if urlsplit(address).query else '?'}digest={quote(digest, safe='')}"

    @contextmanager
    def blob(self, digest: str, begin: int, size: int) -> Iterator[tuple[int, Iterator[bytes]]]:
        """Gives where the bytes begin that the registry sends, `begin` or 0, and these bytes, up to `size`.

        Raises:
            BundleError: the registry has no such blob, or sends more or less than `size` says.
            CutError: it ended early.
            UnavailableError, PolicyError, BusyError: the registry does not give it.
        """
        wanted = {"Range": f"bytes={begin}-"} if begin else {}
        with self._connection.ask("GET", f"{self._connection.root}blobs/{digest}", headers=wanted) as answer:
            if answer.status_code not in (200, 206, 416):
                error = self._connection.refused(answer, f"member {digest:.19}...")
                if isinstance(error, MissingInputError):  # the tag is there: the artifact is not whole
                    raise BundleError(error.what, where=error.where)
                raise error
            if answer.status_code == 416:
                yield 0, iter(())
                return
            start = begin if answer.status_code == 206 else 0
            end = self._end(answer, start, size)
            yield start, self._limited(answer, start, end)

    def _end(self, answer: "requests.Response", start: int, size: int) -> int:
        """Returns where the bytes of an answer end; refuses one that is not of the blob that was asked for."""
        end = size
        if answer.status_code == 206:
            found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
            if found is None or int(found[1]) != start or found[3] not in (str(size), "*"):
                raise BundleError("the registry sends another part than the one asked for", where=self.where)
            end = int(found[2]) + 1
        length = answer.headers.get("Content-Length", "")
        if end > size or (length and length != str(end - start)):
            raise BundleError(
                f"damaged: the registry sends {length or end - start} bytes where {size - start} should be",
                where=self.where,
            )
        return end

    def _limited(self, answer: "requests.Response", start: int, end: int) -> Iterator[bytes]:
        for piece in self._connection.pieces(answer):
            start += len(piece)
            if start > end:
                raise BundleError("damaged: the registry sends more bytes than it said", where=self.where)
            yield piece
        if start < end:
            raise CutError("the connection was lost", where=self.where)


def digest_of(data: bytes) -> str:
    """Returns the digest of a manifest or blob."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
