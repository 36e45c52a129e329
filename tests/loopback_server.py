# SPDX-License-Identifier: Apache-2.0
"""An HTTP server in a thread on this machine, which can be told to misbehave: what its kinds have in common."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no matter."""


class LoopbackHandler(BaseHTTPRequestHandler):
    """Answers requests; `owner` is the server that it is of."""

    owner: Any
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two writes, between which 40 ms would pass

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the interface of the library
        return

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Answers; `headers` have _ for -, and may state another length than the body has, or none."""
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

    def body_of_request(self) -> bytes:
        """Returns what came with the request."""
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))


class LoopbackServer:
    """Serves inside a `with` block, each request by a `handler`."""

    handler: ClassVar[type[LoopbackHandler]]
    server: ThreadingHTTPServer
    _thread: threading.Thread

    def __enter__(self) -> Self:
        here = type("Here", (self.handler,), {"owner": self})
        self.server = _Server(("127.0.0.1", 0), here)
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server.server_address[1])
