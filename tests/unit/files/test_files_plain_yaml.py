# SPDX-License-Identifier: Apache-2.0
"""The part of YAML that is read is read as PyYAML, which writes such files, reads it; the rest is one line."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.errors import DataError
from nndeploy.files.plain_yaml import section_of_yaml

SAID = b"""\
Hpi:
  shapes: &id001
    x:
    - - 1
  others: *id001
PostProcess:
  # as PaddleOCR writes it
  name: CTCLabelDecode
  thresh: 0.3
  nothing:
  character_dict:
  - \xe3\x80\x80
  - '!'
  - ''''
  - "\\xA5"
  - "\\\\"
  - a
  - '0'
PreProcess:
  transform_ops:
  - Decode:
      first: false
  - - 1
    - -2.5
"""
texts = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=4)
scalars = texts | st.booleans() | st.none() | st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=4)
        | st.dictionaries(st.from_regex(r"[a-z]{1,6}_[a-z]", fullmatch=True), inner, min_size=1, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("name", ["PreProcess", "PostProcess"])
def test_a_section_is_what_pyyaml_reads(name) -> None:
    assert section_of_yaml(SAID, name) == yaml.safe_load(SAID)[name]
    assert section_of_yaml(SAID, "Global") is None


@given(values, st.booleans())
def test_what_pyyaml_writes_is_read_or_refused_but_never_misread(value, unicode) -> None:
    written = yaml.safe_dump({"A": {"k": value}, "B": 1}, allow_unicode=unicode, width=10**6)
    try:
        found = section_of_yaml(written.encode(), "A")
    except DataError:
        return
    assert found == yaml.safe_load(written)["A"]


@pytest.mark.parametrize("text", [
    "a: *b", "a: &b 1", "a: {b: 1}", "a: [1]", "a: |\n    b", "a: !!python/name:os.system", 'a: "\\q"', "a: 'b",
    "a: 'b\u2028'", "a: 1\n   b: 2", "a:\n  - 1\n   - 2",
])  # fmt: skip
def test_what_is_not_read_is_refused_with_its_line(text) -> None:
    with pytest.raises(DataError, match=r"line \d+: "):
        section_of_yaml(f"A:\n  {text}\n".encode(), "A")


def test_a_file_that_is_no_text_or_lies_deep_is_refused() -> None:
    with pytest.raises(DataError, match="no UTF-8"):
        section_of_yaml(b"A:\n  a: \xff\n", "A")
    with pytest.raises(DataError, match="deep"):
        section_of_yaml(b"A:\n  " + b"- " * 99 + b"1\n", "A")
