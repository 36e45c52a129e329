# SPDX-License-Identifier: Apache-2.0
"""JSON lines: one JSON object a line, tensor name -> numbers in nested lists; and the outcomes as such lines.

Lines may have been written by anybody: a line has a largest length and is read in constant memory beyond it, must be
UTF-8, an object with each name once, and exact values of the declared types (see `nndeploy.runtime.plain_data`).

Law: every line that is not blank is one item, whatever is in it.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from nndeploy.errors import InputError, did_you_mean
from nndeploy.runtime.plain_data import plain_from_value, value_from_plain
from nndeploy.stream.items import Outcome
from nndeploy.values.types import Value, ValueType

MAX_LINE_BYTES = 64 << 20
BOM = b"\xef\xbb\xbf"
MAYBE_TOO_LARGE = re.compile(rb"[eE]\+?[0-9]{3}|[0-9]{300}")
"""What a number has that overflows a float of 64 bits."""


def read_lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Yields (line number from 1, line) for each line that is not blank; None for one that is too long."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            _skip_rest(file)
            yield number, None
            continue
        if number == 1:
            line = line.removeprefix(BOM)
        if stripped := line.strip():
            yield number, stripped


def _skip_rest(file: BinaryIO) -> None:
    while (part := file.readline(1 << 20)) and not part.endswith(b"\n"):
        pass


def values_from_line(line: bytes | None, types: Mapping[str, ValueType], *, allow_nan: bool) -> dict[str, Value]:
    """Returns the values that a line holds; `allow_nan` lets the bare tokens NaN and Infinity stand for numbers.

    Raises:
        InputError: the line is too long, no JSON object, or a value is not exactly of its type.
    """
    values: dict[str, Value] = {}
    for name, data in object_from_line(line, allow_nan=allow_nan).items():
        if name not in types:
            raise InputError(f"no input is named {name!r}", hint=did_you_mean(name, types))
        values[name] = value_from_plain(data, types[name], f"input {name!r}")
    return values


def object_from_line(line: bytes | None, *, allow_nan: bool) -> dict[str, Any]:
    """Returns the JSON object that a line holds.

    Raises:
        InputError: the line is too long or no JSON object, or lists something twice.
    """
    if line is None:
        raise InputError(f"the line is longer than {MAX_LINE_BYTES} bytes")
    return object_from_json(line, "the line", allow_nan=allow_nan)


def object_from_json(text: bytes, label: str, *, allow_nan: bool) -> dict[str, Any]:
    """Returns the JSON object that a text holds; messages call the text `label`.

    Raises:
        InputError: it is no JSON object, lists something twice, or holds a number that no float can.
    """
    data = data_from_json(text, label, allow_nan=allow_nan)
    if not isinstance(data, dict):
        raise InputError(f"{label} is no JSON object but a {type(data).__name__}", hint='for example {"x": [[1, 2]]}')
    return data


def data_from_json(text: bytes, label: str, *, allow_nan: bool) -> Any:
    """Returns what a JSON text holds: the one reader of values that users write; raises as `object_from_json` does."""

    def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise InputError(f"{label} lists something twice")
        return found

    try:
        return json.loads(
            text.decode("utf-8"),
            object_pairs_hook=each_once,
            parse_constant=None if allow_nan else _refuse_constant,
            parse_float=_finite if MAYBE_TOO_LARGE.search(text) else None,  # a function of ours is slow
        )
    except UnicodeDecodeError as err:
        raise InputError(f"{label} is not UTF-8: byte {err.start} is 0x{text[err.start]:02x}") from err
    except RecursionError as err:
        raise InputError(f"{label} is nested too deeply") from err
    except ValueError as err:
        raise InputError(f"{label} is no JSON: {err}") from err


def _refuse_constant(token: str) -> float:
    raise InputError(f"{token} is no JSON", hint=f'write "{token}", or allow it with --nan pass')


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise InputError(f"{text:.40} is larger than any float", hint='write "Infinity" for an infinity')
    return number


def line_from_outcome(outcome: Outcome, label: tuple[str, float] | None = None) -> str:
    """Returns an outcome as one line of JSON, without its end of line."""
    record = head_of(outcome)
    if outcome.non_finite:
        record["non_finite"] = list(outcome.non_finite)
    if outcome.error is None:
        record["outputs"] = {name: plain_from_value(value) for name, value in (outcome.outputs or {}).items()}
    if label is not None:
        record["label"], record["probability"] = label[0], plain_from_value(label[1])
    return json.dumps(record, allow_nan=False)


def head_of(outcome: Outcome) -> dict[str, Any]:
    """Returns which item an outcome is of as plain data, and why there are no outputs, where there are none."""
    head: dict[str, Any] = {"index": outcome.index, "origin": outcome.origin}
    if outcome.source:
        head["source"] = outcome.source
    if not outcome.is_taken:
        head["not_taken"] = outcome.stage
    elif outcome.error is not None:
        head["error"] = error_record(outcome)
    return head


def error_record(outcome: Outcome) -> dict[str, str]:
    """Returns the error of an outcome as plain data."""
    error = outcome.error
    if error is None:
        return {}
    return {"code": error.code, "message": str(error)} | ({"stage": outcome.stage} if outcome.stage else {})
