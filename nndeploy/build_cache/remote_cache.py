# SPDX-License-Identifier: Apache-2.0
"""A cache of builds that machines share over HTTP, in the layout of bazel-remote.

    <address>/cas/<sha256>   a file
    <address>/ac/<key>       an ActionResult in JSON: the files of a build by digest; the one called "entry" is our
                             entry of the key, signed, and decides what the others are

Comes in: a key, or a build that the local cache holds. Goes out: that build in the local cache, or in this one. Laws:
nothing that it answers is believed: a file counts by its digest, an entry by its signature; whatever fails is a build
that is not there, said once; nobody is asked before a build is looked for.

Bundles alone travel. What libraries answered in a compile stays where it was: the process that parsed the model wrote
it down, and a model may have broken into that. So such an answer is as trustworthy as the model, and serves only
compiles of that model; what others may rely on is a bundle, which was compared with the original.

Source: buchgr/bazel-remote, README, "HTTP/1.1 REST API"; ActionResult of the Remote Execution API v2; ProtoJSON, where
64-bit integers are texts.
"""

import datetime as dt
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from nndeploy.build_cache.entry import MAX_ENTRY_BYTES, Blob, Entry, decode
from nndeploy.build_cache.local_cache import LocalCache, is_key
from nndeploy.build_cache.remote_address import NEVER, TRUSTED
from nndeploy.errors import (
    BundleError,
    DataError,
    MissingInputError,
    NndeployError,
    PolicyError,
    UnavailableError,
)
from nndeploy.files.pieces import pieces_of
from nndeploy.files.strict_json import canonical_json
from nndeploy.registry.connection import Connection, Server
from nndeploy.registry.credentials import Credentials, credentials_for
from nndeploy.registry.options import RegistryOptions
from nndeploy.trust.trust_store import TrustStore

if TYPE_CHECKING:
    import requests

ENTRY = "entry"
CONNECT_SECONDS, SILENCE_SECONDS = 2.0, 15.0
"""How long it may take to be reached, and to send or take the next bytes."""
LEAST_BYTES_A_SECOND = 64 << 10
"""A slower one costs more than most builds."""
MAX_RESULT_BYTES = 1 << 20
_JSON = "application/json"
_TAKEN = (200, 201, 204)


class RemoteCache:
    """Builds by key, behind an address; several threads may ask at once. Who does not answer is not asked again."""

    def __init__(
        self, address: str, store: TrustStore, complain: Callable[[str], None], push: str = NEVER, ca: str = ""
    ) -> None:
        """Makes ready to ask; nothing is sent.

        `complain` hears at most one line. `ca` is a PEM file with the authorities that may have signed the cache's
        certificate.
        """
        host, plain = urlsplit(address).netloc, address.startswith("http:")
        self._server = Server("cache", address, host, f"{address}/")
        self._options = RegistryOptions(ca="" if plain else ca, timeout=SILENCE_SECONDS)
        self.address, self._push = address, push
        self._store, self._complain = store, complain
        self._lock = threading.Lock()
        self._is_out = self._takes_nothing = self._has_complained = False
        self._unusable: set[str] = set()

    def bring(self, key: str, cache: LocalCache, near: str) -> Entry | None:
        """Brings the build of a key into the local cache, near a name; returns its entry, None where it is not there.

        What the local cache has of it already is not fetched.
        """
        if self._is_out:
            return None
        try:
            with self._connected() as connection:
                blob = self._entry_of(connection, key)
                if blob is None:
                    return None
                text = b"".join(self._pieces(connection, blob))
                if hashlib.sha256(text).hexdigest() != blob.sha256:
                    raise BundleError("an entry does not match its digest")
                entry = self._decoded(text, key)
                for one in entry.outputs.values():
                    if not cache.has(one):
                        cache.add_pieces(one, self._pieces(connection, one))
            cache.adopt(entry, text, near)
            return entry
        except MissingInputError:  # a file of it went
            self._unusable.add(key)
        except DataError as err:
            self._unusable.add(key)
            self._say(f"a build of the cache {self.address} is not used: {err.what}")
        except NndeployError as err:
            self._is_out = True
            self._say(f"the cache {self.address} is not used: {err.what}")
        return None

    def send(self, key: str, cache: LocalCache) -> None:
        """Brings a build of the local cache here, if this account is to; the first one of a key that is whole stays."""
        if self._is_out or self._takes_nothing or self._push == NEVER:
            return
        try:
            if self._push == TRUSTED and self._credentials is None:
                return
            found = cache.signed(key)
            if found is None:
                return
            entry, text = found
            with self._connected() as connection:
                if key not in self._unusable and self._has(connection, f"ac/{key}"):
                    return
                own = Blob(hashlib.sha256(text).hexdigest(), len(text))
                bodies: dict[Blob, bytes | FileBody] = {
                    one: FileBody(cache.place(one), one.size) for one in entry.outputs.values()
                }
                for blob, body in {**bodies, own: text}.items():
                    if not self._has(connection, f"cas/{blob.sha256}"):
                        self._put(connection, f"cas/{blob.sha256}", body, "application/octet-stream")
                self._put(connection, f"ac/{key}", _action_result({**entry.outputs, ENTRY: own}), _JSON)
        except NndeployError as err:
            self._takes_nothing = True
            self._say(f"nothing is uploaded to the cache {self.address}: {err.what}")

    def _connected(self) -> Connection:
        try:
            connection = Connection(self._server, self._options, CONNECT_SECONDS, LEAST_BYTES_A_SECOND)
            if self._credentials is not None:
                connection.log_in(self._credentials)
        except (DataError, MissingInputError) as err:  # a file of this account, nothing that was answered
            raise UnavailableError(f"{err.where}: {err.what}") from err
        return connection

    @cached_property
    def _credentials(self) -> Credentials | None:
        found = credentials_for(self._server.name, self._options)
        return found if found is not None and found.password else None

    def _entry_of(self, connection: Connection, key: str) -> Blob | None:
        """Returns where the entry of a key is, None where there is none."""
        with connection.ask("GET", f"{connection.root}ac/{key}", headers={"Accept": _JSON}, attempts=1) as answer:
            is_there = self._is_there(connection, answer, "a build")
            text = connection.content(answer, MAX_RESULT_BYTES)
            if not is_there:
                return None
            blob = _entry_in(text)
        if blob is None or blob.size > MAX_ENTRY_BYTES:
            raise DataError("it contains something other than nndeploy builds")
        return blob

    def _decoded(self, text: bytes, key: str) -> Entry:
        try:
            return decode(text, key, self._store, dt.datetime.now(dt.UTC).date())
        except PolicyError as err:  # of the entry, not of the server
            raise BundleError(err.what) from err

    def _pieces(self, connection: Connection, blob: Blob) -> Iterator[bytes]:
        """Yields what is kept under a digest, no more than its size; the digest is for the reader to compare."""
        left = blob.size
        with connection.ask("GET", f"{connection.root}cas/{blob.sha256}", attempts=1) as answer:
            self._check(connection, answer, f"file {blob.sha256:.12}")
            for piece in connection.pieces(answer):
                left -= len(piece)
                if left < 0:
                    raise DataError("it sends more bytes than a file has")
                yield piece
        if left:
            raise DataError(f"it sends {left} bytes fewer than a file has")

    def _has(self, connection: Connection, path: str) -> bool:
        with connection.ask("HEAD", f"{connection.root}{path}", attempts=1) as answer:
            is_there = self._is_there(connection, answer, "a question for a file")
            connection.content(answer, MAX_RESULT_BYTES)  # to its end: the connection serves the next question too
            return is_there

    def _put(self, connection: Connection, path: str, body: "bytes | FileBody", kind: str) -> None:
        headers = {"Content-Type": kind}
        with connection.ask("PUT", f"{connection.root}{path}", headers=headers, body=body, attempts=1) as answer:
            self._check(connection, answer, "a build that is brought")
            connection.content(answer, MAX_RESULT_BYTES)

    def _is_there(self, connection: Connection, answer: "requests.Response", what: str) -> bool:
        if answer.status_code == 404:
            return False
        self._check(connection, answer, what)
        return True

    def _check(self, connection: Connection, answer: "requests.Response", what: str) -> None:
        if answer.status_code not in _TAKEN:
            raise connection.refused(answer, what)

    def _say(self, line: str) -> None:
        with self._lock:
            is_new, self._has_complained = not self._has_complained, True
        if is_new:
            self._complain(line)


class FileBody:
    """The bytes of a file, from its beginning each time."""

    def __init__(self, path: Path, size: int) -> None:
        self._path, self._size = path, size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        return pieces_of(self._path)


def _action_result(files: Mapping[str, Blob]) -> bytes:
    return canonical_json(
        {
            "outputFiles": [
                {"path": name, "digest": {"hash": blob.sha256, "sizeBytes": str(blob.size)}}
                for name, blob in sorted(files.items())
            ]
        }
    )


def _entry_in(text: bytes) -> Blob | None:
    """Returns the digest of our entry in an ActionResult, None where it holds none."""
    try:
        files: list[Any] = json.loads(text)["outputFiles"]
        digest = next(one["digest"] for one in files if one["path"] == ENTRY)
        blob = Blob(digest["hash"], int(digest["sizeBytes"]))
        return blob if is_key(blob.sha256) and blob.size > 0 else None
    except (ValueError, LookupError, TypeError, AttributeError, StopIteration, RecursionError):
        return None
