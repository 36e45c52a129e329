# SPDX-License-Identifier: Apache-2.0
"""Caches of float16 stay so and go on where they lie; attention computes what it reads of them in float32."""

import numpy as np
import onnx_ir as ir
import pytest
from native_models import (
    RUNS,
    Array,
    assert_as_onnxruntime,
    by_onnxruntime,
    contrib_model,
    kernels_of,
    made,
    opened,
    run,
    start_of,
)

from nndeploy.values.types import DimRange

HEADS, SHARED, SIZE = 4, 2, 16
RANGES = {"t": DimRange(1, 64, 1), "p": DimRange(0, 512, 1), "all": DimRange(1, 512, 1)}
NEW = f"float16[1,{HEADS},t,{SIZE}] q, float16[1,{SHARED},t,{SIZE}] k, float16[1,{SHARED},t,{SIZE}] v"
PASTS = f"float16[1,{SHARED},p,{SIZE}] pk, float16[1,{SHARED},p,{SIZE}] pv"
PRESENTS = f"float16[1,{SHARED},m,{SIZE}] nk, float16[1,{SHARED},m,{SIZE}] nv"
SPELLED = f"""g ({NEW}, {PASTS}) => (float16[1,{HEADS},t,{SIZE}] y, {PRESENTS})
    <float quarter = {{0.25}},
    int64[1] two = {{2}}, int64[5] times = {{1,1,{HEADS // SHARED},1,1}}, int64[4] heads = {{1,{HEADS},-1,{SIZE}}}> {{
    nk = Concat<axis=2>(pk, k) nv = Concat<axis=2>(pv, v) ka = Unsqueeze(nk, two) va = Unsqueeze(nv, two)
    kb = Expand(ka, times) vb = Expand(va, times) kc = Reshape(kb, heads) vc = Reshape(vb, heads)
    kt = Transpose<perm=[0,1,3,2]>(kc) scale = Cast<to=10>(quarter) a = MatMul(q, kt) b = Mul(a, scale)
    w = Softmax<axis=-1>(b) y = MatMul(w, vc) }}"""
OPERATOR = f"""g ({NEW}, {PASTS}) => (float16[1,{HEADS},t,{SIZE}] y, {PRESENTS}) {{
    y, nk, nv = Attention<is_causal=1>(q, k, v, , pk, pv) }}"""
ROWS = f"float16[1,t,{HEADS * SIZE}] q, float16[1,t,{SHARED * SIZE}] k, float16[1,t,{SHARED * SIZE}] v"
GROUPED = f"""g ({ROWS}, {PASTS}, int32[1,all] mask) => (float16[1,t,{HEADS * SIZE}] y, {PRESENTS})
    <int64[1] along = {{1}}, int32 unit = {{1}}, int64 one = {{1}}> {{
    sum = ReduceSum<keepdims=0>(mask, along) last = Sub(sum, unit) shape = Shape(mask)
    longest = Gather<axis=0>(shape, one) total = Cast<to=6>(longest)
    y, nk, nv = com.microsoft.GroupQueryAttention<num_heads={HEADS}, kv_num_heads={SHARED}>(q,k,v,pk,pv,last,total)
    }}"""
TEXTS = {"spelled": SPELLED, "operator": OPERATOR, "grouped": GROUPED}
CLOSE = 4e-3
"""ONNX Runtime rounds what lies between to float16."""


def drawn(model: ir.Model, rows: int, past: int) -> dict[str, Array]:
    sizes, found, rng = {"t": rows, "p": past, "all": rows + past}, {}, np.random.default_rng(rows + past)
    for one in model.graph.inputs:
        shape = [dim if isinstance(dim, int) else sizes[str(dim.value)] for dim in one.shape or ()]
        found[one.name or ""] = rng.standard_normal(shape).astype(np.float16)
    return found | ({"mask": np.ones((1, rows + past), np.int32)} if "mask" in found else {})


@pytest.mark.parametrize("kind", list(TEXTS))
def test_outputs_are_those_of_onnxruntime(kind: str) -> None:
    model = contrib_model(TEXTS[kind], opset=23)
    artifact = made(model, RANGES)
    for rows, past in ((1, 7), (5, 0), (3, 20), (1, 0), (33, 5)):
        inputs = drawn(model, rows, past)
        wanted = by_onnxruntime(model, inputs)
        for level, threads in RUNS:
            found = run(artifact, inputs, level, threads=threads)
            np.testing.assert_allclose(found["y"], wanted["y"], rtol=CLOSE, atol=CLOSE)
            for name in ("nk", "nv"):
                assert found[name].dtype == np.float16
                np.testing.assert_array_equal(found[name], wanted[name])


@pytest.mark.parametrize("kind", list(TEXTS))
def test_nothing_of_the_past_is_copied_or_widened(kind: str) -> None:
    model = contrib_model(TEXTS[kind], opset=23)
    artifact = made(model, RANGES)
    steps = kernels_of(artifact)
    assert steps.count("attention") == 1
    assert steps.count("view_copy") == (2 if kind == "grouped" else 0), "of what is new alone"
    assert not {"join", "gather_places"} & set(steps)
    session, past, places = opened(artifact), drawn(model, 1, 0), set()
    past = {name: past[name] for name in ("pk", "pv")}
    for number in range(5):
        inputs = drawn(model, 1 if number else 6, past["pk"].shape[2]) | past
        found = session.run(inputs)
        assert_as_onnxruntime(model, found, inputs, CLOSE)
        past = {"pk": found["nk"], "pv": found["nv"]}
        places.add(start_of(past["pk"]))
    assert len(places) == 1


def test_a_cache_that_others_read_is_widened_for_them() -> None:
    text = "g (float16[2,p,3] past, float16[2,t,3] new) => (float16[2,r,3] k, float16[2,s,3] y)"
    model = contrib_model(f"{text} {{ k = Concat<axis=1>(past, new) y = Relu(k) }}")
    artifact, rng = made(model, RANGES), np.random.default_rng(0)
    past, new = (rng.standard_normal((2, count, 3)).astype(np.float16) for count in (5, 4))
    found = run(artifact, {"past": past, "new": new})
    np.testing.assert_array_equal(found["k"], np.concatenate([past, new], 1))
    np.testing.assert_array_equal(found["y"], np.maximum(np.concatenate([past, new], 1), 0))
