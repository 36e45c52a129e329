# SPDX-License-Identifier: Apache-2.0
"""constant: nothing -> a number or array that a model wants with every record, such as a sample rate."""

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

from nndeploy.errors import DataError, UsageError
from nndeploy.processors.arrays import Array
from nndeploy.processors.known_shapes import Known
from nndeploy.processors.parameters import ReadFile


@dataclass(frozen=True, slots=True)
class Numbers:
    """A number, true or false, or nested lists of them."""

    written_as: ClassVar[str] = "a number, or nested lists of numbers"

    data: object

    @classmethod
    def from_parameter(cls, value: object, read_file: ReadFile) -> Self:
        """Returns the numbers.

        Raises:
            DataError: there is something else in it.
        """
        del read_file
        if not _is_numbers(value):
            raise DataError(f"must be {cls.written_as}, is {value!r:.60}")
        return cls(value)


def _is_numbers(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_numbers, value))
    return isinstance(value, bool | int | float)


@dataclass(frozen=True)
class Constant:
    """Gives the same `value` with every record, as an array of `dtype`."""

    name: ClassVar[str] = "constant"
    takes: ClassVar[tuple[str, ...]] = ()
    gives: ClassVar[tuple[str, ...]] = ("value",)

    value: Numbers
    dtype: Literal["float32", "float64", "float16", "int64", "int32", "uint8", "bool"] = "float32"

    def __post_init__(self) -> None:
        try:
            exact = np.array(self.value.data)
            array = exact.astype(self.dtype)
        except (ValueError, OverflowError) as err:
            raise UsageError(f"value is no {self.dtype} array: {err}") from err
        if np.dtype(self.dtype).kind in "iub" and not np.array_equal(array, exact):
            raise UsageError(f"value {self.value.data!r:.60} is not exactly {self.dtype}")
        array.flags.writeable = False
        object.__setattr__(self, "_array", array)

    def __call__(self) -> Array:
        """Returns the array, which nobody may write to."""
        array: Array = getattr(self, "_array")  # noqa: B009 - made by __post_init__
        return array

    def given_shapes(self) -> tuple[Known]:
        """Returns the shape of the array."""
        return (self().shape,)
