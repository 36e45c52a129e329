# SPDX-License-Identifier: Apache-2.0
"""Attention, MultiHeadAttention and RotaryEmbedding of com.microsoft: few steps, and what ONNX Runtime computes."""

import numpy as np
import pytest
from native_models import Array, built, contrib_model, kernels_of, reals
from nndeploy_native.lowering.table import refusal_of
from test_native_contrib import assert_close

MASKS: dict[str, tuple[str, Array]] = {
    "": ("", np.zeros(0)),
    "keys": ("int32[2,7] m", np.array([[1, 1, 1, 1, 0, 0, 0], [1, 0, 1, 1, 1, 1, 0]], np.int32)),
    "rows": ("int32[2,7,7] m", (reals(2, 7, 7, seed=9) > -0.5).astype(np.int32)),
}


@pytest.mark.parametrize("mask", list(MASKS))
@pytest.mark.parametrize(
    ("attributes", "values", "added"),
    [("num_heads=4", 24, False), ("num_heads=2, unidirectional=1", 24, True), ("num_heads=3, scale=0.3", 12, True)],
)
def test_multi_head_attention(mask: str, attributes: str, values: int, added: bool) -> None:
    given = {"q": reals(2, 7, 24), "k": reals(2, 7, 24, seed=1), "v": reals(2, 7, values, seed=2)}
    inputs = [f"float[2,7,24] q, float[2,7,24] k, float[2,7,{values}] v"]
    constants = {"b": reals(48 + values, seed=3)}
    if mask:
        inputs.append(MASKS[mask][0])
        given["m"] = MASKS[mask][1]
    if added:
        heads = int(attributes[10])
        inputs.append(f"float[1,{heads},7,7] a")
        given["a"] = reals(1, heads, 7, 7, seed=4)
    names = ["q", "k", "v", "b", "m" if mask else "", "a" if added else ""]
    text = f"g ({', '.join(inputs)}) => (float[2,7,{values}] y) {{ y = com.microsoft.MultiHeadAttention<{attributes}>"
    if mask == "rows" and "scale" in attributes:
        names[3], constants = "", {}
    model = contrib_model(f"{text}({', '.join(names).rstrip(', ')}) }}", constants)
    assert_close(model, given)
    steps = kernels_of(built(model))
    assert steps.count("attention") == 1
    assert set(steps) <= {"attention", "elementwise"}


@pytest.mark.parametrize("mask", list(MASKS))
@pytest.mark.parametrize(("attributes", "columns", "values"), [
    ("num_heads=4", 72, 24), ("num_heads=2, unidirectional=1", 72, 24),
    ("num_heads=2, qkv_hidden_sizes=[16,16,12], mask_filter_value=-3.5", 44, 12),
])  # fmt: skip
def test_attention(mask: str, attributes: str, columns: int, values: int) -> None:
    given = {"x": reals(2, 7, 24)}
    constants = {"w": reals(24, columns, seed=1) / 5, "b": reals(columns, seed=2)}
    inputs = "float[2,7,24] x" + (f", {MASKS[mask][0]}" if mask else "")
    if mask:
        given["m"] = MASKS[mask][1]
    names = "x, w, b" + (", m" if mask else "")
    text = f"g ({inputs}) => (float[2,7,{values}] y) {{ y = com.microsoft.Attention<{attributes}>({names}) }}"
    model = contrib_model(text, constants)
    assert_close(model, given)
    steps = kernels_of(built(model))
    assert steps == ["fully_connected", "attention"]


@pytest.mark.parametrize("shape", ["2,5,24", "2,3,5,8"])
@pytest.mark.parametrize("places", ["2,5", "1"])
@pytest.mark.parametrize("attributes", ["", "interleaved=1", "num_heads=3, rotary_embedding_dim=4"])
def test_rotary_embedding(shape: str, places: str, attributes: str) -> None:
    """Of rows of heads and of heads of rows, whole and in part, at given places and from one on."""
    sizes = [int(size) for size in places.split(",")]
    given = {"x": reals(*map(int, shape.split(","))), "p": np.random.default_rng(1).integers(0, 6, sizes)}
    half = 2 if "dim" in attributes else 4
    angles = np.arange(11)[:, None] / (3.0 ** np.arange(half))
    constants = {"c": np.cos(angles).astype(np.float32), "s": np.sin(angles).astype(np.float32)}
    said = f"<{attributes}>" if attributes else ""
    text = f"g (float[{shape}] x, int64[{places}] p) => (float[{shape}] y)"
    model = contrib_model(f"{text} {{ y = com.microsoft.RotaryEmbedding{said}(x, p, c, s) }}", constants)
    assert_close(model, given)


def test_what_is_refused_says_why() -> None:
    inputs = (
        "float[9,4] t, int64[3] o, float[2,7,24] q, float[2,4,7,6] p, float[24,72] w, int32[2] m, float[2,2,4,7,6] c"
    )
    nodes = {
        "y = com.microsoft.MultiHeadAttention<num_heads=4>(q, q, q, , , , p)": "with one past",
        "y = com.microsoft.MultiHeadAttention<num_heads=4>(q, q, q, , , , p, p, o)": "past is shared",
        "y = com.microsoft.MultiHeadAttention<num_heads=2>(q, q, q, , , , p, p)": "a past of (2, 4, 7, 6)",
        "y = com.microsoft.MultiHeadAttention<num_heads=4>(q, q, p)": "three times (batch, places, size)",
        "y = com.microsoft.MultiHeadAttention<num_heads=4>(q, q, q, , m)": "a mask of (2,) for 2 times 7 by 7",
        "y = com.microsoft.MultiHeadAttention<num_heads=5>(q, q, q)": "5 heads of rows of 24",
        "y = com.microsoft.Attention<num_heads=4>(q, w)": "without constant weights",
        "y = com.microsoft.Attention<num_heads=4>(q, w, , , c)": "an Attention with a past",
        "y = com.microsoft.Attention<num_heads=4, do_rotary=1>(q, w)": "turns its queries",
        "y = com.microsoft.RotaryEmbedding<scale=2.0>(q, o, t, t)": "packed or scaled",
        "y = com.microsoft.RotaryEmbedding(q, o, t, t)": "places of shape (3,) for 2 times 7",
        "y = com.microsoft.RotaryEmbedding(q, o, w, w)": "0 heads of rows of 24",
    }
    for node, reason in nodes.items():
        model = contrib_model(f"g ({inputs}) => (float[2,7,24] y) {{ {node} }}")
        assert reason in refusal_of(model.graph[0], model, {}), node
