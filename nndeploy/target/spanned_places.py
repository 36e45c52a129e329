# SPDX-License-Identifier: Apache-2.0
"""The places of one box that a chain for it spans, each with its limit.

Comes in: a target, whose file or user named places. Goes out: these places, of a GPU without a limit with what it has.
A box with GPUs has a chain for them beside the portable one: places with a GPU are for the former, others for the
latter.
"""

from dataclasses import replace

from nndeploy.errors import UnavailableError
from nndeploy.target.place_limits import PlaceLimit, is_gpu, number_of
from nndeploy.target.target import Target


def spanned_places(target: Target) -> tuple[PlaceLimit, ...]:
    """Returns the places that a chain for `target` spans, empty where it runs in one.

    Raises:
        UnavailableError: one is a GPU that the target lacks.
    """
    if any(place.is_gpu for place in target.places) != bool(target.gpus):
        return ()
    return tuple(_with_memory(place, target) for place in target.places)


def memory_bytes(place: str, target: Target) -> int:
    """Returns the bytes that a GPU has; 0 where that is not known, and for the CPU, which takes what it can.

    Raises:
        UnavailableError: the target has no such GPU.
    """
    if not is_gpu(place):
        return 0
    if number_of(place) >= len(target.gpus):
        name = "this machine" if target.is_host else target.name
        raise UnavailableError(f"there is no GPU {place}: {name} has {len(target.gpus)}")
    return target.gpus[number_of(place)].memory_bytes


def _with_memory(place: PlaceLimit, target: Target) -> PlaceLimit:
    memory = memory_bytes(place.name, target)
    return replace(place, limit_bytes=memory) if memory and place.limit_bytes is None else place
