# SPDX-License-Identifier: Apache-2.0
"""Files of labels and characters: line n is text n, and what is no such file is one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.errors import DataError
from nndeploy.processors.text_lines import TextLines


def texts(data: bytes) -> tuple[str, ...]:
    return TextLines.from_parameter("labels.txt", lambda name: data).texts


def test_only_the_end_of_a_line_is_taken_off() -> None:
    assert texts(b"a\n b \n \nc") == ("a", " b ", " ", "c")
    assert texts(b"\xef\xbb\xbfa\r\nb\r\n") == ("a", "b")
    assert texts("ä\n中\n".encode()) == ("ä", "中")


@pytest.mark.parametrize(("data", "message"), [
    (b"", "labels.txt: is empty"),
    (b"\n", "labels.txt: is empty"),
    (b"a\n\nb\n", "labels.txt: line 2 is empty"),
    (b"a\n\xff\n", "labels.txt: is not UTF-8: byte 2 is 0xff"),
    (b"a" * 1001, "labels.txt: line 1 has 1001 characters, more than 1000"),
    (b"a\n" * ((1 << 20) + 1), "labels.txt: has 1048577 lines, more than 1048576"),
    (bytes((16 << 20) + 1), "labels.txt: has 16777217 bytes, more than 16777216"),
])  # fmt: skip
def test_other_files_are_refused(data, message) -> None:
    with pytest.raises(DataError, match=message):
        texts(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_texts_or_one_line(data) -> None:
    try:
        found = texts(data)
    except DataError:
        return
    assert found
    assert all(found)


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n\ufeff", codec="utf-8"), min_size=1, max_size=9), min_size=1)
)
def test_what_is_written_is_read(lines) -> None:
    assert texts("\n".join(lines).encode()) == tuple(lines)
