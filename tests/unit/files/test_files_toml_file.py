# SPDX-License-Identifier: Apache-2.0
"""A TOML file becomes a table, or one line that names it."""

import pytest

from nndeploy.errors import DataError, MissingInputError
from nndeploy.files.toml_file import MAX_DEPTH, MAX_FILE_BYTES, toml_from_bytes, toml_from_file


def test_a_file_becomes_a_table(tmp_path) -> None:
    (tmp_path / "a.toml").write_text('[box]\nname = "ü"\n', encoding="utf-8")
    assert toml_from_file(tmp_path / "a.toml", "target file") == {"box": {"name": "ü"}}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a = [", "a.toml: is not TOML: "),
        (b"a = '\xff'", "a.toml: is not TOML: 'utf-8' codec can't decode"),
        (b"a = " + b"[" * 100_000, "a.toml: is not TOML: maximum recursion depth exceeded"),
        (b"#" * (MAX_FILE_BYTES + 1), "a.toml: has more than 1048576 bytes"),
        (b"a = " + b"9" * 5000, "a.toml: is not TOML: Exceeds the limit"),
        (b"a = [{ b = 0x" + b"f" * 20_000 + b" }]", "a.toml: holds an integer of more than 64 bits"),
        (b"a = -0x8000000000000001", "a.toml: is not TOML: "),
        (b"a = -9223372036854775809", "a.toml: holds an integer of more than 64 bits"),
        (b"[" + b"a." * 500_000 + b"b]", "a.toml: is nested deeper than 32"),
        (b"x = { 'a' . " + b'"b".c . ' * 100_000 + b"d = 1 }", "a.toml: is nested deeper than 32"),
        (b"a" * 1_000_000, "a.toml: is not TOML"),
        (b'"' * 1_000_000, "a.toml: is not TOML"),
    ],
    ids=[
        *("half", "no text", "too deep", "too large", "digits", "wide", "signed hex", "negative", "dotted", "inline"),
        *("one word", "quotes"),
    ],
)
def test_what_is_no_table_is_one_line(tmp_path, data, message) -> None:
    with pytest.raises(DataError) as caught:
        toml_from_bytes(data, "a.toml")
    assert str(caught.value).startswith(message)
    (tmp_path / "a.toml").write_bytes(data)
    with pytest.raises(DataError) as caught:
        toml_from_file(tmp_path / "a.toml", "target file")
    assert str(caught.value).startswith(f"{tmp_path}/{message}")


def test_integers_of_64_bits_and_tables_within_tables_are_read() -> None:
    nested = ".".join("a" * MAX_DEPTH)
    table = toml_from_bytes(f"x = -9223372036854775808\ny = 0x7fffffffffffffff\n{nested} = 1\n".encode(), "a.toml")
    assert (table["x"], table["y"]) == (-(2**63), 2**63 - 1)
    with pytest.raises(DataError, match="nested deeper"):
        toml_from_bytes(f"a.{nested} = 1\n".encode(), "a.toml")


def test_what_cannot_be_read_is_named(tmp_path) -> None:
    with pytest.raises(MissingInputError, match=r"a.toml: no such target file$"):
        toml_from_file(tmp_path / "a.toml", "target file")
    with pytest.raises(DataError, match=r": the target file cannot be read: Is a directory$"):
        toml_from_file(tmp_path, "target file")
