# SPDX-License-Identifier: Apache-2.0
"""Steps of texts, maps and sequences, and what becomes numbers of them or is made of numbers.

To look a text up in a dict takes Python less time than to hand it to a library.

Source: ONNX StringNormalizer; ai.onnx.ml CastMap, DictVectorizer, LabelEncoder, ZipMap; com.microsoft Tokenizer.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, repeat
from typing import Any

import numpy as np

from nndeploy.errors import InputError
from nndeploy.values.types import Array
from nndeploy_native.plan import DTYPES, MAX_RANK, TEXT
from nndeploy_native.python_step import Kind, MadeStep, Maker, PythonStep, check_number

MAX_MAP = 2**24
"""Places of a map that is spread out."""


def _texts(values: Sequence[str], shape: Sequence[int]) -> Array:
    return np.array(values, object).reshape(shape)


def _dtype_of(element: str) -> np.dtype[Any]:
    return np.dtype(object if element == TEXT else DTYPES[element])


def _array_of(element: str) -> Callable[[Sequence[Any], Sequence[int]], Array]:
    dtype = _dtype_of(element)
    return lambda values, shape: np.array(values, dtype).reshape(shape)


def _checked_list(values: Any, element: str, *, is_unique: bool = False) -> list[Any]:
    """Returns texts or numbers of an attribute, floats as the element has them.

    Raises:
        ValueError: they are none, or one of them stands twice.
    """
    wanted = {TEXT: str, "int32": int, "int64": int, "fp32": float}[element]
    if type(values) is not list or any(type(one) is not wanted for one in values):
        raise ValueError(f"not a list of {element}: {values!r:.60}")
    if element != TEXT:
        try:
            values = np.array(values, DTYPES[element]).tolist()
        except OverflowError as err:
            raise ValueError(f"a number that is no {element}") from err
    if is_unique and len(set(values)) != len(values):
        raise ValueError("a key stands twice")
    return list(values)


def _check_text(kind: Kind, ranks: Sequence[int] = range(1, MAX_RANK + 1)) -> None:
    if kind[0] != TEXT or kind[1] not in ranks:
        raise ValueError(f"texts of {kind[1]} axes, of {kind[0]}")


def _label_encoder(step: PythonStep, kind: Kind, *, keys: Any, values: Any, element: str, default: Any) -> MadeStep:
    """`default` is a list of the value of what is no key, or empty: then that is refused."""
    of, rank = kind
    names = _checked_list(keys, of, is_unique=True)
    *results, other = _checked_list([*values, *(default or values[:1])], element)
    table = dict(zip(names, results, strict=True))
    array_of, find, dtype = _array_of(element), table.get, _dtype_of(element)

    def looked_up(x: Array) -> Array:
        if x.size == 1:  # in a third of the time of a list of one
            found = np.empty(x.shape, dtype)
            found.fill(find(x.item(), other))
            return found
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
        return MadeStep(((element, rank),), found_or_refused)
    of_nan = next((value for key, value in table.items() if key != key), None)
    return MadeStep(((element, rank),), looked_up if of_nan is None else looked_up_with_nan)


def _gather(_: PythonStep, kind: Kind, *, texts: Any) -> MadeStep:
    table = _texts(_checked_list(texts, TEXT), (-1,))
    if kind[0] not in ("int32", "int64") or not kind[1]:
        raise ValueError(f"places of {kind}")

    def gathered(x: Array) -> Array:
        try:
            return table[x]
        except IndexError as err:
            raise InputError(str(err)) from None

    return MadeStep(((TEXT, kind[1]),), gathered)


def _take(_: PythonStep, kind: Kind, *, places: Any, shape: Any, axis: int) -> MadeStep:
    """Elements or slices of texts along an axis, at places that are the same in every call."""
    _check_text(kind)
    numbers = np.array(_checked_list(places, "int64"), np.int64).reshape(_checked_list(shape, "int64"))
    rank = kind[1] - 1 + numbers.ndim
    check_number(axis, kind[1])
    if not 0 < rank <= MAX_RANK:
        raise ValueError(f"places of {rank} axes")

    def taken(x: Array) -> Array:
        try:
            return x.take(numbers, axis)
        except IndexError as err:
            raise InputError(str(err)) from None

    return MadeStep(((TEXT, rank),), taken)


def _reshape(_: PythonStep, kind: Kind, *, shape: Any) -> MadeStep:
    """A size 0 is that of the input at the same axis, -1 what is left; what comes out has memory of its own."""
    sizes = _checked_list(shape, "int64")
    _check_text(kind)
    is_known = all(size > 0 or size == -1 or (size == 0 and axis < kind[1]) for axis, size in enumerate(sizes))
    if not is_known or not 0 < len(sizes) <= MAX_RANK:
        raise ValueError(f"texts of {kind[1]} axes in the shape {sizes}")

    def reshaped(x: Array) -> Array:
        try:
            return x.reshape([size or x.shape[axis] for axis, size in enumerate(sizes)]).copy()
        except ValueError as err:
            raise InputError(str(err)) from None

    return MadeStep(((TEXT, len(sizes)),), reshaped)


def _transpose(_: PythonStep, kind: Kind, *, order: Any) -> MadeStep:
    axes = _checked_list(order, "int64")
    _check_text(kind)
    if sorted(axes) != [*range(kind[1])]:
        raise ValueError(f"axes {axes} of {kind[1]}")
    return MadeStep((kind,), lambda x: x.transpose(axes).copy())


def _concat(_: PythonStep, *kinds: Kind, axis: int) -> MadeStep:
    _check_text(kinds[0])
    check_number(axis, kinds[0][1])
    if set(kinds) != {kinds[0]}:
        raise ValueError(f"texts of other axes: {kinds}")

    def joined(*xs: Array) -> Array:
        try:
            return np.concatenate(xs, axis)
        except ValueError as err:
            raise InputError(str(err)) from None

    return MadeStep((kinds[0],), joined)


def _equal(_: PythonStep, kind: Kind, *, texts: Any, shape: Any) -> MadeStep:
    other = _texts(_checked_list(texts, TEXT), _checked_list(shape, "int64"))
    _check_text(kind)
    return MadeStep((("bool", max(kind[1], other.ndim)),), lambda x: np.equal(x, other).astype(bool))


_CASES: Mapping[str, Callable[[str], str] | None] = {"LOWER": str.lower, "UPPER": str.upper, "NONE": None}


def _string_normalizer(_: PythonStep, kind: Kind, *, case: str, stopwords: Any, is_case_sensitive: bool) -> MadeStep:
    """Upper and lower case are Unicode's, whatever the locale."""
    _check_text(kind, (1, 2))
    change, words = _CASES[case], _checked_list(stopwords, TEXT)
    stops = frozenset(words if is_case_sensitive else map(str.lower, words))

    def normalised(x: Array) -> Array:
        if x.ndim == 2 and len(x) != 1:
            raise InputError(f"texts of {len(x)} rows, where one is taken")
        kept: list[str] = x.ravel().tolist()
        if stops:
            kept = [one for one in kept if (one if is_case_sensitive else one.lower()) not in stops] or [""]
        return _texts(kept if change is None else [*map(change, kept)], (-1,) if x.ndim == 1 else (1, -1))

    return MadeStep((kind,), normalised)


_RUN_OF_ONE_SET = re.compile(r"(?:\\w|\\d|\[\^?(?:[^][\\]|\\[]wd.^\\-])+\])+\+?")
"""Expressions that every engine takes alike, in one pass: sets of characters, the last of them once or often."""


def _splitter(expression: str) -> Callable[[str], list[str]]:
    """Returns what gives the tokens of a text that an expression matches; a lone dot is every character.

    Raises:
        ValueError: it is another kind of expression.
    """
    if expression == ".":
        return list
    word = re.fullmatch(r"\\b((?:\\w)+\+)\\b", expression)  # a run of \w ends where a word does
    plain = expression if word is None else word[1]
    if _RUN_OF_ONE_SET.fullmatch(plain) is None:
        raise ValueError(f"tokens by the expression {expression!r:.60}")
    try:
        return re.compile(plain, re.ASCII).findall
    except re.error as err:
        raise ValueError(f"tokens by the expression {expression!r:.60}: {err}") from err


def _tokenizer(_: PythonStep, kind: Kind, *, expression: str, padding: str, least: int) -> MadeStep:
    """The tokens of each text along a new last axis, `least` characters at least; behind fewer ones is `padding`."""
    _check_text(kind, (1, 2))
    _checked_list([padding], TEXT)
    check_number(least, MAX_MAP)
    split = _splitter(expression)

    def tokens_of(x: Array) -> Array:
        rows = [*map(split, x.ravel().tolist())]
        if least > 1:
            rows = [[token for token in row if len(token) >= least] for row in rows]
        width = max(map(len, rows), default=0)
        flat: list[str] = []
        for row in rows:
            flat += row
            if len(row) < width:
                flat += [padding] * (width - len(row))
        return _texts(flat, (*x.shape, width))

    return MadeStep(((TEXT, kind[1] + 1),), tokens_of)


def _text_bytes(_: PythonStep, kind: Kind, *, case: str) -> MadeStep:
    """Texts as UTF-8, one behind the other, and where each one ends; those of ASCII alone keep their case."""
    _check_text(kind, (1,))
    change = _CASES[case]

    def bytes_of(x: Array) -> tuple[Array, Array]:
        texts = x.tolist()
        whole = "".join(texts)
        if whole.isascii():
            data, sizes = whole.encode(), map(len, texts)
        else:
            parts = [text.encode() for text in (texts if change is None else map(change, texts))]
            data, sizes = b"".join(parts), map(len, parts)
        return np.frombuffer(data, np.uint8), np.fromiter(accumulate(sizes), np.int64, len(texts))

    return MadeStep((("uint8", 1), ("int64", 1)), bytes_of)


def _maker_of_maps(names: Sequence[Any]) -> Callable[[list[list[float]]], list[dict[Any, float]]]:
    """Returns what makes maps of rows of scores; of two or three, which most have, in a third of the time."""
    if len(names) == 2:
        a, b = names
        return lambda rows: [{a: x, b: y} for x, y in rows]
    if len(names) == 3:
        a, b, c = names
        return lambda rows: [{a: x, b: y, c: z} for x, y, z in rows]
    return lambda rows: [*map(dict, map(zip, repeat(names), rows))]


def _zip_map(_: PythonStep, kind: Kind, *, keys: Any) -> MadeStep:
    of = TEXT if keys and type(keys[0]) is str else "int64"
    names, (element, rank) = _checked_list(keys, of), kind
    if element != "fp32" or rank not in (1, 2):
        raise ValueError(f"maps of {kind}")
    maps_of = _maker_of_maps(names)

    def zipped(x: Array) -> list[dict[Any, float]]:
        if x.shape[-1] != len(names):
            raise InputError(f"{x.shape[-1]} scores for {len(names)} labels")
        return maps_of((x if rank == 2 else x.reshape(1, -1)).tolist())

    return MadeStep(((f"sequence(map({of},fp32))", 0),), zipped)


def _parts_of_map(kind: Kind) -> tuple[str, str]:
    """Returns the elements of the keys and the values of a map."""
    found = re.fullmatch(r"map\((\w+),(\w+)\)", kind[0])
    if found is None:
        raise ValueError(f"a map, not {kind[0]}")
    return found[1], found[2]


def _dict_vectorizer(_: PythonStep, kind: Kind, *, keys: Any) -> MadeStep:
    of, element = _parts_of_map(kind)
    names, array_of = _checked_list(keys, of), _array_of(element)
    nothing = "" if element == TEXT else 0
    return MadeStep(((element, 2),), lambda x: array_of([x.get(name, nothing) for name in names], (1, -1)))


def _cast_map(_: PythonStep, kind: Kind, *, element: str, size: int) -> MadeStep:
    """The values in the order of their keys or, where `size` is not 0, at the places that their keys are."""
    of, given = _parts_of_map(kind)
    array_of, is_text = _array_of(element), element == TEXT
    check_number(size, MAX_MAP)
    if of != "int64" or (given != TEXT and is_text):
        raise ValueError(f"a map {kind[0]} as {element}")
    convert: Callable[[Any], Any] = {TEXT: str, "fp32": float, "int64": int}[element]

    def cast(x: Mapping[int, Any]) -> Array:
        try:
            values = {key: convert(x[key]) for key in sorted(x)}
        except ValueError as err:
            raise InputError(str(err)) from None
        if not size:
            return array_of([*values.values()], (1, -1))
        if values and not (min(values) >= 0 and max(values) < size):
            raise InputError(f"keys from {min(values)} to {max(values)}, outside of 0..{size - 1}")
        nothing = "" if is_text else 0
        return array_of([values.get(key, nothing) for key in range(size)], (1, -1))

    return MadeStep(((element, 2),), cast)


MAKERS: Mapping[str, Maker] = {
    "CastMap": _cast_map,
    "Concat": _concat,
    "DictVectorizer": _dict_vectorizer,
    "Equal": _equal,
    "Gather": _gather,
    "LabelEncoder": _label_encoder,
    "Reshape": _reshape,
    "StringNormalizer": _string_normalizer,
    "Take": _take,
    "TextBytes": _text_bytes,
    "Tokenizer": _tokenizer,
    "Transpose": _transpose,
    "ZipMap": _zip_map,
}
