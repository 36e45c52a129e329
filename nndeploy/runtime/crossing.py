# SPDX-License-Identifier: Apache-2.0
"""How the values that a submodel reads come to the device that runs it, and that each comes there once.

    made on this device, or read there once and on the host -> as they are (sessions on a GPU take arrays of the host)
    made on a GPU, read on the CPU or on another GPU         -> a copy on the host
    read by several submodels of the device                  -> the first copies and keeps it for the others

From one GPU to another values go through page-locked buffers of the host. Law: a value crosses to a device once in a
run, however many submodels read it there; only of submodels that may run side by side on the CPU, which would have to
wait for each other, each has its own copy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nndeploy.bundle.manifest import Submodel
from nndeploy.cuda import device, gpu_number
from nndeploy.cuda.array import DeviceArray
from nndeploy.target.place_limits import CPU
from nndeploy.values.types import Value


@dataclass(frozen=True, slots=True)
class Crossing:
    """How the inputs of one submodel come to `device`, "cpu" or "cuda:0".

    `moved` are the inputs that this step copies, `kept` those of them that others there read too, with the names under
    which the chain keeps the copies; `taken` are inputs that an earlier step copied, with the names of the copies.
    """

    device: str = CPU
    moved: tuple[str, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    taken: Mapping[str, str] = field(default_factory=dict)

    def inputs(self, values: Mapping[str, Value], names: Sequence[str]) -> dict[str, Value]:
        """Returns the inputs called `names` where the submodel can read them."""
        found = {name: values[self.taken.get(name, name)] for name in names}
        for name in self.moved:
            found[name] = self._moved(found[name], is_kept=name in self.kept)
        return found

    def _moved(self, value: Value, *, is_kept: bool) -> Value:
        """Returns a copy on the host; for others on a GPU to read on that GPU, where it is an array."""
        on_host = value.numpy() if isinstance(value, DeviceArray) else value
        number = gpu_number(self.device)
        if number is None or not is_kept or not isinstance(on_host, np.ndarray):
            return on_host
        return device(number).to_device(on_host)


NOTHING_CROSSES = Crossing()


def crossings(submodels: Sequence[Submodel], devices: Sequence[str]) -> list[Crossing]:
    """Returns how the inputs of each submodel come to its device."""
    home = {name: place for one, place in zip(submodels, devices, strict=True) for name in one.outputs}
    before = _needed_before(submodels)
    moved = [list[str]() for _ in submodels]
    kept = [dict[str, str]() for _ in submodels]
    taken = [dict[str, str]() for _ in submodels]
    first = dict[tuple[str, str], int]()
    for i, (submodel, place) in enumerate(zip(submodels, devices, strict=True)):
        for name in dict.fromkeys(submodel.inputs):
            if home.get(name, CPU) == place:
                continue
            reader = first.setdefault((name, place), i)
            if reader != i and (place != CPU or reader in before[i]):
                taken[i][name] = kept[reader][name] = f"{name}\0{place}"  # no name of a model has that character
                moved[reader] = list(dict.fromkeys((*moved[reader], name)))
            elif home.get(name, CPU) != CPU:
                moved[i].append(name)
    every = zip(devices, moved, kept, taken, strict=True)
    return [Crossing(place, tuple(names), copies, others) for place, names, copies, others in every]


def _needed_before(submodels: Sequence[Submodel]) -> list[frozenset[int]]:
    """Returns for each submodel the numbers of all that must have run before it."""
    maker = {name: i for i, one in enumerate(submodels) for name in one.outputs}
    found: list[frozenset[int]] = []
    for submodel in submodels:
        makers = {maker[name] for name in submodel.inputs if name in maker}
        found.append(frozenset(makers).union(*(found[i] for i in makers)))
    return found
