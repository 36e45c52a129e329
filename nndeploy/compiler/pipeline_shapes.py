# SPDX-License-Identifier: Apache-2.0
"""The sizes that a pipeline fixes, as if `--shape` asked for them.

    x: [N, 3, H, W]  and  letterbox to 320 x 320 -> normalise -> layout    ->    --shape x=1,3,320,320

What `--shape` says of an axis or a symbol goes before, where the pipeline's size is among it. A symbol of which the
pipeline makes several sizes stays open.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from nndeploy.bundle.manifest import NamedType
from nndeploy.errors import DataError, UsageError
from nndeploy.frontend.shape_texts import DimSpec, ShapeSpec
from nndeploy.values.types import Dim, DimRange, TensorType

Place: TypeAlias = tuple[str, int]
"""An input and an axis of it."""


def shapes_of_pipeline(
    inputs: Sequence[NamedType], known: Mapping[str, tuple[int | None, ...]], asked: Mapping[str, ShapeSpec]
) -> dict[str, ShapeSpec]:
    """Returns specs of the inputs of which the pipeline fixes an open size.

    `known` are the sizes that it makes, None where they vary; `asked` is what `--shape` says.

    Raises:
        DataError: the model has another size, or another number of axes.
        UsageError: the size is none of those that are asked for.
    """
    said, sizes, places = _said(inputs, asked), dict[str | Place, set[int]](), dict[Place, str | Place]()
    for place, dim, size in _known_axes(inputs, known):
        key = dim if isinstance(dim, str) else place
        if isinstance(dim, int):
            _check_model(place, dim, size)
        elif place in said or key in said:
            _check_asked(place, said.get(place, said.get(key)), size)
        else:
            places[place] = key
            sizes.setdefault(key, set()).add(size)
    fixed = {place: next(iter(sizes[key])) for place, key in places.items() if len(sizes[key]) == 1}
    return {
        name: ShapeSpec(tuple(fixed.get((name, axis)) for axis in range(len(known[name]))))
        for name in dict.fromkeys(name for name, _ in fixed)
    }


def _said(inputs: Sequence[NamedType], asked: Mapping[str, ShapeSpec]) -> dict[str | Place, DimSpec]:
    """Returns what is asked for, by axis and by symbol."""
    names = {named.name for named in inputs}
    symbols = {name: spec for name, spec in asked.items() if name not in names}
    said: dict[str | Place, DimSpec] = {name: spec.dims[0] for name, spec in symbols.items() if len(spec.dims) == 1}
    for named in inputs:
        shape = named.type.shape if isinstance(named.type, TensorType) else None
        if named.name in asked:
            dims = asked[named.name].of_rank(len(shape or ()))
            said |= {(named.name, axis): dim for axis, dim in enumerate(dims)}
            said |= {symbol: dim for symbol, dim in zip(shape or (), dims, strict=False) if isinstance(symbol, str)}
    return said


def _known_axes(
    inputs: Sequence[NamedType], known: Mapping[str, tuple[int | None, ...]]
) -> Iterator[tuple[Place, Dim, int]]:
    """Yields the axes of which the pipeline makes one size, what the model has there, and the size."""
    for named in inputs:
        sizes, kind = known.get(named.name), named.type
        if sizes is None or not isinstance(kind, TensorType):
            continue
        shape = (None,) * len(sizes) if kind.shape is None else kind.shape
        if len(shape) != len(sizes):
            made = f"{named.name}[{ShapeSpec(sizes)}]"
            raise DataError(f"the pipeline's steps make {made}, the model's input {named.name!r} is {kind}")
        for axis, (dim, size) in enumerate(zip(shape, sizes, strict=True)):
            if size is not None:
                yield (named.name, axis), dim, size


def _check_model(place: Place, dim: int, size: int) -> None:
    if dim != size:
        told = f"the pipeline's steps make axis {place[1]} of the input {place[0]!r} {size}, the model has {dim}"
        raise DataError(told, hint="let them make the model's size, or export the model with this one")


def _check_asked(place: Place, asked: DimSpec, size: int) -> None:
    limits = DimRange(asked, asked, asked) if isinstance(asked, int) else asked
    if isinstance(limits, DimRange) and not limits.holds(size):
        told = f"the pipeline's steps make axis {place[1]} of the input {place[0]!r} {size}, --shape says {asked}"
        raise UsageError(told, hint="leave it out of --shape, or change the steps")
