# SPDX-License-Identifier: Apache-2.0
"""Compares a value with its reference: the one definition of "agrees" for `compile`'s checks, `verify` and tests.

Numbers agree where |got - want| <= atol + rtol * |want| + span * max |want|, element by element; for integers atol is
in steps, and span does not count. A default atol (those have a span) is for values near 1: it is at most a hundredth of
the largest element, so that small outputs are compared too.
NaN agrees with NaN, an infinity with itself; strings and booleans agree when they are equal. Lists and maps are
compared element by element; maps of numbers with the same keys, as ZipMap gives one for each row, as the tensor that
they are made of: a score near 0 is held to the others. The figures are computed in float64 (integers exactly) over the
places where both sides are finite, and are always finite themselves, so that they can be written as JSON.

Law: `compare_values(v, v, t).ok` for every value and tolerance.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nndeploy.bundle.manifest import Tolerance
from nndeploy.values.types import MapType, OptionalType, SequenceType, TensorType, Value, ValueType, dtype_name

EXACT = Tolerance(rtol=0.0, atol=0.0)

ATOL_SHARE = 1e-2
LEAST_ATOL = 1e-30
"""What is granted where every element is 0: an engine may flush denormal numbers to 0, another may not."""

_MAX = sys.float_info.max


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome: largest absolute and relative error, cosine similarity; None where a figure has no meaning.

    `note` names what no figure can say (another shape, NaN in other places), "" otherwise. `rule` is what decided:
    "tolerance" here, another in `nndeploy.comparison.judge`.
    """

    ok: bool
    max_abs: float | None = None
    max_rel: float | None = None
    cosine: float | None = None
    note: str = ""
    rule: str = "tolerance"


def tolerance_for(value_type: ValueType, tolerances: Mapping[str, Tolerance]) -> Tolerance:
    """Returns the tolerance for the element type inside `value_type`; `EXACT` where `tolerances` has none."""
    while not isinstance(value_type, TensorType):
        match value_type:
            case SequenceType(element) | OptionalType(element) | MapType(_, element):
                value_type = element
    return tolerances.get(value_type.dtype, EXACT)


def allowed_distance(size: "np.ndarray[Any, Any]", tolerance: Tolerance) -> "np.ndarray[Any, Any]":
    """Returns how far each element may be from a reference of these absolute values."""
    largest = np.max(size, initial=0.0)
    atol = tolerance.atol if not tolerance.span else max(min(tolerance.atol, ATOL_SHARE * largest), LEAST_ATOL)
    return np.asarray(atol + tolerance.rtol * size + tolerance.span * largest)


def compare_values(got: Value, want: Value, tolerance: Tolerance = EXACT) -> Comparison:
    """Returns how `got` compares with the reference `want`."""
    if got is None or want is None:
        return _whole(got is want, "absent instead of present" if got is None else "present instead of absent")
    if isinstance(want, list | tuple):
        return _compare_lists(got, want, tolerance)
    if isinstance(want, Mapping):
        return _compare_maps(got, want, tolerance)
    if isinstance(got, list | tuple | Mapping) and not isinstance(want, list | tuple | Mapping):
        return Comparison(False, note=f"a {type(got).__name__} instead of a tensor")
    return _compare_tensors(got, want, tolerance)


def _whole(ok: bool, note: str) -> Comparison:
    return Comparison(ok, note="" if ok else note)


def _compare_lists(got: Value, want: list[Value] | tuple[Value, ...], tolerance: Tolerance) -> Comparison:
    if not isinstance(got, list | tuple):
        return Comparison(False, note=f"a {type(got).__name__} instead of a list")
    if len(got) != len(want):
        return Comparison(False, note=f"{len(got)} elements instead of {len(want)}")
    rows = [_rows_of(maps, want) for maps in (got, want)]
    if rows[0] is not None and rows[1] is not None:
        return _compare_tensors(rows[0], rows[1], tolerance)
    pairs = zip(got, want, strict=True)
    return _join({f"[{i}]": compare_values(g, w, tolerance) for i, (g, w) in enumerate(pairs)})


def _rows_of(maps: Value, like: Value) -> np.ndarray[Any, Any] | None:
    """Returns maps of numbers as rows of these, in the order of the first of others; None where they are no such."""
    keys = list(like[0]) if like and isinstance(like[0], Mapping) else []
    if not keys or any(not isinstance(one, Mapping) or set(one) != set(keys) for one in maps):
        return None
    if any(np.ndim(number) for one in maps for number in one.values()):
        return None
    found = np.array([[one[key] for key in keys] for one in maps])
    return found.astype(np.float64) if found.dtype.kind == "f" else None


def _compare_maps(got: Value, want: Mapping[Any, Value], tolerance: Tolerance) -> Comparison:
    if not isinstance(got, Mapping):
        return Comparison(False, note=f"a {type(got).__name__} instead of a map")
    if set(got) != set(want):
        odd = sorted(map(repr, set(got) ^ set(want)))
        return Comparison(False, note=f"other keys: {', '.join(odd[:4])}{', ...' if len(odd) > 4 else ''}")
    return _join({f"[{key!r}]": compare_values(got[key], want[key], tolerance) for key in want})


def _join(parts: Mapping[str, Comparison]) -> Comparison:
    return Comparison(
        ok=all(part.ok for part in parts.values()),
        max_abs=_extreme(max, (part.max_abs for part in parts.values())),
        max_rel=_extreme(max, (part.max_rel for part in parts.values())),
        cosine=_extreme(min, (part.cosine for part in parts.values())),
        note=next((f"{place}: {part.note}" for place, part in parts.items() if part.note), ""),
    )


def _extreme(pick: Callable[[list[float]], float], figures: Any) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return pick(known) if known else None


def _compare_tensors(got: Value, want: Value, tolerance: Tolerance) -> Comparison:
    if _is_typed(got) and _is_typed(want) and dtype_name(got.dtype) != dtype_name(want.dtype):
        return Comparison(False, note=f"{dtype_name(got.dtype)} instead of {dtype_name(want.dtype)}")
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return Comparison(False, note=f"shape {_shape(got)} instead of {_shape(want)}")
    kind = _kind(want.dtype)
    if kind != _kind(got.dtype):
        return Comparison(False, note=f"{dtype_name(got.dtype)} instead of {dtype_name(want.dtype)}")
    if kind == "text":
        return _compare_texts(got, want)
    if kind == "bool":
        return _counted(got != want)
    return _compare_integers(got, want, tolerance) if kind == "integer" else _compare_reals(got, want, tolerance)


def _is_typed(value: Value) -> bool:
    return isinstance(value, np.ndarray | np.generic)


def _shape(array: np.ndarray[Any, Any]) -> str:
    return "[" + ",".join(map(str, array.shape)) + "]"


def _kind(dtype: np.dtype[Any]) -> str:
    name = dtype_name(dtype)
    if name == "string":
        return "text"
    if name == "bool":
        return "bool"
    return "integer" if name.startswith(("int", "uint")) else "real"


def _counted(differs: np.ndarray[Any, Any]) -> Comparison:
    """Returns the comparison of things that are equal or not."""
    count = int(np.count_nonzero(differs))
    return _whole(count == 0, f"{count} of {differs.size} elements differ")


def _compare_texts(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> Comparison:
    pairs = zip(got.ravel().tolist(), want.ravel().tolist(), strict=True)
    return _counted(np.array([_text(g) != _text(w) for g, w in pairs], dtype=np.bool_))


def _text(value: object) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _compare_integers(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any], tolerance: Tolerance) -> Comparison:
    """Returns the comparison with exact differences: 64-bit integers do not fit into float64."""
    wide = np.uint64 if dtype_name(want.dtype) == "uint64" else np.int64
    got, want = got.astype(wide), want.astype(wide)
    low, high = np.minimum(got, want), np.maximum(got, want)
    # high - low always fits into 64 unsigned bits, and wraps to it.
    distance = (high.view(np.uint64) - low.view(np.uint64)).astype(np.float64)
    limit = tolerance.atol + tolerance.rtol * np.abs(want.astype(np.float64))
    return _figures(bool(np.all(distance <= limit)), distance, got.astype(np.float64), want.astype(np.float64))


def _compare_reals(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any], tolerance: Tolerance) -> Comparison:
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(wide).ravel(), want.astype(wide).ravel()
    finite = np.isfinite(got) & np.isfinite(want)
    same = finite | (np.isnan(got) & np.isnan(want)) | (got == want)
    with np.errstate(all="ignore"):  # the difference of two huge numbers may overflow; _figures caps it
        got, want = got[finite], want[finite]
        distance = np.abs(got - want)
        close = bool(np.all(distance <= allowed_distance(np.abs(want), tolerance)))
    odd = int(np.count_nonzero(~same))
    note = f"{odd} of {same.size} elements are NaN or infinite on one side only" if odd else ""
    return _figures(close and not odd, distance, got, want, note)


def _figures(
    ok: bool, distance: np.ndarray[Any, Any], got: np.ndarray[Any, Any], want: np.ndarray[Any, Any], note: str = ""
) -> Comparison:
    got, want, distance = got.ravel(), want.ravel(), distance.ravel()
    with np.errstate(all="ignore"):
        nonzero = want != 0
        relative = distance[nonzero] / np.abs(want[nonzero])
    return Comparison(ok, _largest(distance), _largest(relative), _cosine(got, want), note)


def _largest(errors: np.ndarray[Any, Any]) -> float | None:
    return min(float(np.max(errors)), _MAX) if errors.size else None


def _cosine(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> float | None:
    """Returns the cosine of the angle between two vectors, None for fewer than two elements or a zero vector."""
    if got.size < 2:
        return None
    scale_got, scale_want = np.max(np.abs(got)), np.max(np.abs(want))
    if not 0 < scale_got < np.inf or not 0 < scale_want < np.inf:
        return None
    with np.errstate(all="ignore"):
        # Scaled to 1 first, so that squares neither overflow nor vanish; tiny / tiny may still give infinity.
        got, want = got / scale_got, want / scale_want
        cosine = float(np.vdot(got, want).real / np.sqrt(np.vdot(got, got).real * np.vdot(want, want).real))
    return max(-1.0, min(1.0, cosine)) if np.isfinite(cosine) else None
