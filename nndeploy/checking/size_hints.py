# SPDX-License-Identifier: Apache-2.0
"""Why a library refused an input -> which size was there, and which it wants in its place.

    "Attempting to broadcast an axis by a dimension other than 1. 197 by 257"          ->  257 should be 197, or 197 257
    "pre-pad (160) exceeds maximum allowed (63) for axis 1"                             ->  64 should be 161

For models whose sizes cannot be followed (`size_conditions`). Source: messages of ONNX Runtime 1.31, read here, where
other words mean no hint.
"""

import math
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from nndeploy.checking.likely_sizes import BATCH, CHANNELS, IMAGE

_MESSAGES = tuple(
    re.compile(pattern)
    for pattern in (
        r"Got:? (?P<got>\d+) Expected:? (?P<want>\d+)",
        r"pad \((?P<want_more>\d+)\) exceeds maximum allowed \((?P<got_more>\d+)\)",
        r"idx=(?P<got_more>\d+) must be within the inclusive range \[-?\d+,(?P<want_more>\d+)\]",
        r"dimension other than 1\. (?P<got>\d+) by (?P<want>\d+)",
        r"mismatched dimensions of (?P<got>\d+) and (?P<want>\d+)",
        r"C: (?P<got>\d+) kernel channels: (?P<want>\d+) group: 1\b",
        r"must be (?P<want>\d+) instead of (?P<got>\d+)",
        r"\[(?P<want>\d+)\] should not be greater than specified axis dim value \[(?P<got>\d+)\]",
        r"scale: size of scale != input channel count (?P<want>\d+) vs\. (?P<got>\d+)",
    )
)
_SHAPES = re.compile(r"\{(-?\d+(?:, ?-?\d+)*)\}")


def suggested(sizes: Mapping[str, int], kinds: Mapping[str, str], reason: str) -> Iterator[Mapping[str, int]]:
    """Yields sizes that a refusal of `sizes` may ask for, the likeliest first; none where it says nothing of sizes."""
    for got, want in _pairs(reason):
        equal = [symbol for symbol, size in sizes.items() if size == got]
        yield from ({**sizes, symbol: want} for symbol in equal)
        if len(equal) > 1:
            yield {**sizes, **dict.fromkeys(equal, want)}
        yield from _scaled(sizes, kinds, want / got)


def _pairs(reason: str) -> Iterator[tuple[int, int]]:
    """Yields (what was there, what should have been)."""
    for message in _MESSAGES:
        for found in message.finditer(reason):
            numbers = found.groupdict()
            got, want = (int(numbers.get(name) or numbers.get(f"{name}_more") or 0) for name in ("got", "want"))
            more = int("got_more" in numbers)
            if "by" in found[0]:
                yield from ((max(got, want), min(got, want)), (min(got, want), max(got, want)))
            elif "exceeds" in found[0]:
                yield got + 1, 2 * (want + 1)  # what comes behind it may need more
            elif want or more:
                yield got + more, want + more
    shapes = [[int(size) for size in found[1].split(",")] for found in _SHAPES.finditer(reason)]
    for one, other in pairwise(shapes):
        if "reshape" in reason:
            yield math.prod(one), math.prod(size for size in other if size > 0)
        elif len(one) == len(other):  # what must be comes first
            yield from ((got, want) for want, got in zip(one, other, strict=True) if want != got and min(want, got) > 0)


def _scaled(sizes: Mapping[str, int], kinds: Mapping[str, str], factor: float) -> Iterator[Mapping[str, int]]:
    """Yields sizes with as many times the elements, and twice the sides."""
    for power in (0.5, 1.0):
        scaled = {
            symbol: max(1, round(size * factor ** (power if kinds[symbol] == IMAGE else 1.0)))
            for symbol, size in sizes.items()
            if symbol in kinds and kinds[symbol] not in (BATCH, CHANNELS)
        }
        if scaled:
            yield {**sizes, **scaled}
