# SPDX-License-Identifier: Apache-2.0
"""JSON with one text for one value: what is refused, and that the rest comes back as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.errors import BundleError
from nndeploy.files.strict_json import MAX_DEPTH, canonical_json, parse_json

LIMIT = 1 << 20
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(PLAIN)
def test_plain_data_come_back_as_they_were(data: object) -> None:
    text = canonical_json(data)
    assert parse_json(text, LIMIT) == data
    assert canonical_json(parse_json(text, LIMIT)) == text


@given(st.binary(max_size=60) | st.text('[]{}":,0-e.1tnulx\\\\ud8 ', max_size=30).map(str.encode))
def test_any_bytes_are_read_or_refused_by_one_error(data: bytes) -> None:
    try:
        parsed = parse_json(data, LIMIT)
    except BundleError:
        return
    assert canonical_json(parsed) == data


@pytest.mark.parametrize(("text", "message"), [
    (b"", "not JSON"), (b'{"a":1', "not JSON"), (b"[1]]", "not JSON"), (b"pickle", "not JSON"),
    (b'{"a":1,"a":1}', "the key 'a' twice"), (b'{"b":{"a":1,"a":2}}', "the key 'a' twice"), (b"[NaN]", "contains NaN"),
    (b"[Infinity]", "contains Infinity"), (b"[-Infinity]", "contains -Infinity"),
    (b"[1e999]", "1e999, which is not finite"), (b"[" + b"9" * 5000 + b"]", "not JSON"),
    ('["\N{LATIN SMALL LETTER E WITH ACUTE}"]'.encode(), "not ASCII at byte 2"),
    (b"\xef\xbb\xbf[]", "not ASCII at byte 0"), (b'["\\ud800"]', "half of a surrogate pair"),
    (b'["\\uD800"]', "half of a surrogate pair"), (b'{"\\udfff":1}', "half of a surrogate pair"),
    (b"[1, 2]", "not canonical"), (b'{"b":1,"a":2}', "not canonical"), (b"[1.00]", "not canonical"),
    (b"[]\n", "not canonical"), (b'["\\u0041"]', "not canonical"), (b"[-0]", "not canonical"),
])  # fmt: skip
def test_refuses(text: bytes, message: str) -> None:
    with pytest.raises(BundleError, match=message):
        parse_json(text, LIMIT)


@pytest.mark.parametrize(("opening", "closing", "levels"), [
    (b"[", b"]", 1), (b'{"a":', b"}", 1), (b'[{"a":', b"}]", 2),
])  # fmt: skip
def test_depth_is_limited_exactly(opening: bytes, closing: bytes, levels: int) -> None:
    def nested(depth: int) -> bytes:
        return opening * (depth // levels - 1) + b"[" * levels + b"]" * levels + closing * (depth // levels - 1)

    assert parse_json(nested(MAX_DEPTH), LIMIT) is not None
    for depth in (MAX_DEPTH + levels, 1000, 100_000):
        with pytest.raises(BundleError, match="nested deeper than 32"):
            parse_json(nested(depth), LIMIT)


def test_many_shallow_brackets_and_brackets_in_text_are_not_deep() -> None:
    data = [[[]] for _ in range(100)] + ['[[{{"\\' * 50]
    assert parse_json(canonical_json(data), LIMIT) == data


def test_size_is_limited_before_reading() -> None:
    with pytest.raises(BundleError, match="5 bytes of JSON; at most 4"):
        parse_json(b"[1,2]", 4)


@pytest.mark.parametrize(("data", "message"), [
    ({"checks": [{"max_abs": float("nan")}]}, r"checks\[0\]\.max_abs is nan"),
    ([1.0, float("inf")], r"\[1\] is inf"),
    ({"a": {"b": b"bytes"}}, r"a\.b is a bytes"),
    ({"a": (1, {2})}, r"a\[1\] is a set"),
    ({"a": 1, 2: 3}, "no plain data"),
])  # fmt: skip
def test_says_where_data_hold_what_json_cannot(data: object, message: str) -> None:
    with pytest.raises(BundleError, match=message):
        canonical_json(data)
