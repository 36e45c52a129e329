# SPDX-License-Identifier: Apache-2.0
"""The part of YAML that PaddlePaddle writes beside a model: tables and lists by indentation, of texts and numbers.

No anchors, tags, block texts or lists and tables in brackets; what is none of that part is refused with its line. Files
may have been written by anybody.
"""

import re
from typing import Any

from nndeploy.errors import DataError

MOST_LINES = 1 << 18
DEEPEST = 32
_KEY = re.compile(r"([A-Za-z_][\w.-]*):(?: (.*))?")
_WHOLE = re.compile(r"[-+]?(0|[1-9]\d{0,17})")
_FLOAT = re.compile(r"[-+]?(\d{1,40}\.\d{0,40}|\.\d{1,40})([eE][-+]\d{1,3})?")
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_BREAK = re.compile("[\r\x85\u2028\u2029]")
"""What else ends a line in YAML."""
_WORDS = {"": None, "null": None, "~": None, "true": True, "false": False}
_ESCAPED = {"0": "\0", "t": "\t", "n": "\n", "r": "\r", "e": "\x1b", "_": "\xa0", "N": "\x85", "L": "\u2028",
            "P": "\u2029", '"': '"', "\\": "\\", "/": "/", "a": "\a", "b": "\b", "v": "\v", "f": "\f", " ": " ",
            }  # fmt: skip

Line = tuple[int, int, str]
"""Number in the file, spaces in front, what stands behind these."""


def section_of_yaml(data: bytes, name: str) -> Any:
    """Returns what stands below a name without a space in front, None where that does not occur; the rest is not read.

    Raises:
        DataError: it is no UTF-8, or not of the part of YAML that is read here.
    """
    try:
        texts = data.decode("utf-8").split("\n")
    except UnicodeDecodeError as err:
        raise DataError("is no UTF-8") from err
    if len(texts) > MOST_LINES:
        raise DataError(f"has {len(texts)} lines, more than {MOST_LINES}")
    begin = next((i for i, text in enumerate(texts) if text.rstrip(" \r") == f"{name}:"), None)
    if begin is None:
        return None
    lines: list[Line] = []
    for number, text in enumerate(texts[begin + 1 :], begin + 2):
        bare = text.rstrip("\r").rstrip(" ")
        words = bare.lstrip(" ")
        if not words or words.startswith("#"):
            continue
        if words == bare and not words.startswith("- "):
            break
        if _BREAK.search(words):
            raise _misfit(number, words)
        lines.append((number, len(bare) - len(words), words))
    return _value(lines[::-1], 0) if lines else None


def _value(left: list[Line], depth: int) -> Any:
    """Takes one table, list or text from the end of `left`, whose lines are in reverse."""
    number, indent, text = left[-1]
    if depth > DEEPEST:
        raise DataError(f"line {number}: lies more than {DEEPEST} deep")
    if text.startswith("- ") or text == "-":
        return _list(left, indent, depth)
    if _KEY.fullmatch(text):
        return _table(left, indent, depth)
    left.pop()
    return _scalar(text, number)


def _list(left: list[Line], indent: int, depth: int) -> list[Any]:
    found = []
    while left and left[-1][1] == indent and left[-1][2].startswith("-"):
        number, _, text = left.pop()
        rest = text[1:].lstrip(" ")
        if rest:
            left.append((number, indent + len(text) - len(rest), rest))
            found.append(_value(left, depth + 1))
        else:
            found.append(_value(left, depth + 1) if left and left[-1][1] > indent else None)
    _check_end(left, indent)
    return found


def _table(left: list[Line], indent: int, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while left and left[-1][1] == indent and (match := _KEY.fullmatch(left[-1][2])):
        number, _, _ = left.pop()
        if match[2]:
            found[match[1]] = _scalar(match[2], number)
        elif left and (left[-1][1] > indent or (left[-1][1] == indent and left[-1][2].startswith("- "))):
            found[match[1]] = _value(left, depth + 1)  # a list may begin below its name
        else:
            found[match[1]] = None
    _check_end(left, indent)
    return found


def _check_end(left: list[Line], indent: int) -> None:
    if left and left[-1][1] > indent:
        raise _misfit(left[-1][0], left[-1][2])


def _misfit(number: int, text: str) -> DataError:
    return DataError(f"line {number}: is no such YAML as is read here: {text!r:.60}")


def _scalar(text: str, number: int) -> Any:
    if text[0] == "'" and len(text) > 1 and text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if text[0] == '"' and len(text) > 1 and text[-1] == '"':
        return _ESCAPE.sub(lambda found: _unescaped(found[1], number), text[1:-1])
    if text[0] in "\"'&*!|>{[%@`":
        raise _misfit(number, text)
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _unescaped(code: str, number: int) -> str:
    if code[0] in "xuU" and len(code) > 1:
        point = int(code[1:], 16)
        if point < 0x110000:
            return chr(point)
    elif code in _ESCAPED:
        return _ESCAPED[code]
    raise DataError(f"line {number}: has an unknown escape: {code!r}")
