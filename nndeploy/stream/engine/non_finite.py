# SPDX-License-Identifier: Apache-2.0
"""Finds NaN and infinities in the inputs of a model, and says what becomes of them."""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from nndeploy.values.types import ML_DTYPES, Value

NanPolicy = Literal["pass", "flag", "reject"]
"""What becomes of NaN and infinities in inputs: nothing is said, the outcome says so, the item is refused."""


def non_finite_names(values: Mapping[str, Value]) -> tuple[str, ...]:
    """Returns the names of the values that hold NaN or an infinity."""
    return tuple(name for name, value in values.items() if _has_non_finite(value))


def _has_non_finite(value: Value) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_non_finite, value))
    if isinstance(value, Mapping):
        return any(map(_has_non_finite, value.values()))
    array = np.asarray(value)
    if array.dtype.kind not in "fc" and not (array.dtype.name in ML_DTYPES and "float" in array.dtype.name):
        return False
    return not bool(np.isfinite(array).all())
