# SPDX-License-Identifier: Apache-2.0
"""What of a chain can run at once: each GPU and place beside the others, and branches on cores that a call leaves free.

Comes in: the backends, what nodes cost, how many cores there are, and how many threads a backend was asked to have.
Goes out: `Lanes`, which tell whether regions should be kept apart. A backend that has all cores leaves none to another.
"""

from collections.abc import Sequence
from functools import cache, partial

from nndeploy.graph.lanes import Lanes
from nndeploy.partition.cost import Costs
from nndeploy.partition.speeds import call_seconds, node_seconds
from nndeploy.plugin.interface import Backend
from nndeploy.target.place_limits import CPU


def lanes_of(
    backends: Sequence[Backend], costs: Costs, num_cores: int, threads: int | None, *, has_places: bool = False
) -> Lanes | None:
    """Returns the lanes of a chain on these backends, None where everything takes the time of the same device.

    `threads` are those of each backend, None for all cores; `num_cores` is 0 where it is not known. With `has_places`
    each place is a device.
    """
    devices = {backend.name: backend.device_kind for backend in backends}
    count = max(1, num_cores // threads) if threads else 1
    if len(set(devices.values())) == 1 and count == 1 and not has_places:
        return None
    seconds = cache(partial(node_seconds, costs=costs))
    return Lanes(seconds, cache(partial(call_seconds, costs=costs)), devices, {CPU: count})
