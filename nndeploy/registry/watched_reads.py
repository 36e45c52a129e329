# SPDX-License-Identifier: Apache-2.0
"""Ends the waiting for a server that sends too little: a byte now and then is as good as none.

The library's limit of time is for the next byte alone, of which a head has many, and so has a chunk's length. So what
is waited for is watched from beside: a wait takes from what is left of the time, each byte of a body gives some back,
and where nothing is left the connection is shut down. Law: all waits for a head, and any window of waits for a body
with less than the least rate, end within the limit and a moment.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from requests.adapters import HTTPAdapter

LOOK_SECONDS = 0.5


class WatchedReads:
    """Watches one request at a time, while its `with` block runs."""

    def __init__(self, seconds: float, least_bytes_a_second: int) -> None:
        self._seconds, self._least = seconds, least_bytes_a_second
        self._left, self._until, self._socket = seconds, 0.0, None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="nndeploy watched reads", daemon=True)
        self.is_slow = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def begin(self) -> None:
        """Begins with the head of an answer, or its body, for which there is all of the time."""
        self._left, self.is_slow = self._seconds, False

    @contextmanager
    def waiting(self, connected: Any = None) -> Iterator[None]:
        """Ends the wait inside the block when the time is over; a socket that is given is that of the request."""
        self._socket = connected or self._socket
        began = time.monotonic()
        self._until = began + self._left
        try:
            yield
        finally:
            self._until = 0.0
            self._left -= time.monotonic() - began

    def got(self, num_bytes: int) -> None:
        """Gives time back for bytes that came."""
        self._left = min(self._seconds, self._left + num_bytes / self._least)

    def _work(self) -> None:
        while not self._is_over.wait(min(LOOK_SECONDS, self._seconds / 4)):
            until = self._until
            if until and time.monotonic() > until and self._socket is not None:
                self.is_slow = True
                with suppress(OSError):  # it was closed meanwhile
                    self._socket.shutdown(socket.SHUT_RDWR)


def watching_adapter(watch: WatchedReads) -> "HTTPAdapter":
    """Returns what a session of `requests` speaks through, whose waits for heads are watched."""
    from requests.adapters import HTTPAdapter
    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.connection import HTTPConnection, HTTPSConnection

    class Watched:
        sock: Any

        def getresponse(self) -> Any:
            with watch.waiting(self.sock):
                return super().getresponse()  # type: ignore[misc]

        def _tunnel(self) -> None:
            with watch.waiting(self.sock):
                super()._tunnel()  # type: ignore[misc]

    class Plain(HTTPConnectionPool):
        ConnectionCls = type("Plain", (Watched, HTTPConnection), {})

    class Tls(HTTPSConnectionPool):
        ConnectionCls = type("Tls", (Watched, HTTPSConnection), {})

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
            super().init_poolmanager(*arguments, **named)
            self.poolmanager.pool_classes_by_scheme = {"http": Plain, "https": Tls}

        def proxy_manager_for(self, *arguments: Any, **named: Any) -> Any:
            manager = super().proxy_manager_for(*arguments, **named)
            manager.pool_classes_by_scheme = {"http": Plain, "https": Tls}
            return manager

    return Adapter()
