# SPDX-License-Identifier: Apache-2.0
"""Symbols solved from the shapes of a call's inputs: each in its range, and what follows from them as it follows."""

import pytest

from nndeploy.errors import InputError
from nndeploy.values.size import Quotient, Size, Symbol, symbol
from nndeploy.values.solved_symbol import SolvedSymbol, solved_from_json
from nndeploy.values.solving import check_shapes, solved_symbols

H, W = symbol("h", 1, 9), symbol("w", 0, 19)
HALF = (H + 1) // 2


def names(found: dict) -> list[str]:
    """Returns the texts of the atoms that were solved."""
    return [str(atom) for atom in found]


def test_a_symbol_is_solved_from_the_first_axis_that_gives_it_alone() -> None:
    found = solved_symbols([(3, H * W, 32 + 32 * W), (H, W)])
    assert found == {
        Symbol("w", 0, 19): SolvedSymbol(0, 2, 32, 32, 0, 19),
        Symbol("h", 1, 9): SolvedSymbol(1, 0, 0, 1, 1, 9),
    }


def test_a_quotient_is_solved_where_its_parts_are_not() -> None:
    assert isinstance(HALF, Size)
    (atom,) = solved_symbols([(HALF, 2)])
    assert atom == Quotient(H + 1, 2)
    assert solved_symbols([(HALF,)])[atom] == SolvedSymbol(0, 0, 0, 1, 1, 5)


def test_a_quotient_whose_parts_are_known_follows_from_them() -> None:
    assert names(solved_symbols([(HALF,), (H,)])) == ["{h}"]
    assert names(solved_symbols([((H + W) // 2,), (H,)])) == ["({h} + {w})//(2)", "{h}"]


def test_what_is_no_multiple_of_one_atom_is_not_solved() -> None:
    assert solved_symbols([(H + W, H * W, 9 - H, 4)]) == {}


def test_a_size_out_of_range_or_between_steps_is_one_clear_line() -> None:
    one = SolvedSymbol(number=1, axis=0, offset=32, factor=32, low=0, high=19)
    assert one.value(["x", "z"], [(), (96,)]) == 2
    for size in (0, 33, 672):
        with pytest.raises(InputError) as caught:
            one.value(["x", "z"], [(), (size,)])
        assert str(caught.value) == f"input 'z': axis 0 has size {size}, kernels are for 32..640 in steps of 32"


def test_inputs_that_do_not_follow_from_the_symbols_are_one_clear_line() -> None:
    check_shapes(["x", "z"], [(1, 2), ()], [(1, 2), ()])
    with pytest.raises(InputError) as caught:
        check_shapes(["x", "z"], [(1, 2), (4,)], [(1, 2), (5,)])
    assert str(caught.value) == "input 'z': expected (5,), got (4,)"


GOOD = {"number": 0, "axis": 1, "offset": -1, "factor": 2, "low": 1, "high": 5}


def test_a_symbol_of_plain_data_is_read() -> None:
    assert solved_from_json([GOOD], [2]) == (SolvedSymbol(0, 1, -1, 2, 1, 5),)


@pytest.mark.parametrize("change", [
    {"number": 1}, {"number": -1}, {"axis": 2}, {"axis": -1}, {"factor": 0}, {"low": 6}, {"high": True}, {"low": "1"}
])  # fmt: skip
def test_a_malformed_symbol_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"a symbol|not a number"):
        solved_from_json([{**GOOD, **change}], [2])
