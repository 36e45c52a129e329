# SPDX-License-Identifier: Apache-2.0
"""LSTM in Triton's interpreter against float64."""

import numpy as np
import pytest
from float64_reference import assert_close, onnx_shape, random_values
from gpu_on_numpy import model_of, run_on_gpu
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.errors import BuildRefusedError

DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def lstm(x, w, r, b, h, c, direction):
    """Returns Y, Y_h, Y_c as ONNX defines them, in float64."""
    x, w, r, b, h, c = (array.astype(np.float64) for array in (x, w, r, b, h, c))
    steps, batch, hidden = x.shape[0], x.shape[1], r.shape[2]
    y = np.zeros((steps, len(w), batch, hidden))
    last_h, last_c = h.copy(), c.copy()
    for d, backwards in enumerate(DIRECTIONS[direction]):
        state, cell = h[d], c[d]
        for step in reversed(range(steps)) if backwards else range(steps):
            gates = x[step] @ w[d].T + state @ r[d].T + b[d, : 4 * hidden] + b[d, 4 * hidden :]
            i, o, f, new = np.split(gates, 4, axis=1)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(new)
            state = sigmoid(o) * np.tanh(cell)
            y[step, d] = state
        last_h[d], last_c[d] = state, cell
    return y, last_h, last_c


def case(seed: int, dtype: str, direction: str, steps: int, batch: int, width: int, hidden: int) -> dict:
    directions = len(DIRECTIONS[direction])
    shapes = {
        "x": (steps, batch, width), "w": (directions, 4 * hidden, width), "r": (directions, 4 * hidden, hidden),
        "b": (directions, 8 * hidden), "h": (directions, batch, hidden), "c": (directions, batch, hidden),
    }  # fmt: skip
    return {name: random_values(seed + i, dtype, *shape) for i, (name, shape) in enumerate(shapes.items())}


def built(values: dict, dtype: str, direction: str, outputs: str = "y, yh, yc", extra: str = ""):
    directions, hidden = values["r"].shape[0], values["r"].shape[2]
    steps, batch, _ = values["x"].shape
    shapes = {"y": (steps, directions, batch, hidden), "yh": values["h"].shape, "yc": values["h"].shape}
    names = [name.strip() for name in outputs.split(",") if name.strip()]
    return model_of(
        f"""<ir_version: 10, opset_import: ["": 21]>
        g ({", ".join(f"{onnx_shape(dtype, values[n].shape)} {n}" for n in "xwrbhc")})
        => ({", ".join(f"{onnx_shape(dtype, shapes[n])} {n}" for n in names)}) {{
          {outputs} = LSTM <hidden_size = {hidden}, direction = "{direction}"{extra}> (x, w, r, b, , h, c)
        }}""",
        {name: values[name] for name in "wrb"},
    )


@given(
    st.integers(0, 99), st.sampled_from(["float32", "float16"]), st.sampled_from(sorted(DIRECTIONS)),
    st.integers(1, 4), st.integers(1, 3), st.integers(1, 9), st.integers(1, 20),
)  # fmt: skip
def test_lstm_agrees_with_float64(
    seed: int, dtype: str, direction: str, steps: int, batch: int, width: int, hidden: int
) -> None:
    values = case(seed, dtype, direction, steps, batch, width, hidden)
    got = run_on_gpu(built(values, dtype, direction), {name: values[name] for name in "xhc"}, num_launches=2)
    for name, want in zip(("y", "yh", "yc"), lstm(**values, direction=direction), strict=True):
        assert_close(got[name], want, 4.0, depth=4 * (width + hidden))


def test_outputs_that_nobody_wants_may_be_left_out() -> None:
    values = case(1, "float32", "bidirectional", 3, 2, 5, 7)
    for outputs, index in (("y", 0), (", yh", 1), (", , yc", 2)):
        got = run_on_gpu(built(values, "float32", "bidirectional", outputs), {name: values[name] for name in "xhc"})
        (result,) = got.values()
        assert_close(result, lstm(**values, direction="bidirectional")[index], 4.0, depth=64)


def test_the_state_begins_at_zero_where_none_is_given() -> None:
    values = case(2, "float32", "forward", 3, 2, 5, 17)
    values["h"], values["c"] = np.zeros_like(values["h"]), np.zeros_like(values["c"])
    model = model_of(
        """<ir_version: 10, opset_import: ["": 21]>
        g (float[3,2,5] x, float[1,68,5] w, float[1,68,17] r) => (float[3,1,2,17] y) {
          y = LSTM <hidden_size = 17> (x, w, r)
        }""",
        {name: values[name] for name in "wr"},
    )
    values["b"] = np.zeros_like(values["b"])
    assert_close(run_on_gpu(model, {"x": values["x"]})["y"], lstm(**values, direction="forward")[0], 4.0, depth=64)


@pytest.mark.parametrize(("extra", "reason"), [
    (', activations = ["Tanh", "Tanh", "Tanh"]', "other activations"), (", clip = 3.0", "a clip"),
    (", input_forget = 1", "joined"),
])  # fmt: skip
def test_variants_are_refused_with_a_reason(extra: str, reason: str) -> None:
    values = case(3, "float32", "forward", 2, 1, 3, 4)
    with pytest.raises(BuildRefusedError, match=reason):
        run_on_gpu(built(values, "float32", "forward", "y", extra), {name: values[name] for name in "xhc"})


def test_a_state_that_is_too_large_is_refused() -> None:
    values = case(3, "float32", "forward", 1, 1, 1, 257)
    with pytest.raises(BuildRefusedError, match="256 at most"):
        run_on_gpu(built(values, "float32", "forward", "y"), {name: values[name] for name in "xhc"})
