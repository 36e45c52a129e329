# SPDX-License-Identifier: Apache-2.0
"""Sizes for the open axes of a model's inputs, made up so that the model runs: usual sizes, changed until all fits.

    image [N, 3, H, W], positions for 37 * 37 patches of 14    ->  N = 1, H = W = 518
    ids [B, S], mask [B, P + S], past [B, 4, P, 8]             ->  B = 1, S = 64, P = 16, a mask of 80

A choice begins with usual sizes (`likely_sizes`). While a condition (`size_conditions`) is broken, a size that it
depends on is changed: to the likeliest one that mends it and breaks least else. Height and width are changed together
first. Nothing runs here; the same model gives the same choices.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import onnx_ir as ir

from nndeploy.checking.input_meanings import counting_inputs, index_limits
from nndeploy.checking.likely_sizes import (
    BATCH,
    CHANNELS,
    IMAGE,
    LENGTH,
    NUM_COLUMNS,
    PAST,
    computed_size,
    is_past,
    kind_of,
    likely_rank,
    sizes_to_try,
    usual_sizes,
)
from nndeploy.checking.operator_conditions import EQUAL
from nndeploy.checking.size_conditions import Condition, size_conditions, spatial_symbols
from nndeploy.graph.infer_sizes import known_sizes
from nndeploy.graph.known_sizes import KnownSizes, Shape
from nndeploy.values.size import MAX_SIZE, Dim, Size, Symbol, UndecidedError, evaluated, replaced, symbol
from nndeploy.values.types import DimRange

MAX_SCANNED = 1024
"""Every size up to this is tried; larger ones are found by halving."""
MAX_SOLVED = 1 << 20
NUM_COMPARED = 24
"""So many sizes that mend a condition are compared by what else they break."""
MAX_CHANGES = 40
MAX_ASKED = 200_000
"""So often conditions are asked, at most, for all choices of a model: some seconds."""
LONG_SECONDS = 5.0
"""Estimated compute of a call: a decoder of images that begins at 64 x 64 would make pictures of 1792 x 1792 of 224."""

Sizes = Mapping[str, int]
"""Symbol -> size."""
_ANY = DimRange(1, MAX_SIZE, 1)
_PROBES = (97, 360)
_SMALL = frozenset({BATCH, CHANNELS, PAST})
"""Kinds of which sizes beyond the usual ones say that something was misunderstood."""


@dataclass(frozen=True, slots=True)
class OpenSizes:
    """The open sizes of a model's inputs: what each is (`kinds`), what must hold of them, the shapes they stand in.

    `limits` are numbers that the elements of inputs of integers must be below; the elements of some inputs are sizes
    themselves, `counts` (`input_meanings`). `values` has the shapes of other values, where they are known.
    """

    kinds: Mapping[str, str]
    conditions: tuple[Condition, ...]
    shapes: Mapping[str, Shape]
    limits: Mapping[str, tuple[Dim, ...]]
    counts: Mapping[str, Shape]
    values: Mapping[str, Shape]

    def shapes_of_values(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        """Returns the shapes of all values that are known; sizes that are not given are usual ones."""
        all_sizes = {symbol: sizes.get(symbol, usual_sizes(kind)[0]) for symbol, kind in self.kinds.items()}
        found = {}
        for name, shape in (*self.shapes.items(), *self.values.items()):
            with suppress(KeyError, ZeroDivisionError):  # it depends on the data
                found[name] = tuple(max(0, evaluated(size, all_sizes)) for size in shape)
        return found

    def shape(self, name: str, sizes: Sizes) -> tuple[int, ...]:
        """Returns the shape of an input."""
        return tuple(max(0, evaluated(size, sizes)) for size in self.shapes[name])

    def limit(self, name: str, sizes: Sizes) -> int | None:
        """Returns the number that all elements of an input must be below, None where there is none."""
        return min((max(1, evaluated(rows, sizes)) for rows in self.limits.get(name, ())), default=None)

    def breaks(self, sizes: Sizes) -> bool:
        """Returns whether the model cannot run at these sizes, as far as is known."""
        return any(one.is_firm and one.excess(sizes) for one in self.conditions)

    def size_of_kind(self, kind: str, sizes: Sizes) -> int:
        """Returns the size of the first symbol of a kind, a usual one where there is none."""
        return next((sizes[one] for one, what in self.kinds.items() if what == kind), usual_sizes(kind)[0])


def open_sizes(model: ir.Model) -> OpenSizes:
    """Returns what is known of the open sizes of a model's inputs."""
    model = _with_ranks(model)
    named = {
        dim.value: _ANY
        for value in model.graph.inputs
        for dim in value.shape or ()
        if isinstance(dim, ir.SymbolicDim) and dim.value
    }
    counting = counting_inputs(model.graph)
    counts = {value: _elements_of(value) for value in counting}
    known = known_sizes(model, named, counts)
    computed = {name: size for name in named if (size := computed_size(name, named, known.size_of)) is not None}

    def plain(size: Dim) -> Dim:
        if not computed or isinstance(size, int):
            return size
        return replaced(size, lambda atom: computed.get(atom.name) if isinstance(atom, Symbol) else None)

    shapes = {value.name: tuple(map(plain, known.shape(value) or ())) for value in model.graph.inputs if value.name}
    kinds = _kinds(model, known, shapes)
    kinds |= {one.name: counting[value] for value, sizes in counts.items() for size in sizes for one in size.symbols}
    values = dict[str, Shape]()
    for output in (output for node in model.graph for output in node.outputs if kinds and output.name):
        if (shape := known.shape(output)) is not None and output.name:
            with suppress(UndecidedError):
                values[output.name] = tuple(map(plain, shape))
    conditions = list[Condition]()
    for one in size_conditions(model, known) if kinds else ():
        with suppress(UndecidedError):
            changed = Condition(one.relation, plain(one.left), plain(one.right), one.is_firm)
            if changed.symbols and changed.symbols <= kinds.keys() and not _is_of_one(changed):
                conditions.append(changed)
    limits = {
        name: tuple(plain(one) for one in rows if isinstance(one, int) or {s.name for s in one.symbols} <= kinds.keys())
        for name, rows in index_limits(model.graph, known).items()
    }
    for rows in (rows for many in limits.values() for rows in many if isinstance(rows, Size)):
        kinds.update({one.name: LENGTH for one in rows.symbols if kinds[one.name] == BATCH})  # one row is no choice
    by_name = {value.name: sizes for value, sizes in counts.items() if value.name}
    return OpenSizes(kinds, tuple(conditions), shapes, limits, by_name, values)


def _elements_of(value: ir.Value) -> tuple[Size, ...]:
    """Returns a symbol for each element of a list of fixed length, or for one number."""
    assert value.shape is not None, "it was counted"
    return tuple(symbol(f"{value.name}[{i}]", 1) for i in range(math.prod(value.shape.numpy())))


def _is_of_one(condition: Condition) -> bool:
    """Returns whether a wish has a size that is 1 whatever the others are, as a slice of the last element is."""
    return (
        not condition.is_firm
        and condition.relation == EQUAL
        and any(
            all(evaluated(size, dict.fromkeys(condition.symbols, each)) == 1 for each in _PROBES)
            for size in (condition.left, condition.right)
        )
    )


def _with_ranks(model: ir.Model) -> ir.Model:
    """Returns the model, or a copy of it in which inputs of which not even the rank is known have one."""
    if all(value.shape is not None or not isinstance(value.type, ir.TensorType) for value in model.graph.inputs):
        return model
    copy = model.clone()
    for value in copy.graph.inputs:
        if value.shape is None and isinstance(value.type, ir.TensorType):
            value.shape = ir.Shape([f"{value.name}.{axis}" for axis in range(likely_rank(value))])
    return copy


def _kinds(model: ir.Model, known: KnownSizes, shapes: Mapping[str, Shape]) -> dict[str, str]:
    """Returns for each symbol of the inputs what it probably is; who stands in several axes is what the first says."""
    found: dict[str, str] = {}
    spatial = spatial_symbols(model, known)
    floats = {value.name for value in model.graph.inputs if value.dtype is not None and value.dtype.is_floating_point()}
    for name, shape in shapes.items():
        dims = [size if isinstance(size, int) else None for size in shape]
        for axis, size in enumerate(shape):
            for one in size.symbols if isinstance(size, Size) else ():
                dim = None if one.name.startswith(f"{name}.{axis}") else one.name
                kind = kind_of(dim, axis, dims, spatial.get(one.name, 0) if name in floats else 0)
                found.setdefault(one.name, PAST if kind == IMAGE and is_past(name) else kind)
    return found


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
        yield from islice((changed for changed in changes if not condition.excess(changed)), NUM_COMPARED)

    def _candidates(self, group: Sequence[str], sizes: Sizes, condition: Condition) -> Iterator[int]:
        yield from (sizes[symbol] for symbol in condition.symbols if symbol not in group)
        yield from sizes_to_try(self._kinds[group[0]], MAX_SCANNED)
        solved = _solved(lambda size: condition.excess({**sizes, **dict.fromkeys(group, size)}))
        if solved is not None:
            yield from (-(-solved // step) * step for step in (100, 32, 16, 8, 4, 2, 1))

    def _rectangles(self, images: Sequence[str], sizes: Sizes, condition: Condition) -> Iterator[Sizes]:
        """Yields sizes of images that are not square and mend a condition, the squarest first."""
        found = list[Sizes]()
        low, high = images[:2]
        for size in range(1, MAX_SCANNED + 1):
            fixed = {**sizes, low: size}
            other = _solved(lambda one, fixed=fixed: condition.excess({**fixed, high: one}))  # type: ignore[misc]
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
