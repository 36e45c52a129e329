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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from loopback_server import LoopbackHandler, LoopbackServer

PATH = re.compile(r"/builds/(?P<kind>ac|cas)/(?P<name>[0-9a-f]{64})")
DIGEST = re.compile(r"[0-9a-f]{64}")
FIELDS = {"outputFiles", "outputDirectories", "exitCode", "stdoutRaw", "stderrRaw", "executionMetadata"}
FILE_FIELDS = {"path", "digest", "isExecutable", "contents"}


@dataclass
class BazelRemoteServer(LoopbackServer):
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

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        return f"http://{self.host}/builds"

    @property
    def methods(self) -> str:
        """What was asked, in order."""
        return " ".join(f"{method} {kind}" for method, kind in self.asked)


class Handler(LoopbackHandler):
    owner: BazelRemoteServer
    disable_nagle_algorithm = True  # a body after its head would wait 40 ms for the client's acknowledgement

    def setup(self) -> None:
        self.owner.num_connections += 1
        super().setup()

    def _do(self) -> None:
        self.body = self.body_of_request()
        found = PATH.fullmatch(self.path)
        if found is None:
            self.answer(400, b"resource name must be a SHA256 hash in hex")
            return
        self.kind, self.name = found["kind"], found["name"]
        self.owner.asked.append((self.command, self.kind))
        if not self.owner.fault(self):
            self.serve()

    do_GET = do_HEAD = do_PUT = _do  # noqa: N815 - the names of the library

    def serve(self) -> None:
        """Answers as bazel-remote does."""
        cache = self.owner
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
        wanted = base64.b64encode(self.owner.password.encode()).decode()
        return self.headers.get("Authorization") == f"Basic {wanted}"

    def _why_not(self) -> str:
        """Takes in what was brought, or returns why not."""
        if self.kind == "cas":
            if hashlib.sha256(self.body).hexdigest() != self.name:
                return "hash does not match"
            self.owner.files[self.name] = self.body
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
        self.owner.results[self.name] = {**result, "executionMetadata": {"worker": self.client_address[0]}}
        return ""

    def _give_result(self) -> None:
        result = self.owner.results.get(self.name)
        if result is None or any(one["digest"]["hash"] not in self.owner.files for one in result["outputFiles"]):
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


BazelRemoteServer.handler = Handler
