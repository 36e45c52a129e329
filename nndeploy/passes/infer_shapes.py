# SPDX-License-Identifier: Apache-2.0
"""y = f(x): sizes of y that were not known -> sizes that follow from x and from constants that are new.

The frontend inferred the shapes of the model as it came; what other passes fold since (the target of a Reshape, say)
tells more, which in turn lets them fold more. Changes no node.

Conditions: an operator of ONNX's own domain without bodies; all inputs are tensors of known rank. Of operators of
ai.onnx.ml the type alone is added; `name-sizes` knows their sizes. What is known stays:
a size is only ever added, and where the inference contradicts what is there, the node is left alone. Outputs of the
graph that have a shape keep it: it is the interface. Runs in branches of If too.

Source: ONNX's own shape inference, one node at a time; `classical_sizes.py` of `nndeploy/graph`.
"""

from collections.abc import Mapping, Sequence, Set

import onnx
import onnx_ir as ir

from nndeploy.graph.classical_sizes import DOMAIN, learn_type
from nndeploy.graph.constants import MAX_SMALL_SIZE, constant_tensor
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.nodes import bodies
from nndeploy.graph.operators import graphs_entered_without_inputs, is_overridden, static_shape
from nndeploy.passes.model_pass import ModelPass


class InferShapes(ModelPass):
    """Adds sizes that have become known."""

    name = "infer-shapes"

    def rewrite(self, model: ir.Model) -> int:
        """Writes shapes into values; returns how many values it learnt of."""
        edits, kept = GraphEdits(model), {output for output in model.graph.outputs if output.shape is not None}
        return sum(
            _learn_type(node, model) or (_may_tell_more(node, edits) and _learn_outputs(node, edits.opset, kept))
            for graph in graphs_entered_without_inputs(model.graph)
            for node in graph
        )


def _learn_type(node: ir.Node, model: ir.Model) -> bool:
    return node.domain == DOMAIN and not is_overridden(node, model) and learn_type(node)


def _may_tell_more(node: ir.Node, edits: GraphEdits) -> bool:
    if all(static_shape(output) is not None for output in node.outputs) or not edits.is_standard(node):
        return False
    return all(value is None or _is_ranked_tensor(value) for value in node.inputs) and next(bodies(node), None) is None


def _is_ranked_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.TensorType) and value.shape is not None


def _learn_outputs(node: ir.Node, opset: int, kept: Set[ir.Value]) -> int:
    types = _infer(node, opset)
    named = [output for output in node.outputs if output not in kept and output.name in types]
    return sum(_learn(output, types[output.name or ""]) for output in named)


def _infer(node: ir.Node, opset: int) -> Mapping[str, onnx.TypeProto]:
    inputs = {value.name or "": value for value in node.inputs if value is not None}
    types = {name: _type_proto(value) for name, value in inputs.items()}
    data = {name: tensor for name, value in inputs.items() if (tensor := _small_integers(value)) is not None}
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, "")
        return onnx.shape_inference.infer_node_outputs(schema, ir.serde.serialize_node(node), types, data)
    except (onnx.defs.SchemaError, onnx.shape_inference.InferenceError, onnx.checker.ValidationError):
        return {}


def _type_proto(value: ir.Value) -> onnx.TypeProto:
    assert value.dtype is not None, "a tensor has an element type"
    assert value.shape is not None, "the caller looked at it"
    dims = [_size_or_name(dim) for dim in value.shape]
    return onnx.helper.make_tensor_type_proto(int(value.dtype), dims)


def _small_integers(value: ir.Value) -> onnx.TensorProto | None:
    tensor = constant_tensor(value)
    if tensor is None or tensor.size > MAX_SMALL_SIZE or not tensor.dtype.is_integer():
        return None
    return onnx.numpy_helper.from_array(tensor.numpy(), value.name)


def _learn(output: ir.Value, inferred: onnx.TypeProto) -> bool:
    tensor, before = inferred.tensor_type, output.shape
    if not tensor.HasField("shape") or output.dtype not in (None, tensor.elem_type):
        return False
    dims = [_dim(dim) for dim in tensor.shape.dim]
    if before is not None and not _agree(before, dims):
        return False
    known = [None] * len(dims) if before is None else [_size_or_name(dim) for dim in before]
    merged = [new if isinstance(new, int) or old is None else old for old, new in zip(known, dims, strict=True)]
    if before is not None and merged == known:
        return False
    output.shape = ir.Shape(merged)
    output.type = output.type or ir.TensorType(ir.DataType(tensor.elem_type))
    return True


def _agree(before: ir.Shape, dims: Sequence[int | str | None]) -> bool:
    if len(before) != len(dims):
        return False
    pairs = zip(before, dims, strict=True)
    return all(old == new for old, new in pairs if isinstance(old, int) and isinstance(new, int))


def _size_or_name(dim: int | ir.SymbolicDim) -> int | str | None:
    return dim if isinstance(dim, int) else dim.value


def _dim(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    match dim.WhichOneof("value"):
        case "dim_value":
            return dim.dim_value
        case "dim_param":
            return dim.dim_param
    return None
