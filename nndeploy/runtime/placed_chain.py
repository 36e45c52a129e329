# SPDX-License-Identifier: Apache-2.0
"""Where on this machine the submodels of a chain run that spans several places: as the bundle says, or as is asked.

Comes in: what the bundle says of the chain (`Placing`), and the places that were asked for, if any. Goes out: a `Place`
for each submodel. Law: what this machine lacks, or what is too small, is refused before anything is opened.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nndeploy.bundle.manifest import PlacedSubmodel, Placing, Submodel
from nndeploy.errors import UnavailableError
from nndeploy.plugin.registry import backend, is_installed
from nndeploy.runtime.core_pool import PoolShare, pool_shares
from nndeploy.target.place_limits import CPU, PlaceLimit, binary_size, is_gpu, number_of
from nndeploy.target.spanned_places import memory_bytes, spanned_places
from nndeploy.target.spread import NoRoom, SpreadStep, spread
from nndeploy.target.target import Target, host_target


@dataclass(frozen=True, slots=True)
class Place:
    """Where a chain or a submodel runs.

    `host` is this machine with the one GPU that it may use, `gpu` that GPU ("cuda:0") or ""; `pool` is the pool of
    cores that runs it ("cpu:0"), and `share` what that has; "" and None for all cores.
    """

    host: Target
    gpu: str = ""
    pool: str = ""
    share: PoolShare | None = None

    @property
    def name(self) -> str:
        """The place's name, as `--place` takes it."""
        return self.gpu or self.pool or CPU


def placed_submodels(
    placing: Placing | None, submodels: Sequence[Submodel], outputs: Sequence[str], asked: Sequence[PlaceLimit]
) -> dict[str, Place]:
    """Returns the place of each submodel of a chain, by id; `asked` is empty where the bundle decides.

    Raises:
        UnavailableError: this machine lacks a place, a place is too small, or the bundle does not say what is needed.
    """
    if placing is None:
        raise UnavailableError(
            "the bundle does not contain the memory needs of its submodels", hint="compile it with --place"
        )
    names = {name: one.place for name, one in placing.submodels.items()}
    host = host_target()
    if asked:
        places_here([one.name for one in asked], host)
        gpus = host.gpus if any(one.is_gpu for one in asked) else ()
        names = _spread(placing, submodels, outputs, spanned_places(replace(host, gpus=gpus, places=tuple(asked))))
    found = places_here(names.values(), host)
    _check_memory(placing.submodels, names, host)
    return {submodel.id: found[names[submodel.id]] for submodel in submodels}


def places_here(names: Iterable[str], host: Target) -> dict[str, Place]:
    """Returns the places called `names` on this machine.

    Raises:
        UnavailableError: it lacks one.
    """
    found, without_gpus = dict[str, Place](), replace(host, gpus=())
    shares = pool_shares(names := tuple(names))
    for name in names:
        if not is_gpu(name):
            found[name] = Place(without_gpus, "", "" if name == CPU else name, shares.get(name))
        elif memory_bytes(name, host) >= 0:
            found[name] = Place(replace(host, gpus=(host.gpus[number_of(name)],)), name)
    return found


def _spread(
    placing: Placing, submodels: Sequence[Submodel], outputs: Sequence[str], places: Sequence[PlaceLimit]
) -> dict[str, str]:
    """Returns the place of each submodel by its id."""
    steps = [_step(submodel, placing.submodels[submodel.id]) for submodel in submodels]
    found = spread(steps, placing.value_bytes, outputs, places)
    if isinstance(found, NoRoom):
        raise UnavailableError(found.reason, hint="give --place more memory or more places, or leave it out")
    return dict(zip((submodel.id for submodel in submodels), found, strict=True))


def _step(submodel: Submodel, needs: PlacedSubmodel) -> SpreadStep:
    """Returns a submodel as a step: one that is built for GPUs runs on these, any other on a CPU."""
    for_gpus = any(
        is_installed(one.backend) and backend(one.backend).device_kind == "cuda" for one in submodel.variants
    )
    return SpreadStep(
        f"submodel {submodel.id}",
        submodel.inputs,
        submodel.outputs,
        weights={submodel.id: needs.weight_bytes},
        peak_bytes=needs.peak_bytes,
        needs_cpu=not for_gpus,
        needs_gpu=for_gpus,
    )


def _check_memory(needs: Mapping[str, PlacedSubmodel], names: Mapping[str, str], host: Target) -> None:
    """Checks that each GPU has the memory that its submodels need together."""
    for place in dict.fromkeys(names.values()):
        there = [needs[submodel] for submodel, name in names.items() if name == place]
        needed = sum(one.weight_bytes for one in there) + max(one.peak_bytes for one in there)
        if 0 < (memory := memory_bytes(place, host)) < needed:
            raise UnavailableError(
                f"the submodels on {place} need {binary_size(needed)}, it has {binary_size(memory)}",
                hint="--place with more places",
            )
