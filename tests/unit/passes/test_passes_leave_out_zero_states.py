# SPDX-License-Identifier: Apache-2.0
"""First states of recurrent layers that are zeros are left out, and no others."""

import pytest
from passes_harness import graph, nodes, rewritten

NAME = "leave-out-zero-states"
HEAD = """(float[t,n,2] x, float[1,n,3] s) => (float[t,1,n,3] y) <int64[3] shape = {1,2,3}, float[1,12,2] w = {%s},
    float[1,12,3] r = {%s}, float[1,2,3] zeros = {0,0,0,0,0,0}, float[1,2,3] others = {0,0,0,0,0,1},
    float[1,2,3] minus = {0,0,-0.0,0,0,0}>"""
HEAD %= (",".join(f"{k / 24 - 0.5:.3f}" for k in range(24)), ",".join(f"{0.5 - k / 36:.3f}" for k in range(36)))
ZEROS = "o = ConstantOfShape(shape)"


@pytest.mark.parametrize(("body", "left"), [
    (f"{ZEROS} y = LSTM<hidden_size=3>(x, w, r, , , o, o)", "y = LSTM<hidden_size=3>(x, w, r)"),
    (f"{ZEROS} y = LSTM<hidden_size=3>(x, w, r, , , o, s)", "y = LSTM<hidden_size=3>(x, w, r, , , , s)"),
    ("y = LSTM<hidden_size=3>(x, w, r, , , s, zeros)", "y = LSTM<hidden_size=3>(x, w, r, , , s)"),
    ("y = LSTM<hidden_size=3>(x, w, r, , , zeros)", "y = LSTM<hidden_size=3>(x, w, r)"),
])  # fmt: skip
def test_zeros_are_left_out(body: str, left: str) -> None:
    model = graph(f"{HEAD} {{ {body} }}")
    assert rewritten(NAME, model) == 1
    assert nodes(model)[-1] == left


@pytest.mark.parametrize("body", [
    "y = LSTM<hidden_size=3>(x, w, r, , , s, s)", "y = LSTM<hidden_size=3>(x, w, r, , , others)",
    "y = LSTM<hidden_size=3>(x, w, r, , , minus)",
    "o = ConstantOfShape<value = float[1] {1}>(shape) y = LSTM<hidden_size=3>(x, w, r, , , o)",
    "y = LSTM<hidden_size=3>(x, w, r)",
])  # fmt: skip
def test_stays(body: str) -> None:
    assert rewritten(NAME, graph(f"{HEAD} {{ {body} }}")) == 0
