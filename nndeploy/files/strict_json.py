# SPDX-License-Identifier: Apache-2.0
"""JSON that has one text for one value: what a bundle holds as `manifest.json`, `report.json` and inside values.

Below `manifest_json`, `values` and the reader: untrusted bytes come in, plain data go out. Law:
`canonical_json(parse_json(text)) == text`, and every text of which that does not hold is refused.
"""

import json
import math
import re

from nndeploy.errors import BundleError

MAX_DEPTH = 32
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_INNERMOST = re.compile(r"\[\]|\{\}")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_NOT_BRACKETS = {code: None for code in range(128) if chr(code) not in "[]{}"}


def canonical_json(data: object) -> bytes:
    """Returns the one JSON text of plain data: ASCII, keys sorted, no spaces.

    Raises:
        BundleError: the data hold what JSON cannot say, such as NaN, bytes or keys of several types.
    """
    try:
        return _dump(data).encode("ascii")
    except (TypeError, ValueError) as err:
        raise BundleError(_unsayable(data, "") or f"this is no plain data: {err}") from err


def parse_json(data: bytes | memoryview, max_bytes: int, *, is_canonical: bool = True) -> object:
    """Returns the plain data that a canonical JSON text says, or one in any spelling.

    Raises:
        BundleError: the text is longer than `max_bytes`, is no JSON, is nested deeper than `MAX_DEPTH`, is not
            canonical where it should be, or holds a repeated key, a number that is not finite or text that is not
            Unicode.
    """
    if len(data) > max_bytes:
        raise BundleError(f"{len(data)} bytes of JSON; at most {max_bytes} are allowed")
    try:
        text = str(data, "ascii")
    except UnicodeDecodeError as err:
        raise BundleError(f"the JSON text is not ASCII at byte {err.start}") from err
    parsed = _load(text)
    if _is_deeper(text, MAX_DEPTH):
        raise BundleError(f"the JSON text is nested deeper than {MAX_DEPTH}")
    if _SURROGATE.search(text):
        _check_unicode(parsed)
    if is_canonical and _dump(parsed) != text:
        raise BundleError("the JSON text is not canonical: keys sorted, no spaces, ASCII")
    return parsed


def _dump(data: object) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _load(text: str) -> object:
    try:
        parsed: object = json.loads(
            text, object_pairs_hook=_without_repeats, parse_constant=_refuse_constant, parse_float=_finite
        )
    except RecursionError as err:
        raise BundleError(f"the JSON text is nested deeper than {MAX_DEPTH}") from err
    except ValueError as err:
        raise BundleError(f"not JSON: {err}") from err
    return parsed


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise BundleError(f"the JSON text has the key {repeated!r:.80} twice")
    return unique


def _refuse_constant(name: str) -> object:
    raise BundleError(f"the JSON text contains {name}, which JSON does not have")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise BundleError(f"the JSON text contains {text:.40}, which is not finite as a double")
    return number


def _is_deeper(text: str, limit: int) -> bool:
    if text.count("[") + text.count("{") <= limit:
        return False
    brackets = _STRING.sub("", text).translate(_NOT_BRACKETS)
    for _ in range(limit):
        brackets = _INNERMOST.sub("", brackets)
    return bool(brackets)


def _check_unicode(parsed: object) -> None:
    try:
        json.dumps(parsed, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as err:
        raise BundleError("the JSON text contains half of a surrogate pair, which is no text") from err


def _unsayable(data: object, path: str) -> str:
    """Returns where plain data hold what JSON cannot say, and what, or ""."""
    match data:
        case float() if not math.isfinite(data):
            return f"{path or 'the value'} is {data}, which JSON cannot hold"
        case None | bool() | int() | float() | str():
            return ""
        case dict():
            faults = (
                _unsayable(value, f"{path}.{key}" if path else key) if isinstance(key, str) else _unsayable(key, path)
                for key, value in data.items()
            )
        case list() | tuple():
            faults = (_unsayable(value, f"{path}[{index}]") for index, value in enumerate(data))
        case _:
            return f"{path or 'the value'} is a {type(data).__name__}, which JSON cannot hold"
    return next((fault for fault in faults if fault), "")
