# SPDX-License-Identifier: Apache-2.0
"""LSTM in Triton's interpreter."""

import pytest
from against_oracle import check, random_values
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.errors import BuildRefusedError


def check_lstm(
    seed: int, dtype: str, direction: str, steps: int, batch: int, width: int, hidden: int, *, nodes: str = "y, yh, yc",
    inputs: str = "x, w, r, b, , h, c", extra: str = "", num_launches: int | None = None,
) -> None:  # fmt: skip
    both = 2 if direction == "bidirectional" else 1
    shapes = {
        "x": (steps, batch, width), "w": (both, 4 * hidden, width), "r": (both, 4 * hidden, hidden),
        "b": (both, 8 * hidden), "h": (both, batch, hidden), "c": (both, batch, hidden),
    }  # fmt: skip
    arrays = {
        name: random_values(seed + i, dtype, *shape) for i, (name, shape) in enumerate(shapes.items()) if name in inputs
    }
    check(
        f'{nodes} = LSTM <hidden_size = {hidden}, direction = "{direction}"{extra}> ({inputs})',
        {name: array for name, array in arrays.items() if name in "xhc"},
        {name: array for name, array in arrays.items() if name in "wrb"}, outputs=nodes.strip(", "), opset=21,
        num_launches=num_launches, magnitude=4.0, depth=max(64, 4 * (width + hidden)),
    )  # fmt: skip


@given(
    st.integers(0, 99), st.sampled_from(["float32", "float16"]),
    st.sampled_from(["bidirectional", "forward", "reverse"]), st.integers(1, 4), st.integers(1, 3), st.integers(1, 9),
    st.integers(1, 20),
)  # fmt: skip
def test_lstm_agrees(seed: int, dtype: str, direction: str, steps: int, batch: int, width: int, hidden: int) -> None:
    check_lstm(seed, dtype, direction, steps, batch, width, hidden, num_launches=2)


def test_outputs_that_nobody_wants_and_what_begins_at_zero_may_be_left_out() -> None:
    for nodes in ("y", ", yh", ", , yc"):
        check_lstm(1, "float32", "bidirectional", 3, 2, 5, 7, nodes=nodes)
    check_lstm(2, "float32", "forward", 3, 2, 5, 17, nodes="y", inputs="x, w, r")


@pytest.mark.parametrize(("extra", "hidden", "reason"), [
    (', activations = ["Tanh", "Tanh", "Tanh"]', 4, "other activations"), (", clip = 3.0", 4, "a clip"),
    (", input_forget = 1", 4, "joined"), ("", 257, "256 at most"),
])  # fmt: skip
def test_variants_and_states_that_are_too_large_are_refused_with_a_reason(extra: str, hidden: int, reason: str) -> None:
    with pytest.raises(BuildRefusedError, match=reason):
        check_lstm(3, "float32", "forward", 2, 1, 3, hidden, nodes="y", extra=extra)
