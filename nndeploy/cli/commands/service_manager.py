# SPDX-License-Identifier: Apache-2.0
"""What a run tells the service manager that started it: that it is ready, that it moves, that it ends.

Without `NOTIFY_SOCKET` in the environment nobody is told anything and nothing is opened. A message is one datagram to a
local socket; one that cannot be sent is left out, and the manager does what it does about a service that is silent.

Law: that the run moves is said where it is seen to move, never because time has passed. Work that takes no longer than
the manager's limit never ends a run; work that hangs does, before one and a half times the limit.

Source: sd_notify(3), sd_watchdog_enabled(3), and WatchdogSec= in systemd.service(5).
"""

import faulthandler
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

LOOKS = 4
"""How often the run is looked at within the limit."""
OLDEST = 1 / 2
"""Part of the limit after which work that goes on is no sign of life."""


class ServiceManager:
    """The one that this process was started by, and its limit for a run that does not move; nobody, or no limit."""

    def __init__(self) -> None:
        """Takes both from the environment, where they are meant for this process and no parent of it."""
        name = os.environ.get("NOTIFY_SOCKET", "")
        self._address = f"\0{name[1:]}" if name.startswith("@") else name
        limit = os.environ.get("WATCHDOG_USEC", "") if self._address else ""
        is_meant = os.environ.get("WATCHDOG_PID", "") in {"", str(os.getpid())}
        self._limit_ns = int(limit) * 1000 if is_meant and limit.isascii() and limit.isdecimal() else 0
        self._is_over = threading.Event()

    @property
    def limit_seconds(self) -> float:
        """Its limit for a run that does not move, 0 where there is none."""
        return self._limit_ns / 1e9

    @property
    def look_seconds(self) -> float:
        """How often who is watched by nobody else is to say that it moves."""
        return self._limit_ns / LOOKS / 1e9

    def ready(self) -> None:
        """Says that the run is ready."""
        self._tell("READY=1")

    def moves(self) -> None:
        """Says that the run moves."""
        self._tell("WATCHDOG=1")

    @contextmanager
    def watching(self, standstill_ns: Callable[[], int]) -> Iterator[None]:
        """Says that the run is ready, and while it moves, that it does; `standstill_ns` is for how long it has not.

        A run that has not moved for the limit writes on standard error where each of its threads is.
        """
        self.ready()
        if self._limit_ns:
            threading.Thread(target=self._watch, args=(standstill_ns,), name="nndeploy watchdog", daemon=True).start()
        try:
            yield
        finally:
            self.stopping()

    def stopping(self) -> None:
        """Says that the run ends now; may be called from a signal handler, and more than once."""
        if not self._is_over.is_set():
            self._is_over.set()
            self._tell("STOPPING=1")

    def _watch(self, standstill_ns: Callable[[], int]) -> None:
        is_told = False
        while not self._is_over.wait(self.look_seconds):
            standstill = standstill_ns()
            if standstill < self._limit_ns * OLDEST:
                self.moves()
            if standstill < self._limit_ns:
                is_told = False
            elif not is_told:
                is_told = True
                # By this thread, which holds Python's lock, before the manager ends the process: a handler of its
                # signal would read the frames of threads that run, and may fail at it.
                with suppress(OSError, ValueError, RuntimeError):  # standard error may be no file, or closed
                    faulthandler.dump_traceback(sys.stderr)

    def _tell(self, message: str) -> None:
        if not self._address:
            return
        import socket  # which a run that nobody watches does without

        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.setblocking(False)
            out.sendto(message.encode("ascii"), self._address)
