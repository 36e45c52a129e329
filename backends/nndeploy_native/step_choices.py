# SPDX-License-Identifier: Apache-2.0
"""How the steps of a plan are done where not as the rules of their operators say: one choice for each step.

Law: whatever a choice says, a step gives the same bits, unless it may round or says the way of a convolution; that of
zeros is the rule.
"""

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

MAX_CHOICE_BYTES = 1 << 40
MAX_CHUNKS = 64


class StepChoice(NamedTuple):
    """struct nnd_choice: 0 in each field is the rule.

    `cache_bytes`: the second cache, as blocks are counted with it. `buffer_bytes`: of sliding windows. `chunks`: into
    how many each thread's share is cut. `sharing`: 1 by one thread, 2 by all. `stores`: 1 through the caches, 2 past
    them. `rounding`: 1 where sums may round otherwise, which no file may say. `way`: of a convolution that is packed
    for both, 1 the direct sum, 2 Winograd's products.
    """

    cache_bytes: int = 0
    buffer_bytes: int = 0
    chunks: int = 0
    sharing: int = 0
    stores: int = 0
    rounding: int = 0
    way: int = 0


BY_RULE = StepChoice()
WAYS = WAY_DIRECT, WAY_WINOGRAD = 1, 2
WAY_BOTH = 3
"""For which ways the weights of a step are packed, where not as the rule says: enum of `nndeploy_kernels.h`."""
MOST = StepChoice(MAX_CHOICE_BYTES, MAX_CHOICE_BYTES, MAX_CHUNKS, 2, 2, 0, 2)
"""The largest number of each field in a file."""


def ways_packed(choices: Iterable[Sequence[StepChoice]], num_steps: int, *, is_alone: bool) -> bytes:
    """Returns for which ways each step is packed so that all choices can be taken, a byte each; empty: by the rule.

    `choices` are those of sets of shapes; `is_alone` where no other calls than of these can come.
    """
    asked = [{one.way for one in of_step} for of_step in zip(*choices, strict=True)] or [set[int]()] * num_steps
    if not any(map(any, asked)):
        return b""
    return bytes(min(ways) if is_alone and len(ways) == 1 else WAY_BOTH if any(ways) else 0 for ways in asked)


def choices_in_memory(choices: Sequence[StepChoice] | None) -> Any:
    """Returns choices as the kernel library reads them; None where all are the rule."""
    if choices is None or all(one == BY_RULE for one in choices):
        return None
    return (ctypes.c_int64 * (len(BY_RULE) * len(choices)))(*(number for one in choices for number in one))


def choice_to_data(choice: StepChoice) -> dict[str, int]:
    """Returns the fields of a choice that are not the rule's."""
    return {name: number for name, number in choice._asdict().items() if number}


def choice_from_data(data: Any) -> StepChoice:
    """Returns the choice that plain data says.

    Raises:
        ValueError: it says none.
    """
    if not isinstance(data, dict) or not data.keys() <= set(StepChoice._fields):
        raise ValueError(f"not a choice: {data!r:.60}")
    for name, number in data.items():
        if type(number) is not int or not 0 < number <= getattr(MOST, name):
            raise ValueError(f"not a choice of {name}: {number!r:.60}")
    return StepChoice(**data)


class StepFacts(NamedTuple):
    """A step for some shapes: its kernel, what a choice makes of it, in words, and the bytes that it writes."""

    kernel: str
    shown: str
    num_bytes: int
