# SPDX-License-Identifier: Apache-2.0
"""Two Relu or Clip in a row become one."""

import numpy as np
import onnx_ir as ir
from passes_harness import GraphBuilder, constants, graph, nodes, rewritten

NAME = "merge-clips"


def test_relu_goes_into_a_clip_after_it() -> None:
    model = graph("(float[2] x) => (float[2] y) <float lo = {-1}, float hi = {6}> { a = Relu(x) y = Clip(a, lo, hi) }")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y = Clip(x, y.min, y.max)"]
    assert (constants(model)["y.min"], constants(model)["y.max"]) == (0, 6)


def test_relu_goes_into_a_clip_before_it() -> None:
    model = graph("(float[2] x) => (float[2] y) <float lo = {-1}, float hi = {6}> { a = Clip(x, lo, hi) y = Relu(a) }")
    assert rewritten(NAME, model) == 1
    assert (constants(model)["y.min"], constants(model)["y.max"]) == (0, 6)


def test_clips_that_do_not_overlap_give_one_number() -> None:
    model = graph(
        """(float[2] x) => (float[2] y) <float a = {1}, float b = {2}, float c = {3}, float d = {4}>
        { e = Clip(x, a, b) y = Clip(e, c, d) }"""
    )
    assert rewritten(NAME, model) == 1
    assert (constants(model)["y.min"], constants(model)["y.max"]) == (3, 3)


def test_bound_that_is_no_number_stays() -> None:
    build = GraphBuilder(17, np.float32)
    x = build.input([2])
    y = build.node("Clip", build.node("Relu", x), build.constant(np.nan))
    assert rewritten(NAME, ir.from_proto(build.model(y))) == 0
