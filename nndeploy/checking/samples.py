# SPDX-License-Identifier: Apache-2.0
"""Inputs to check a model with: the user's samples, or made-up ones.

Nobody can know every model's habits, so generation is a list of attempts, from the likeliest sizes and values to the
plainest; the first attempt that a library runs is taken (where none loads the model, that ONNX's evaluator runs).
Everything is seeded: the same model gives the same samples.
"""

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
import onnx_ir as ir

from nndeploy.bundle.manifest import NamedType
from nndeploy.checking.made_up_sizes import choice_near, choices
from nndeploy.checking.made_up_values import TooLargeError, ValueMaker, is_varied
from nndeploy.checking.open_sizes import OpenSizes, Sizes, open_sizes
from nndeploy.checking.size_hints import suggested
from nndeploy.errors import InputError, MissingInputError
from nndeploy.runtime.input_checks import InputChecks
from nndeploy.values.types import DimRange, MapType, OptionalType, SequenceType, TensorType, Value, ValueType

Sample = dict[str, Value]

MAX_HINTS = 8
"""So many choices of sizes that the words of refusals ask for are tried."""


def given_samples(
    samples: Sequence[Mapping[str, Value]], inputs: Sequence[NamedType], ranges: Mapping[str, DimRange]
) -> tuple[Sample, ...]:
    """Returns the user's samples, checked as the program will check its inputs; optional ones may be missing.

    Raises:
        InputError: a name is unknown or missing, or a value has another type or size than was declared.
    """
    checks = InputChecks(inputs, ranges)
    found = []
    for i, sample in enumerate(samples):
        try:
            found.append(checks(sample))
        except InputError as err:
            err.within(sample.origin if isinstance(sample, FileSample) else f"sample {i}")
            raise
    return tuple(found)


class FileSample(dict[str, Any]):
    """A sample that was read from a file, whose path is `origin`."""

    origin = ""


class MadeUpSample(dict[str, Any]):
    """A sample that nobody gave, and the sizes of its symbols."""

    def __init__(self, values: Mapping[str, Value], sizes: Sizes) -> None:
        super().__init__(values)
        self.sizes = sizes


def samples_from_folder(folder: Path) -> list[Sample]:
    """Returns one sample for each .npz file of a folder, in the order of the names.

    Raises:
        MissingInputError: there is no such folder, or no .npz file in it.
        InputError: a file cannot be read as plain arrays.
    """
    files = sorted(folder.glob("*.npz")) if folder.is_dir() else [folder] if folder.is_file() else []
    if not files:
        raise MissingInputError("no sample (.npz file) here", where=str(folder))
    return [_sample_from_npz(file) for file in files]


def _sample_from_npz(file: Path) -> Sample:
    if not is_zipfile(file):
        raise InputError("is not an .npz archive", where=str(file))
    try:
        with np.load(file, allow_pickle=False) as arrays:
            sample = FileSample({name: arrays[name] for name in arrays.files})
        sample.origin = str(file)
        return sample
    except Exception as err:  # numpy raises half a dozen kinds for a damaged archive
        raise InputError(f"not a file of plain arrays: {err}", where=str(file)) from err


def generated_samples(
    model: ir.Model,
    inputs: Sequence[NamedType],
    chosen: Mapping[str, int],
    seed: int,
    unknown: OpenSizes | None = None,
    seconds_of: Callable[[Sizes], float] = lambda _sizes: 0.0,
) -> "Generator[MadeUpSample, str, None]":
    """Yields samples, the likeliest to be right first; all have the declared types, and the sizes in `chosen`.

    Who asks for the next one may send why the last was refused: the sizes of later ones follow from it. `unknown` is
    `open_sizes(model)`, where that was asked for already; `seconds_of` tells how long a call takes at some sizes.
    """
    unknown = unknown or open_sizes(model)
    usual, hinted, seen = choices(unknown, chosen, seconds_of), deque[Sizes](), list[Sizes]()
    num_hints = 0
    variants = (False, True) if any(is_varied(named.type) for named in inputs) else (False,)
    while (sizes := hinted.popleft() if hinted else next(usual, None)) is not None:
        if sizes in seen:
            continue
        seen.append(sizes)
        for plain in variants:
            maker = ValueMaker(unknown, sizes, seed, plain)
            try:
                sample = MadeUpSample({named.name: maker.value(named) for named in inputs}, sizes)
            except TooLargeError:
                break
            reason = (yield sample) or ""
            hints = islice(_hints(unknown, sizes, chosen, reason), MAX_HINTS - num_hints)
            before = len(hinted)
            hinted.extend(hints)
            num_hints += len(hinted) - before
            if len(hinted) > before:
                break  # other values of these sizes would be refused too


def _hints(unknown: OpenSizes, sizes: Sizes, chosen: Mapping[str, int], reason: str) -> Iterator[Sizes]:
    """Yields sizes that a refusal asks for, with all that has to change with them."""
    for hint in suggested(sizes, unknown.kinds, reason):
        changed = {symbol: size for symbol, size in hint.items() if size != sizes[symbol]}
        if changed and not changed.keys() & chosen.keys():
            yield choice_near(unknown, hint, {**changed, **chosen})


def has_free_size(inputs: Sequence[NamedType], chosen: Collection[str] = ()) -> bool:
    """Returns whether the inputs have a size that is neither fixed nor `chosen`."""
    dims = [dim for named in inputs for dim in _shape_of(named.type)]
    return any(not isinstance(dim, int) and dim not in chosen for dim in dims)


def _shape_of(kind: ValueType) -> Sequence[Any]:
    match kind:
        case TensorType(_, shape):
            return shape if shape is not None else (None,)
        case SequenceType(element) | OptionalType(element) | MapType(_, element):
            return _shape_of(element)
