# SPDX-License-Identifier: Apache-2.0
"""`nndeploy serve` between its checks and its exit code: in this process, or in worker processes that this one watches.

Both listen, load, are ready, wait for a stop, and end the requests that are there.
"""

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from nndeploy.cli.commands.loading import load, load_silently
from nndeploy.cli.commands.service_manager import ServiceManager
from nndeploy.cli.console import note, print_line, warn
from nndeploy.installed.bundle_store import followed_name
from nndeploy.serve.access import access_of
from nndeploy.serve.address import Address
from nndeploy.serve.figures import Figures, forget_process, service_numbers
from nndeploy.serve.installed_name import followed_path
from nndeploy.serve.kept_weights import kept_weights
from nndeploy.serve.listening import Listening
from nndeploy.serve.options import ServeOptions
from nndeploy.serve.service import CLOSING_SECONDS, Place, Service
from nndeploy.serve.worker_processes import ThisWorker, WorkerProcesses
from nndeploy.stream.stopping import Stop


def serve_here(bundles: Mapping[str, Path], how: ServeOptions, stop: Stop, manager: ServiceManager) -> bool:
    """Serves until a stop; returns whether every request ended.

    Raises:
        NndeployError: as `Service`.
    """
    with Service(bundles, how, load, warn) as service:
        _tell_listening(service.addresses)
        service.load()
        _tell_ready(bundles)
        with manager.watching(service.standstill_ns):
            stop.wait()
        return service.stop()


def serve_by_processes(bundles: Mapping[str, Path], how: ServeOptions, stop: Stop, manager: ServiceManager) -> bool:
    """Does the same in `how.processes` worker processes.

    Raises:
        NndeployError: as `Service`, in a worker that was not yet ready.
    """
    access_of(how)  # what every worker would refuse is refused before anything is loaded
    for path in bundles.values() if how.follow else ():
        followed_name(path)
    models = list(bundles)
    numbers = service_numbers(models, how.processes)
    seen = [Figures(numbers, models, number) for number in range(how.processes)]

    def work(worker: ThisWorker) -> bool:
        def say(line: str) -> None:
            warn(f"worker process {worker.number}: {line}")

        place = Place(worker.number, numbers, listening)
        loading = load_silently if worker.number else load  # which tells the same in each of them
        now = {name: followed_path(path) for name, path in bundles.items()} if how.follow else bundles
        with Service(now, how, loading, say, place) as service:
            service.load()
            worker.ready()
            if not worker.wait(lambda: service.is_sound):
                say("a pipeline has failed")
            return service.stop()

    def look() -> float | None:
        if not manager.limit_seconds:
            return None
        for number, figures in enumerate(seen):
            if figures.standstill_ns() >= manager.limit_seconds * 1e9:
                warn(f"worker process {number} has been at one call for {manager.limit_seconds:g} s: it is ended")
                workers.kill(number)
        manager.moves()
        return manager.look_seconds

    with ExitStack() as stack:
        listening = stack.enter_context(Listening(how))
        _tell_listening(listening.addresses)
        stack.enter_context(kept_weights(bundles, how, load_silently, note))
        workers = WorkerProcesses(how.processes, work, lambda number: forget_process(numbers, models, number), warn)
        stack.enter_context(workers)
        if workers.start(stop):
            _tell_ready(bundles)
            manager.ready()
            workers.watch(stop, look)
        manager.stopping()
        return workers.stop(how.grace + 4 * CLOSING_SECONDS)  # of both servers, the loop and the bundles


def _tell_listening(addresses: Mapping[str, Address]) -> None:
    for protocol, address in addresses.items():
        _tell(f"listening: {protocol} {address}")


def _tell_ready(bundles: Mapping[str, Path]) -> None:
    _tell(f"ready: {', '.join(bundles)}")


def _tell(line: str) -> None:
    """Prints a line at once: whoever started the service may wait for it."""
    print_line(line)
    sys.stdout.flush()
