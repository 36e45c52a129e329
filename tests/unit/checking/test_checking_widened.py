# SPDX-License-Identifier: Apache-2.0
"""A model of 16-bit floats is widened in a copy: the model itself stays what it is."""

import numpy as np
import onnx
import onnx.reference
import onnx_ir as ir

from nndeploy.checking.widened import has_short_floats, widened

TEXT = """<ir_version: 8, opset_import: ["": 18]>
network (float16[2,3] x) => (float16[2,3] y) {
    zero = Sub(x, x)
    one = Exp(zero)
    more = Add(x, one)
    y = Mul(more, x)
}"""


def model() -> ir.Model:
    return ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(TEXT)))


def test_the_model_stays_as_it_is() -> None:
    kept = model()
    before = ir.to_proto(kept).SerializeToString(deterministic=True)
    widened(kept)
    assert ir.to_proto(kept).SerializeToString(deterministic=True) == before


def test_inside_is_computed_in_32_bits_and_the_interface_stays() -> None:
    wide = widened(model())
    assert {value.dtype for value in (*wide.graph.inputs, *wide.graph.outputs)} == {ir.DataType.FLOAT16}
    assert has_short_floats(wide.graph)
    inside = [node.outputs[0] for node in wide.graph if node.op_type != "Cast"]
    assert [value.dtype for value in inside] == [ir.DataType.FLOAT] * 4
    proto = onnx.shape_inference.infer_shapes(ir.to_proto(wide), check_type=True, strict_mode=True)
    x = np.linspace(-3, 3, 6).astype(np.float16).reshape(2, 3)
    (y,) = onnx.reference.ReferenceEvaluator(proto).run(None, {"x": x})
    np.testing.assert_array_equal(y, ((x.astype(np.float32) + 1) * x).astype(np.float16))


STORED = """<ir_version: 8, opset_import: ["": 18]>
network (int64[2] places, float16[4,3] table) => (float16[2,3] y) {
    rows = Gather(table, places)
    y = Mul(rows, rows)
}"""


def test_constants_in_a_file_stay_there(tmp_path) -> None:
    path = tmp_path / "m.onnx"
    proto = onnx.shape_inference.infer_shapes(onnx.parser.parse_model(STORED))
    proto.graph.input.pop()
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.arange(12, dtype=np.float16).reshape(4, 3), "table"))
    onnx.save(proto, path, save_as_external_data=True, location="m.data", size_threshold=0)
    wide = widened(ir.load(path))
    table = wide.graph.initializers["table"]
    assert isinstance(table.const_value, ir.ExternalTensor)
    assert table.dtype == ir.DataType.FLOAT16
    ir.save(wide, tmp_path / "wide.onnx")
    (y,) = onnx.reference.ReferenceEvaluator(str(tmp_path / "wide.onnx")).run(None, {"places": np.array([3, -3])})
    np.testing.assert_array_equal(y, np.array([[81, 100, 121], [9, 16, 25]], np.float16))
