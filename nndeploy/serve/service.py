# SPDX-License-Identifier: Apache-2.0
"""A service from its first socket to its last answer.

options, bundles -> `Service` listens, and is live -> `load` opens and checks the models -> it is ready -> `stop` makes
it no longer ready, lets the requests that are there end -> `close`. The event loop has a thread of its own, so that the
main thread is free for signals and for loading. Laws: what listens is closed on every way out; one of several processes
accepts nothing before it has loaded, so whoever is answered is answered by one that can.
"""

import asyncio
import gc
import os
import socket
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from nndeploy.errors import UnavailableError
from nndeploy.runtime.freed_memory import keep_freed_memory
from nndeploy.serve.access import access_of
from nndeploy.serve.address import Address
from nndeploy.serve.answering import LAST_ANSWERS_SECONDS, Answering
from nndeploy.serve.body_budget import BodyBudget
from nndeploy.serve.figures import Figures, service_numbers
from nndeploy.serve.infer_request import Say
from nndeploy.serve.installed_name import InstalledName, version_at
from nndeploy.serve.listening import Listening
from nndeploy.serve.open_files import RESERVED, shares
from nndeploy.serve.open_served import open_served
from nndeploy.serve.options import ServeOptions
from nndeploy.serve.served_model import ServedModel
from nndeploy.serve.shared_numbers import SharedNumbers
from nndeploy.stream.run.options import Load
from nndeploy.version import install_command

Result = TypeVar("Result")
ELEMENT_THREADS = 2
"""Threads that read and write large lists of elements: of JSON, which takes many times its size meanwhile."""
os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # read at its import; else clients make it write lines
CLOSING_SECONDS = 2 * LAST_ANSWERS_SECONDS
"""How long a server, or the loop, has to close."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a process of several has of their parent: its number from 0, the numbers of all, and where all listen."""

    number: int
    numbers: SharedNumbers
    listening: Listening


class Service:
    """Serves bundles by name while its `with` block runs."""

    def __init__(
        self, bundles: Mapping[str, Path], options: ServeOptions, load: Load, say: Say, place: "Place | None" = None
    ) -> None:
        """Takes bundles and pipelines, what opens a bundle, and what tells the operator a line; nothing listens yet.

        `place` is that of a process among several, None for one alone.

        Raises:
            NndeployError: as `access_of`; or a bundle that should be followed is none of an installed name.
            UnavailableError: the libraries of the extra `serve` are missing.
        """
        from uvloop import new_event_loop  # of the extra `serve`

        self._options = options
        self._bundles = dict(bundles)
        access = access_of(options)
        self._place = place
        numbers, number = (service_numbers(list(bundles), 1), 0) if place is None else (place.numbers, place.number)
        self._figures = Figures(numbers, list(bundles), number)
        self._models = {
            name: ServedModel(
                name,
                options,
                partial(open_served, name, options=options, load=load, say=say, numbers=self._figures.of(name)),
                self._figures.of(name),
            )
            for name in bundles
        }
        self._followed = [
            InstalledName(self._models[name], path, say) for name, path in bundles.items() if options.follow
        ]
        self._say = say
        self._answering = Answering(self._models, options, access, BodyBudget(options.max_body), self._figures)
        self._loop = new_event_loop()
        self._elements = ThreadPoolExecutor(ELEMENT_THREADS, "nndeploy serve")
        self._loop.set_default_executor(self._elements)
        self._thread = threading.Thread(target=self._loop.run_forever, name="nndeploy serve", daemon=True)
        self._stack = ExitStack()
        self.addresses: dict[str, Address] = {}

    def __enter__(self) -> Self:
        """Listens.

        Raises:
            CannotCreateError: an address is taken.
        """
        keep_freed_memory()
        wanted = self._options.max_connections + RESERVED
        http, grpc = shares((wanted, wanted))
        if http < wanted:
            self._say(f"{http} connections at once, not {wanted}: the limit of open files is low (ulimit -n)")
        self._most = http, grpc
        self._thread.start()
        self._stack.callback(self._end_loop)
        if self._place is None:
            try:
                self._listen(self._stack.enter_context(Listening(self._options)))
            except BaseException:
                self._stack.close()
                raise
        return self

    def load(self) -> None:
        """Opens and checks the models, after which the service is ready.

        Raises:
            NndeployError: as `ServedModel.open`.
        """
        for name, path in self._bundles.items():
            self._models[name].open(path, version_at(path))
        gc.collect()
        gc.freeze()  # a later collection of all that was imported and loaded would hold up every request for 25 ms
        if self._place is not None:
            self._listen(self._place.listening)
        self._figures.loaded()
        for followed in self._followed:
            followed.start()

    @property
    def is_ready(self) -> bool:
        """Whether every model is open and checked, and the service does not end."""
        return self._answering.is_ready

    @property
    def is_sound(self) -> bool:
        """Whether every model of this process answers."""
        return all(model.is_ready for model in self._models.values())

    def standstill_ns(self) -> int:
        """Returns for how long the slowest call has been running, 0 where none is."""
        return self._figures.standstill_ns()

    def stop(self) -> bool:
        """Takes no more requests and ends those that are there, within `grace`; returns whether all of them ended."""
        self._answering.is_ending = True
        for followed in self._followed:
            followed.close()
        ended: list[bool] = []

        def close(model: ServedModel) -> None:
            ended.append(model.close(self._options.grace))

        threads = [threading.Thread(target=close, args=(model,), daemon=True) for model in self._models.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return all(ended)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._answering.is_ending:
            self.stop()
        self._stack.close()

    def _listen(self, listening: Listening) -> None:
        http, grpc = self._most
        self.addresses = dict(listening.addresses)
        if listening.http is not None:
            self._listen_http(listening.http, http)
        if self._options.grpc is not None:
            self._listen_grpc(self.addresses.get("grpc", self._options.grpc), grpc)

    def _listen_http(self, listening: socket.socket, most: int) -> None:
        from nndeploy.serve.http_connections import Connections
        from nndeploy.serve.http_server import HttpServer

        at_work = min(self._options.max_connections, max(1, most - RESERVED))
        self._http_places = Connections(most, at_work, self._answering.figures, self._say)
        server = HttpServer(self._answering, self._http_places)
        self._stack.callback(self._closed, server.close)
        self._in_loop(server.start(listening))

    def _listen_grpc(self, address: Address, most: int) -> None:
        from nndeploy.serve.grpc_server import GrpcServer

        self._grpc = GrpcServer(self._answering, most)
        self._stack.callback(self._closed, self._grpc.close)
        self.addresses["grpc"] = self._in_loop(self._grpc.start(address))

    def _in_loop(self, work: Coroutine[Any, Any, Result]) -> Result:
        found: Future[Result] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return found.result()

    def _closed(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        found = asyncio.run_coroutine_threadsafe(close(), self._loop)
        try:
            found.result(CLOSING_SECONDS)
        except TimeoutError:
            found.cancel()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSING_SECONDS)
        self._elements.shutdown(wait=False, cancel_futures=True)
        if not self._thread.is_alive():
            self._loop.close()


def check_libraries() -> None:
    """Loads what the extra `serve` brings.

    Raises:
        UnavailableError: it is not installed.
    """
    try:
        import aiohttp  # noqa: F401
        import google.protobuf  # noqa: F401
        import grpc  # noqa: F401
        import uvloop  # noqa: F401
    except ImportError as err:
        hint = install_command("serve")
        raise UnavailableError(f"the service needs a package that is not installed: {err.name}", hint=hint) from err
