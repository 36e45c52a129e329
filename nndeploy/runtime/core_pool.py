# SPDX-License-Identifier: Apache-2.0
"""Pools of cores: `cpu:0`, `cpu:1`, ... each stand for a share of this machine, as many threads as it has cores.

Of N pools each gets an N-th of the cores that this process may use, those of one NUMA node together. A pool stays on
the nodes where its cores are: a session that is opened and run on its threads starts its own threads from there, so
they are bound to the same nodes, and memory that they touch first is there. On which core of a node a thread runs is
the system's choice, and a pool whose nodes are all that there are is bound to nothing: a thread that must stay on one
core waits where other work takes it, while another core is free. Calls in such pools begin on a core that no other of
them has: the system may have woken two on one.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from nndeploy.errors import UnavailableError
from nndeploy.runtime.chain import Runnable
from nndeploy.target.place_limits import CPU, num_pools, number_of
from nndeploy.values.types import Value

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

P = ParamSpec("P")
T = TypeVar("T")

NODES = Path("/sys/devices/system/node")


@dataclass(frozen=True, slots=True)
class PoolShare:
    """What a pool has: so many threads, and the cores of the nodes that they are bound to; () for no bounds."""

    num_threads: int
    cores: tuple[int, ...] = ()


def pool_shares(names: Iterable[str]) -> dict[str, PoolShare]:
    """Returns the share of each of the places called `names` that is a pool.

    Raises:
        UnavailableError: this machine has fewer cores than there are pools, or binds no threads to cores.
    """
    pools = sorted({name for name in names if name.startswith(f"{CPU}:")}, key=number_of)
    if not pools:
        return {}
    if not hasattr(os, "sched_setaffinity"):
        raise UnavailableError(f"there is no device {pools[-1]}: this system cannot bind threads to cores")
    count, usable = num_pools(pools), os.sched_getaffinity(0)
    if len(usable) < count:
        has = f"{len(usable)} core{'s' * (len(usable) != 1)}"
        raise UnavailableError(f"there is no device {pools[-1]}: this process has {has}, too few for {count} pools")
    node_of = _node_of()
    cores = sorted(usable, key=lambda core: (node_of.get(core, -1), core))
    bounds = [len(cores) * i // count for i in range(count + 1)]
    found = {}
    for name in pools:
        own = cores[bounds[number_of(name)] : bounds[number_of(name) + 1]]
        nodes = {node_of.get(core, -1) for core in own}
        around = tuple(core for core in cores if node_of.get(core, -1) in nodes)
        found[name] = PoolShare(len(own), around if len(around) < len(cores) else ())
    return found


def _node_of() -> dict[int, int]:
    """Returns the NUMA node of each core of this machine, as far as the system says."""
    found: dict[int, int] = {}
    for path in NODES.glob("node[0-9]*/cpulist"):
        for part in filter(None, path.read_text().strip().split(",")):
            first, _, last = part.partition("-")
            found.update(dict.fromkeys(range(int(first), int(last or first) + 1), int(path.parent.name[4:])))
    return found


class SeparateCores:
    """A `with` block for threads that compute beside each other: each begins on a core that no other inside it has.

    A thread is moved there and not bound to it, so it goes on elsewhere where other programs take that core.
    """

    def __init__(self) -> None:
        from ctypes import CDLL  # most programs start without it

        self._core_of: dict[int, int] = {}  # by thread
        self._current: Callable[[], int] = CDLL(None).sched_getcpu  # of the calling thread

    def __enter__(self) -> None:
        core, taken = self._current(), set(self._core_of.copy().values())
        if core in taken and (free := (usable := os.sched_getaffinity(0)) - taken):
            os.sched_setaffinity(0, free)
            os.sched_setaffinity(0, usable)
            core = self._current()
        self._core_of[get_ident()] = core

    def __exit__(self, *_: object) -> None:
        del self._core_of[get_ident()]


class CorePool:
    """What runs calls for a pool: threads that stay on its nodes, or the caller's thread where it is not bound."""

    def __init__(self, name: str, share: PoolShare) -> None:
        """Takes the place's name and its share; threads are begun when they are first needed."""
        self.name = name
        self._threads = _bound_threads(name, share) if share.cores else None

    @property
    def is_bound(self) -> bool:
        """Whether it has threads of its own, which stay on its nodes."""
        return self._threads is not None

    def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns what `call` returns there, or raises what it raises; it may ask for the caller's context."""
        if self._threads is None:
            return call(*args, **kwargs)
        context = copy_context()
        return self._threads.submit(lambda: context.run(call, *args, **kwargs)).result()

    def close(self) -> None:
        """Ends the threads, once nothing runs on them."""
        if self._threads is not None:
            self._threads.shutdown()


def _bound_threads(name: str, share: PoolShare) -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor  # most programs start without it

    bind = partial(os.sched_setaffinity, 0, share.cores)  # of the calling thread
    return ThreadPoolExecutor(share.num_threads, f"nndeploy-{name}", initializer=bind)


class PoolStep:
    """A step that runs on the threads of a pool of cores."""

    def __init__(self, step: Runnable, pool: CorePool) -> None:
        self.inputs, self.outputs = step.inputs, step.outputs
        self._step = step
        self._pool = pool

    def __call__(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        """Returns the outputs of the submodel; `values` holds at least its inputs."""
        return self._pool.run(self._step, values)
