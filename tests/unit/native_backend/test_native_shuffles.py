# SPDX-License-Identifier: Apache-2.0
"""The C code of constant shuffles, evaluated here: every lane comes from where it should."""

import re

import numpy as np
import pytest
from nndeploy_native.shuffles import Lane, c_shuffle


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_each_lane_comes_from_its_place(lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    for num_sources in (1, 2, 3, 5):
        wanted: list[Lane] = [
            (int(rng.integers(num_sources)), 0, int(rng.integers(lanes))) if rng.random() < 0.9 else None
            for _ in range(lanes)
        ]
        found = _evaluated(c_shuffle(wanted), lanes)
        assert all(lane is None or found[i] == (lane[0], lane[2]) for i, lane in enumerate(wanted))


def test_a_whole_block_is_a_copy_and_padding_reads_anything() -> None:
    whole: list[Lane] = [(2, 5, 0), (2, 5, 1), (2, 5, 2), None]
    assert c_shuffle(whole) == "NND_LINE(2, 5)"
    assert c_shuffle([None] * 4) == "NND_LINE(0, 0)"


def _evaluated(code: str, lanes: int) -> list[tuple[int, int] | None]:
    """Returns (input, lane) for each lane of an expression; None where it holds anything."""
    names = {"NND_LINE": _line(lanes), "shuffle": _shuffle}
    made = eval(re.sub("__builtin_shufflevector", "shuffle", code), {"__builtins__": {}}, names)  # noqa: S307
    assert isinstance(made, list)
    return made


def _line(lanes: int) -> object:
    return lambda k, _: [(k, lane) for lane in range(lanes)]


def _shuffle(a: list[object], b: list[object], *mask: int) -> list[object]:
    return [None if place < 0 else (a + b)[place] for place in mask]
