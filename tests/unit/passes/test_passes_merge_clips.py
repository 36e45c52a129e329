# SPDX-License-Identifier: Apache-2.0
"""Two Relu or Clip in a row become one."""

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_harness import (
    GraphBuilder,
    assert_same_outputs,
    constants,
    examples,
    graph,
    nodes,
    random_feeds,
    rewritten,
    run_onnxruntime,
)

NAME = "merge-clips"


def test_two_relus_are_one() -> None:
    model = graph("(float[2] x) => (float[2] y) { a = Relu(x) b = Relu(a) y = Relu(b) }")
    assert rewritten(NAME, model) == 2
    assert nodes(model) == ["y = Relu(x)"]


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


def test_bound_that_is_left_out_stays_left_out() -> None:
    model = graph(
        "(float[2] x) => (float[2] y) <float hi = {6}, float lo = {1}> { a = Clip(x, , hi) y = Clip(a, , lo) }"
    )
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y = Clip(x, , y.max)"]
    model = graph("(float[2] x) => (float[2] y) <float lo = {1}> { a = Relu(x) y = Clip(a, lo) }")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y = Clip(x, y.min)"]


def test_old_opset_keeps_bounds_as_attributes() -> None:
    model = graph("(float[2] x) => (float[2] y) { a = Relu(x) y = Clip<max = 6.0>(a) }", opset=9)
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y = Clip<max=6.0, min=0.0>(x)"]


@pytest.mark.parametrize(
    "body",
    [
        "(float[2] x) => (float[2] y, float[2] a) { a = Relu(x) y = Relu(a) }",
        "(float[2] x) => (float[2] y, float[2] z) { a = Relu(x) y = Relu(a) z = Neg(a) }",
        "(float[2] x, float lo) => (float[2] y) { a = Relu(x) y = Clip(a, lo) }",
        "(float[2] x) => (float[2] y) <float lo = {2}, float hi = {1}> { a = Relu(x) y = Clip(a, lo, hi) }",
        "(int32[2] x) => (int32[2] y) { a = Relu(x) y = Relu(a) }",
    ],
)
def test_stays(body: str) -> None:
    assert rewritten(NAME, graph(body)) == 0


def test_bound_that_is_no_number_stays() -> None:
    build = GraphBuilder(17, np.float32)
    x = build.input([2])
    y = build.node("Clip", build.node("Relu", x), build.constant(np.nan))
    assert rewritten(NAME, ir.from_proto(build.model(y))) == 0


BOUND = st.none() | st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0, np.inf, -np.inf])


@examples()
@given(data=st.data(), opset=st.sampled_from([6, 9, 11, 13, 17]), dtype=st.sampled_from([np.float32, np.float64]))
def test_outputs_stay(data: st.DataObject, opset: int, dtype: type) -> None:
    dtype = np.float32 if opset < 12 else dtype
    build = GraphBuilder(opset, dtype)
    value, outputs = build.input([16]), []
    for _ in range(data.draw(st.integers(2, 5))):
        if data.draw(st.booleans()):
            value = build.node("Relu", value)
        else:
            bounds = {"min": data.draw(BOUND), "max": data.draw(BOUND)}
            if opset < 11:
                given = {name: bound for name, bound in bounds.items() if bound is not None and np.isfinite(bound)}
                if len(given) == 2 and given["min"] > given["max"]:  # ONNX Runtime refuses it there
                    del given["min"]
                value = build.node("Clip", value, **given)
            else:
                inputs = ["" if bound is None else build.constant(bound) for bound in bounds.values()]
                value = build.node("Clip", value, *inputs)
        if not data.draw(st.integers(0, 3)):
            outputs.append(value)
    proto = build.model(*dict.fromkeys([*outputs, value]))
    assert_same_outputs(NAME, proto, random_feeds(proto), tolerance=0, run=run_onnxruntime)
