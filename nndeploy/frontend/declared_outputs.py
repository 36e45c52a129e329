# SPDX-License-Identifier: Apache-2.0
"""What a model declares of its outputs, held against what follows from its operators; the operators are right.

    inferred    declared      becomes
    [N, 3]      [1, 4]        [N, 3]        what is inferred stays; a warning where a fixed size or the rank differs
    [?, 3]      [1, 3]        [?, 3]        if some size of an input is open: the one may be that of a single run
    [?, 3]      [N, 3]        [?, 3]        if N is a size of an input: nothing says that it is the same one
    [?, 3]      [boxes, 3]    [boxes, 3]
    nothing     [1, boxes]    [?, boxes]    unless ranks depend on which branch of an If is taken

Exporters write outputs as they were in one run, or in another version of the model. ONNX Runtime warns and runs. What
is left of a declaration is compared with the reference's outputs later (`nndeploy.compiler.observed_outputs`).
"""

from collections.abc import Iterable, Mapping

import onnx
import onnx.helper

from nndeploy.errors import ModelError
from nndeploy.frontend.shapes import symbolic_dims
from nndeploy.frontend.traversal import bodies_of
from nndeploy.graph.element_names import DTYPES

_Dim = onnx.TensorShapeProto.Dimension


def add_declared(typed: onnx.ModelProto, declared: Mapping[str, onnx.TypeProto], is_open: bool) -> list[str]:
    """Adds what `declared` says of the outputs of a model with inferred types, in place; returns warnings.

    `is_open` says that some size of an input is not fixed.

    Raises:
        ModelError: the operators give an output another element type.
    """
    warnings = []
    varying = _of_varying_rank(typed.graph)
    symbols = {dim.dim_param for value in typed.graph.input for dim in symbolic_dims(value.type)}
    known = {value.name: value.type for value in typed.graph.input}
    for tensor in typed.graph.initializer:
        known[tensor.name] = onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
    for output in typed.graph.output:
        said = declared[output.name]
        if output.name in known:
            output.type.CopyFrom(known[output.name])
        if not output.type.WhichOneof("value"):
            output.type.CopyFrom(said)
        _check_element_type(output, said)
        is_tensor = output.type.WhichOneof("value") == "tensor_type"
        if not is_tensor or not said.tensor_type.HasField("shape") or output.name in varying:
            continue
        if not output.type.tensor_type.HasField("shape"):
            output.type.tensor_type.shape.dim.extend(_Dim() for _ in said.tensor_type.shape.dim)
        elif _contradict(output.type.tensor_type.shape, said.tensor_type.shape):
            shapes = [_text(each.tensor_type.shape) for each in (output.type, said)]
            warnings.append(f"output {output.name!r:.80} is {shapes[0]}, the model declares {shapes[1]}")
        if len(output.type.tensor_type.shape.dim) == len(said.tensor_type.shape.dim):
            for dim, claim in zip(output.type.tensor_type.shape.dim, said.tensor_type.shape.dim, strict=True):
                is_known = dim.HasField("dim_value") or dim.dim_param in symbols
                is_hint = claim.dim_param in symbols or (is_open and claim.HasField("dim_value"))
                if not is_known and not is_hint:
                    dim.CopyFrom(claim)
    return warnings


def _check_element_type(output: onnx.ValueInfoProto, said: onnx.TypeProto) -> None:
    is_, declared = output.type.tensor_type.elem_type, said.tensor_type.elem_type
    if is_ and declared and is_ != declared:
        what = f"it is {DTYPES.get(is_, is_)}, the model declares {DTYPES.get(declared, declared)}"
        raise ModelError(what, where=f"output {output.name!r:.80}")


def _contradict(inferred: onnx.TensorShapeProto, declared: onnx.TensorShapeProto) -> bool:
    if len(inferred.dim) != len(declared.dim):
        return True
    pairs = zip(inferred.dim, declared.dim, strict=True)
    return any(a.HasField("dim_value") and b.HasField("dim_value") and a.dim_value != b.dim_value for a, b in pairs)


def _of_varying_rank(graph: onnx.GraphProto) -> set[str]:
    """Returns the values whose rank depends on which branch of an If was taken."""
    ranked = {value.name for value in (*graph.value_info, *graph.output) if value.type.tensor_type.HasField("shape")}
    varying: set[str] = set()
    for node in graph.node:
        if node.op_type == "If":
            outputs = zip(node.output, *(body.output for body in bodies_of(node)), strict=False)
            varying.update(name for name, *values in outputs if len(_ranks(values)) > 1)
        elif varying.intersection(node.input):
            varying.update(set(node.output) - ranked)
    return varying


def _ranks(values: Iterable[onnx.ValueInfoProto]) -> set[int]:
    return {len(v.type.tensor_type.shape.dim) for v in values if v.type.tensor_type.HasField("shape")}


def _text(shape: onnx.TensorShapeProto) -> str:
    dims = [str(dim.dim_value) if dim.HasField("dim_value") else "?" for dim in shape.dim]
    return f"[{','.join(dims)}]"
