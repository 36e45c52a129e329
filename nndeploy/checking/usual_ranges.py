# SPDX-License-Identifier: Apache-2.0
"""Ranges of the sizes that a model leaves open and nobody declared, for code that must be built for some: that of GPUs.

    image [N, 3, H, W]     ->  N: 1..8, H and W: 32..640:32
    ids [B, S]             ->  B: 1..8, S: 1..512

A range is what is usual for what a size probably is (`likely_sizes.usual_range`), widened to the sizes of the samples
and tuned for the first of them. Where a usual end breaks a condition of the model, the samples' own size is the end: a
size that weights decide is that one size. Law: the smallest sizes together, and the largest, break no condition that
those of the samples do not.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nndeploy.checking.likely_sizes import usual_range
from nndeploy.checking.open_sizes import OpenSizes, Sizes, open_sizes
from nndeploy.values.size import evaluated
from nndeploy.values.types import DimRange, Value

MAX_ELEMENTS = 2**31 - 2**16
"""Kernels count elements in 32 bits."""
PARTS = (1, 2, 4)
"""Parts of the usual largest sizes that are tried, where a value would be too large."""


def usual_ranges(
    model: ir.Model,
    declared: Mapping[str, DimRange],
    samples: Sequence[Mapping[str, Value]],
    max_elements: int = MAX_ELEMENTS,
) -> dict[str, DimRange]:
    """Returns symbol -> range of the open sizes of a model's inputs that are not among the `declared` ones.

    `samples` are inputs with which the model runs; no value has more than `max_elements`, or than with the first of
    them. A size of an input of which not even the rank is known has no range.
    """
    axes = [axis for axis in _open_axes(model) if axis[2] not in declared]
    if not axes:
        return {}
    unknown = open_sizes(model)
    seen = {name: _sizes_in(samples, model, name) for name in unknown.kinds}
    usual = {name: usual_range(kind) for name, kind in unknown.kinds.items() if name not in declared}
    best = {name: (seen[name] or [limits.best])[0] for name, limits in {**usual, **_among(declared, unknown)}.items()}
    low, high = dict(best), dict(best)
    for name, said in _among(declared, unknown).items():
        low[name], high[name] = said.min, said.max
    for name in usual:
        low[name], high[name] = min([best[name], *seen[name]]), max([best[name], *seen[name]])
    limits = _Limits(unknown, usual, best, max_elements)
    for names in _groups(usual, unknown.kinds):
        wanted = [{**low, **{name: min(usual[name].min, low[name]) for name in names}}]
        low = next(filter(limits.allow, wanted), low)
        wanted = [{**high, **{name: max(usual[name].max // part, high[name]) for name in names}} for part in PARTS]
        high = next(filter(limits.allow, wanted), high)
    found = {}
    for value, axis, name in axes:
        with suppress(KeyError, ZeroDivisionError):  # it depends on the data
            least, first, most = (evaluated(unknown.shapes[value][axis], sizes) for sizes in (low, best, high))
            steps = [usual[name].step, *(one - least for one in (first, *seen[name]))] if name in usual else [1]
            found[name] = _range(least, most, first, math.gcd(*steps))
    return found


def _among(declared: Mapping[str, DimRange], unknown: OpenSizes) -> dict[str, DimRange]:
    return {name: limits for name, limits in declared.items() if name in unknown.kinds}


def _range(least: int, most: int, first: int, step: int) -> DimRange:
    """Returns the range in steps, the largest size of which is at most `most`."""
    return DimRange(least, most - (most - least) % step, first, step) if least < most else DimRange(least, least, least)


@dataclass(frozen=True, slots=True)
class _Limits:
    """Which sizes a range may end at: the model runs there as it does at the `best` ones, and no value is too large."""

    unknown: OpenSizes
    usual: Mapping[str, DimRange]
    best: Sizes
    max_elements: int

    def allow(self, sizes: Sizes) -> bool:
        """Returns whether ranges may end at these sizes together."""
        if self._num_broken(sizes) > self._num_broken(self.best) or self._breaks_beside(sizes):
            return False
        at_best = self._num_elements(self.best)
        found = self._num_elements(sizes).items()
        return all(count <= max(self.max_elements, at_best.get(name, 0)) for name, count in found)

    def _num_broken(self, sizes: Sizes) -> int:
        return sum(one.is_firm and one.excess(sizes) != 0 for one in self.unknown.conditions)

    def _breaks_beside(self, sizes: Sizes) -> bool:
        """Returns whether the next size of a range is none by itself: 1 may go with all sizes, 2 with none."""
        steps = {
            name: limits.step if sizes[name] < self.best[name] else -limits.step
            for name, limits in self.usual.items()
            if sizes[name] != self.best[name]
        }
        return any(
            one.excess({name: sizes[name] + step})
            for name, step in steps.items()
            for one in self.unknown.conditions
            if one.is_firm and one.symbols == {name}
        )

    def _num_elements(self, sizes: Sizes) -> dict[str, int]:
        return {name: math.prod(shape) for name, shape in self.unknown.shapes_of_values(sizes).items()}


def _groups(symbols: Iterable[str], kinds: Mapping[str, str]) -> list[list[str]]:
    """Returns the symbols together, by kind and each alone: a height and a width may have to be equal."""
    by_kind = [[name for name in symbols if kinds[name] == kind] for kind in dict.fromkeys(kinds.values())]
    return [list(symbols), *by_kind, *([name] for name in symbols)]


def _open_axes(model: ir.Model) -> Iterator[tuple[str, int, str]]:
    """Yields (input, axis, symbol) of the sizes of tensors that are no numbers."""
    for value in model.graph.inputs:
        for axis, dim in enumerate(value.shape or ()):
            if isinstance(dim, ir.SymbolicDim) and dim.value:
                yield value.name or "", axis, dim.value


def _sizes_in(samples: Sequence[Mapping[str, Value]], model: ir.Model, symbol: str) -> list[int]:
    """Returns the sizes that a symbol has in the samples, in their order."""
    places = [(value, axis) for value, axis, name in _open_axes(model) if name == symbol]
    found = ((sample.get(value), axis) for sample in samples for value, axis in places)
    return [value.shape[axis] for value, axis in found if isinstance(value, np.ndarray) and axis < value.ndim]
