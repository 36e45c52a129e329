# SPDX-License-Identifier: Apache-2.0
"""ONNX's Attention: one plan at every size, as ONNX Runtime computes it."""

import re

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest
from native_models import RUNS, Array, built, by_onnxruntime, kernels_of, reals, run

from nndeploy.passes import optimise
from nndeploy.values.types import DimRange

HEADS, SHARED, SIZE, COLUMNS = 4, 2, 8, 6
RANGES = {"b": DimRange(1, 4, 1), "s": DimRange(1, 32, 1), "p": DimRange(0, 64, 1), "n": DimRange(1, 64, 1)}
CALLS = ({"b": 2, "s": 3, "p": 5, "n": 7}, {"b": 1, "s": 1, "p": 4, "n": 1}, {"b": 1, "s": 4, "p": 0, "n": 4})


def attention(attributes: str, more: str, *, of_rows: bool) -> onnx.ModelProto:
    """Returns Attention of open sizes with more inputs, by the name of the parameter."""
    given = dict(re.findall(r"(\w+): (\S+)", more))
    if of_rows:
        q, k, v = (f"float[b,{n},{size}]" for n, size in (("s", 32), ("n", SHARED * SIZE), ("n", SHARED * COLUMNS)))
        attributes, y = f"{attributes}, q_num_heads={HEADS}, kv_num_heads={SHARED}", f"float[b,s,{HEADS * COLUMNS}]"
    else:
        q, k, v = f"float[b,{HEADS},s,{SIZE}]", f"float[b,{SHARED},n,{SIZE}]", f"float[b,{SHARED},n,{COLUMNS}]"
        y = f"float[b,{HEADS},s,{COLUMNS}]"
    caches = ("", "")
    if "past" in given:
        given |= {"pk": f"float[b,{SHARED},p,{SIZE}]", "pv": f"float[b,{SHARED},p,{COLUMNS}]"}
        caches = (", nk, nv", f", float[b,{SHARED},m,{SIZE}] nk, float[b,{SHARED},m,{COLUMNS}] nv")
        del given["past"]
    names = ", ".join(name if name in given else "" for name in ("mask", "pk", "pv", "last"))
    inputs = "".join(f", {kind} {name}" for name, kind in given.items())
    call = f"Attention<{attributes.removeprefix(', ')}>" if attributes else "Attention"
    text = f"g ({q} q, {k} k, {v} v{inputs}) => ({y} y{caches[1]}) {{ y{caches[0]} = {call}(q, k, v, {names}) }}"
    return onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 24]>' + re.sub("[, ]+[)] }", ") }", text))


def drawn(proto: onnx.ModelProto, sizes: dict[str, int]) -> dict[str, Array]:
    sizes = sizes | {"all": sizes["n"] + (sizes["p"] if "nk" in str(proto.graph.output) else 0)}
    found: dict[str, Array] = {}
    for seed, one in enumerate(proto.graph.input):
        shape = [dim.dim_value or sizes[dim.dim_param] for dim in one.type.tensor_type.shape.dim]
        found[one.name] = reals(*shape, seed=seed)
        if one.type.tensor_type.elem_type == onnx.TensorProto.BOOL:
            found[one.name] = found[one.name] > -0.3
            found[one.name][..., 0, :] = False  # a row that looks at nothing
        elif one.name == "last":
            found[one.name] = np.random.default_rng(1).integers(1, sizes["n"] + 1, shape)
    return found


@pytest.mark.parametrize("of_rows", [False, True])
@pytest.mark.parametrize(("attributes", "more"), [
    ("", ""), (", is_causal=1", "past: 1"), (", softcap=1.5, scale=0.4", "past: 1 mask: float[s,all]"),
    (", is_causal=1", "past: 1 mask: bool[b,1,s,all]"), ("", f"mask: bool[{HEADS},s,all]"), ("", "last: int64[b]"),
    (", is_causal=1", "mask: float[s,all] last: int64[b]"),
])  # fmt: skip
def test_attention_of_open_sizes(of_rows: bool, attributes: str, more: str) -> None:
    proto = attention(attributes, more, of_rows=of_rows)
    model = ir.from_proto(onnx.shape_inference.infer_shapes(proto))
    optimise(model, RANGES)
    artifact = built(model, RANGES)
    steps = kernels_of(artifact)
    assert steps.count("append") == 2 * ("past" in more)
    for sizes in CALLS:
        inputs = drawn(proto, sizes)
        wanted = by_onnxruntime(ir.from_proto(proto), inputs)
        for level, threads in RUNS:
            found = run(artifact, inputs, level, threads=threads)
            for name, array in wanted.items():
                np.testing.assert_allclose(found[name], array, rtol=2e-5, atol=2e-5, err_msg=f"{name} {sizes}")
