# SPDX-License-Identifier: Apache-2.0
"""Which places the chains of a compile span: those of `--place`, else those of each target's file.

Comes in: the options. Goes out: targets with their places, and those of the portable chain, which has no target of its
own. Places with a GPU are for the chains of targets with GPUs, all others for the portable chain.
"""

from collections.abc import Sequence
from dataclasses import replace

from nndeploy.compiler.options import CompileOptions
from nndeploy.errors import UnavailableError, UsageError
from nndeploy.target.place_limits import PlaceLimit, places_text
from nndeploy.target.target import Target, host_target


def placed_targets(options: CompileOptions) -> tuple[Target, ...]:
    """Returns the targets of the options, with the places of the options where these name some.

    Raises:
        UnavailableError: these name a GPU, and no target has one.
    """
    gpus = [target.gpus for target in options.targets] or [host_target().gpus]
    if _has_gpu(options.places) and not any(gpus):
        raise UnavailableError(
            f"--place {places_text(options.places)} names GPUs, but no target has one",
            hint="pass --target with a target file",
        )
    if not options.places:
        return options.targets
    return tuple(replace(target, places=options.places) for target in options.targets)


def places_here(options: CompileOptions) -> tuple[PlaceLimit, ...]:
    """Returns the places of this machine: those of the options, else what targets say of a CPU's places.

    Raises:
        UsageError: two targets say different ones, and there is one portable chain for both.
    """
    if options.places:
        return options.places
    said = {target.name: target.places for target in options.targets if target.places and not _has_gpu(target.places)}
    if len(set(said.values())) > 1:
        names = " and ".join(said)
        raise UsageError(f"{names} have different devices, but share one portable chain", hint="compile for each")
    return next(iter(said.values()), ())


def _has_gpu(places: Sequence[PlaceLimit]) -> bool:
    return any(place.is_gpu for place in places)
