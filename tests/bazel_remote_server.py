# SPDX-License-Identifier: Apache-2.0
"""bazel-remote in a thread, as far as its HTTP interface goes, which can be told to misbehave.

It refuses what bazel-remote 2.6 refuses: files whose digest is another, ActionResults with fields that the protocol
does not know, and it has no ActionResult of which a file is not there (server/http.go, utils/validate/action_result.go
and `GetValidatedActionResult` of its source).
"""

import base64
import hashlib
import json
import re
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

PATH = re.compile(r"/builds/(?P<kind>ac|cas)/(?P<name>[0-9a-f]{64})")
DIGEST = re.compile(r"[0-9a-f]{64}")
FIELDS = {"outputFiles", "outputDirectories", "exitCode", "stdoutRaw", "stderrRaw", "executionMetadata"}
FILE_FIELDS = {"path", "digest", "isExecutable", "contents"}


@dataclass
class BazelRemoteServer:
    """`password` is what writing needs as user:password, reading too with `is_closed`.

    `fault` may answer a request itself, and says by its result that it did.
    """

    password: str = ""
    is_closed: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    num_connections: int = 0
    fault: "Callable[[Handler], bool]" = lambda handler: False

    def __enter__(self) -> Self:
        outer = self

        class Here(Handler):
            cache = outer

        self.server = _Server(("127.0.0.1", 0), Here)
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server.server_address[1]}"

    @property
    def address(self) -> str:
        return f"http://{self.host}/builds"

    @property
    def methods(self) -> str:
        """What was asked, in order."""
        return " ".join(f"{method} {kind}" for method, kind in self.asked)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no matter."""


class Handler(BaseHTTPRequestHandler):
    cache: BazelRemoteServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a body after its head would wait 40 ms for the client's acknowledgement

    def setup(self) -> None:
        self.cache.num_connections += 1
        super().setup()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the interface of the library
        return

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Answers; `headers` have _ for -, and may state another length than the body has."""
        self.send_response(status)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def cut(self) -> None:
        """Ends the connection."""
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _do(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        found = PATH.fullmatch(self.path)
        if found is None:
            self.answer(400, b"resource name must be a SHA256 hash in hex")
            return
        self.kind, self.name = found["kind"], found["name"]
        self.cache.asked.append((self.command, self.kind))
        if not self.cache.fault(self):
            self.serve()

    do_GET = do_HEAD = do_PUT = _do  # noqa: N815 - the names of the library

    def serve(self) -> None:
        """Answers as bazel-remote does."""
        cache = self.cache
        if cache.password and (self.command == "PUT" or cache.is_closed) and not self._knows_the_password():
            challenge = {"WWW_Authenticate": 'Basic realm="cache"'} if cache.is_closed else {}
            self.answer(401, b"Authorization required", **challenge)
        elif self.command == "PUT":
            reason = self._why_not()
            self.answer(400 if reason else 200, reason.encode())
        elif self.kind == "cas":
            data = cache.files.get(self.name, b"" if self.name == hashlib.sha256().hexdigest() else None)
            self.answer(404, b"Not found") if data is None else self.answer(200, data)
        else:
            self._give_result()

    def _knows_the_password(self) -> bool:
        wanted = base64.b64encode(self.cache.password.encode()).decode()
        return self.headers.get("Authorization") == f"Basic {wanted}"

    def _why_not(self) -> str:
        """Takes in what was brought, or returns why not."""
        if self.kind == "cas":
            if hashlib.sha256(self.body).hexdigest() != self.name:
                return "hash does not match"
            self.cache.files[self.name] = self.body
            return ""
        if self.headers.get("Content-Type") != "application/json":
            return "it is no protobuf"
        result = json.loads(self.body)
        if unknown := set(result) - FIELDS:
            return f"unknown field {unknown}"
        for file in result.get("outputFiles", ()):
            if set(file) - FILE_FIELDS or not file["path"] or file["path"].startswith("/"):
                return "invalid output file"
            if why := _why_no_digest(file["digest"]):
                return why
        self.cache.results[self.name] = {**result, "executionMetadata": {"worker": self.client_address[0]}}
        return ""

    def _give_result(self) -> None:
        result = self.cache.results.get(self.name)
        if result is None or any(one["digest"]["hash"] not in self.cache.files for one in result["outputFiles"]):
            self.answer(404, b"Not found")
        elif self.command == "HEAD":
            self.answer(200, b"\n" * 7)
        elif self.headers.get("Accept") == "application/json":
            self.answer(200, json.dumps(result).encode(), Content_Type="application/json")
        else:
            self.answer(200, b"\x12\x07protobuf")


def _why_no_digest(digest: Mapping[str, Any]) -> str:
    is_right = (
        set(digest) == {"hash", "sizeBytes"} and DIGEST.fullmatch(digest["hash"]) and int(digest["sizeBytes"]) >= 0
    )
    return "" if is_right else "invalid Digest"
