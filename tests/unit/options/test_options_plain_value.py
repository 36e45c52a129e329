# SPDX-License-Identifier: Apache-2.0
"""Values of a TOML file for described fields: what a command line takes is taken, all else is one line."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.errors import DataError, NndeployError
from nndeploy.options.described import described, described_fields, options_from
from nndeploy.options.plain_value import plain_value, plain_values
from nndeploy.options.texts import bytes_in, names_in


@dataclass(frozen=True, slots=True)
class Several:
    """One field of each kind."""

    size: int | None = described(None, "A size.", section="S", from_text=bytes_in("--size"))
    count: int = described(3, "A count.", section="S", least=1, most=9)
    share: float | None = described(None, "A share.", section="S", least=0, is_above=True)
    free: float = described(1.0, "Any number.", section="S")
    names: tuple[str, ...] = described((), "Names.", section="S", flags=("--name",), from_texts=names_in)
    kind: str = described("red", "A kind.", section="S", choices=("red", "blue"))
    file: Path | None = described(None, "A file.", section="S", is_path=True, from_text=Path)
    title: str = described("", "A title.", section="S")
    loud: bool = described(False, "Be loud.", section="S")
    checks: bool = described(True, "Check nothing.", section="S", flags=("--no-checks",))
    both: bool = described(True, "Both ways.", section="S", flags=("--both/--no-both",))


FIELDS = described_fields(Several)


def value_of(name: str, value: object) -> Any:
    return getattr(options_from(Several, {name: plain_value(*FIELDS[name], value)}), name)


@pytest.mark.parametrize(("name", "value", "meaning"), [
    ("size", "2KiB", 2048), ("size", 4096, 4096), ("count", 9, 9), ("share", 1, 1.0), ("free", -2.5, -2.5),
    ("names", "a,b", ("a", "b")), ("names", ["a", "b"], ("a", "b")), ("kind", "blue", "blue"),
    ("file", "x.txt", Path("x.txt")), ("title", "any", "any"), ("loud", True, True), ("checks", True, False),
    ("checks", False, True), ("both", False, False),
])  # fmt: skip
def test_a_value_means_what_the_option_would(name: str, value: object, meaning: object) -> None:
    assert value_of(name, value) == meaning


@pytest.mark.parametrize(("name", "value", "message"), [
    ("size", True, "size must be a text, is True"),
    ("count", 0, "count must be a number from 1 up to 9, is 0"),
    ("count", 10, "count must be a number from 1 up to 9, is 10"),
    ("count", 1.0, "count must be a whole number, is 1.0"),
    ("count", True, "count must be a whole number, is True"),
    ("share", 0, "share must be a number above 0, is 0.0"),
    ("free", float("nan"), "free must be a number, is nan"),
    ("free", float("inf"), "free must be a number, is inf"),
    ("names", [], "name must be a text or a list of texts, is []"),
    ("names", [1], "name must be a text or a list of texts, is [1]"),
    ("names", {"a": "b"}, "name must be a text or a list of texts, is {'a': 'b'}"),
    ("kind", "bleu", "kind cannot be 'bleu' (hint: did you mean 'blue'?)"),
    ("file", "", "file must be a text, is ''"),
    ("title", 5, "title must be a text, is 5"),
    ("loud", "yes", "loud must be true or false, is 'yes'"),
    ("checks", 1, "no-checks must be true or false, is 1"),
])  # fmt: skip
def test_what_an_option_does_not_take_is_one_line(name: str, value: object, message: str) -> None:
    with pytest.raises(DataError) as caught:
        plain_value(*FIELDS[name], value)
    assert str(caught.value) == message


def test_a_table_gives_options_by_their_names() -> None:
    table = {"no-checks": True, "name": "a", "size": 5}
    assert plain_values(Several, table) == {"checks": False, "names": ["a"], "size": "5"}


@pytest.mark.parametrize(("table", "message"), [
    ({"cuont": 1}, "there is no option 'cuont' (hint: did you mean 'count'?)"),
    ({"checks": True}, "there is no option 'checks' (hint: did you mean 'no-checks'?)"),
    ({"no-checks": True, "no_checks": True}, "the option 'no_checks' is there twice"),
    ({"title": "x"}, "'title' does not stand here (hint: in the first line)"),
])  # fmt: skip
def test_a_table_with_what_is_no_option_of_it_is_one_line(table: dict[str, object], message: str) -> None:
    with pytest.raises(DataError) as caught:
        plain_values(Several, table, {"title": "in the first line"})
    assert str(caught.value) == message


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(name=st.sampled_from(sorted(FIELDS)), value=ANYTHING)
def test_any_value_is_taken_or_refused_by_an_error_of_ours(name: str, value: object) -> None:
    with contextlib.suppress(NndeployError):
        value_of(name, value)
