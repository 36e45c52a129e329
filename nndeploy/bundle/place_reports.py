# SPDX-License-Identifier: Apache-2.0
"""Where the submodels of chains run that span several places, what they need there, and what crosses to them.

A manifest comes in, rows go out, a row for each submodel in running order. A value crosses where it is read at another
place than it is made; the program's inputs and outputs are on the host, and cross to and from GPUs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nndeploy.bundle.manifest import PORTABLE, Manifest, Placing, Submodel
from nndeploy.target.place_limits import CPU, is_gpu


@dataclass(frozen=True, slots=True)
class PlaceReport:
    """A submodel's place, the bytes of its constants and of values alive at once, and those that cross.

    `crossing_bytes` are of values that it reads from elsewhere, and of the program's outputs that it makes on a GPU.
    """

    chain: str
    submodel: str
    place: str
    weight_bytes: int
    peak_bytes: int
    crossing_bytes: int


def places_of(manifest: Manifest) -> tuple[PlaceReport, ...]:
    """Returns the rows of all chains that span places, the portable one first."""
    chains = {PORTABLE: manifest.submodels, **{chain.id: chain.submodels for chain in manifest.target_chains}}
    outputs = [output.name for output in manifest.outputs]
    return tuple(
        row
        for name, submodels in chains.items()
        if name in manifest.placings
        for row in place_reports(name, submodels, outputs, manifest.placings[name])
    )


def place_reports(
    chain: str, submodels: Sequence[Submodel], outputs: Sequence[str], placing: Placing
) -> list[PlaceReport]:
    """Returns the rows of one chain; `outputs` are the program's."""
    place_of = {name: placing.submodels[one.id].place for one in submodels for name in one.outputs}
    found = []
    for submodel in submodels:
        own = placing.submodels[submodel.id]
        read = [name for name in submodel.inputs if _crosses(place_of.get(name, CPU), own.place, name in place_of)]
        made = [name for name in submodel.outputs if name in outputs and is_gpu(own.place)]
        crossing = sum(placing.value_bytes.get(name, 0) for name in (*read, *made))
        found.append(PlaceReport(chain, submodel.id, own.place, own.weight_bytes, own.peak_bytes, crossing))
    return found


def _crosses(there: str, here: str, is_made: bool) -> bool:
    """Returns whether a value crosses; an input of the program is on the host, where every CPU reads it."""
    return there != here if is_made else is_gpu(here)


def crossing_by_chain(rows: Sequence[PlaceReport]) -> Mapping[str, int]:
    """Returns the bytes that cross in a call of each chain."""
    chains = dict.fromkeys(row.chain for row in rows)
    return {chain: sum(row.crossing_bytes for row in rows if row.chain == chain) for chain in chains}
