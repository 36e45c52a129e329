# SPDX-License-Identifier: Apache-2.0
"""A registry of containers in a thread, which can be told to misbehave: what tests of push and pull speak to."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from loopback_server import LoopbackHandler, LoopbackServer

MANIFEST = re.compile(r"/v2/(?P<repository>[a-z/]+)/manifests/(?P<name>[^/?]+)")
BLOB = re.compile(r"/v2/(?P<repository>[a-z/]+)/blobs/(?P<name>sha256:[0-9a-f]+)")
UPLOADS = re.compile(r"/v2/(?P<repository>[a-z/]+)/blobs/uploads/")
UPLOAD = re.compile(r"/upload/1\?state=x&digest=(?P<name>sha256%3A[0-9a-f]+)")


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@dataclass
class Asked:
    """A request that came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class RegistryServer(LoopbackServer):
    """`fault` may answer a request itself, and says by its result that it did."""

    manifests: dict[str, bytes] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    fault: "Callable[[Handler, Asked], bool]" = lambda handler, asked: False

    def reference(self, tag: str = "1", digest: str = "") -> str:
        return f"oci://127.0.0.1:{self.port}/team/faces" + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")

    def paths(self, method: str) -> list[str]:
        return [one.path for one in self.asked if one.method == method]

    @property
    def fetched(self) -> list[str]:
        """The digests of the blobs that were asked for."""
        return [found["name"] for path in self.paths("GET") if (found := BLOB.fullmatch(path))]


class Handler(LoopbackHandler):
    owner: RegistryServer

    def _do(self) -> None:
        asked = Asked(self.command, self.path, dict(self.headers), self.body_of_request())
        self.owner.asked.append(asked)
        if not self.owner.fault(self, asked):
            self.serve(asked)

    do_GET = do_HEAD = do_POST = do_PUT = _do  # noqa: N815 - the names of the library

    def serve(self, asked: Asked) -> None:
        """Answers as a registry should."""
        registry = self.owner
        if found := MANIFEST.fullmatch(asked.path):
            if asked.method == "PUT":
                registry.manifests[found["name"]] = registry.manifests[digest_of(asked.body)] = asked.body
                self.answer(201, Docker_Content_Digest=digest_of(asked.body))
            else:
                self._give(registry.manifests.get(found["name"]))
        elif found := BLOB.fullmatch(asked.path):
            self._give(registry.blobs.get(found["name"]))
        elif UPLOADS.fullmatch(asked.path) and asked.method == "POST":
            self.answer(202, Location="/upload/1?state=x")
        elif (found := UPLOAD.fullmatch(asked.path)) and asked.method == "PUT":
            digest = found["name"].replace("%3A", ":")
            if digest == digest_of(asked.body):
                registry.blobs[digest] = asked.body
                self.answer(201)
            else:
                self.answer(400, b'{"errors":[{"code":"DIGEST_INVALID","message":"digest did not match"}]}')
        else:
            self.answer(404)

    def _give(self, data: bytes | None) -> None:
        if data is None:
            self.answer(404, b'{"errors":[{"code":"UNKNOWN","message":"unknown to registry"}]}')
        elif found := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "")):
            begin = int(found[1])
            if begin >= len(data):
                self.answer(416)
            else:
                part = f"bytes {begin}-{len(data) - 1}/{len(data)}"
                self.answer(206, data[begin:], Content_Range=part)
        else:
            self.answer(200, data)


RegistryServer.handler = Handler
