# SPDX-License-Identifier: Apache-2.0
"""Which part of two results of the same file both say, 1 where both say nothing."""

import difflib
import operator
from collections import Counter
from collections.abc import Sequence
from typing import Any


def same_times(theirs: Sequence[Sequence[float]], ours: Sequence[Sequence[float]]) -> float:
    """Returns the part of the time with speech by one of both that is speech by both."""
    one, other = (
        {ms for begin, end in found for ms in range(round(1e3 * begin), round(1e3 * end))} for found in (theirs, ours)
    )
    return len(one & other) / len(one | other) if one | other else 1.0


def same_boxes(theirs: Sequence[Sequence[Any]], ours: Sequence[Sequence[Any]]) -> float:
    """Returns the part of all boxes that have one of the same class among those of the other, half of it at least."""
    pairs = ((theirs, ours), (ours, theirs))
    found = [any(one[0] == other[0] and _overlap(one, other) >= 0.5 for other in b) for a, b in pairs for one in a]
    return sum(found) / len(found) if found else 1.0


def _overlap(one: Sequence[Any], other: Sequence[Any]) -> float:
    width, height = (min(one[i + 2], other[i + 2]) - max(one[i], other[i]) for i in (1, 2))
    areas = [(box[3] - box[1]) * (box[4] - box[2]) for box in (one, other)]
    common = max(width, 0) * max(height, 0)
    return common / (sum(areas) - common) if common else 0.0


def same_text(theirs: Sequence[str], ours: Sequence[str]) -> float:
    """Returns the part of the characters of both that are the same, the lines of each in an order of their own."""
    one, other = ("\n".join(sorted(lines)) for lines in (theirs, ours))
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


def same_name(theirs: str, ours: str) -> float:
    """Returns 1 where both are the same, else 0."""
    return float(theirs == ours)


def num_lines_in_both(one: Sequence[str], other: Sequence[str]) -> int:
    """Returns how many lines of one are lines of the other, to the character."""
    return sum((Counter(one) & Counter(other)).values())


def cosine(theirs: Sequence[float], ours: Sequence[float]) -> float:
    """Returns the product of two vectors of length 1."""
    return sum(map(operator.mul, theirs, ours))


def same_score(theirs: float, ours: float) -> float:
    """Returns 1 less what lies between two scores from 0 to 1."""
    return 1 - abs(theirs - ours)
