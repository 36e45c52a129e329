# SPDX-License-Identifier: Apache-2.0
"""Our session over the library's: values go in and come out as arrays; several threads may call at once.

Arrays of types that numpy lacks (bfloat16, float8, int4) cross as raw memory, which costs about 30 microseconds a
call; all other values go straight to the library.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nndeploy.errors import UsageError
from nndeploy.plugin.interface import Session
from nndeploy.values.types import Value
from nndeploy_onnxruntime.element_types import RAW_TYPES, array_from_raw, raw_from_array, raw_name
from nndeploy_onnxruntime.library import onnxruntime
from nndeploy_onnxruntime.node_errors import error_of_node


def session_over(session: Any, weights: object) -> Session:
    """Returns our session over the library's; `weights` is kept as long as it."""
    values = (*session.get_inputs(), *session.get_outputs())
    kind = RawMemorySession if any(raw_name(value.type) for value in values) else PlainSession
    return kind(session, weights)


class PlainSession:
    """A session whose values the library takes and gives as they are."""

    def __init__(self, session: Any, weights: object) -> None:
        """Takes over a library's session; `weights` is kept as long as it."""
        self._outputs = [value.name for value in session.get_outputs()]
        self._numbered = tuple(enumerate(self._outputs))
        self._run = _unchecked_run(session)
        self._options = onnxruntime().RunOptions()  # runs only read them; to make them for each takes 0.4 us
        self._weights = weights

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name."""
        try:
            results = self._run(self._outputs, inputs, self._options)
        except Exception as err:  # the library's way to say no has many classes
            raise error_of_node(err) or err from None
        found: dict[str, Value] = {}
        for number, name in self._numbered:  # half of the time of a dict of a zip
            found[name] = results[number]
        return found

    def close(self) -> None:
        """Frees the library's session; a second call does nothing."""
        self._run = _closed
        self._weights = None


def _unchecked_run(session: Any) -> Callable[..., list[Value]]:
    """Returns the library's call under its Python one, which looks whether inputs are missing: the core did that.

    It takes 1.2 us of the 8.7 us of a small model (ONNX Runtime 1.31); where there is none the checked one serves.
    """
    found: Callable[..., list[Value]] = getattr(getattr(session, "_sess", None), "run", None) or session.run
    return found


class RawMemorySession:
    """A session with tensors of types that numpy lacks among its inputs or outputs."""

    def __init__(self, session: Any, weights: object) -> None:
        """Takes over a library's session; `weights` is kept as long as it."""
        self._outputs = [value.name for value in session.get_outputs()]
        self._run = session.run_with_ort_values
        self._weights = weights

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name."""
        given = {name: to_library(value) for name, value in inputs.items()}
        results = self._run(self._outputs, given)
        return {name: from_library(result) for name, result in zip(self._outputs, results, strict=True)}

    def close(self) -> None:
        """Frees the library's session; a second call does nothing."""
        self._run = _closed
        self._weights = None


def _closed(_outputs: Sequence[str], _inputs: Mapping[str, Value], _options: object = None) -> list[Value]:
    raise UsageError("the session is closed")


def to_library(array: "np.ndarray[Any, Any]") -> Any:
    """Returns the library's value of an array, which it may share the memory of."""
    ort_value = onnxruntime().OrtValue
    number = RAW_TYPES.get(array.dtype.name)
    if number is None:
        return ort_value.ortvalue_from_numpy(np.require(array, requirements=["C", "A"]))
    made = ort_value.ortvalue_from_shape_and_type(list(array.shape), number)
    raw = raw_from_array(array)
    if raw.size:
        ctypes.memmove(made.data_ptr(), raw.ctypes.data, raw.nbytes)
    return made


def from_library(result: Any) -> "np.ndarray[Any, Any]":
    """Returns a copy of a value of the library as an array."""
    name = raw_name(result.data_type())
    if not name:
        return np.array(result.numpy())
    num_bytes = result.tensor_size_in_bytes()
    raw = np.zeros(num_bytes, np.uint8)
    if num_bytes:
        ctypes.memmove(raw.ctypes.data, result.data_ptr(), num_bytes)
    return array_from_raw(raw, name, tuple(result.shape()))
