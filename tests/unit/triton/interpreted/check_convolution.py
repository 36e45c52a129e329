# SPDX-License-Identifier: Apache-2.0
"""Convolutions (general, grouped, depthwise, pointwise, 1-D, transposed) with epilogues."""

import pytest
from against_oracle import ACTIVATIONS, activation_text, bounds, check, random_values, reals
from hypothesis import given
from hypothesis import strategies as st


@st.composite
def cases(draw: st.DrawFn) -> dict[str, object]:
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    kernel = draw(st.sampled_from([(1, 1), (3, 3), (2, 3), (5, 5), (1, 3)]))
    dilation = draw(st.sampled_from([(1, 1), (2, 1)]))
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilation, strict=True)]
    return {
        "dtype": draw(st.sampled_from(["float32", "float16"])), "groups": groups,
        "channels": groups * draw(st.integers(1, 9)), "outputs": groups * draw(st.integers(1, 20)),
        "size": (reach[0] + draw(st.integers(0, 7)), reach[1] + draw(st.integers(0, 7))),
        "batch": draw(st.integers(1, 2)), "kernel": kernel, "stride": draw(st.sampled_from([(1, 1), (2, 2), (3, 1)])),
        "dilation": dilation, "pads": [draw(st.integers(0, 2)) for _ in range(4)], "bias": draw(st.booleans()),
        "activation": draw(st.sampled_from(sorted(ACTIVATIONS))), "tiny_tiles": draw(st.booleans()),
        "seed": draw(st.integers(0, 99)),
    }  # fmt: skip


@given(cases())
def test_convolution_agrees(case: dict) -> None:
    dtype, groups, seed = case["dtype"], case["groups"], case["seed"]
    x = random_values(seed, dtype, case["batch"], case["channels"], *case["size"])
    weights = random_values(seed + 1, dtype, case["outputs"], case["channels"] // groups, *case["kernel"])
    constants = {"w": weights, "b": random_values(seed + 2, dtype, case["outputs"]), **bounds(dtype)}
    body = f"""c = Conv <group = {groups}, pads = {case["pads"]}, strides = {[*case["stride"]]},
        dilations = {[*case["dilation"]]}> (x, w{", b" if case["bias"] else ""})"""
    check(
        f"{body} {activation_text(case['activation'], 'c', 'y')}", {"x": x}, constants, magnitude="c",
        depth=weights[0].size, tiny_tiles=case["tiny_tiles"], num_launches=1,
    )  # fmt: skip


@pytest.mark.parametrize(("body", "x", "constants", "num_launches"), [
    *(("y = Conv <group = 5, pads = [1, 1, 1, 1], strides = [2, 1]> (x, w)", reals(2, 5, 7, 6),
       {"w": reals(5 * multiplier, 1, 3, 3, seed=1)}, 1) for multiplier in (1, 2, 3)),
    *((f'y = Conv <auto_pad = "{mode}"> (x, w)', reals(1, 2, 6, 6), {"w": reals(3, 2, 2, 2, seed=1)}, None)
      for mode in ("SAME_UPPER", "SAME_LOWER")),
    *((f"m = Conv <group = 4> (x, d) y = Conv <pads = {pads}> (m, p)", reals(2, 4, 3, 3),
       {"d": reals(4, 1, 1, 1, seed=1), "p": reals(3, 4, 1, 1, seed=2)}, 2)
      for pads in ([0, 0, 0, 1], [0, 0, 2, 0], [1, 0, 0, 0])),
    ("y = ConvTranspose <strides = [2, 2], output_shape = [8, 8]> (x, w)", reals(1, 2, 4, 4),
     {"w": reals(2, 3, 3, 3, seed=1)}, None),
    ("""left, right = Split <axis = 1, num_outputs = 2> (x) c = Conv <pads = [1, 1, 1, 1]> (right, w) a = Relu (c)
        y = Concat <axis = 1> (left, a)""", reals(2, 6, 4, 4), {"w": reals(5, 3, 3, 3, seed=1)}, 2),
])  # fmt: skip
def test_convolutions_of_all_kinds_agree(body, x, constants, num_launches) -> None:
    check(body, {"x": x}, constants, num_launches=num_launches, magnitude=30.0, depth=9)


def test_a_convolution_over_time_is_one_over_an_image_of_one_row() -> None:
    body = "c = Conv <pads = [2, 2], strides = [2]> (x, w) s = Add(c, r) y = Relu(s)"
    inputs = {"x": reals(2, 4, 17), "r": reals(2, 6, 9, seed=2)}
    check(body, inputs, {"w": reals(6, 4, 5, seed=1)}, num_launches=1, magnitude=40.0, depth=20)


@st.composite
def transposed_cases(draw: st.DrawFn) -> dict[str, object]:
    groups, stride = draw(st.sampled_from([1, 2])), draw(st.sampled_from([(1, 1), (2, 2), (3, 2)]))
    kernel = draw(st.sampled_from([(2, 2), (3, 3), (4, 3)]))
    return {
        "dtype": draw(st.sampled_from(["float32", "float16"])), "groups": groups,
        "channels": groups * draw(st.integers(1, 5)), "outputs": groups * draw(st.integers(1, 6)),
        "size": (draw(st.integers(2, 5)), draw(st.integers(2, 6))), "kernel": kernel, "stride": [*stride],
        "dilation": draw(st.sampled_from([[1, 1], [1, 2]])), "pads": [draw(st.integers(0, 1)) for _ in range(4)],
        "output_padding": [draw(st.integers(0, step - 1)) for step in stride], "bias": draw(st.booleans()),
        "seed": draw(st.integers(0, 99)),
    }  # fmt: skip


@given(transposed_cases())
def test_transposed_convolution_agrees(case: dict) -> None:
    dtype, groups, seed = case["dtype"], case["groups"], case["seed"]
    x = random_values(seed, dtype, 2, case["channels"], *case["size"])
    weights = random_values(seed + 1, dtype, case["channels"], case["outputs"] // groups, *case["kernel"])
    body = f"""y = ConvTranspose <group = {groups}, pads = {case["pads"]}, strides = {case["stride"]},
        dilations = {case["dilation"]}, output_padding = {case["output_padding"]}>
        (x, w{", b" if case["bias"] else ""})"""
    constants = {"w": weights, "b": random_values(seed + 2, dtype, case["outputs"])}
    check(body, {"x": x}, constants, magnitude="y", depth=case["channels"] * weights[0, 0].size)
