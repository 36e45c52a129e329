# SPDX-License-Identifier: Apache-2.0
"""Calls with NaN or infinity are left to the next variant where a model holds operators that lose them.

MaxPool, GlobalMaxPool, ReduceMax, ReduceMin, ArgMax, ArgMin and TopK of ONNX Runtime (1.31.1) pass over NaN; of a
window of -infinity MaxPool makes the least float. What a model makes of finite inputs is not looked at.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from nndeploy.errors import OtherVariantError
from nndeploy.plugin.interface import Session
from nndeploy.values.special_numbers import is_finite
from nndeploy.values.types import Value

_LOSING = (b"MaxPool", b"ReduceMax", b"ReduceMin", b"ArgMax", b"ArgMin", b"TopK")
_FLOATS = frozenset({"tensor(float)", "tensor(double)", "tensor(float16)"})


def finite_inputs(model: bytes, session: Any) -> tuple[str, ...]:
    """Returns the inputs of the library's session over a model that must be finite."""
    if not any(operator in model for operator in _LOSING):  # a name that holds one does no harm
        return ()
    return tuple(value.name for value in session.get_inputs() if value.type in _FLOATS)


def check_finite(inputs: Mapping[str, Value], names: Sequence[str]) -> None:
    """Passes inputs of which those that are named are finite.

    Raises:
        OtherVariantError: one is not.
    """
    for name in names:
        if not is_finite(inputs[name]):
            raise OtherVariantError(f"{name!r:.60} holds a NaN or an infinity, which ONNX Runtime loses in this model")


class FiniteSession:
    """A session whose inputs are compared first."""

    def __init__(self, session: Session, names: Sequence[str]) -> None:
        """Takes over a session; `names` are the inputs that must be finite."""
        self._session, self._names = session, names

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name.

        Raises:
            OtherVariantError: an input holds a NaN or an infinity.
        """
        check_finite(inputs, self._names)
        return self._session.run(inputs)

    def close(self) -> None:
        """Closes the session."""
        self._session.close()
