# SPDX-License-Identifier: Apache-2.0
"""What tests of passes share: graphs from ONNX text, one pass run and checked, outputs before and after compared.

`rewritten` runs a pass as `optimise` does (order, uses, signature are checked) and demands that a second run changes
nothing. Outputs are compared with ONNX's reference evaluator, in float64 where the graph is of float64: a wrong
rewrite is then off by far more than rounding. ONNX Runtime, without optimisations, is asked where the evaluator's
older operators are not right.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from hypothesis import HealthCheck, settings
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from nndeploy.graph.invariants import check_graph, check_signature, signature_of
from nndeploy.passes import OPTIMISATIONS
from nndeploy.passes.model_pass import ModelPass

Feeds = Mapping[str, np.ndarray]


def examples(count: int = 50) -> settings:
    """Returns how a property test draws: the same examples every time, or `NNDEPLOY_EXAMPLES` new ones."""
    wanted = os.environ.get("NNDEPLOY_EXAMPLES")
    slow = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    return settings(
        max_examples=int(wanted or count), derandomize=wanted is None, deadline=None, suppress_health_check=slow
    )


def graph(body: str, *, opset: int = 17, domains: str = "", data_prop: bool = True) -> ir.Model:
    """Returns a model from the text of a graph, `(float[N] x) => (float[N] y) { ... }`, with inferred shapes."""
    text = f'<ir_version: 8, opset_import: ["": {opset}{domains}]> g {body}'
    return from_proto(onnx.parser.parse_model(text), data_prop=data_prop)


def from_proto(proto: onnx.ModelProto, *, data_prop: bool = True) -> ir.Model:
    """Returns the checked model with inferred shapes, as the frontend hands it on."""
    onnx.checker.check_model(proto)
    return ir.from_proto(onnx.shape_inference.infer_shapes(proto, check_type=True, data_prop=data_prop))


def pass_named(name: str) -> ModelPass:
    """Returns the pass of the list that has this name."""
    (found,) = (optimisation for optimisation in OPTIMISATIONS if optimisation.name == name)
    return found


def rewritten(name: str, model: ir.Model) -> int:
    """Runs one pass, checks what every pass must keep, and returns how many places it changed."""
    optimisation, signature = pass_named(name), signature_of(model)
    check_graph(model)
    count = optimisation.rewrite(model)
    check_graph(model)
    check_signature(model, signature)
    again = optimisation.rewrite(model)
    assert again == 0, f"{name} changed {again} more places when run again"
    return count


def nodes(model: ir.Model) -> list[str]:
    """Returns a line for each node of the main graph: `y = Relu(x)`, attributes by name in angle brackets."""
    return [node_line(node) for node in model.graph]


def node_line(node: ir.Node) -> str:
    """Returns a node as one line."""
    attributes = ", ".join(f"{name}={_attribute(node.attributes[name])}" for name in sorted(node.attributes))
    inputs = ", ".join(value.name if value is not None and value.name else "" for value in node.inputs)
    outputs = ", ".join(value.name or "" for value in node.outputs)
    return f"{outputs} = {node.op_type}{f'<{attributes}>' if attributes else ''}({inputs})"


def _attribute(attribute: ir.Attr) -> str:
    match attribute.type:
        case ir.AttributeType.INTS:
            return str(list(attribute.as_ints()))
        case ir.AttributeType.TENSOR:
            return str(attribute.as_tensor().numpy().tolist())
        case ir.AttributeType.GRAPH:
            return "{" + "; ".join(node_line(node) for node in attribute.as_graph()) + "}"
    return str(attribute.value)


def constants(model: ir.Model) -> dict[str, Any]:
    """Returns the initializers of the main graph as nested lists, by name."""
    return {name: value.const_value.numpy().tolist() for name, value in model.graph.initializers.items()}


def constant(model: ir.Model, name: str) -> np.ndarray:
    """Returns one initializer of the main graph."""
    return model.graph.initializers[name].const_value.numpy()


def run_reference(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    """Returns what ONNX's reference evaluator computes."""
    with np.errstate(all="ignore"):
        return list(ReferenceEvaluator(model).run(None, dict(feeds)))


def run_onnxruntime(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    """Returns what ONNX Runtime computes with all of its own optimisations off."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(feeds)))


def random_feeds(model: onnx.ModelProto, seed: int = 0, dims: Mapping[str, int] | None = None) -> dict[str, np.ndarray]:
    """Returns a random array for each input; symbolic sizes are `dims`, 2 where not given."""
    generator = np.random.default_rng(seed)
    feeds = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        sizes = {"": 2, **(dims or {})}
        shape = [
            dim.dim_value if dim.HasField("dim_value") else sizes.get(dim.dim_param, 2) for dim in tensor.shape.dim
        ]
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        feeds[value.name] = (generator.standard_normal(shape) * 3).astype(dtype)
    return feeds


def assert_close(got: Any, want: Any, tolerance: float, what: str = "") -> None:
    """Asserts that two outputs agree: the same type and shape, NaN and infinities in the same places.

    `tolerance` is relative to the largest finite number of the expected output; integers and text must be equal.
    """
    if isinstance(want, list | tuple):
        assert len(got) == len(want), what
        for one, other in zip(got, want, strict=True):
            assert_close(one, other, tolerance, what)
        return
    if want is None or isinstance(want, Mapping):
        assert got == want, what
        return
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype, f"{what}: {got.dtype} instead of {want.dtype}"
    assert got.shape == want.shape, f"{what}: {got.shape} instead of {want.shape}"
    if want.dtype.kind in "biuOSU":
        np.testing.assert_array_equal(got, want, what)
        return
    if want.dtype.kind not in "fc":  # a type of ml_dtypes
        got, want = got.astype(np.float64), want.astype(np.float64)
    scale = float(np.max(np.abs(want[np.isfinite(want)]), initial=0.0))
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(scale, 1e-30), equal_nan=True, err_msg=what)


def assert_same_outputs(
    name: str | Sequence[str],
    proto: onnx.ModelProto,
    feeds: Feeds,
    *,
    tolerance: float = 1e-9,
    run: Any = run_reference,
) -> int:
    """Runs passes by name on a model and asserts that its outputs stay; returns how many places they changed."""
    model, names = from_proto(proto), [name] if isinstance(name, str) else name
    count = sum(rewritten(one, model) for one in names)
    after = ir.to_proto(model)
    onnx.checker.check_model(after)
    for value, got, want in zip(proto.graph.output, run(after, feeds), run(proto, feeds), strict=True):
        assert_close(got, want, tolerance, f"{value.name} after {', '.join(names)}")
    return count


class GraphBuilder:
    """Puts a graph together node by node; values are named v0, v1, ... in the order in which they are made."""

    def __init__(self, opset: int = 17, dtype: type = np.float64) -> None:
        self.opset, self.dtype = opset, np.dtype(dtype)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._count = 0

    def name(self) -> str:
        """Returns a name that no value has yet."""
        self._count += 1
        return f"v{self._count - 1}"

    def input(self, shape: Sequence[int | str], dtype: Any = None) -> str:
        """Returns the name of a new input of the graph."""
        name, element = self.name(), helper.np_dtype_to_tensor_dtype(np.dtype(dtype or self.dtype))
        self._inputs.append(helper.make_tensor_value_info(name, element, shape))
        return name

    def constant(self, array: Any, dtype: Any = None) -> str:
        """Returns the name of a new initializer."""
        name = self.name()
        self._constants.append(numpy_helper.from_array(np.asarray(array, dtype=dtype or self.dtype), name))
        return name

    def node(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """Returns the name of the first output of a new node."""
        names = [self.name() for _ in range(outputs)]
        self._nodes.append(helper.make_node(op_type, inputs, names, name=f"n{len(self._nodes)}", **attributes))
        return names[0]

    def with_axes(self, op_type: str, value: str, axes: Sequence[int]) -> str:
        """Returns the output of a Squeeze or Unsqueeze, whose axes are an attribute up to opset 12."""
        if self.opset < 13:
            return self.node(op_type, value, axes=axes)
        return self.node(op_type, value, self.constant(axes, np.int64))

    def model(self, *outputs: str, rank: int | None = None) -> onnx.ModelProto:
        """Returns the model with these outputs; types are inferred, `rank` is for shapes that are not."""
        untyped = [onnx.ValueInfoProto(name=name) for name in outputs]
        body = helper.make_graph(self._nodes, "g", self._inputs, untyped, self._constants)
        proto = helper.make_model(body, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        inferred = onnx.shape_inference.infer_shapes(proto)
        for value in inferred.graph.output:
            assert value.type.HasField("tensor_type"), f"the type of {value.name} was not inferred"
            if not value.type.tensor_type.HasField("shape"):
                assert rank is not None, f"the shape of {value.name} was not inferred"
                element = value.type.tensor_type.elem_type
                value.CopyFrom(helper.make_tensor_value_info(value.name, element, [None] * rank))
        return inferred
