# SPDX-License-Identifier: Apache-2.0
"""The fused depthwise + pointwise convolution: one launch, any sizes, activations, residual."""

from against_oracle import EPSILON, activation_text, bounds, check, evaluated, random_values, reals
from hypothesis import given
from hypothesis import strategies as st

INSIDE = ("", "Relu", "Clip", "HardSwish", "Swish")


@st.composite
def cases(draw: st.DrawFn) -> dict[str, object]:
    kernel = draw(st.sampled_from([(3, 3), (5, 5), (7, 7), (3, 1), (1, 5)]))
    dilation = draw(st.sampled_from([1, 1, 2]))
    reach = ((kernel[0] - 1) * dilation + 1, (kernel[1] - 1) * dilation + 1)
    pads = [draw(st.integers(0, reach[axis % 2] // 2)) for axis in range(4)]
    height = draw(st.integers(max(1, reach[0] - pads[0] - pads[2]), reach[0] + 6))
    width = draw(st.integers(max(1, reach[1] - pads[1] - pads[3]), reach[1] + 9))
    return {
        "dtype": draw(st.sampled_from(["float32", "float16"])), "batch": draw(st.integers(1, 3)),
        "channels": draw(st.integers(2, 40)), "outputs": draw(st.integers(1, 40)), "size": (height, width),
        "kernel": kernel, "stride": draw(st.sampled_from([[1, 1], [2, 2], [1, 2]])), "dilation": [dilation, dilation],
        "pads": pads, "inner_bias": draw(st.booleans()), "outer_bias": draw(st.booleans()),
        "inner": draw(st.sampled_from(INSIDE)), "outer": draw(st.sampled_from(INSIDE)),
        "residual": draw(st.sampled_from(["", "tile", "row"])), "tiny_tiles": draw(st.booleans()),
        "seed": draw(st.integers(0, 99)),
    }  # fmt: skip


@given(cases())
def test_fused_separable_convolution_agrees(case: dict) -> None:
    dtype, seed, channels, outputs = case["dtype"], case["seed"], case["channels"], case["outputs"]
    x = random_values(seed, dtype, case["batch"], channels, *case["size"])
    constants = {
        "wd": random_values(seed + 1, dtype, channels, 1, *case["kernel"]),
        "wp": random_values(seed + 2, dtype, outputs, channels, 1, 1),
        "bd": random_values(seed + 3, dtype, channels), "bp": random_values(seed + 4, dtype, outputs),
    }  # fmt: skip
    depthwise = f"""d = Conv <group = {channels}, pads = {case["pads"]}, strides = {case["stride"]},
        dilations = {case["dilation"]}> (x, wd{", bd" if case["inner_bias"] else ""})"""
    inner = f"{depthwise} {activation_text(case['inner'], 'd', 'a')}"
    middle = evaluated(inner, {"x": x, **constants, **bounds(dtype)}, "a")["a"]
    unsigned = {name: abs(array) for name, array in {"x": x, **constants}.items()}
    summed = evaluated(f"{depthwise} p = Conv (d, wp)", unsigned, "p")["p"]
    # what lies between is rounded to the dtype once before the matrix product
    rounded = evaluated("p = Conv (a, wp)", {"a": abs(middle), "wp": unsigned["wp"]}, "p")["p"]
    sizes = {"tile": summed.shape, "row": (case["batch"], outputs, 1, 1), "": (1,)}[case["residual"]]
    body = f"""{inner} p = Conv (a, wp{", bp" if case["outer_bias"] else ""})
        s = {"Add(p, r)" if case["residual"] else "Identity(p)"} {activation_text(case["outer"], "s", "y")}"""
    inputs, constants = {"x": x, "r": random_values(seed + 5, dtype, *sizes)}, {**constants, **bounds(dtype)}
    want = evaluated(body, {**inputs, **constants}, "y")["y"]
    check(
        body, inputs, constants, tiny_tiles=case["tiny_tiles"], num_launches=1, depth=channels + 49,
        magnitude=(2 * summed + EPSILON[dtype] / EPSILON["float32"] * rounded + 1) * (1 + abs(want)),
    )  # fmt: skip


def test_a_middle_that_somebody_else_reads_is_not_fused_away() -> None:
    constants = {"wd": reals(4, 1, 3, 3, seed=1), "wp": reals(2, 4, 1, 1, seed=2)}
    body = "d = Conv <group = 4> (x, wd) y = Conv (d, wp)"
    check(body, {"x": reals(1, 4, 5, 5)}, constants, outputs="d, y", num_launches=2, magnitude=20.0, depth=9)
