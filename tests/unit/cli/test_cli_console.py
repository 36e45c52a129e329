# SPDX-License-Identifier: Apache-2.0
"""What people see: nothing from a model drives the terminal, and values fit into a line."""

import json

import ml_dtypes
import numpy as np
import pytest

from nndeploy.cli.answer import forget
from nndeploy.cli.console import print_json, print_line, print_table, warn
from nndeploy.cli.main import _answer
from nndeploy.cli.views.run_view import describe


def test_tables_escape_what_is_in_them(capsys) -> None:
    print_table(
        "the\x1b[31m title", ("name", "size"), [("[red]a\x1b[2J", "1"), ("no\nline", ("2\n2", "3"))], right=("size",)
    )
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "[red]a\\x1b[2J" in out
    assert "the\\x1b[31m title" in out
    assert [line.strip() for line in out.splitlines()][3:] == ["no line         2 2", "3", ""]
    assert all(line == line.rstrip() for line in out.splitlines())


def test_lines_and_warnings_escape_what_is_in_them(capsys) -> None:
    print_line("  a\x1b[31m\nb")
    warn("a\x1b[31m\nb")
    captured = capsys.readouterr()
    assert captured.out == "  a\\x1b[31m\\nb\n"
    assert captured.err == "nndeploy: warning: a\\x1b[31m b\n"


def test_an_answer_is_printed_as_json_when_the_command_has_ended(capsys) -> None:
    print_json({"a": "ü\x1b"})
    assert capsys.readouterr().out == ""
    _answer(["probe", "--json"], 0, None)
    out = capsys.readouterr().out
    assert json.loads(out) == {"schema": "nndeploy.probe.1", "ok": True, "a": "ü\x1b"}
    assert out.isascii()
    print_json({"a": float("nan")})
    with pytest.raises(ValueError, match="not JSON compliant"):
        _answer(["probe", "--json"], 0, None)
    forget()


@pytest.mark.parametrize(("value", "text"), [
    (None, "none"), (np.array([[1.5, 2]], np.float32), "float32[1,2] [[1.5, 2. ]]"), (np.array(3), "int64[] 3"),
    (np.arange(20), "int64[20] min 0, max 19, mean 9.5"),
    (np.ones(20, ml_dtypes.bfloat16), "bfloat16[20] min 1, max 1, mean 1"),
    (np.array(["a", "b"], object), "string[2] ['a', 'b']"), (np.array(["a"] * 20, object), "string[20]"),
    (np.zeros((0, 4), np.float32), "float32[0,4] []"), ([np.ones(1), np.ones(2)], "list of 2, first: float64[1] [1.]"),
    ([], "list of 0"), ({1: 0.5}, "map of 1, first: float64[] 0.5"),
])  # fmt: skip
def test_values_are_told_in_a_line(value, text) -> None:
    assert describe(value) == text
