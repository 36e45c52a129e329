# SPDX-License-Identifier: Apache-2.0
"""Inputs to check a model with: the user's samples, or sensible ones made from names, types and consumers.

Nobody can know every model's habits, so generation is a list of attempts, from the likeliest sizes and values to the
plainest; the first attempt that a library runs is taken (where none loads the model, that ONNX's evaluator runs).
Everything is seeded: the same model gives the same samples.
"""

import zlib
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
import onnx_ir as ir

from nndeploy.bundle.manifest import NamedType
from nndeploy.checking.likely_sizes import (
    ATTEMPTS,
    BATCH,
    LENGTH,
    PAST,
    enlarged,
    kind_of,
    sizes_from_weights,
    terms_of,
)
from nndeploy.errors import InputError, MissingInputError
from nndeploy.runtime.input_checks import InputChecks
from nndeploy.values.types import (
    ML_DTYPES,
    DimRange,
    MapType,
    OptionalType,
    SequenceType,
    TensorType,
    Value,
    ValueType,
    numpy_dtype,
)

Sample = dict[str, Value]

NUM_GUIDED = 6
"""Attempts after those that are likely, each of a size that the words of the last refusal ask for."""

MAX_ELEMENTS = 1 << 26
LARGE_ELEMENTS = 1 << 14
"""Floats of so many elements, which are pictures and sounds, are on a grid of steps as those are.

A bundle keeps samples deflated, and random bits do not deflate. Smaller ones, which may be scores that are to be put
in order, have all bits: equal ones would be rare.
"""
SHARE_STEPS, NORMAL_STEPS = 256, 16
SEQUENCE_LENGTH = 2
SAMPLE_RATE = 16000
_WORDS = ("one", "two words", "", "Grüße", "5", "long " * 8)


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
        raise InputError("is no .npz archive", where=str(file))
    try:
        with np.load(file, allow_pickle=False) as arrays:
            sample = FileSample({name: arrays[name] for name in arrays.files})
        sample.origin = str(file)
        return sample
    except Exception as err:  # numpy raises half a dozen kinds for a damaged archive
        raise InputError(f"not a file of plain arrays: {err}", where=str(file)) from err


def generated_samples(
    graph: ir.Graph, inputs: Sequence[NamedType], chosen: Mapping[str, int], seed: int
) -> Generator[Sample, str, None]:
    """Yields samples, the likeliest to be right first; all have the declared types, and the sizes in `chosen`.

    Who asks for the next one may send why the last was refused: the sizes of later ones follow from it.
    """
    limits, told = _index_limits(graph), sizes_from_weights(graph)
    attempts = list(ATTEMPTS if has_free_size(inputs, chosen) else ATTEMPTS[:1])
    refused: list[tuple[Mapping[str, int], str]] = []
    for sizes in attempts:
        for plain in (False, True):
            binding = _Binding(chosen, sizes, told)
            try:
                sample = {
                    named.name: _value(named.name, named.type, binding, _generator(named.name, seed), limits, plain)
                    for named in inputs
                }
            except _TooLargeError:
                break
            refused.append((sizes, (yield sample) or ""))
        if len(attempts) > 1 and sizes is attempts[-1] and len(attempts) < len(ATTEMPTS) + NUM_GUIDED:
            attempts += [larger for larger in _guided(refused) if larger not in attempts][:1]


def _guided(refused: Sequence[tuple[Mapping[str, int], str]]) -> Iterator[Mapping[str, int]]:
    """Yields sizes that refusals ask for, those of the last refusal first."""
    for sizes, reason in reversed(refused):
        if larger := enlarged(sizes, reason):
            yield larger


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


class _TooLargeError(Exception):
    """A generated tensor would be absurdly large."""


class _Binding:
    """One choice of a size for every symbolic dimension; the same name gets the same size everywhere."""

    def __init__(
        self, chosen: Mapping[str, int], sizes: Mapping[str, int], told: Mapping[tuple[str, int], int]
    ) -> None:
        self.sizes = sizes
        self._chosen = dict(chosen)
        self._told = told

    def shape(self, name: str, dims: Sequence[Any] | None) -> tuple[int, ...]:
        if dims is None:
            return (self.sizes[BATCH],)
        shape = tuple(self._size(name, axis, dims) for axis in range(len(dims)))
        if np.prod(shape, dtype=np.float64) > MAX_ELEMENTS:
            raise _TooLargeError
        return shape

    def _size(self, name: str, axis: int, dims: Sequence[Any]) -> int:
        dim = dims[axis]
        if isinstance(dim, int):
            return dim
        if not isinstance(dim, str):
            return self._told.get((name, axis), self.sizes[kind_of(dim, axis, dims)])
        if dim not in self._chosen:
            self._chosen[dim] = self._of_symbol(name, axis, dims)
        return self._chosen[dim]

    def _of_symbol(self, name: str, axis: int, dims: Sequence[Any]) -> int:
        dim = dims[axis]
        if terms := terms_of(dim):
            parts = [int(t) if t.isdigit() else self._chosen.get(t) for t in terms]
            by_name = [self.sizes[kind_of(term, axis, dims)] for term in terms]
            return sum(known if known is not None else likely for known, likely in zip(parts, by_name, strict=True))
        if "total" in dim.lower():
            return self.sizes[PAST] + self.sizes[LENGTH]
        return self._told.get((name, axis), self.sizes[kind_of(dim, axis, dims)])


def _generator(name: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def _value(
    name: str,
    kind: ValueType,
    binding: _Binding,
    random: np.random.Generator,
    limits: Mapping[str, int],
    plain: bool,
) -> Value:
    match kind:
        case TensorType(dtype, shape):
            return _tensor(name, dtype, binding.shape(name, shape), random, limits, plain, binding.sizes)
        case OptionalType(element):
            return None if plain else _value(name, element, binding, random, limits, plain)
        case SequenceType(element):
            return [_value(name, element, binding, random, limits, plain) for _ in range(SEQUENCE_LENGTH)]
        case MapType(key, element):
            value = _value(name, element, binding, random, limits, plain)
            return {("one" if key == "string" else 1): value}


def _tensor(
    name: str,
    dtype: str,
    shape: tuple[int, ...],
    random: np.random.Generator,
    limits: Mapping[str, int],
    plain: bool,
    sizes: Mapping[str, int],
) -> np.ndarray[Any, Any]:
    if dtype == "string":
        return np.array(random.choice(np.array(_WORDS, dtype=object), size=shape), dtype=object)
    if dtype == "bool":
        return np.asarray(random.random(shape) < (1.0 if "mask" in name.lower() else 0.5))
    if dtype.startswith(("int", "uint")):
        known = None if plain else _integers_by_name(name, shape, limits, sizes)
        return (
            known.astype(numpy_dtype(dtype))
            if known is not None
            else _integers(name, dtype, shape, random, limits, plain)
        )
    if dtype.startswith("complex"):
        return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(numpy_dtype(dtype))
    is_share = plain or "mask" in name.lower() or _is_picture(name, shape)
    floats = np.asarray(random.random(shape) if is_share else random.standard_normal(shape))
    if floats.size >= LARGE_ELEMENTS:
        steps = SHARE_STEPS if is_share else NORMAL_STEPS
        floats = np.floor(floats * steps) / steps
    return floats.astype(numpy_dtype(dtype))


def _is_picture(name: str, shape: tuple[int, ...]) -> bool:
    """Returns whether a float input holds pixels from 0 to 1; a detector finds nothing in much that is none."""
    has_channels = len(shape) in (3, 4) and (shape[-3] in (1, 3) or shape[-1] in (1, 3))
    return has_channels and any(word in name.lower() for word in ("image", "img"))


def _integers_by_name(
    name: str, shape: tuple[int, ...], limits: Mapping[str, int], sizes: Mapping[str, int]
) -> np.ndarray[Any, Any] | None:
    """Returns integers whose name says what they are: positions behind the past, lengths, a rate of samples."""
    words = name.lower()
    if "position" in words and shape:
        places = np.broadcast_to(np.arange(shape[-1]), shape) + (sizes[PAST] if shape[-1] > 1 else 0)
        return places % limits.get(name, MAX_ELEMENTS)
    if len(shape) < 2 and ("length" in words or words.endswith(("_len", "_lens"))) and name not in limits:
        return np.full(shape, sizes[LENGTH])
    if words in ("sr", "sample_rate", "sampling_rate"):
        return np.full(shape, SAMPLE_RATE)
    return None


def _integers(
    name: str,
    dtype: str,
    shape: tuple[int, ...],
    random: np.random.Generator,
    limits: Mapping[str, int],
    plain: bool,
) -> np.ndarray[Any, Any]:
    lower, upper = 0, 10
    if name in limits:
        upper = max(1, limits[name])
    elif dtype in ("int8", "uint8"):
        lower, upper = (-128, 128) if dtype == "int8" else (0, 256)
    elif "mask" in name.lower():
        lower, upper = 1, 2
    elif dtype in ML_DTYPES:
        lower, upper = 0, 2
    if plain:
        lower, upper = 1 if upper > 1 else 0, 2 if upper > 1 else 1
    return np.asarray(random.integers(lower, upper, shape)).astype(numpy_dtype(dtype))


def _index_limits(graph: ir.Graph) -> dict[str, int]:
    """Returns for each input that chooses rows of a table, or an axis, how many there are."""
    limits: dict[str, int] = {}
    for value in graph.inputs:
        for node, index in value.uses():
            rows = _num_chosen_from(node, index)
            if rows and value.name:
                limits[value.name] = min(rows, limits.get(value.name, rows))
    return limits


def _num_chosen_from(node: ir.Node, index: int) -> int:
    if node.op_type == "Cast":
        inner = [_num_chosen_from(user, i) for user, i in node.outputs[0].uses()]
        return min((rows for rows in inner if rows), default=0)
    if index == 1 and (node.op_type.startswith("Reduce") or node.op_type in ("CumSum", "Squeeze")):
        reduced = node.inputs[0]
        return len(reduced.shape) if reduced is not None and reduced.shape is not None else 0
    if node.op_type not in ("Gather", "GatherElements", "EmbedLayerNormalization") or index != 1:
        return 0
    table = node.inputs[0]
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    if table is None or table.shape is None or not -len(table.shape) <= axis < len(table.shape):
        return 0
    rows = table.shape[axis]
    return rows if isinstance(rows, int) else 0
