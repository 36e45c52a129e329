# SPDX-License-Identifier: Apache-2.0
"""What texts of options mean: shares, growth, sizes, times, names; each says what is wrong and gives an example."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from nndeploy.errors import MissingInputError, UsageError

UNITS = {
    "": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}  # fmt: skip
"""Unit of a size -> its bytes: those that are printed, and those of memory."""
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_NS = {"us": 1e3, "ms": 1e6, "s": 1e9}


def names_in(texts: str | Iterable[str]) -> tuple[str, ...]:
    """Returns the names of one or several texts, separated by commas."""
    parts = texts.split(",") if isinstance(texts, str) else [name for text in texts for name in text.split(",")]
    return tuple(name.strip() for name in parts if name.strip())


def share_in(option: str) -> Callable[[str], float]:
    """Returns the function that reads a share, "95%" or "0.95", of this option; it raises a UsageError."""

    def share(text: str) -> float:
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
        value = float(found[1]) / (100 if found[2] else 1) if found else 2.0
        if value > 1:
            raise UsageError(
                f"{option}: {text!r:.80} is not a share between 0% and 100%", hint="for example 95% or 0.95"
            )
        return value

    return share


def growth_in(option: str) -> Callable[[str], float]:
    """Returns the function that reads how much more something may be, "5%", of this option; it raises a UsageError."""
    return _number_in(option, "%", 100.0, 0.0, "5%, which is a twentieth more")


def factor_in(option: str) -> Callable[[str], float]:
    """Returns the function that reads by which factor it may grow, "2x", of this option; it raises a UsageError."""
    return _number_in(option, "x", 1.0, 1.0, "2x, which is twice as much")


def _number_in(option: str, unit: str, parts: float, least: float, example: str) -> Callable[[str], float]:
    def number(text: str) -> float:
        found = re.fullmatch(rf"\s*([0-9]{{1,9}}(?:\.[0-9]{{1,9}})?)\s*{unit}\s*", text)
        if not found or float(found[1]) / parts < least:
            raise UsageError(f"{option}: {text!r:.80} is no growth", hint=f"for example {example}")
        return float(found[1]) / parts

    return number


def bytes_in(option: str) -> Callable[[str], int]:
    """Returns the function that reads a size in bytes, "256KiB", of this option; it raises a UsageError."""

    def size(text: str) -> int:
        found = re.fullmatch(rf"\s*([0-9]{{1,18}})\s*({'|'.join(UNITS)})\s*", text)
        if not found:
            raise UsageError(f"{option}: {text!r:.80} is not a size", hint="for example 20MB, 256KiB, 8GiB or 65536")
        return int(found[1]) * UNITS[found[2]]

    return size


def nanoseconds_in(option: str) -> Callable[[str], int]:
    """Returns the function that reads a time, "40ms", of this option; it raises a UsageError."""

    def time(text: str) -> int:
        found = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(us|ms|s)\s*", text)
        if not found or float(found[1]) == 0:
            raise UsageError(f"{option}: {text!r:.80} is not a time", hint="for example 40ms, 500us or 0.2s")
        return round(float(found[1]) * _NS[found[2]])

    return time


def seconds_in(option: str) -> Callable[[str], float]:
    """Returns the function that reads seconds of a text, "30m", of this option; it raises a UsageError."""

    def time(text: str) -> float:
        found = re.fullmatch(r"\s*([0-9]{1,7}(?:\.[0-9]{1,6})?)\s*([smh])\s*", text)
        if not found or float(found[1]) == 0:
            raise UsageError(f"{option}: {text!r:.80} is not a time", hint="for example 30m, 6h or 90s")
        return float(found[1]) * _SECONDS[found[2]]

    return time


def assignments_in(
    option: str, form: str, example: str, *, splits_last: bool = False
) -> Callable[[Iterable[str]], list[tuple[str, str]]]:
    """Returns the function that reads texts such as NAME=VALUE, of this option; it raises a UsageError.

    With `splits_last` the name may hold equal signs, else the value.
    """

    def pairs(texts: Iterable[str]) -> list[tuple[str, str]]:
        found = []
        for text in texts:
            name, equals, value = text.rpartition("=") if splits_last else text.partition("=")
            if not equals or not name or not value:
                raise UsageError(f"{option} {text!r:.80} is not {form}", hint=f"for example {example}")
            found.append((name, value))
        return found

    return pairs


def library_paths(paths: Sequence[str]) -> tuple[str, ...]:
    """Returns the absolute paths of libraries with operators.

    Raises:
        MissingInputError: one is not there.
    """
    for path in paths:
        if not Path(path).is_file():
            raise MissingInputError("no such library of operators", where=path)
    return tuple(str(Path(path).absolute()) for path in paths)
