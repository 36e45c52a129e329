# SPDX-License-Identifier: Apache-2.0
"""JSON lines from anybody, and the lines that go out."""

import io
import json
import math

import numpy as np
import pytest

from nndeploy.errors import InputError, NotTakenError
from nndeploy.stream.formats import json_lines
from nndeploy.stream.formats.json_lines import line_from_outcome, read_lines, values_from_line
from nndeploy.stream.items import Outcome
from nndeploy.values.types import OptionalType, SequenceType, TensorType

TYPES = {
    "x": TensorType("float32", (None, 2)), "n": TensorType("int64", ()), "t": TensorType("string", (None,)),
    "s": SequenceType(TensorType("float32", (None,))), "o": OptionalType(TensorType("float32", ())),
}  # fmt: skip


def values(line: str | bytes, *, allow_nan=False):
    return values_from_line(line if isinstance(line, bytes) else line.encode(), TYPES, allow_nan=allow_nan)


def test_a_line_is_a_set_of_named_values() -> None:
    found = values('{"x": [[1, 2.5]], "n": 3, "t": ["a"], "s": [[1], []], "o": null}')
    assert found["x"].dtype == np.float32
    assert found["x"].tolist() == [[1, 2.5]]
    assert found["n"].shape == ()
    assert found["t"].tolist() == ["a"]
    assert [item.shape for item in found["s"]] == [(1,), (0,)]
    assert found["o"] is None


@pytest.mark.parametrize(("line", "message"), [
    ('{"X": 1, "nn": 2}', "no input is named 'X'"), ('{"n": null}', "input 'n' must be int64, got null"),
    ('{"n": 1, "n": 2}', "lists something twice"), ("[1]", "is no JSON object but a list"),
    ("hello", "is no JSON: Expecting value"),
    ('{"x": [[NaN, 1]]}', r'NaN is no JSON \(hint: write "NaN", or allow it with --nan pass\)'),
    ('{"x": [[-Infinity, 1]]}', "-Infinity is no JSON"), (b'{"t": ["\xff"]}', "is not UTF-8: byte 8 is 0xff"),
    ('{"x": ' + "[" * 100_000, "nested too deeply"), ('{"n": ' + "1" * 5000 + "}", "is no JSON"),
    ('{"x": [[1e39, 1]]}', "input 'x' must be float32"), ('{"x": [[1e400, 1]]}', "1e400"),
    ('{"x": [[' + "9" * 400 + ".0, 1]]}", "99999"), ('{"x": [[' + "9" * 400 + ", 1]]}", "input 'x' holds a number"),
    ('{"n": 1e400}', "1e400"),
])  # fmt: skip
def test_other_lines_are_refused(line, message) -> None:
    with pytest.raises(InputError, match=message):
        values(line)


@pytest.mark.parametrize("text", ["1e300", "1e-400", "1e038", "0e999", "0." + "0" * 400 + "1", "1" * 300 + "e-299"])
def test_numbers_that_only_look_too_large_are_read(text) -> None:
    line = f'{{"d": {text}}}'.encode()
    found = values_from_line(line, {"d": TensorType("float64", ())}, allow_nan=False)
    assert found["d"].tolist() == float(text)


def test_bare_nan_can_be_allowed() -> None:
    assert math.isnan(values('{"x": [[NaN, 1]]}', allow_nan=True)["x"][0, 0])
    assert math.isnan(values('{"x": [["NaN", 1]]}')["x"][0, 0])


def test_lines_are_counted_and_blank_ones_skipped() -> None:
    data = b'\xef\xbb\xbf{"a": 1}\r\n\n   \n{"b": 2}\n{"c": 3}'
    assert list(read_lines(io.BytesIO(data))) == [(1, b'{"a": 1}'), (4, b'{"b": 2}'), (5, b'{"c": 3}')]
    assert list(read_lines(io.BytesIO(b""))) == []


def test_a_line_that_is_too_long_is_one_error_and_the_next_is_read(monkeypatch) -> None:
    monkeypatch.setattr(json_lines, "MAX_LINE_BYTES", 10)
    lines = list(read_lines(io.BytesIO(b"a" * 3_000_000 + b"\n" + b"b" * 10 + b"\n" + b"c" * 11)))
    assert lines == [(1, None), (2, b"b" * 10), (3, None)]
    with pytest.raises(InputError, match="longer than 10 bytes"):
        values_from_line(None, TYPES, allow_nan=False)


def test_an_outcome_is_one_line() -> None:
    outputs = {"y": np.array([[1.5, math.nan, -math.inf]], np.float32), "z": [np.array(["a\n"], object)], "o": None}
    line = line_from_outcome(Outcome(3, "a\nb.png", "b", outputs, non_finite=("x",)), ("cat", 0.5))
    assert "\n" not in line
    assert json.loads(line) == {
        "index": 3, "origin": "a\nb.png", "non_finite": ["x"],
        "outputs": {"y": [[1.5, "NaN", "-Infinity"]], "z": [["a\n"]], "o": None}, "label": "cat", "probability": 0.5,
    }  # fmt: skip


def test_an_outcome_names_its_source_and_a_record_that_nobody_takes_its_level() -> None:
    assert json.loads(line_from_outcome(Outcome(1, "o", "o", {"y": 2}, source="camera"))) == {
        "index": 1, "origin": "o", "source": "camera", "outputs": {"y": 2},
    }  # fmt: skip
    untaken = Outcome(2, "o", "o", None, NotTakenError("none takes it"), stage="level 2")
    assert json.loads(line_from_outcome(untaken)) == {"index": 2, "origin": "o", "not_taken": "level 2"}


def test_an_error_is_one_line() -> None:
    line = line_from_outcome(Outcome(0, "a\udcff", "a", None, InputError("bad", where="a")))
    assert json.loads(line) == {"index": 0, "origin": "a\udcff", "error": {"code": "bad-input", "message": "a: bad"}}
    line.encode("ascii")
