# SPDX-License-Identifier: Apache-2.0
"""Pools of cores: `cpu:0`, `cpu:1`, ... are disjoint sets of this machine's cores, each with threads bound to it.

Of N pools each gets an N-th of the cores that this process may use, those of one NUMA node together. A session that is
opened and run on a pool's threads starts its own threads from there, so they are bound to the same cores, and memory
that they touch first is on their node.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from nndeploy.errors import UnavailableError
from nndeploy.runtime.chain import Runnable
from nndeploy.target.place_limits import CPU, num_pools, number_of
from nndeploy.values.types import Value

P = ParamSpec("P")
T = TypeVar("T")

NODES = Path("/sys/devices/system/node")


def pool_cores(names: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Returns the cores of each of the places called `names` that is a pool.

    Raises:
        UnavailableError: this machine has fewer cores than there are pools, or binds no threads to cores.
    """
    pools = sorted({name for name in names if name.startswith(f"{CPU}:")}, key=number_of)
    if not pools:
        return {}
    if not hasattr(os, "sched_setaffinity"):
        raise UnavailableError(f"there is no device {pools[-1]}: this system cannot bind threads to cores")
    cores, count = _cores_by_node(), num_pools(pools)
    if len(cores) < count:
        has = f"{len(cores)} core{'s' * (len(cores) != 1)}"
        raise UnavailableError(f"there is no device {pools[-1]}: this process has {has}, too few for {count} pools")
    bounds = [len(cores) * i // count for i in range(count + 1)]
    return {name: tuple(cores[bounds[number_of(name)] : bounds[number_of(name) + 1]]) for name in pools}


def _cores_by_node() -> list[int]:
    """Returns the cores that this process may use, those of a NUMA node next to each other."""
    node_of: dict[int, int] = {}
    for path in NODES.glob("node[0-9]*/cpulist"):
        for part in filter(None, path.read_text().strip().split(",")):
            first, _, last = part.partition("-")
            node_of.update(dict.fromkeys(range(int(first), int(last or first) + 1), int(path.parent.name[4:])))
    return sorted(os.sched_getaffinity(0), key=lambda core: (node_of.get(core, -1), core))


class CorePool:
    """Threads that run on some cores alone, as many as these are; begun when they are first needed."""

    def __init__(self, name: str, cores: tuple[int, ...]) -> None:
        """Takes the place's name and its cores."""
        from concurrent.futures import ThreadPoolExecutor  # most programs start without it

        self.name = name
        self.cores = cores
        bind = partial(os.sched_setaffinity, 0, cores)  # of the calling thread
        self._threads = ThreadPoolExecutor(len(cores), f"nndeploy-{name}", initializer=bind)

    def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns what `call` returns on one of the threads, or raises what it raises."""
        return self._threads.submit(call, *args, **kwargs).result()

    def close(self) -> None:
        """Ends the threads, once nothing runs on them."""
        self._threads.shutdown()


class PoolStep:
    """A step that runs on the threads of a pool of cores."""

    def __init__(self, step: Runnable, pool: CorePool) -> None:
        self.inputs, self.outputs = step.inputs, step.outputs
        self._step = step
        self._pool = pool

    def __call__(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        """Returns the outputs of the submodel; `values` holds at least its inputs."""
        return self._pool.run(self._step, values)
