# SPDX-License-Identifier: Apache-2.0
"""Attention behind a past: of com.microsoft as ONNX Runtime computes it, at every length; no past is copied."""

import numpy as np
import pytest
from native_models import (
    RUNS,
    Array,
    assert_as_onnxruntime,
    by_onnxruntime,
    contrib_model,
    each_float_level,
    kernels_of,
    made,
    opened,
    reals,
    run,
    start_of,
)

from nndeploy.values.types import DimRange

HEADS, SIZE = 3, 8
WIDTH = HEADS * SIZE
RANGES = {"b": DimRange(1, 4, 1), "t": DimRange(1, 32, 1), "p": DimRange(0, 512, 1)}
CACHE = f"float[b,{HEADS},p,{SIZE}]"
PRESENT = f"float[b,{HEADS},all,{SIZE}]"
MULTI_HEAD = f"""g (float[b,t,{WIDTH}] q, float[b,t,{WIDTH}] k, float[b,t,{WIDTH}] v, {CACHE} pk, {CACHE} pv{{more}})
    => (float[b,t,{WIDTH}] y, {PRESENT} nk, {PRESENT} nv) {{{{
    y, nk, nv = com.microsoft.MultiHeadAttention<num_heads={HEADS}{{attributes}}>(q, k, v, {{names}}, pk, pv) }}}}"""
CALLS = ((1, 1, 0), (2, 5, 0), (1, 1, 7), (3, 1, 19), (2, 4, 9))
"""Batch, new places, places of the past."""


def drawn(batch: int, count: int, past: int) -> dict[str, Array]:
    found = {name: reals(batch, count, WIDTH, seed=seed) for seed, name in enumerate("qkv")}
    return found | {name: reals(batch, HEADS, past, SIZE, seed=seed) for seed, name in enumerate(("pk", "pv"), 3)}


@pytest.mark.parametrize(("attributes", "names", "more"), [
    ("", ", , ", ""), (", unidirectional=1, scale=0.3", "w, , ", ""),
    ("", ", m, a", f", int32[b,all] m, float[1,{HEADS},t,all] a"),
    (", unidirectional=1", "w, m, a", f", int32[b,all] m, float[1,{HEADS},t,all] a"),
])  # fmt: skip
def test_multi_head_attention(attributes: str, names: str, more: str) -> None:
    constants = {"w": reals(3 * WIDTH, seed=8)} if "w" in names else {}
    model = contrib_model(MULTI_HEAD.format(attributes=attributes, names=names, more=more), constants)
    artifact = made(model, RANGES)
    for batch, count, past in CALLS:
        given = drawn(batch, count, past)
        if more:
            given["m"] = (reals(batch, past + count, seed=5) > -1).astype(np.int32)
            given["a"] = reals(1, HEADS, count, past + count, seed=6)
        wanted = by_onnxruntime(model, given)
        for level, threads in RUNS:
            found = run(artifact, given, level, threads=threads)
            for name, array in wanted.items():
                np.testing.assert_allclose(found[name], array, rtol=2e-5, atol=2e-5, err_msg=name)


def test_the_past_goes_on_where_it_lies() -> None:
    model = contrib_model(MULTI_HEAD.format(attributes=", unidirectional=1", names=", , ", more=""))
    artifact = made(model, RANGES)
    steps = kernels_of(artifact)
    assert (steps.count("append"), steps.count("attention")) == (2, 1)
    session = opened(artifact)
    past = {name: np.zeros((1, HEADS, 0, SIZE), np.float32) for name in ("pk", "pv")}
    places = set()
    for count in (5, 1, 1, 1):
        given = {**drawn(1, count, 0), **past}
        found = session.run(given)
        assert_as_onnxruntime(model, found, given)
        past = {"pk": found["nk"], "pv": found["nv"]}
        places.add(start_of(past["pk"]))
    assert len(places) == 1
    both = session.run({**drawn(1, 1, 0), "pk": past["pk"], "pv": past["pk"]})
    np.testing.assert_array_equal(both["nv"][:, :, :-1], past["pk"])


@each_float_level
@pytest.mark.parametrize("bias", ["", ", w"])
def test_keys_of_another_sequence(level: str, bias: str) -> None:
    cache = f"float[2,{HEADS},7,{SIZE}]"
    text = f"g (float[2,5,{WIDTH}] q, {cache} k, {cache} v) => (float[2,5,{WIDTH}] y)"
    text = f"{text} {{ y = com.microsoft.MultiHeadAttention<num_heads={HEADS}>(q, k, v{bias}) }}"
    model = contrib_model(text, {"w": reals(3 * WIDTH, seed=8)} if bias else {})
    given = {"q": reals(2, 5, WIDTH), "k": reals(2, HEADS, 7, SIZE, seed=1), "v": reals(2, HEADS, 7, SIZE, seed=2)}
    assert_as_onnxruntime(model, run(made(model, RANGES), given, level), given)
