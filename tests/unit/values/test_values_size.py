# SPDX-License-Identifier: Apache-2.0
"""Symbolic sizes: whatever is computed with them is what ints give, or nothing is said at all."""

import operator
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.errors import BuildRefusedError
from nndeploy.values.size import (
    Dim,
    Size,
    UndecidedError,
    bounds,
    ceil_div,
    evaluated,
    fixed,
    least,
    most,
    product,
    replaced,
    symbol,
    typical,
)
from nndeploy.values.size_text import MAX_TEXT, size_from_text, size_in, symbol_in, text_of
from nndeploy.values.types import DimRange

RANGES = {
    "h": DimRange(1, 9, 9), "w": DimRange(32, 640, 320, 32), "the batch": DimRange(0, 5, 1), "one": DimRange(4, 4, 4),
}  # fmt: skip
TWO_PLACED: dict[str, Callable[[Dim, Dim], Dim]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "least": least, "most": most, "ceil_div": ceil_div,
}  # fmt: skip


def of(name: str) -> Dim:
    """Returns the symbol of a name."""
    return symbol_in(name, RANGES)


@st.composite
def pairs(draw: st.DrawFn, depth: int = 4) -> tuple[Dim, int, dict[str, int]]:
    """Draws a size, what ints give for it, and the values of its symbols."""
    of_range = {name: range(found.min, found.max + 1, found.step) for name, found in RANGES.items()}
    counted = {name: draw(st.sampled_from(sizes)) for name, sizes in of_range.items()}
    size, number = _tree(draw, counted, depth)
    values = {name: (value - RANGES[name].min) // RANGES[name].step if RANGES[name].step > 1 else value
              for name, value in counted.items()}  # fmt: skip
    return size, number, values


def _tree(draw: st.DrawFn, counted: dict[str, int], depth: int) -> tuple[Dim, int]:
    if depth == 0 or draw(st.booleans()):
        if draw(st.booleans()):
            whole = draw(st.integers(-4, 40))
            return whole, whole
        name = draw(st.sampled_from(sorted(counted)))
        return of(name), counted[name]
    (left, a), (right, b) = _tree(draw, counted, depth - 1), _tree(draw, counted, depth - 1)
    name = draw(st.sampled_from(sorted(TWO_PLACED)))
    try:
        return TWO_PLACED[name](left, right), TWO_PLACED[name](a, b)  # type: ignore[return-value]
    except (UndecidedError, ZeroDivisionError):
        return left, a


@given(pairs())
def test_arithmetic_is_that_of_ints(drawn: tuple[Dim, int, dict[str, int]]) -> None:
    size, number, values = drawn
    assert evaluated(size, values) == number
    low, high = bounds(size)
    assert low <= number <= high


@given(pairs())
def test_text_is_read_as_the_same_size(drawn: tuple[Dim, int, dict[str, int]]) -> None:
    size, number, values = drawn
    text = text_of(size, RANGES) if isinstance(size, Size) else None
    if text is not None:
        again = size_from_text(text, of)
        assert evaluated(again, values) == number
        assert len(text) <= MAX_TEXT


@given(pairs(), pairs())
def test_a_comparison_is_right_or_not_answered(one, other) -> None:
    (left, _, values), (right, _, _) = one, other
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        try:
            answer = compare(left, right)
        except UndecidedError:
            continue
        assert answer == compare(evaluated(left, values), evaluated(right, values))


def test_two_ways_to_one_size_are_equal() -> None:
    h, w = of("h"), of("w")
    assert (h + 1) * (h - 1) == h * h - 1
    assert (4 * h + 3) // 2 == 2 * h + 1
    assert (w + 1) // 2 == w // 2 == 16 * ((w - 32) // 32) + 16, "a range in steps of 32 is even"
    assert product((h, w, 2)) // (h * 2) == w
    assert least(h, 12) == h == most(h, 1)
    assert of("one") == 4
    assert h != w


def test_an_extreme_takes_in_its_own_parts() -> None:
    h, w = symbol("h", 1, 9), symbol("w", 1, 9)
    assert most(least(h, w), h) == h == least(h, most(w, h))
    assert most(h, most(w, h)) == most(h, w)
    assert least(least(h, 5), 5) == least(h, 5)


def test_a_size_is_never_taken_for_a_number() -> None:
    h = of("h")
    for attempt in (lambda: range(h), lambda: np.zeros(h), lambda: [1, 2, 3][h], lambda: fixed(h)):  # type: ignore[arg-type,call-overload]
        with pytest.raises(UndecidedError, match=r"the size {h} is not fixed"):
            attempt()
    with pytest.raises(UndecidedError, match=r"it depends on whether {h} is less than 5"):
        bool(h < 5)
    with pytest.raises(UndecidedError, match="which may be zero"):
        _ = h // of("the batch")
    with pytest.raises(UndecidedError, match=r"whether {the batch} is zero"):
        bool(of("the batch"))
    assert h
    assert issubclass(UndecidedError, BuildRefusedError), "a rule that asks refuses the node"


def test_what_depends_in_too_many_ways_is_given_up() -> None:
    parts = [(of("h") * of("w") + 1) // (number + 2) for number in range(100)]
    with pytest.raises(UndecidedError, match="too many ways"):
        sum(parts)


def test_typical_is_the_middle() -> None:
    assert typical(of("h")) == 5
    assert typical(of("w")) == 32 + 32 * 9
    assert typical(7) == 7


@pytest.mark.parametrize(("text", "wanted"), [
    ("h", of("h")), ("{h} + 1", of("h") + 1), ("2*{h}*{w} + -3", 2 * of("h") * of("w") - 3),
    ("({h} + 1)//(2)", (of("h") + 1) // 2), ("min({h}, max(3, {w}))", least(of("h"), most(3, of("w")))),
])  # fmt: skip
def test_texts(text: str, wanted: Dim) -> None:
    assert size_from_text(text, of) == wanted


@pytest.mark.parametrize("text", [
    "{h", "{h}}", "{h} +", "{h} 1", "({h}", "{h})", "min({h})", "{h}//(0)", "{h}//({the batch})", "{}", "{h}+1",
    "{h} + " + "(" * 5000, "{h} + " * 600, "{h}" * 3,
])  # fmt: skip
def test_what_is_no_text_of_a_size_is_a_name(text: str) -> None:
    asked: list[str] = []

    def of_name(name: str) -> Dim:
        asked.append(name)
        return symbol_in(name, RANGES)

    assert size_from_text(text, of_name) == symbol(text)
    assert asked[-1] == text


@given(st.text(alphabet="{}hw+*/() ,minax0123456789-", max_size=60))
def test_any_text_is_read(text: str) -> None:
    found = size_from_text(text, of)
    assert isinstance(found, int | Size)


def test_names_with_braces_have_no_text() -> None:
    odd = symbol("a{b}")
    assert text_of(odd, {}) is None
    assert text_of(odd + 1, {}) is None  # type: ignore[arg-type]
    assert replaced(odd + 1, lambda _: 4) == 5


def test_what_was_read_or_written_is_kept_for_the_ranges_that_it_was_for() -> None:
    some, steps = {"n": DimRange(1, 8, 4)}, {"n": DimRange(2, 8, 4, 2)}
    for _ in range(2):
        assert bounds(size_in("2*{n}", some)) == (2, 16)
        assert bounds(size_in("2*{n}", steps)) == (4, 16)
        counted = symbol_in("n", steps)
        assert isinstance(counted, Size)
        assert text_of(counted, steps) == "n"
        assert text_of(counted, {}) == str(counted)
