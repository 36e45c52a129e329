# SPDX-License-Identifier: Apache-2.0
"""Requests over HTTP to a service: by clients that ask again as soon as they are answered, or at random times.

The client is one thread with connections that stay; it writes bytes that were made before and counts those that come,
so that it takes little of a machine that it shares with the service. Law: at random times, a request's time runs from
when it was due, also where no connection was free then.
"""

import asyncio
import contextlib
import ctypes
import os
import random
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import serve_engines
import uvloop
from interleaved import Array

BY_HAND = Path(__file__).with_name("served_by_hand.py")
SEED = 7
SHARE = 0.8
"""Part of the highest rate at which requests come at random times."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a time of load came to: requests a second, and milliseconds of a request from when it was due.

    `waits` is the part of the time in which a thread of the server waited for a core; several at once count so often.
    """

    rate: float
    p50_ms: float
    p99_ms: float
    waits: float = 0.0


def busy(address: str, inputs: Mapping[str, Array], clients: int, seconds: float) -> Load:
    """Lets each of several clients ask all the time."""
    return uvloop.run(_asked(address, _request(inputs), clients, seconds, None))


def at_random(address: str, inputs: Mapping[str, Array], clients: int, seconds: float, rate: float) -> Load:
    """Lets so many requests a second come at random times, on the first connection that is free."""
    return uvloop.run(_asked(address, _request(inputs), clients, seconds, rate))


def rows(
    bundle: Path, inputs: Mapping[str, Array], processes: Sequence[int], clients: int, seconds: float, rounds: int
) -> list[list[str]]:
    """Returns the rows of a bundle: of a server by hand, then one for each number of processes.

    All take turns, while the others are stopped.
    """
    by_hand = partial(serve_engines.started, [sys.executable, str(BY_HAND), str(bundle)], "ready:")
    starts: dict[str, Callable[[], str]] = {"by hand": by_hand}
    for number in processes:
        options = ("--processes", str(number))
        starts[str(number)] = partial(serve_engines.served, str(bundle), "http", options)
    with contextlib.ExitStack() as stack:
        served = {}
        for name, start in starts.items():
            address = start()
            stack.callback(serve_engines.end_server)
            served[name] = address, serve_engines.server_processes()
        memory = {name: sum(one.memory_full_info().pss for one in every) for name, (_, every) in served.items()}

        def turns(load: Callable[[str, str], Load]) -> dict[str, list[Load]]:
            found = {name: list[Load]() for name in served}
            for _ in range(rounds):
                for name, (address, own) in served.items():
                    with _stopped([one for other, (_, every) in served.items() if other != name for one in every]):
                        began, waited = time.monotonic(), _waited(own)
                        one = load(name, address)
                        waits = (_waited(own) - waited) / (time.monotonic() - began)
                        found[name].append(replace(one, waits=waits))
            return found

        kept = turns(lambda _, address: busy(address, inputs, clients, seconds))
        rates = {name: statistics.median(one.rate for one in every) for name, every in kept.items()}
        paced = turns(lambda name, address: at_random(address, inputs, clients, seconds, SHARE * rates[name]))
    return [
        [
            name,
            f"{memory[name] / (1 << 20):.0f}",
            f"{rates[name]:,.0f}",
            f"{statistics.median(one.p50_ms for one in every):.2f}",
            f"{statistics.median(one.p99_ms for one in every):.2f}",
            f"{statistics.median(one.p99_ms / one.p50_ms for one in every):.1f}",
            f"{statistics.median(one.waits for one in every):.0%}",
        ]
        for name, every in paced.items()
    ]


def _waited(processes: Sequence[psutil.Process]) -> float:
    """Returns for how many seconds the threads of processes have waited for a core so far, all together."""
    every = (path for one in processes for path in Path(f"/proc/{one.pid}/task").glob("*/schedstat"))
    return sum(int(path.read_text().split()[1]) for path in every) / 1e9


@contextlib.contextmanager
def _stopped(processes: Sequence[psutil.Process]) -> Iterator[None]:
    for one in processes:
        one.suspend()
    try:
        yield
    finally:
        for one in processes:
            one.resume()


def _request(inputs: Mapping[str, Array]) -> bytes:
    body, headers = serve_engines.http_body(inputs)
    told = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
    head = f"POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\n{told}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class _Timer:
    """Calls something at a time, to some microseconds: the timers of event loops have milliseconds."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._libc = ctypes.CDLL(None)
        self._descriptor = self._libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        self._call = call
        asyncio.get_running_loop().add_reader(self._descriptor, self._rung)

    def ring(self, seconds: float) -> None:
        """Sets it to so many seconds from now."""
        nanoseconds = max(1, round(seconds * 1e9))
        spec = (ctypes.c_long * 4)(0, 0, *divmod(nanoseconds, 10**9))  # struct itimerspec
        self._libc.timerfd_settime(self._descriptor, 0, spec, None)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _rung(self) -> None:
        os.read(self._descriptor, 8)
        self._call()


class _Connection(asyncio.Protocol):
    """One connection, which tells when the answer to its request is whole."""

    def __init__(self, answered: Callable[["_Connection"], None]) -> None:
        self._answered = answered
        self._came = bytearray()
        self.due = 0.0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def ask(self, request: bytes, due: float) -> None:
        self.due = due
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._came += data
        head, end, body = self._came.partition(b"\r\n\r\n")
        length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]) if end else 0
        if not end or len(body) < length:
            return
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(bytes(self._came).decode(errors="replace"))
        self._came.clear()
        self._answered(self)


class _Client:
    """Sends one request again and again over connections that stay, and times each answer."""

    def __init__(self, request: bytes, seconds: float, rate: float | None) -> None:
        self._request, self._seconds, self._rate = request, seconds, rate
        self._draw = random.Random(SEED)  # noqa: S311 - the same times for all
        self._times, self._due, self._free = list[float](), deque[float](), deque[_Connection]()
        self._num_away, self._is_over = 0, False
        self._ended = asyncio.get_running_loop().create_future()
        self._timer = _Timer(self._come)

    async def load(self, address: str, clients: int) -> Load:
        """Returns what the time of load came to."""
        host, _, port = address.rpartition(":")
        create = asyncio.get_running_loop().create_connection
        every = [(await create(lambda: _Connection(self._answered), host, int(port)))[1] for _ in range(clients)]
        self._free.extend(every)
        began = self._at = time.perf_counter()
        self._until = began + self._seconds
        if self._rate is None:
            self._due.extend([began] * clients)
            self._ask()
        else:
            self._come()
        took = await self._ended - began
        self._timer.close()
        for one in every:
            one.transport.close()
        p50, p99 = np.percentile(np.array(self._times) * 1e3, [50, 99])
        return Load(len(self._times) / took, float(p50), float(p99))

    def _ask(self) -> None:
        while self._free and self._due:
            self._num_away += 1
            self._free.popleft().ask(self._request, self._due.popleft())

    def _answered(self, one: _Connection) -> None:
        now = time.perf_counter()
        self._num_away -= 1
        self._times.append(now - one.due)
        self._free.append(one)
        if self._rate is None:
            self._is_over = now >= self._until
            self._due.extend([] if self._is_over else [now])
        self._ask()
        self._end()

    def _end(self) -> None:
        if self._is_over and not self._num_away and not self._due and not self._ended.done():
            self._ended.set_result(time.perf_counter())

    def _come(self) -> None:
        """Lets requests come that are due, and is called again when the next one is."""
        assert self._rate is not None
        while self._at <= time.perf_counter():
            self._due.append(self._at)
            self._at += self._draw.expovariate(self._rate)
        self._ask()
        self._is_over = self._at >= self._until
        if self._is_over:
            self._end()
        else:
            self._timer.ring(self._at - time.perf_counter())


async def _asked(address: str, request: bytes, clients: int, seconds: float, rate: float | None) -> Load:
    return await _Client(request, seconds, rate).load(address, clients)
