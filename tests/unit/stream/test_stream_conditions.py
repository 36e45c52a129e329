# SPDX-License-Identifier: Apache-2.0
"""Conditions on records: what they mean, and that everything else is one line that names the column."""

import random

import numpy as np
import pytest

from nndeploy.errors import DataError, InputError, NndeployError
from nndeploy.stream.conditions.parsing import MAX_DEPTH, condition_from_text

RECORD = {
    "label": "car", "score": np.float32([0.7]), "labels": ["car", "bus"], "scores": np.array([0.1, 0.6]), "n": 3,
    "flag": True, "off": False, "empty": [], "text": "a 'b'", "my-field": 2, "rows": np.zeros((2, 2)), "nan": np.nan,
    "whole": np.int64(7), "bytes": b"x", "ragged": [[1], [2, 3]], "flags": np.array([True, False]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "holds"), [
    ("label == 'car' and score > 0.5 and (label == \"bus\" or score > .5)", True),
    ("not not flag and flag == true and off != true and (off or flag and off or flag) and (flag or absent == 1)", True),
    ("n == 3 and n >= 3 and n <= 3 and not n < 3 and not n > 3 and n == 3.0 and n > -1 and n == 3e0", True),
    ("label in ['bus', 'car'] and n in [1, 2, 3] and 'car' in labels and 'ar' in label", True),
    ("0.1 in scores and 3 in n and true in flags and whole == 7", True),
    ("labels[0] == 'car' and labels[-1] == 'bus' and scores[1] > 0.5", True),
    ("len(labels) == 2 and len(label) == 3 and len(empty) == 0 and len(score) == 1", True),
    ("max(scores) == 0.6 and min(scores) == 0.1 and sum(scores) > 0.69", True),
    ("max(score) > 0.5 and sum(empty) == 0 and max(rows) == 0", True),
    ("has(label) and not has(plate) and `my-field` == 2 and text == \"a 'b'\" and nan != 1", True),
    ("  flag\t", True),
    ("label == 'car' and score > 0.7000001", False),
    ("label != 'car' or not label == 'car' or label in [] or label not in ['bus', 'car']", False),
    ("flag and off or (off or flag) and off", False),
    ("n in [-3] or 'ar' in labels or 0.7 in n", False),
    ("has(plate) and plate == 'x'", False),
    ("nan == nan or nan > 1 or nan <= 1", False),
])  # fmt: skip
def test_a_condition_means_what_it_says(text, holds) -> None:
    assert condition_from_text(text).holds(RECORD) is holds


@pytest.mark.parametrize(("text", "message"), [
    ("", "column 1: the end stands where a value should be"),
    ("label = 'car'", "column 7: '='"),
    ("label == 3 and label == 'x'", "column 16: 'label' is a text here, and a number in column 1"),
    ("x[0] == 3 or x[0] == true", "column 14: 'x[0]' is true or false here, and a number in column 1"),
    ("flag and flag > 1", "column 10: 'flag' is a number here"),
    ("1", "column 1: this is a number, not true or false"),
    ("'a' > 1", "column 1: this is a text, not a number"),
    ("a < true", "column 5: true or false is not compared by <"),
    ("a == [1]", "column 6: a list is not compared by =="),
    ("a < b < c", "column 7: comparisons do not follow each other (hint: use and)"),
    ("foo(x) > 1", "column 1: there is no function 'foo' (hint: known: 'len'"),
    ("length(x) > 1", "column 1: there is no function 'length' (hint: did you mean 'len'?)"),
    ("len(3) == 1", "column 5: '3' stands where the name of a field should be"),
    ("has(x[0])", "column 1: has() takes the name of a field"),
    ("x[1.5] > 0", "column 3: '1.5' stands where the whole number of an element should be"),
    ("x in [1, 'a']", "column 10: a list of a number has a text in it"),
    ("x in [y]", "column 7: 'y' stands where a number, a text, true or false should be"),
    ("x in 'abc'", "column 6: a text holds no elements"),
    ("1 in ['a']", "column 1: this is a number, not a text"),
    ("[1] in x", "column 1: a list is no element of a list"),
    ("x not 3", "column 7: '3' stands where 'in' should be"),
    ("(a", "column 3: the end stands where ')' should be"),
    ("a)", "column 2: ')' stands where 'and', 'or' or the end should be"),
    ("a b", "column 3: 'b' stands where 'and', 'or' or the end should be"),
    ("a and", "column 6: the end stands where a value should be"),
    ("true and 1", "column 10: this is a number, not true or false"),
    ("not 3", "column 5: this is a number, not true or false"),
    ("len(x) == 'a'", "column 1: this is a number, not a text"),
    ("x == 'a", "column 6: ' has no other end"),
    ("a; b", "column 2: ';' means nothing here"),
    ("a.b == 1", "column 2: '.b' means nothing here"),
    ("a + 1 > 2", "column 3: '+' means nothing here"),
    ("3x == 1", "column 1: '3x' means nothing here"),
    ("x == " + "9" * 30, "column 6: 99999999999999999999 is too large a number"),
    ("x == 1e999", "column 6: 1e999 is too large a number"),
    ("(" * 100 + "a" + ")" * 100, f"column {MAX_DEPTH + 1}: more than {MAX_DEPTH} levels within each other"),
    ("not " * 100 + "a", f"more than {MAX_DEPTH} levels"),
    ("a" * 3000, "has 3000 characters, more than 2000"),
    ("__import__('os')", "column 1: there is no function '__import__'"),
])  # fmt: skip
def test_what_is_no_condition_is_one_line_with_its_column(text, message) -> None:
    with pytest.raises(DataError) as caught:
        condition_from_text(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "message"), [
    ("plate == 'x'", "the record has no field 'plate' (hint: ask has(plate) first)"),
    ("scores > 0.5", "'scores' is an array float64 (2), which > does not compare"),
    ("label > 0.5", "'label' is a text, and a number a number"),
    ("label", "'label' is a text, not true or false"),
    ("labels[5] == 'x'", "'labels' has 2 elements, and none is [5]"),
    ("n[0] == 1", "'n' is a number and has no elements"),
    ("label[0] == 'c'", "'label' is a text and has no elements"),
    ("len(n) == 1", "'n' is a number and has no length"),
    ("max(empty) > 0", "'empty' is empty and has no max (hint: ask len() first)"),
    ("max(labels) > 0", "'labels' is a list and holds no numbers"),
    ("max(ragged) > 0", "'ragged' is a list and holds no numbers"),
    ("bytes == 'x'", "'bytes' is a bytes, which == does not compare"),
    ("1 in bytes", "'bytes' is a bytes, in which nothing is looked for"),
    ("labels in labels", "'labels' is a list, which is no element of a list"),
    ("flag > off", "'flag' is true or false, which > does not compare"),
])  # fmt: skip
def test_what_a_record_cannot_be_asked_is_its_own_error(text, message) -> None:
    with pytest.raises(InputError) as caught:
        condition_from_text(text).holds(RECORD)
    assert message in str(caught.value)


def test_a_condition_says_which_fields_it_needs() -> None:
    condition = condition_from_text("has(plate) and plate == 'x' and (score > 1 or has(b) and b) and has(c)")
    assert condition.needs == {"score"}
    assert condition.implies == {"plate", "c"}
    assert condition.mentions == {"plate", "score", "b", "c"}
    assert condition_from_text("has(a) or a").needs == {"a"}
    assert condition_from_text("not has(a)").implies == frozenset()


SEEDS = [
    "label == 'car' and score > 0.5", "not (flag or n in [1, 2]) and max(scores) >= .5",
    "has(plate) and len(labels) != 0 or 'car' in labels[0]", "`my-field` == -1e3 and \"x\" not in label",
]  # fmt: skip


def test_any_change_of_a_condition_is_one_error_or_a_condition() -> None:
    dice = random.Random(3)  # noqa: S311 - no secret
    pieces = [*"()[]'\"`=!<>,-. 0a", " and ", " or ", "not ", " in ", "==", "true", "len(", "label", "\n", "é", "\0"]
    num_read = 0
    for _ in range(4000):
        text = dice.choice(SEEDS)
        for _ in range(dice.randint(1, 3)):
            at, length = dice.randrange(len(text) + 1), dice.choice((0, 0, 1, 4))
            text = text[:at] + dice.choice(pieces) * dice.choice((1, 1, 2)) + text[at + length :]
        message = ""
        try:
            condition = condition_from_text(text)
            num_read += 1
            assert condition.holds(RECORD) in (True, False)
        except NndeployError as err:
            message = str(err)
        assert "\n" not in message
        assert len(message) < 300
    assert num_read > 200, "the changes leave nothing to read"
