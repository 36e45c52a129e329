# SPDX-License-Identifier: Apache-2.0
"""Values that are not float32: moved, joined and handed on in their own type, against ONNX's own evaluator."""

import numpy as np
import onnx_ir as ir
import pytest
from kernel_library import every_level
from native_models import FLOAT_LEVELS, Array, built, dynamic, model_of, run
from nndeploy_native.plan import DOCUMENT_FILE, DTYPES, document_from_json
from onnx.reference import ReferenceEvaluator

from nndeploy.values.types import DimRange

ELEMENTS = [({"fp32": "float", "fp16": "float16"}.get(name, name), dtype) for name, dtype in DTYPES.items()]
MOVED = """{ t = Transpose<perm=[2,0,1]>(x) s = Slice(x, from, to, axes, by) p = Pad(x, widths)
    c = Concat<axis=1>(x, s, x) b = Concat<axis=0>(x, w) i = Identity(x)"""
FOLLOWED = " g = Gather<axis=1>(x, picked) r = Gather(x, rows) e = Expand(g, wide)"
"""What is added to the operators where shapes are fixed."""
RANKS = {"t": 3, "s": 3, "p": 3, "c": 3, "b": 3, "i": 3, "g": 4, "r": 3, "e": 5}
CONSTANTS = {
    "from": np.array([-1], np.int64), "to": np.array([-9999], np.int64), "axes": np.array([1], np.int64),
    "by": np.array([-2], np.int64), "widths": np.array([0, 1, 2, 1, 0, 0], np.int64), "picked": np.array([[2], [0]]),
    "wide": np.array([4, 1, 1, 1, 1], np.int64), "rows": np.array([1, 0, -1], np.int64),
}  # fmt: skip


def numbers(dtype: str, *shape: int, seed: int = 0) -> Array:
    """Returns numbers of a type, over all of its bytes."""
    whole = np.random.default_rng(seed).integers(-(2**31), 2**31, shape)
    return whole.astype(np.uint16).view(dtype) if dtype == "float16" else whole.astype(dtype)


@every_level
@pytest.mark.parametrize(("name", "dtype"), ELEMENTS)
@pytest.mark.parametrize("is_fixed", [True, False])
def test_elements_of_any_type_are_moved(level: str, name: str, dtype: str, is_fixed: bool) -> None:
    made = list(RANKS)[: None if is_fixed else -3]
    outputs = ", ".join(f"{name}[{','.join(f'{one}{axis}' for axis in range(RANKS[one]))}] {one}" for one in made)
    text = f"g ({name}[{2 if is_fixed else 'n'},3,17] x) => ({outputs}) {MOVED}{FOLLOWED * is_fixed} }}"
    constants = {**CONSTANTS, "w": numbers(dtype, 1, 3, 17, seed=1)}
    ranges = {} if is_fixed else {"n": DimRange(1, 4, 2)}
    model = model_of(text, constants) if is_fixed else dynamic(text, ranges, constants)
    artifact, x = built(model, ranges), numbers(dtype, 2, 3, 17)
    wanted = ReferenceEvaluator(ir.to_proto(model)).run(None, {"x": x})
    for threads in (1, 2):
        found = run(artifact, {"x": x}, level, threads=threads)
        for one, want in zip(model.graph.outputs, wanted, strict=True):
            assert found[str(one.name)].dtype == want.dtype
            np.testing.assert_array_equal(found[str(one.name)], want)


def test_an_input_that_no_rule_asks_for_is_left_out() -> None:
    text = "g (float[2,6] x, int64[2] sizes, bool[3] unused) => (float[3,4] y) { y = Reshape(x, sizes) }"
    document = document_from_json(built(model_of(text)).files[DOCUMENT_FILE])
    assert [one.name for one in document.inputs] == ["x"]


def test_indices_may_be_computed() -> None:
    text = "g (float[5,4] x, int64[3,2] n) => (float[2,3,4] y) { m = Transpose<perm=[1,0]>(n) y = Gather(x, m) }"
    x, picked = np.arange(20, dtype=np.float32).reshape(5, 4), np.array([[4, 0], [-1, 2], [1, 1]])
    found = run(built(model_of(text)), {"x": x, "n": picked}, FLOAT_LEVELS[-1])["y"]
    np.testing.assert_array_equal(found, x[picked.T])
