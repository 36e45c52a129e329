# SPDX-License-Identifier: Apache-2.0
"""Types and shapes of all values, inferred by onnx; a node that cannot work is a refusal that names it.

In comes a model that the checker accepts; out comes a copy in which every value that onnx can say something about has
its type, also inside bodies. Symbolic sizes are kept.

What a model says of its inputs is a promise. What it says of all else is only a remark, often stale (a tool changed the
batch size, or cut the model), so everything is inferred anew; of a remark on a value in between remain the element type
and the rank, and those only where nothing is inferred (of outputs: `declared_outputs.py`). A branch of an If may be one
that is never taken, so what does not fit inside one is not refused here.

Source: onnx ShapeInference.md.
"""

import re

import onnx
import onnx.defs

from nndeploy.errors import ModelError
from nndeploy.frontend.contrib_types import contrib_types_known
from nndeploy.frontend.loop_shapes import forget_shape, forget_unproven
from nndeploy.frontend.node_types import NodeTypes
from nndeploy.frontend.shape_data import with_shape_data
from nndeploy.frontend.traversal import bodies_of, graphs_of
from nndeploy.frontend.untyped import infer_shapes
from nndeploy.graph.operator_rules import normal_domain

_BLAME = re.compile(r"\(op_type:(?P<op>[^,)]*)(?:, node name: (?P<name>.*?))?\): (?:\[\w+\] )?(?P<what>.*)")
_CONSEQUENCE = "expected to have type but instead is null"


def infer_types(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns a copy of the model with the types of its values, outputs included. Nodes have names of their own.

    Raises:
        ModelError: a node cannot work on what it gets.
    """
    with contrib_types_known(model):
        _check_sizes(model)
        bare = _without_remarks(model)
        typed = _inferred(bare)
        while forget_unproven(bare, typed):
            typed = _inferred(bare)
        _add_remarks(typed, model)
        return with_shape_data(typed)


def forget_remarks(model: onnx.ModelProto, typed: onnx.ModelProto) -> None:
    """Gives the bodies of a model the types that they have in `typed`, and drops its remarks, in place.

    Engines build on remarks; those on values of operators that are not ONNX's own stay, nobody else knows these.
    """
    for graph, known in zip(graphs_of(model.graph), graphs_of(typed.graph), strict=True):
        _drop_inferable(graph)
        if graph is not model.graph:
            for values, types in ((graph.input, known.input), (graph.output, known.output)):
                for value, inferred in zip(values, types, strict=True):
                    value.type.CopyFrom(inferred.type)


def _check_sizes(model: onnx.ModelProto) -> None:
    """Refuses windows larger than what they slide over: onnx 1.23 makes sizes below 0 of them, with which Slice aborts.

    In a body, which may never run, a size below 0 is refused where a Slice reads it.

    Raises:
        ModelError: there is one.
    """
    if any(node.op_type == "Slice" for graph in graphs_of(model.graph) for node in graph.node):
        version = next((opset.version for opset in model.opset_import if not normal_domain(opset.domain)), 1)
        _check_sizes_in(model.graph, NodeTypes(version), does_run=True)


def _check_sizes_in(graph: onnx.GraphProto, known: NodeTypes, *, does_run: bool) -> None:
    known.enter(graph)
    for node in graph.node:
        for body in bodies_of(node):
            _check_sizes_in(body, known, does_run=False)
        if node.op_type == "Slice" and node.input:
            _check_size(node, "input", node.input[0], known)
        for name, _ in known.add(node):
            if does_run:
                _check_size(node, "output", name, known)


def _check_size(node: onnx.NodeProto, role: str, name: str, known: NodeTypes) -> None:
    shape = known.types.get(name, onnx.TypeProto()).tensor_type.shape
    size = min((dim.dim_value for dim in shape.dim), default=0)
    if size < 0:
        where = f"node {node.name!r:.80} ({node.op_type:.80})"
        raise ModelError(f"its {role} {name!r:.80} would have the size {size}", where=where)


def _inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    attempt = model
    for change in (lambda same: same, _with_default_attributes, _without_shapes):
        attempt = change(attempt)
        try:
            return infer_shapes(attempt, check_type=True, strict_mode=True)
        except Exception as err:  # whatever the library's C++ throws
            refusal, cause = _refusal(str(err), model), err
    if refusal is not None:
        raise refusal from cause
    try:
        return infer_shapes(model)
    except Exception as err:  # see above
        raise ModelError(f"the types cannot be inferred: {err}") from err


def _without_remarks(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drops the remarks on values that operators of ONNX produce; of others they are all that is known.

    Of the outputs of bodies their ranks are left: a node's outputs follow from those.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for graph in graphs_of(result.graph):
        inferable = _drop_inferable(graph)
        for output in (output for output in graph.output if output.name in inferable):
            if graph is result.graph:
                output.ClearField("type")
            else:
                _forget_sizes(output)
    return result


def _drop_inferable(graph: onnx.GraphProto) -> set[str]:
    """Drops the remarks on values that operators of ONNX produce, in place; returns these values."""
    inferable = {name for node in graph.node if _is_onnx(node) for name in node.output}
    kept = [info for info in graph.value_info if info.name not in inferable]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    return inferable


def _without_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drops the shapes that bodies and remarks have: they may be wrong."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for graph in graphs_of(result.graph):
        for value in (*graph.value_info, *graph.output, *(() if graph is result.graph else graph.input)):
            forget_shape(value)
    return result


def _forget_sizes(value: onnx.ValueInfoProto) -> None:
    for dim in value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ():
        dim.Clear()


def _is_onnx(node: onnx.NodeProto) -> bool:
    return bool(onnx.defs.has(node.op_type, domain=normal_domain(node.domain)))


def _add_remarks(typed: onnx.ModelProto, model: onnx.ModelProto) -> None:
    """Adds what `model` remarks on element types and ranks of the values that have no inferred shape, in place."""
    known = {info.name: info for info in typed.graph.value_info}
    for remark in model.graph.value_info:
        info = known.get(remark.name)
        if info is None:
            info = typed.graph.value_info.add(name=remark.name)
        if info.type.tensor_type.HasField("shape") or not remark.type.tensor_type.HasField("shape"):
            continue
        if info.type.tensor_type.elem_type in (0, remark.type.tensor_type.elem_type):
            info.type.tensor_type.elem_type = remark.type.tensor_type.elem_type
            rank = len(remark.type.tensor_type.shape.dim)
            info.type.tensor_type.shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in range(rank))


def _with_default_attributes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Writes the defaults of attributes out: onnx 1.23 cannot infer MeanVarianceNormalization without its axes."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    versions = {normal_domain(opset.domain): opset.version for opset in result.opset_import}
    for node in result.graph.node:
        domain = normal_domain(node.domain)
        if onnx.defs.has(node.op_type, max_inclusive_version=versions.get(domain, 1), domain=domain):
            schema = onnx.defs.get_schema(node.op_type, versions.get(domain, 1), domain)
            given = {attribute.name for attribute in node.attribute}
            node.attribute.extend(
                a.default_value for a in schema.attributes.values() if a.default_value.name and a.name not in given
            )
    return result


def _refusal(message: str, model: onnx.ModelProto) -> ModelError | None:
    """Returns the refusal for the first node that is to blame, None where only what lies inside Ifs is.

    A message has a line for every node that failed: of the main graph, of the bodies inside, and those that got no
    types because of the others.
    """
    lines = [line for line in message.splitlines() if line.strip() and _CONSEQUENCE not in line]
    blames = [match for line in lines if (match := _BLAME.search(line))]
    if not blames:
        return ModelError(" ".join(lines) or "the shapes cannot be inferred")
    main = {node.name for node in model.graph.node}
    for blame in blames:
        if blame["op"] != "If" and blame["name"] in main:
            where = f"node {blame['name']!r:.80} ({blame['op']:.80})"
            return ModelError(_innermost(blame["what"]), where=where, hint="its inputs do not fit the operator")
    return None


def _innermost(what: str) -> str:
    return what.rpartition("[ShapeInferenceError] ")[2].rpartition("[TypeInferenceError] ")[2]
