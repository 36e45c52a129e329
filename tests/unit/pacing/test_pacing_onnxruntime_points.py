# SPDX-License-Identifier: Apache-2.0
"""Pace points in a model's bytes: everything else stays as it was, and values keep their memory."""

import numpy as np
import onnx
import onnx.parser
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nndeploy_onnxruntime.library import inference_session, session_options
from nndeploy_onnxruntime.model_fields import values_until
from nndeploy_onnxruntime.pace_points import PACE_DOMAIN as DOMAIN
from nndeploy_onnxruntime.pace_points import with_points

from nndeploy.pacing.run.library import PaceLibrary

MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,3] x, bool c) => (float[2,3] y, float[2,3] r) {
  a = Exp(x)
  r = Relu(a)
  s = Add(a, r)
  t = If (c) <
    then_branch = t1 () => (float[2,3] u) { u = Neg(a) },
    else_branch = e1 () => (float[2,3] v) { v = Identity(s) }
  >
  m = Mul(t, s)
  y = Abs(m)
}"""


def paced() -> tuple[onnx.ModelProto, list[str]]:
    data, names = with_points(onnx.parser.parse_model(MODEL).SerializeToString())
    return onnx.load_from_string(data), names


def test_points_stand_behind_operators_whose_results_may_be_renamed() -> None:
    model, names = paced()
    assert names == ["If t", "Mul m"]  # a and s are read by bodies, r and y are outputs
    nodes = [(node.op_type, list(node.input), list(node.output)) for node in model.graph.node]
    assert nodes == [
        ("Exp", ["x"], ["a"]), ("Relu", ["a"], ["r"]), ("Add", ["a", "r"], ["s"]), ("If", ["c"], ["t"]),
        ("Pace", ["t"], ["t/paced"]), ("Mul", ["t/paced", "s"], ["m"]),
        ("Pace", ["m"], ["m/paced"]), ("Abs", ["m/paced"], ["y"]),
    ]  # fmt: skip
    points = [onnx.helper.get_node_attr_value(node, "point") for node in model.graph.node if node.domain == DOMAIN]
    assert points == [0, 1]


def test_operators_stand_before_the_next_point_in_the_order_in_which_they_run() -> None:
    model = onnx.parser.parse_model(MODEL).SerializeToString()
    assert values_until(model, ["If t", "Abs y"]) == [("a", "r", "s", "t"), ("m", "y")]
    assert values_until(model, ["Add s", "Abs y"], ["If t", "Exp a", "Add s"]) == [("t", "a", "r", "s"), ("m", "y")]
    assert values_until(model, ["all of it"]) == [("a", "r", "s", "t", "m", "y")]


def test_without_points_it_is_the_model_that_it_was() -> None:
    model, _ = paced()
    back = {node.output[0]: node.input[0] for node in model.graph.node if node.domain == DOMAIN}
    nodes = [node for node in model.graph.node if node.domain != DOMAIN]
    for node in nodes:
        node.input[:] = [back.get(name, name) for name in node.input]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    assert [(one.domain, one.version) for one in model.opset_import][-1] == (DOMAIN, 1)
    del model.opset_import[-1]
    assert model == onnx.parser.parse_model(MODEL)


def test_many_points_have_their_numbers() -> None:
    nodes = [onnx.helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(300)]
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [2]) for name in ("v0", "v300"))
    data, names = with_points(onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [x], [y])).SerializeToString())
    points = [node for node in onnx.load_from_string(data).graph.node if node.domain == DOMAIN]
    assert [onnx.helper.get_node_attr_value(node, "point") for node in points] == list(range(299))
    assert len(names) == 299


@given(st.data())
def test_broken_bytes_are_refused_or_stay_what_they_mean(data: st.DataObject) -> None:
    whole = bytearray(onnx.parser.parse_model(MODEL).SerializeToString())
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        with_points(cut)
    except (ValueError, UnicodeDecodeError):
        return


def test_a_number_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="broken number"):
        with_points(b"\x80" * 20)


def test_values_stay_in_their_memory(pace_library: PaceLibrary) -> None:
    model, names = paced()
    session = inference_session(model.SerializeToString(), session_options(1, [pace_library.path]))
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    y, r = session.run(None, {"x": x, "c": np.array(True)})  # the operator fails where it is given other memory
    np.testing.assert_allclose(r, np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(y, np.abs(-np.exp(x) * 2 * np.exp(x)), rtol=1e-6)
    assert len(names) == 2
