# SPDX-License-Identifier: Apache-2.0
"""The equation of an Einsum: which axes of its operands are one, and which its output has.

Source: ONNX Einsum, opset 12.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

ELLIPSIS = "..."


@dataclass(frozen=True, slots=True)
class Equation:
    """The labels of each operand's axes and of the output's; an ellipsis is "...1", "...0", counted from its last."""

    operands: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]


def parsed_equation(text: str, ranks: Sequence[int]) -> Equation | None:
    """Returns the equation for operands of these ranks, None where it is none or does not fit them."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        return None
    found = [_labels(term, rank) for term, rank in zip(terms, ranks, strict=True)]
    operands = tuple(labels for labels in found if labels is not None)
    if len(operands) != len(terms):
        return None
    counts = Counter(label for labels in operands for label in labels)
    hidden = sorted((label for label in counts if label.startswith(ELLIPSIS)), key=_number, reverse=True)
    if not arrow:
        letters = sorted(label for label, count in counts.items() if count == 1 and not label.startswith(ELLIPSIS))
        return Equation(operands, (*hidden, *letters))
    output = _labels(right, len(right.replace(ELLIPSIS, "")) + len(hidden) * (ELLIPSIS in right))
    if output is None or len(set(output)) < len(output) or not set(output) <= set(counts):
        return None
    return Equation(operands, output)


def _number(label: str) -> int:
    return int(label.removeprefix(ELLIPSIS))


def _labels(term: str, rank: int) -> tuple[str, ...] | None:
    """Returns a label for each of `rank` axes, None where the term is none or has not as many."""
    before, ellipsis, after = term.partition(ELLIPSIS)
    letters = before + after
    if not (letters.isalpha() and letters.isascii()) and letters:
        return None
    hidden = rank - len(letters)
    if hidden < 0 or (hidden and not ellipsis):
        return None
    return (*before, *(f"{ELLIPSIS}{hidden - 1 - axis}" for axis in range(hidden)), *after)
