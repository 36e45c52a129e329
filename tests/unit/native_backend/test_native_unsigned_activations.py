# SPDX-License-Identifier: Apache-2.0
"""Values that are quantised to int8 and only dequantised again become uint8, of the same numbers."""

import numpy as np
import onnx_ir as ir
from native_models import model_of
from nndeploy_native.transforms.unsigned_activations import UnsignedActivations
from test_native_quantised import by_onnxruntime, edges

CONSTANTS = {"s": np.array(0.05, np.float32), "z": np.array(-7, np.int8), "k": np.array(3, np.int8)}


def _types_after(text: str) -> tuple[int, list[ir.DataType | None]]:
    """Returns how many values became uint8, and the types of what is quantised; the outputs are the same."""
    model = model_of(text, CONSTANTS)
    changed = model.clone()
    count = UnsignedActivations()(changed, lambda _: True)
    inputs = {"x": edges(3, 37)}
    found, wanted = by_onnxruntime(changed, inputs), by_onnxruntime(model, inputs)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)
    return count, [node.outputs[0].dtype for node in changed.graph if node.op_type == "QuantizeLinear"]


def test_what_is_only_dequantised_becomes_unsigned() -> None:
    text = """g (float[3,37] x) => (float[3,37] y, float[3,37] w) { q = QuantizeLinear(x, s, z)
        y = DequantizeLinear(q, s, z)  v = DequantizeLinear(q, s, z)  w = Abs(v) }"""
    assert _types_after(text) == (1, [ir.DataType.UINT8])


def test_bytes_that_others_read_stay() -> None:
    """An output of the graph, another operator, another zero point."""
    text = """g (float[3,37] x) => (int8[3,37] q, float[3,37] y, int8[37,3] t, float[3,37] w) {
        q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z)  a = QuantizeLinear(x, s, z)
        t = Transpose(a)  c = QuantizeLinear(x, s, z)  w = DequantizeLinear(c, s, k) }"""
    assert _types_after(text) == (0, [ir.DataType.INT8] * 3)
