# SPDX-License-Identifier: Apache-2.0
"""What a session looks at in the inputs of a call, since OpenVINO (2026.4.1) does not compute with all that is legal.

    NaN                         lost by Relu, Clip, Max, Min, MaxPool, Exp, HardSigmoid; greater than any number
    infinity                    lost where the model holds one of `LOSING_INFINITY`
    no elements                 another result where it holds one of `NEEDING_ELEMENTS`
    integers beyond 32 bits     others are made of them
    integers beyond 24 bits     compared in float32 by `COMPARING` layers
    an index out of range       Gather gives zeros

The next variant takes calls with the first five; an index out of range is the caller's error. The metadata of an
artifact say which of them count for a model (`Limits`).

Source: the table of tests/oracle, for each operator; the cost is a pass over each input (11 us for 3 x 224 x 224).
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nndeploy.errors import BundleError, InputError, OtherVariantError
from nndeploy.plugin.interface import Json
from nndeploy.values.special_numbers import holds_nan, is_finite

_Array: TypeAlias = "np.ndarray[Any, Any]"
Check: TypeAlias = Callable[[_Array], None]

LOSING_INFINITY = frozenset({"MaxPool", "ReduceMax", "ReduceMin", "Gelu", "Mod", "FloorMod"})
"""Layers that give other numbers for infinite ones."""
COMPARING = frozenset({"Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"})
NEEDING_ELEMENTS = frozenset({"GRUSequence", "LSTMSequence", "RNNSequence", "ReduceMax", "ReduceMean", "ReduceMin"})
"""Layers that give other results, or end the process, where there is nothing along an axis."""
_INT32 = np.iinfo(np.int32)
_NARROW, _SMALL = (int(_INT32.min), int(_INT32.max)), (-(2**24), 2**24)


class Limits(NamedTuple):
    """What is looked for besides NaN and integers beyond 32 bits.

    Whether inputs must be finite, have elements, and hold no integer beyond 24 bits; the sizes of axes by the input
    that indexes them.
    """

    finite: bool = False
    elements: bool = False
    small: bool = False
    indices: Mapping[str, int] = {}

    def to_json(self) -> dict[str, Json]:
        """Returns what `limits_of` reads."""
        return {name: dict(value) if name == "indices" else value for name, value in self._asdict().items() if value}


NO_LIMITS = Limits()


def limits_of(metadata: Mapping[str, Json]) -> Limits:
    """Returns what the metadata of an artifact say.

    Raises:
        BundleError: they are malformed.
    """
    try:
        found = Limits(**metadata.get("limits", {}))
        is_sound = all(type(size) is int and 0 <= size <= _INT32.max for size in found.indices.values())
    except (TypeError, AttributeError):
        is_sound = False
    if not is_sound or {type(found.finite), type(found.elements), type(found.small)} != {bool}:
        raise BundleError("the metadata has malformed limits of inputs")
    return found


def check_of(name: str, kind: str, limits: Limits) -> Check | None:
    """Returns what passes the elements of input `name`, at least one, of OpenVINO's type `kind`; None: all pass.

    It raises OtherVariantError where OpenVINO does not compute with them, InputError where an index is out of range.
    """
    if kind in ("i32", "i64") and name in limits.indices:
        return lambda array: _check_indices(name, array, limits.indices[name])
    if kind in ("i32", "i64") and (limits.small or kind == "i64"):
        return lambda array: _check_narrow(name, array, *(_SMALL if limits.small else _NARROW))
    if kind in ("f32", "f16", "bf16"):
        return lambda array: _check_numbers(name, array, must_be_finite=limits.finite)
    return None


def no_elements(name: str) -> OtherVariantError:
    """Returns the error of an input without elements."""
    return OtherVariantError(f"{name!r:.60} has no elements, of which OpenVINO makes something else in this model")


def _check_indices(name: str, array: _Array, size: int) -> None:
    if np.minimum.reduce(array, axis=None) < -size or np.maximum.reduce(array, axis=None) >= size:
        at = int(np.argmax((array < -size) | (array >= size)))
        what = f"element {at} of {name!r:.60} is {array.reshape(-1)[at]}, outside of {-size}..{size - 1}"
        raise InputError(what, hint="compile with --out-of-range clamp to take the nearest index")


def _check_narrow(name: str, array: _Array, low: int, high: int) -> None:
    if np.minimum.reduce(array, axis=None) < low or np.maximum.reduce(array, axis=None) > high:
        what = f"{name!r:.60} holds an integer outside of {low}..{high}, with which OpenVINO does not compute"
        raise OtherVariantError(what)


def _check_numbers(name: str, array: _Array, *, must_be_finite: bool) -> None:
    if not is_finite(array) if must_be_finite else holds_nan(array):
        raise OtherVariantError(f"{name!r:.60} holds a NaN or an infinity, which OpenVINO loses in this model")
