# SPDX-License-Identifier: Apache-2.0
"""Texts of options: sizes, shares, times, names, assignments; what has no meaning is refused with an example."""

import pytest

from nndeploy.errors import MissingInputError, UsageError
from nndeploy.options.texts import (
    assignments_in,
    bytes_in,
    factor_in,
    growth_in,
    library_paths,
    names_in,
    nanoseconds_in,
    seconds_in,
    share_in,
)

SIZE, SHARE = bytes_in("--cache-buffer"), share_in("--require")
TIME, LONG_TIME = nanoseconds_in("--max-latency"), seconds_in("timeout")


@pytest.mark.parametrize(("read", "values"), [
    (SIZE, {"8KiB": 8192, "256KiB": 262144, "1MiB": 1 << 20, "1GiB": 1 << 30, "65536": 65536, "100 B": 100,
            "20MB": 20_000_000, "5kB": 5000, "1GB": 10**9}),
    (SHARE, {"95%": 0.95, "0.95": 0.95, " 5 % ": 0.05, "1": 1.0, "100%": 1.0}),
    (TIME, {"40ms": 40_000_000, "500us": 500_000, "0.2s": 200_000_000}),
    (LONG_TIME, {"30m": 1800, "6h": 21600, "90 s": 90, "1.5h": 5400}),
], ids=["sizes", "shares", "times", "long times"])  # fmt: skip
def test_numbers_have_a_unit(read, values) -> None:
    assert {text: read(text) for text in values} == values


@pytest.mark.parametrize(("read", "texts", "message", "example"), [
    (SIZE, ["", "KiB", "-1", "1.5KiB", "256KB", "256kib", "1TiB", "0x10", "1 2", "9" * 19, "\u0663"],
     r"--cache-buffer: .* is not a size", "256KiB"),
    (SHARE, ["", "%", "-5%", "five", "5%%", "1e-2", "101%", "1.5"], r"--require: .* is not a share", ""),
    (TIME, ["", "40", "0ms", "-1ms", "1h", "1e3ms"], r"--max-latency: .* is not a time", ""),
    (LONG_TIME, ["", "30", "m", "0m", "-1m", "1d", "1h30m", "1e3s", "inf", "9" * 8 + "s", "\u0663s"],
     r"timeout: .* is not a time", "30m"),
], ids=["sizes", "shares", "times", "long times"])  # fmt: skip
def test_others_are_refused_with_an_example(read, texts, message, example) -> None:
    for text in texts:
        with pytest.raises(UsageError, match=message) as caught:
            read(text)
        assert example in caught.value.hint


def test_growth_is_percent_more_or_times_as_much() -> None:
    assert [growth_in("--a")(text) for text in ("5%", "0%", " 150 % ")] == [0.05, 0.0, 1.5]
    assert [factor_in("--a")(text) for text in ("2x", "1x", " 1.5 x ")] == [2.0, 1.0, 1.5]


@pytest.mark.parametrize(
    "text", ["", "5", "x", "%", "-5%", "-2x", "0.5x", "2xx", "5%%", "1e3x", "infx", "\u0663x", "\u0663%"]
)
def test_other_growth_is_refused_with_an_example(text: str) -> None:
    for read in (growth_in("--a"), factor_in("--a")):
        with pytest.raises(UsageError, match=r"--a: .* is no growth"):
            read(text)


def test_names_come_with_commas_or_one_by_one() -> None:
    assert names_in("a, b,") == ("a", "b")
    assert names_in(["a,b", "c"]) == ("a", "b", "c")


def test_assignments_split_at_the_first_or_the_last_equal_sign() -> None:
    assert assignments_in("--model", "NAME=BUNDLE", "")(["a=b=c"]) == [("a", "b=c")]
    assert assignments_in("--pin", "GLOB=BACKEND", "", splits_last=True)(["a=b=c"]) == [("a=b", "c")]


@pytest.mark.parametrize("text", ["", "=", "a", "a=", "=b"])
def test_an_assignment_without_one_of_its_sides_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not GLOB=BACKEND"):
        assignments_in("--pin", "GLOB=BACKEND", "x=y")([text])


def test_a_library_that_is_not_there_is_missing_input() -> None:
    with pytest.raises(MissingInputError, match="no such library"):
        library_paths(["nowhere.so"])
