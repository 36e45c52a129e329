# SPDX-License-Identifier: Apache-2.0
"""GroupQueryAttention of com.microsoft computes what ONNX Runtime does: rows of own lengths, caches of any room."""

import itertools
import json
from typing import NamedTuple

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
    reals,
    run,
    start_of,
)
from nndeploy_native.lowering.table import refusal_of
from nndeploy_native.plan import DOCUMENT_FILE
from nndeploy_native.session import NativeSession

from nndeploy.errors import BundleError
from nndeploy.plugin.interface import Artifact
from nndeploy.values.types import DimRange

HEADS, SHARED, SIZE = 4, 2, 16
RANGES = {"b": DimRange(1, 4, 1), "s": DimRange(1, 32, 1), "p": DimRange(0, 64, 1), "t": DimRange(1, 64, 1)}
ALL = ["q", "k", "v", "pk", "pv", "last", "total", "cos", "sin", "places", "bias"]


class Call(NamedTuple):
    """New rows behind pasts of a cache with so much room, of sequences that are so long with them."""

    rows: int
    room: int
    totals: tuple[int, ...]


CALLS = (
    Call(1, 7, (8,)), Call(1, 7, (8, 5)), Call(3, 7, (10,)), Call(5, 0, (5,)), Call(5, 0, (5, 3)),
    Call(1, 0, (1, 1, 1)), Call(1, 20, (8,)), Call(1, 20, (8, 5)), Call(3, 20, (10,)), Call(5, 20, (5, 3)),
    Call(1, 1, (2, 2)),
)  # fmt: skip
"""As exporters' loops make them: a prompt, tokens of sequences that are as long or not, caches as long as a sequence or
as it may become."""


def group_query(attributes: str, left_out: str) -> ir.Model:
    """Returns the model that exporters write around the node: lengths come from the mask of a batch."""
    shapes = {
        "q": f"float[b,s,{HEADS * SIZE}]", "k": f"float[b,s,{SHARED * SIZE}]", "v": f"float[b,s,{SHARED * SIZE}]",
        "pk": f"float[b,{SHARED},p,{SIZE}]", "pv": f"float[b,{SHARED},p,{SIZE}]", "mask": "int64[b,t]",
        "places": "int64[b,s]", "bias": f"float[1,{HEADS},s,t]",
    }  # fmt: skip
    without = left_out.split()
    if "k" in without:
        shapes["q"] = f"float[b,s,{(HEADS + 2 * SHARED) * SIZE}]"
    inputs = ", ".join(f"{shape} {name}" for name, shape in shapes.items() if name not in without)
    names = ", ".join("" if name in without else name for name in ALL).rstrip(", ")
    cache = f"float[b,{SHARED},m,{SIZE}]"
    text = f"""g ({inputs}) => (float[b,s,{HEADS * SIZE}] y, {cache} nk, {cache} nv)
        <int64[1] along = {{1}}, int64 one = {{1}}> {{
        sum = ReduceSum<keepdims=0>(mask, along) before = Sub(sum, one) last = Cast<to=6>(before)
        shape = Shape(mask) longest = Gather<axis=0>(shape, one) total = Cast<to=6>(longest)
        y, nk, nv = com.microsoft.GroupQueryAttention<num_heads={HEADS}, kv_num_heads={SHARED}{attributes}>({names})
        }}"""
    angles = np.arange(64)[:, None] / (3.0 ** np.arange(SIZE // 2))
    tables = {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}
    return contrib_model(text, {name: table for name, table in tables.items() if name not in without})


def drawn(model: ir.Model, call: Call) -> dict[str, Array]:
    """Returns inputs of a call."""
    sizes = {"b": len(call.totals), "s": call.rows, "p": call.room, "t": max(call.totals)}
    shapes = {
        one.name or "": [dim if isinstance(dim, int) else sizes[str(dim.value)] for dim in one.shape or ()]
        for one in model.graph.inputs
    }
    found = {name: reals(*shape, seed=seed) for seed, (name, shape) in enumerate(shapes.items())}
    found["mask"] = np.array([[place < total for place in range(sizes["t"])] for total in call.totals], np.int64)
    if "places" in found:
        found["places"] = np.random.default_rng(3).integers(0, 60, shapes["places"])
    return found


def assert_rows_as_onnxruntime(model: ir.Model, artifact: Artifact, call: Call) -> None:
    """Compares all outputs on every level, but for rows behind the end of a sequence."""
    inputs = drawn(model, call)
    wanted, found = (
        by_onnxruntime(model, inputs),
        [run(artifact, inputs, level, threads=threads) for level, threads in RUNS],
    )
    for (name, array), outputs in itertools.product(wanted.items(), found):
        assert array.shape == outputs[name].shape, (name, call)
        for b, total in enumerate(call.totals):
            ends = slice(min(call.rows, total)) if name == "y" else slice(None)
            what = f"{name} {call}"
            np.testing.assert_allclose(outputs[name][b][ends], array[b][ends], rtol=2e-5, atol=2e-5, err_msg=what)


@pytest.mark.parametrize(("attributes", "left_out"), [
    (", do_rotary=1", "places bias"), (", do_rotary=1, rotary_interleaved=1", "k v places bias"),
    ("", "cos sin places bias"), (", local_window_size=3", "cos sin places bias"),
    (", do_rotary=1, softcap=2.0, scale=0.7", "bias"), (", local_window_size=4", "cos sin places"),
])  # fmt: skip
def test_one_plan_takes_every_call(attributes: str, left_out: str) -> None:
    model = group_query(attributes, left_out)
    artifact = made(model, RANGES)
    for call in CALLS:
        if call.room <= max(call.totals) or "bias" in left_out:
            assert_rows_as_onnxruntime(model, artifact, call)


def test_without_a_past() -> None:
    model = group_query(", do_rotary=1", "pk pv places bias")
    artifact = made(model, RANGES)
    for call in (Call(5, 0, (5,)), Call(5, 0, (3, 5))):
        assert_rows_as_onnxruntime(model, artifact, call)


def loop(
    session: NativeSession, model: ir.Model, rows: list[int], totals: list[tuple[int, ...]]
) -> list[dict[str, Array]]:
    """Returns the outputs of calls each of which gets the caches of the one before; all are ONNX Runtime's."""
    batch = len(totals[0])
    past, found = {name: np.zeros((batch, SHARED, 0, SIZE), np.float32) for name in ("pk", "pv")}, []
    for count, of_each in zip(rows, totals, strict=True):
        inputs = drawn(model, Call(count, 1, of_each)) | past
        wanted, outputs = by_onnxruntime(model, inputs), session.run(inputs)
        assert wanted.keys() == outputs.keys()
        for name in ("nk", "nv"):
            np.testing.assert_allclose(outputs[name], wanted[name], rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(
            outputs["y"][:, : min(of_each)], wanted["y"][:, : min(of_each)], rtol=2e-5, atol=2e-5
        )
        past = {"pk": outputs["nk"], "pv": outputs["nv"]}
        found.append(outputs)
    return found


def test_caches_of_equal_lengths_go_on_where_they_lie() -> None:
    model = group_query(", do_rotary=1", "places bias")
    found = loop(opened(made(model, RANGES), threads=2), model, [4, 1, 1, 1], [(4, 4), (5, 5), (6, 6), (7, 7)])
    for name in ("nk", "nv"):
        assert len({start_of(outputs[name]) for outputs in found}) == 1


def test_caches_of_other_lengths_are_copied_and_earlier_ones_keep_their_numbers() -> None:
    model = group_query(", do_rotary=1", "places bias")
    session = opened(made(model, RANGES))
    first = loop(session, model, [4], [(4, 4)])[0]
    kept = first["nk"].copy()
    past = {"pk": first["nk"], "pv": first["nv"]}
    inputs = drawn(model, Call(1, 1, (5, 3))) | past  # the second sequence is one token shorter than its cache
    for _ in range(2):
        outputs = session.run(inputs)
        assert_as_onnxruntime(model, outputs, inputs)
        assert start_of(outputs["nk"]) != start_of(first["nk"])
        np.testing.assert_array_equal(first["nk"], kept)
    loop(session, model, [4, 1, 1], [(4, 3), (5, 4), (6, 5)])
    found = loop(session, model, [4, 1, 1, 1], [(4, 4), (5, 5), (6, 6), (7, 7)])
    assert start_of(found[1]["nk"]) == start_of(found[3]["nk"])


@pytest.mark.parametrize("change", [
    {"tells_moved": 1}, {"tells_moved": False}, {"grown": []},
    {"grown": [{"output": 1, "input": 3, "axis": 2, "added": 1, "symbol": None, "is_total": True}]},
    {"grown": [{"output": 1, "input": 3, "axis": 2, "added": 1, "symbol": None, "is_total": 3}]},
])  # fmt: skip
def test_a_document_that_says_something_else_is_refused(change: dict[str, object]) -> None:
    artifact = made(group_query("", "cos sin places bias"), RANGES)
    document = json.loads(artifact.files[DOCUMENT_FILE]) | change
    files = {**artifact.files, DOCUMENT_FILE: json.dumps(document).encode()}
    with pytest.raises(BundleError, match=r"plan\.json|plan\.bin"):
        opened(Artifact(files=files, metadata=artifact.metadata))


def test_lengths_and_angles_are_computed_once_for_all_layers() -> None:
    text = """g (float[1,3,64] q, float[1,3,32] k, float[1,3,32] v, int32[1] last, int32 total)
        => (float[1,3,64] y) {
        a, ak, av = com.microsoft.GroupQueryAttention<num_heads=4,kv_num_heads=2,do_rotary=1>(q,k,v,,,last,total,c,s)
        y, yk, yv = com.microsoft.GroupQueryAttention<num_heads=4,kv_num_heads=2,do_rotary=1>(a,k,v,,,last,total,c,s)
        }"""
    constants = {"c": reals(9, 8), "s": reals(9, 8, seed=1)}
    artifact = made(contrib_model(text, constants), {})
    steps = kernels_of(artifact)
    assert (steps.count("gather"), steps.count("attention")) == (2, 2)


def test_what_is_refused_says_why() -> None:
    inputs = "float[2,7,64] q, float[2,7,32] k, float[2,2,5,16] p, int32[2] n, int32[3] n3, int32 t, float[4] h"
    nodes = {
        "<num_heads=4, kv_num_heads=2, smooth_softmax=1>(q, k, k, p, p, n, t)": "smooth_softmax=1",
        "<num_heads=4, kv_num_heads=2, causal=0>(q, k, k, p, p, n, t)": "causal=0",
        "<num_heads=4, kv_num_heads=2>(q, k, k, p, , n, t)": "with one past",
        "<num_heads=4, kv_num_heads=2>(q, k, k, p, p, n3, t)": "last places of (3,) for a batch of 2",
        "<num_heads=4, kv_num_heads=2>(q, k, k, p, p, n, t, , , , , h)": "with a sink",
        "<num_heads=4, kv_num_heads=3>(q, k, k, p, p, n, t)": "3 heads of rows of 32",
        "<num_heads=5, kv_num_heads=2>(q, , , p, p, n, t)": "9 heads in rows of 64",
        "<num_heads=4, kv_num_heads=4>(q, k, k, p, p, n, t)": "a past of (2, 2, 5, 16)",
    }
    for node, reason in nodes.items():
        text = f"g ({inputs}) => (float[2,7,64] y, float[2,2,12,16] r, float[2,2,12,16] z)"
        model = contrib_model(f"{text} {{ y, r, z = com.microsoft.GroupQueryAttention{node} }}")
        assert reason in refusal_of(model.graph[0], model, {}), node
