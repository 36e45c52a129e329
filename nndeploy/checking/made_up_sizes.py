# SPDX-License-Identifier: Apache-2.0
"""Sizes for the open axes of a model's inputs, made up so that the model runs: usual sizes, changed until all fits.

    image [N, 3, H, W], positions for 37 * 37 patches of 14    ->  N = 1, H = W = 518
    ids [B, S], mask [B, P + S], past [B, 4, P, 8]             ->  B = 1, S = 64, P = 16, a mask of 80

A choice begins with usual sizes (`likely_sizes`). While a condition (`size_conditions`) is broken, a size that it
depends on is changed: to the likeliest one that mends it and breaks least else. Height and width are changed together
first. Nothing runs here; the same model gives the same choices.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from nndeploy.checking.likely_sizes import BATCH, CHANNELS, IMAGE, NUM_COLUMNS, PAST, sizes_to_try, usual_sizes
from nndeploy.checking.open_sizes import OpenSizes, Sizes
from nndeploy.checking.size_conditions import Condition

MAX_SCANNED = 1024
"""Every size up to this is tried; larger ones are found by halving."""
MAX_SOLVED = 1 << 20
NUM_COMPARED = 24
"""So many sizes that mend a condition are compared by what else they break."""
MAX_CHANGES = 40
MAX_ASKED = 500_000
"""So often conditions are asked, at most, for all choices of a model: some seconds."""
LONG_SECONDS = 5.0
"""Estimated compute of a call: a decoder of images that begins at 64 x 64 would make pictures of 1792 x 1792 of 224."""

_SMALL = frozenset({BATCH, CHANNELS, PAST})
"""Kinds of which sizes beyond the usual ones say that something was misunderstood."""


def choices(
    unknown: OpenSizes, chosen: Sizes, seconds_of: Callable[[Sizes], float] = lambda _sizes: 0.0
) -> Iterator[Sizes]:
    """Yields choices of a size for every symbol, the likeliest first; last those that break a condition.

    Before these come, the cheapest first, those at which a call is estimated to take long.
    """
    costly, broken, search = list[Sizes](), list[Sizes](), _Search(unknown, chosen)
    for column in range(NUM_COLUMNS if unknown.kinds.keys() - chosen.keys() else 1):
        usual = {symbol: usual_sizes(kind)[column] for symbol, kind in unknown.kinds.items()}
        sizes = search.mended({**usual, **chosen})
        if unknown.breaks(sizes):
            broken.append(sizes)
        elif sizes not in costly and seconds_of(sizes) > LONG_SECONDS:
            costly.append(sizes)
        else:
            yield sizes
    yield from sorted(costly, key=seconds_of)
    yield from broken


def choice_near(unknown: OpenSizes, sizes: Sizes, chosen: Sizes) -> Sizes:
    """Returns sizes that break as little as was found, changed from `sizes` but for those that are `chosen`."""
    return _Search(unknown, chosen).mended({**sizes, **chosen})


class _Search:
    """Changes of sizes until no condition is broken; `chosen` ones stay."""

    def __init__(self, unknown: OpenSizes, chosen: Sizes) -> None:
        self._kinds = unknown.kinds
        self._free = [symbol for symbol in unknown.kinds if symbol not in chosen]
        self._conditions = sorted(unknown.conditions, key=lambda one: not one.is_firm)
        self._num_conditions = Counter(symbol for one in unknown.conditions for symbol in one.symbols)
        self._num_left = MAX_ASKED

    def mended(self, sizes: Sizes) -> Sizes:
        """Returns sizes that break as little as was found."""
        best, seen, hopeless = sizes, [sizes], set[Condition]()
        for _ in range(MAX_CHANGES):
            if self._num_left < 0:
                break
            condition = next((one for one in self._conditions if one.excess(sizes) and one not in hopeless), None)
            if condition is None:
                break
            changed = self._changed(sizes, condition, seen)
            if changed is None:
                hopeless.add(condition)
                continue
            sizes = changed
            seen.append(sizes)
            if self._score(sizes) < self._score(best):
                best = sizes
        return best

    def _score(self, sizes: Sizes) -> tuple[int, int, int]:
        """Returns how many conditions are broken, how many wishes, and how many batches and the like are unusual."""
        self._num_left -= len(self._conditions)
        broken = [one.is_firm for one in self._conditions if one.excess(sizes)]
        unusual = sum(sizes[one] not in usual_sizes(kind) for one, kind in self._kinds.items() if kind in _SMALL)
        return sum(broken), len(broken) - sum(broken), unusual

    def _excess(self, condition: Condition, sizes: Sizes) -> int:
        self._num_left -= 1
        return condition.excess(sizes)

    def _changed(self, sizes: Sizes, condition: Condition, seen: Sequence[Sizes]) -> Sizes | None:
        """Returns sizes that mend a condition and break least else, None where there are none that are new.

        A wish is not worth a condition.
        """
        before, best = self._score(sizes), None
        for number, changed in enumerate(self._mending(sizes, condition)):
            if changed in seen:
                continue
            score = self._score(changed)
            if not condition.is_firm and score[:2] >= before[:2]:
                continue
            if best is None or (score, number) < best[:2]:
                best = (score, number, changed)
            if score == (0, 0, 0) or self._num_left < 0:
                break
        return best[2] if best is not None else None

    def _mending(self, sizes: Sizes, condition: Condition) -> Iterator[Sizes]:
        """Yields changes of `sizes` that mend a condition: of an image's two, of one size, of all that are alike."""
        free = [symbol for symbol in self._free if symbol in condition.symbols]
        images = tuple(symbol for symbol in free if self._kinds[symbol] == IMAGE)
        if len(images) > 1:
            squares = list(self._mending_by(images, sizes, condition))
            yield from squares or self._rectangles(images, sizes, condition)
        free.sort(key=lambda symbol: (self._kinds[symbol] == BATCH, self._num_conditions[symbol]))
        alike = [
            tuple(other for other in self._free if (self._kinds[other], sizes[other]) == (self._kinds[one], sizes[one]))
            for one in free
        ]
        for group in dict.fromkeys((*((one,) for one in free), *alike)):
            yield from self._mending_by(group, sizes, condition)

    def _mending_by(self, group: Sequence[str], sizes: Sizes, condition: Condition) -> Iterator[Sizes]:
        """Yields changes of some symbols to one size that mend a condition, the likeliest first."""
        changes = ({**sizes, **dict.fromkeys(group, size)} for size in self._candidates(group, sizes, condition))
        yield from islice((changed for changed in changes if not self._excess(condition, changed)), NUM_COMPARED)

    def _candidates(self, group: Sequence[str], sizes: Sizes, condition: Condition) -> Iterator[int]:
        yield from (sizes[symbol] for symbol in condition.symbols if symbol not in group)
        yield from sizes_to_try(self._kinds[group[0]], MAX_SCANNED)
        solved = _solved(lambda size: self._excess(condition, {**sizes, **dict.fromkeys(group, size)}))
        if solved is not None:
            yield from (-(-solved // step) * step for step in (100, 32, 16, 8, 4, 2, 1))

    def _rectangles(self, images: Sequence[str], sizes: Sizes, condition: Condition) -> Iterator[Sizes]:
        """Yields sizes of images that are not square and mend a condition, the squarest first."""
        found = list[Sizes]()
        low, high = images[:2]
        for size in range(1, MAX_SCANNED + 1):
            fixed = {**sizes, low: size}
            other = _solved(lambda one, fixed=fixed: self._excess(condition, {**fixed, high: one}))  # type: ignore[misc]
            if other is not None and not condition.excess({**fixed, high: other}):
                found.append({**fixed, high: other})
        found.sort(key=lambda one: (max(one[low], one[high]) / min(one[low], one[high]), one[low]))
        yield from found[:NUM_COMPARED]


def _solved(excess: Callable[[int], int]) -> int | None:
    """Returns the least size at which a condition that depends on it in one direction changes, None where none does."""
    low, high = 1, MAX_SOLVED
    sign = 1 if excess(high) >= 0 else -1
    if sign * excess(low) >= 0:
        return None if excess(low) else low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sign * excess(middle) < 0 else (low, middle)
    return high
