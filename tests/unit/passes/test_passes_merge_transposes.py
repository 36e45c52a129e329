# SPDX-License-Identifier: Apache-2.0
"""Two transpositions become one, or none."""

from passes_harness import graph, rewritten

NAME = "merge-transposes"


def test_unknown_rank_stays() -> None:
    model = graph("(float[2,3] x) => (float[2,3] y) { a = Transpose(x) y = Transpose<perm = [0, 1]>(a) }")
    model.graph.inputs[0].shape = None
    assert rewritten(NAME, model) == 0
