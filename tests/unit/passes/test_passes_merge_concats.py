# SPDX-License-Identifier: Apache-2.0
"""Concats that build on each other become one."""

import pytest
from passes_harness import GraphBuilder, assert_same_outputs, random_feeds

NAME = "merge-concats"


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_the_numbers_are_the_same(axis: int) -> None:
    build = GraphBuilder()
    x, y = build.input([2, 2, 2]), build.input([2, 2, 2])
    inner = build.node("Concat", y, build.node("Concat", x, y, axis=axis), axis=axis)
    proto = build.model(build.node("Concat", inner, x, build.node("Concat", x, x, axis=axis), axis=axis))
    assert assert_same_outputs(NAME, proto, random_feeds(proto), tolerance=0) > 0
