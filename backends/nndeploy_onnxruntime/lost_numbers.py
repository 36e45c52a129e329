# SPDX-License-Identifier: Apache-2.0
"""Calls with NaN are left to the next variant where a model holds operators that lose them; infinities likewise.

MaxPool, GlobalMaxPool, MaxRoiPool, RoiAlign, ReduceMax, ReduceMin, ArgMax, ArgMin, TopK, Hardmax and Normalizer of
ONNX Runtime (1.31.1) pass over NaN; of a window of -infinity MaxPool makes the least float; LRN hands both on to other
channels, and recurrent layers with lengths make numbers of them. What a model makes of finite inputs is not looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nndeploy.errors import OtherVariantError
from nndeploy.plugin.interface import Session
from nndeploy.values.special_numbers import holds_nan, is_finite
from nndeploy.values.types import Value

_LOSING_INFINITY = (b"MaxPool", b"MaxRoiPool", b"LRN", b"GRU", b"LSTM", b"RNN")
_LOSING_NAN = (
    *_LOSING_INFINITY,
    *(b"RoiAlign", b"ReduceMax", b"ReduceMin", b"ArgMax", b"ArgMin", b"TopK", b"Hardmax", b"Normalizer"),
)
_FLOATS = frozenset({"tensor(float)", "tensor(double)", "tensor(float16)"})


@dataclass(frozen=True, slots=True)
class NumbersLost:
    """The inputs of a model in whose elements NaN is lost, and whether infinities are, too."""

    names: tuple[str, ...] = ()
    infinities: bool = False

    def check(self, inputs: Mapping[str, Value]) -> None:
        """Passes inputs that hold nothing that is lost.

        Raises:
            OtherVariantError: one does.
        """
        for name in self.names:
            if self.infinities and not is_finite(inputs[name]):
                raise OtherVariantError(
                    f"{name!r:.60} holds a NaN or an infinity, which ONNX Runtime loses in this model"
                )
            if not self.infinities and holds_nan(inputs[name]):
                raise OtherVariantError(f"{name!r:.60} holds a NaN, which ONNX Runtime loses in this model")


def numbers_lost(model: bytes, session: Any) -> NumbersLost:
    """Returns what the library's session over a model loses."""
    if not any(operator in model for operator in _LOSING_NAN):  # a name that holds one does no harm
        return NumbersLost()
    names = tuple(value.name for value in session.get_inputs() if value.type in _FLOATS)
    return NumbersLost(names, infinities=any(operator in model for operator in _LOSING_INFINITY))


class CheckedSession:
    """A session whose inputs are looked at first."""

    def __init__(self, session: Session, lost: NumbersLost) -> None:
        """Takes over a session that loses some numbers."""
        self._session, self._lost = session, lost

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name.

        Raises:
            OtherVariantError: an input holds what is lost.
        """
        self._lost.check(inputs)
        return self._session.run(inputs)

    def close(self) -> None:
        """Closes the session."""
        self._session.close()
