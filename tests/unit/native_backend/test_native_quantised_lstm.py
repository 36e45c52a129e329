# SPDX-License-Identifier: Apache-2.0
"""DynamicQuantizeLSTM, held to its formulas in float64: x and h become bytes as DynamicQuantizeLinear makes them.

The range of x is that of the whole tensor, the range of h that of one sequence at one step. Where h lies between two
bytes, float32 may take the other one, which moves a result by some thousandths; all others agree to float32.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
from native_models import FLOAT_LEVELS, Array, built, contrib_model, reals, run
from nndeploy_native.lowering.table import refusal_of
from oracle.elementwise import sigmoid

STEPS, BATCH, INPUTS = 5, 3, 11


class Network(NamedTuple):
    """Attributes in ONNX text, the constants of a layer, and what comes with the call."""

    kind: str
    constants: Mapping[str, Array]
    given: Mapping[str, Array]


def network(
    direction: str, hidden: int, dtype: type, *, by_column: bool, zeros: Any, with_lengths: bool, with_states: bool
) -> Network:
    rng, directions = np.random.default_rng(hidden), 2 if direction == "bidirectional" else 1
    info, spread = np.iinfo(dtype), (directions, 4 * hidden) if by_column else (directions,)
    constants = {
        "w": rng.integers(info.min, info.max + 1, (directions, INPUTS, 4 * hidden)).astype(dtype),
        "r": rng.integers(info.min, info.max + 1, (directions, hidden, 4 * hidden)).astype(dtype),
        "b": reals(directions, 8 * hidden) / 4,
        "ws": (rng.random(spread) / 500 + 0.001).astype(np.float32),
        "rs": (rng.random(spread) / 500 / hidden**0.5 + 0.001).astype(np.float32),
        "wz": np.full(spread, zeros, dtype) if zeros is not None else rng.integers(90, 120, spread).astype(dtype),
        "rz": np.full(spread, zeros, dtype) if zeros is not None else rng.integers(10, 60, spread).astype(dtype),
    }  # fmt: skip
    given = {"x": reals(STEPS, BATCH, INPUTS) * 2}
    if with_lengths:
        given["n"] = np.array([5, 1, 3], np.int32)
    if with_states:
        given |= {"h": reals(directions, BATCH, hidden, seed=1), "c": reals(directions, BATCH, hidden, seed=2)}
    return Network(f'direction="{direction}", hidden_size={hidden}', constants, given)


def by_formula(one: Network) -> list[Array]:
    """Returns Y, Y_h and Y_c in float64."""
    numbers, given = one.constants, one.given
    directions, hidden = numbers["r"].shape[:2]
    w, r = (
        (numbers[name].astype(np.float64) - _spread(numbers[f"{name}z"])) * _spread(numbers[f"{name}s"])
        for name in "wr"
    )
    x, bias = _through_bytes(given["x"]), numbers["b"].astype(np.float64)
    lengths = given.get("n", np.full(BATCH, STEPS))
    y, last = np.zeros((STEPS, directions, BATCH, hidden)), np.zeros((2, directions, BATCH, hidden))
    for d, b in np.ndindex(directions, BATCH):
        h, c = (given[name][d, b].astype(np.float64) if name in given else np.zeros(hidden) for name in "hc")
        order = range(lengths[b])
        for t in reversed(order) if 'direction="reverse"' in one.kind or d == 1 else order:
            gates = x[t, b] @ w[d] + _through_bytes(h) @ r[d] + bias[d, : 4 * hidden] + bias[d, 4 * hidden :]
            i, o, f, new = gates.reshape(4, hidden)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(new)
            h = y[t, d, b] = sigmoid(o) * np.tanh(c)
        last[:, d, b] = h, c
    return [y, *last]


def _spread(numbers: Array) -> Array:
    return numbers.astype(np.float64).reshape(len(numbers), 1, -1)


def _through_bytes(values: Array) -> Array:
    """Returns what the bytes of values stand for; ranges and quotients are float32, as the operator says."""
    x = values.astype(np.float32)
    low, high = min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
    scale = (high - low) / np.float32(255) if high > low else np.float32(1)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    return (np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.float64) - zero) * np.float64(scale)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("dtype", "zeros"), [
    (np.int8, 0), (np.uint8, 128), (np.uint8, 0), (np.int8, -7), (np.uint8, None),
])  # fmt: skip
@pytest.mark.parametrize(("hidden", "by_column", "with_lengths", "with_states"), [
    (5, False, False, False), (37, True, True, False), (16, True, False, True), (21, False, True, True),
])  # fmt: skip
def test_every_form_of_weights_is_its_formula(
    direction: str, dtype: type, zeros: Any, hidden: int, by_column: bool, with_lengths: bool, with_states: bool
) -> None:
    one = network(direction, hidden, dtype, by_column=by_column, zeros=zeros, with_lengths=with_lengths,
                  with_states=with_states)  # fmt: skip
    types = {"x": "float", "n": "int32", "h": "float", "c": "float"}
    inputs = ", ".join(f"{types[name]}[{','.join(map(str, a.shape))}] {name}" for name, a in one.given.items())
    size = f"{one.constants['r'].shape[0]},{BATCH},{hidden}"
    operands = ", ".join(name if name in one.given else "" for name in "nhc")
    text = f"""g ({inputs}) => (float[{STEPS},{size}] y, float[{size}] yh, float[{size}] yc) {{
        y, yh, yc = com.microsoft.DynamicQuantizeLSTM<{one.kind}>(x, w, r, b, {operands}, , ws, wz, rs, rz) }}"""
    artifact, wanted = built(contrib_model(text, one.constants)), by_formula(one)
    for number, level in enumerate(FLOAT_LEVELS):
        found = run(artifact, one.given, level, threads=1 + number % 2, plain_bytes=number % 2 == 0)
        for array, right in zip(found.values(), wanted, strict=True):
            apart = np.abs(array - right)
            assert apart.max() < 0.02, level
            assert np.quantile(apart, 0.6) < 2e-6, level


@pytest.mark.parametrize(("name", "array", "reason"), [
    ("ws", np.ones((1, 3), np.float32), "a scale or zero point of float32 (1, 3) for weights of (1, 20)"),
    ("rz", np.zeros(1, np.uint8), "a scale or zero point of uint8 (1,) for weights of (1, 20)"),
    ("r", np.zeros((1, 5, 24), np.int8), "a scale or zero point"),
    ("w", np.zeros((1, INPUTS, 20), np.int16), "something else than constant bytes"),
])  # fmt: skip
def test_weights_that_do_not_fit_are_refused(name: str, array: Array, reason: str) -> None:
    one = network("forward", 5, np.int8, by_column=True, zeros=0, with_lengths=False, with_states=False)
    text = f"""g (float[{STEPS},{BATCH},{INPUTS}] x) => (float[{STEPS},1,{BATCH},5] y) {{
        y = com.microsoft.DynamicQuantizeLSTM<{one.kind}>(x, w, r, b, , , , , ws, wz, rs, rz) }}"""
    model = contrib_model(text, {**one.constants, name: array})
    assert reason in refusal_of(model.graph[0], model, {})
