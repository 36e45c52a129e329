# SPDX-License-Identifier: Apache-2.0
"""The connections of HTTP: accepted here, so that each is known from its first moment, within its handshake too.

    accept -> room is made where all places are taken: the one that has been idle for longest is closed -> requests

Idle is who has no request that is being answered, so also who has sent half a head, or nothing. Law: whatever
connections do, a new one is taken; so health and figures are answered, for which `open_files.RESERVED` places are kept.
"""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from aiohttp import web

from nndeploy.serve.figures import SERVICE, Figures
from nndeploy.serve.infer_request import Say
from nndeploy.serve.rare_lines import RareLines

PROTOCOL = "http"
MALFORMED = 400
IDLE_SECONDS = 60.0
"""A connection that has not sent the head of a request after so long is closed; so is one that asks nothing more.

Clients keep connections for later requests, and an answer is lost where both ends act at once, so it is no shorter.
"""
CROWD_SECONDS, MALFORMED_SECONDS = 60.0, 1.0
"""How often the operator is told that there are too many connections, and of requests that are no HTTP."""
YIELD_SECONDS = 0.001
"""So long a process lets others accept that have fewer connections: clients that come together are shared out."""
PAUSE_SECONDS = 0.01
"""How long nobody is accepted after the system refused to."""


class Connection(web.RequestHandler):
    """One connection; aiohttp's, but for what it tells of bytes that are no HTTP: they may hold a token."""

    def __init__(self, places: "Connections", server: web.Server) -> None:
        how: dict[str, Any] = {"keepalive_timeout": IDLE_SECONDS, "auto_decompress": False, "access_log": None}
        super().__init__(server, loop=asyncio.get_running_loop(), **how)
        self._places = places
        self.opening: asyncio.Task[Any] | None = None

    def connection_lost(self, exc: BaseException | None) -> None:
        """Frees its place."""
        self._places.leave(self)
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it quotes the request
    ) -> web.StreamResponse:
        """Returns the answer to bytes that are no request."""
        what = f"malformed HTTP ({type(exc).__name__})" if status == MALFORMED else "the request was aborted"
        answer = web.json_response({"error": what}, status=status)
        answer.force_close()
        self._places.malformed(f"{request.remote or 'a client'}: {what}")
        return answer

    def log_exception(self, *args: Any, **kw: Any) -> None:  # noqa: ARG002 - they quote the request
        """Tells that a body was none, after its request was answered, and nothing that it holds."""
        self._places.malformed(f"malformed HTTP behind a request ({type(kw.get('exc_info')).__name__})")

    def abort(self) -> None:
        """Closes it at once, also within its handshake."""
        if self.opening is not None:
            self.opening.cancel()
        if self.transport is not None:
            self.transport.abort()


class Connections:
    """All connections of one listener; used in the event loop alone."""

    def __init__(self, most: int, most_at_work: int, figures: Figures, say: Say) -> None:
        """Takes how many may be open, and how many of these may be at requests that are no probes."""
        self._most, self._most_at_work = most, most_at_work
        self._figures, self._numbers = figures, figures.of(SERVICE)
        self._open: set[Connection] = set()
        self._idle: dict[Connection, None] = {}  # in the order in which they became it
        self._num_at_work = 0
        self._tell_crowd, self._tell_malformed = RareLines(say, CROWD_SECONDS), RareLines(say, MALFORMED_SECONDS)

    async def accept(self, listening: socket.socket, server: web.Server, context: ssl.SSLContext | None) -> None:
        """Accepts connections for ever, with TLS where there is a context."""
        loop = asyncio.get_running_loop()
        how: dict[str, Any] = {"ssl": context, "ssl_handshake_timeout": IDLE_SECONDS} if context else {}
        while True:
            await _readable(listening)
            if self._figures.has_more_connections:
                await asyncio.sleep(YIELD_SECONDS)
            try:
                found, _ = listening.accept()
            except BlockingIOError:  # another process was quicker
                continue
            except OSError:  # no descriptor is left, or the client has gone already
                self._make_room()
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            if len(self._open) >= self._most:
                self._make_room()
            found.setblocking(False)
            one = Connection(self, server)
            self._open.add(one)
            self._numbers["connections"] = len(self._open)
            self._idle[one] = None
            one.opening = loop.create_task(loop.connect_accepted_socket(partial(_same, one), found, **how))
            one.opening.add_done_callback(partial(self._opened, one, found))

    def _opened(self, one: Connection, found: socket.socket, task: asyncio.Task[Any]) -> None:
        """Ends a connection that came to nothing: no handshake of TLS, or its place was needed."""
        one.opening = None
        if task.cancelled() or task.exception() is not None:
            self.leave(one)
            found.close()

    def leave(self, one: Connection) -> None:
        """Frees the place of a connection that is closed."""
        self._open.discard(one)
        self._numbers["connections"] = len(self._open)
        self._idle.pop(one, None)

    def _make_room(self) -> None:
        """Closes the connection that has been idle for longest."""
        one = next(iter(self._idle), None)
        if one is None:
            return
        self.leave(one)
        one.abort()
        self._numbers["idle_closed"] += 1
        self._tell_crowd(f"{self._most} connections are open: those that are idle for longest are closed")

    def malformed(self, line: str) -> None:
        """Counts bytes that are no HTTP, and tells the line."""
        self._figures.add("", PROTOCOL, "INVALID_ARGUMENT")
        self._tell_malformed(line)

    @contextmanager
    def at_work(self, one: object, *, is_probe: bool) -> Iterator[bool]:
        """Keeps a connection from being idle; yields whether there is a place for its request."""
        assert isinstance(one, Connection)
        self._idle.pop(one, None)
        self._num_at_work += not is_probe
        has_place = is_probe or self._num_at_work <= self._most_at_work
        if not has_place:
            self._tell_crowd(f"{self._most_at_work} requests are being answered: more are refused (503)")
        try:
            yield has_place
        finally:
            self._num_at_work -= not is_probe
            if one in self._open:
                self._idle[one] = None


async def _readable(listening: socket.socket) -> None:
    """Waits for a connection that can be accepted."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(listening, tell)
    try:
        await ready
    finally:
        loop.remove_reader(listening)


def _same(one: Connection) -> Connection:
    return one
