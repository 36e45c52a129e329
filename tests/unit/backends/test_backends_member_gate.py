# SPDX-License-Identifier: Apache-2.0
"""An ONNX model in a bundle passes the gate of a compile before a library reads it."""

from collections.abc import Callable
from typing import Any

import nndeploy_onnxruntime.plugin
import nndeploy_reference.plugin
import onnx
import pytest
from onnx import helper

from nndeploy.errors import BundleError, PolicyError
from nndeploy.plugin.interface import OpenOptions

PLUGINS = (nndeploy_onnxruntime.plugin.Plugin(), nndeploy_reference.plugin.Plugin())
X, Y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy")
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]


def model(*nodes: onnx.NodeProto, functions: Any = ()) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", [X], [Y])
    return helper.make_model(graph, functions=functions, opset_imports=OPSETS, ir_version=9)


def functions_in_functions() -> onnx.ModelProto:
    """Returns a model of 2^30 nodes, once its 31 functions are put in place of their calls."""
    functions = []
    for number in range(31):
        call = (f"f{number + 1}", "own") if number < 30 else ("Neg", "")
        nodes = [helper.make_node(call[0], [a], [b], domain=call[1]) for a, b in ("xa", "ay")]
        functions.append(helper.make_function("own", f"f{number}", ["x"], ["y"], nodes, OPSETS))
    return model(helper.make_node("f0", ["x"], ["y"], domain="own"), functions=functions)


def bodies_in_bodies() -> onnx.ModelProto:
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "other", [], [Y])
    inner = other
    for _ in range(20):
        node = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=other)
        inner = helper.make_graph([node], "inner", [], [Y])
    truth = helper.make_node("Constant", [], ["c"], value=helper.make_tensor("t", onnx.TensorProto.BOOL, [], [True]))
    return model(truth, node)


def code() -> onnx.ModelProto:
    return model(helper.make_node("PyOp", ["x"], ["y"], domain="own"))


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("made", "error"),
    [(functions_in_functions, BundleError), (bodies_in_bodies, BundleError), (code, PolicyError)],
    ids=lambda one: one.__name__,
)
def test_a_model_that_no_compile_would_read_is_refused(
    plugin: Any, made: Callable[[], onnx.ModelProto], error: type[Exception]
) -> None:
    with pytest.raises(error):
        plugin.open({"model.onnx": memoryview(made().SerializeToString())}, {}, OpenOptions())
