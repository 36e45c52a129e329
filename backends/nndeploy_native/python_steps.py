# SPDX-License-Identifier: Apache-2.0
"""Steps that Python computes: of texts, maps and sequences, and what becomes numbers of them or is made of numbers.

    step := operator, names of its inputs, name of its output, attributes

To look a text up in a dict takes Python less time than to hand it to a library. Attributes stand in plan.json as they
are; `made_step` checks them, and what the inputs are, once for all calls.

Source: ONNX StringNormalizer; ai.onnx.ml CastMap, DictVectorizer, LabelEncoder, ZipMap; com.microsoft Tokenizer.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nndeploy.errors import InputError
from nndeploy.values.types import Array, Value
from nndeploy_native.plan import DTYPES, MAX_RANK, TEXT

Kind: TypeAlias = tuple[str, int]
"""The element and the rank of a value."""


class PythonStep(NamedTuple):
    """One step; `attributes` are plain data, which differ by `operator`."""

    operator: str
    inputs: tuple[str, ...]
    output: str
    attributes: Mapping[str, Any]


class MadeStep(NamedTuple):
    """A step that is ready: what its output is, and what computes it of the inputs."""

    kind: Kind
    run: Callable[..., Value]


def made_step(step: PythonStep, kinds: Sequence[Kind]) -> MadeStep:
    """Returns a step over inputs of these kinds.

    Raises:
        ValueError, KeyError, TypeError: there is no such step.
    """
    return _MAKERS[step.operator](step, *kinds, **step.attributes)


def _texts(values: Sequence[str], shape: Sequence[int]) -> Array:
    return np.array(values, object).reshape(shape)


def _check_rank(rank: int) -> None:
    if not 0 <= rank <= MAX_RANK:
        raise ValueError(f"a value of {rank} axes")


def _checked_list(values: Any, element: str, *, is_unique: bool = False) -> list[Any]:
    """Returns texts or numbers of an attribute, numbers as an array of the element has them.

    Raises:
        ValueError: they are none, or one of them stands twice.
    """
    wanted = {TEXT: str, "int64": int, "fp32": float}[element]
    if type(values) is not list or any(type(one) is not wanted for one in values):
        raise ValueError(f"not a list of {element}: {values!r:.60}")
    if element != TEXT:
        values = np.array(values, DTYPES[element]).tolist()
    if is_unique and len(set(values)) != len(values):
        raise ValueError("a key stands twice")
    return list(values)


def _array_of(element: str) -> Callable[[Sequence[Any], Sequence[int]], Array]:
    if element == TEXT:
        return _texts
    dtype = np.dtype(DTYPES[element])
    return lambda values, shape: np.array(values, dtype).reshape(shape)


def _label_encoder(step: PythonStep, kind: Kind, *, keys: Any, values: Any, element: str, default: Any) -> MadeStep:
    """`default` is a list of the value of what is no key, or empty: then that is refused."""
    of, rank = kind
    names = _checked_list(keys, of, is_unique=True)
    (*results, other) = _checked_list([*values, *(default or values[:1])], element)
    table = dict(zip(names, results, strict=True))
    array_of, find = _array_of(element), table.get

    def looked_up(x: Array) -> Array:
        return array_of([find(key, other) for key in x.ravel().tolist()], x.shape)

    def looked_up_with_nan(x: Array) -> Array:
        found = [of_nan if key != key else find(key, other) for key in x.ravel().tolist()]
        return array_of(found, x.shape)

    def found_or_refused(x: Array) -> Array:
        flat = x.ravel().tolist()
        try:
            return array_of([table[key] for key in flat], x.shape)
        except KeyError as err:
            (key,) = err.args
            what = f"element {flat.index(key)} of {step.inputs[0]!r:.60} is {key!r:.60}, which is no category"
            raise InputError(what) from None

    if not default:
        return MadeStep((element, rank), found_or_refused)
    of_nan = next((value for key, value in table.items() if key != key), None)
    return MadeStep((element, rank), looked_up if of_nan is None else looked_up_with_nan)


def _gather(_: PythonStep, kind: Kind, *, texts: Any) -> MadeStep:
    table = _texts(_checked_list(texts, TEXT), (-1,))
    if kind[0] not in ("int32", "int64") or not kind[1]:
        raise ValueError(f"places of {kind}")

    def gathered(x: Array) -> Array:
        try:
            return table[x]
        except IndexError as err:
            raise InputError(str(err)) from None

    return MadeStep((TEXT, kind[1]), gathered)


def _maker_of_maps(names: Sequence[Any]) -> Callable[[list[list[float]]], list[dict[Any, float]]]:
    """Returns what makes maps of rows of scores; of two or three, which most have, in a third of the time."""
    if len(names) == 2:  # noqa: PLR2004
        a, b = names
        return lambda rows: [{a: x, b: y} for x, y in rows]
    if len(names) == 3:  # noqa: PLR2004
        a, b, c = names
        return lambda rows: [{a: x, b: y, c: z} for x, y, z in rows]
    return lambda rows: [*map(dict, map(zip, repeat(names), rows))]


def _zip_map(_: PythonStep, kind: Kind, *, keys: Any) -> MadeStep:
    of = TEXT if keys and type(keys[0]) is str else "int64"
    names = _checked_list(keys, of)
    element, rank = kind
    if element != "fp32" or rank not in (1, 2):
        raise ValueError(f"maps of {kind}")

    maps_of = _maker_of_maps(names)

    def zipped(x: Array) -> list[dict[Any, float]]:
        if x.shape[-1] != len(names):
            raise InputError(f"{x.shape[-1]} scores for {len(names)} labels")
        return maps_of((x if rank == 2 else x.reshape(1, -1)).tolist())

    return MadeStep((f"sequence(map({of},fp32))", 0), zipped)


_MAKERS: Mapping[str, Callable[..., MadeStep]] = {
    "Gather": _gather,
    "LabelEncoder": _label_encoder,
    "ZipMap": _zip_map,
}
