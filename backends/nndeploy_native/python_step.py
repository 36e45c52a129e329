# SPDX-License-Identifier: Apache-2.0
"""What a step beside plans is: one that Python computes, and the runtime in C has too where it can."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from nndeploy.values.types import Value

Kind: TypeAlias = tuple[str, int]
"""The element and the rank of a value."""


class PythonStep(NamedTuple):
    """One step; `attributes` are plain data, which differ by `operator`."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]


class MadeStep(NamedTuple):
    """A step that is ready: what its outputs are, and what computes them of the inputs: one, or a tuple of several."""

    kinds: tuple[Kind, ...]
    run: Callable[..., Value]


Maker: TypeAlias = Callable[..., MadeStep]
"""Makes a step of itself, the kinds of its inputs and, by name, its attributes, which it checks."""


def check_number(number: Any, end: int) -> None:
    """Passes a whole number below `end`.

    Raises:
        ValueError: it is none.
    """
    if type(number) is not int or not 0 <= number < end:
        raise ValueError(f"a number below {end}, not {number!r:.40}")
