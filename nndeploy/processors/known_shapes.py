# SPDX-License-Identifier: Apache-2.0
"""What is known of the values of a field before any record is there: the shape of arrays, or the number itself.

A processor tells it in `given_shapes`; `compile --pipeline` learns from it which sizes a model will always get.

Law: what is known holds for every record; `None` claims nothing.
"""

from dataclasses import dataclass
from typing import TypeAlias

Sizes: TypeAlias = tuple[int | None, ...]
"""The size of each axis of an array, None where it may differ from record to record."""


@dataclass(frozen=True, slots=True)
class EachOf:
    """A list, of all of whose elements as much is known."""

    element: "Known"


Known: TypeAlias = Sizes | EachOf | int | None
"""An array of some shape, a list, a number, or None: nothing is known."""


def common(a: Known, b: Known) -> Known:
    """Returns what holds of both."""
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(size if size == other else None for size, other in zip(a, b, strict=True))
    if isinstance(a, EachOf) and isinstance(b, EachOf):
        return EachOf(common(a.element, b.element))
    return a if a == b else None


def sizes_of(known: Known, rank: int) -> Sizes:
    """Returns what is known of the sizes of an array that has so many axes, as its processor makes sure."""
    return known if isinstance(known, tuple) and len(known) == rank else (None,) * rank


IMAGE: Sizes = (None, None, 3)
"""An image of any height and width."""
