# SPDX-License-Identifier: Apache-2.0
"""A registry of containers in a thread, which can be told to misbehave: what tests of push and pull speak to."""

import hashlib
import re
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

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
class RegistryServer:
    """`fault` may answer a request itself, and says by its result that it did."""

    manifests: dict[str, bytes] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    fault: "Callable[[Handler, Asked], bool]" = lambda handler, asked: False

    def __enter__(self) -> Self:
        outer = self

        class Here(Handler):
            registry = outer

        self._server = _Server(("127.0.0.1", 0), Here)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def reference(self, tag: str = "1", digest: str = "") -> str:
        return f"oci://127.0.0.1:{self.port}/farm/faces" + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")

    def paths(self, method: str) -> list[str]:
        return [one.path for one in self.asked if one.method == method]

    @property
    def fetched(self) -> list[str]:
        """The digests of the blobs that were asked for."""
        return [found["name"] for path in self.paths("GET") if (found := BLOB.fullmatch(path))]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no matter."""


class Handler(BaseHTTPRequestHandler):
    registry: RegistryServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the interface of the library
        return

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Answers; `headers` have _ for -, and may state another length than the body has."""
        self.send_response(status)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in {"Content-Length": str(len(body)), **named}.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def cut(self) -> None:
        """Ends the connection."""
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _do(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = Asked(self.command, self.path, dict(self.headers), body)
        self.registry.asked.append(asked)
        if not self.registry.fault(self, asked):
            self.serve(asked)

    do_GET = do_HEAD = do_POST = do_PUT = _do  # noqa: N815 - the names of the library

    def serve(self, asked: Asked) -> None:
        """Answers as a registry should."""
        registry = self.registry
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
