# SPDX-License-Identifier: Apache-2.0
"""A model and its inputs -> its outputs: nodes in order, functions, graphs of nodes, defaults of attributes.

    evaluate(model, {"x": x}) -> {"y": y}

Source: the intermediate representation of ONNX (docs/IR.md): scopes, functions, optional inputs, attribute references.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TypeProto,
    helper,
    numpy_helper,
)

from oracle import families  # noqa: F401 - fills the registry
from oracle.registry import (
    Call,
    InvalidError,
    MissingError,
    Value,
    element_dtype,
    function_of,
    results_as_declared,
    schema_of,
    takes_values,
    widened,
)

Scope = dict[str, Value]


Noise = Callable[[Value], Value]
"""Moves a result a little, as another order of rounding would."""


def evaluate(model: ModelProto, inputs: Mapping[str, Value], noise: Noise | None = None) -> dict[str, Value]:
    """Returns all outputs of a model by name; with `noise` every result of an operator is moved a little.

    Raises:
        InvalidError: the specification forbids the model or these inputs.
        UnspecifiedError: it leaves open what comes out.
        MissingError: there is no such operator.
    """
    opsets = {_domain(entry.domain): entry.version for entry in model.opset_import}
    functions = {(_domain(f.domain), f.name, f.overload): f for f in model.functions}
    with np.errstate(all="ignore"):
        return _Frame(opsets, functions, noise=noise).run_graph(model.graph, dict(inputs))


def evaluate_node(node: NodeProto, opsets: Mapping[str, int], inputs: list[Value]) -> list[Value]:
    """Returns the outputs of one node; raises as `evaluate` does."""
    with np.errstate(all="ignore"):
        return _Frame(opsets, {}).run_node(node, inputs, {})


class _Frame:
    """What is the same for all nodes of one model or of one call of a function."""

    def __init__(
        self, opsets: Mapping[str, int], functions: Any, arguments: Any = None, noise: Noise | None = None
    ) -> None:
        self.opsets, self.noise = opsets, noise
        self.functions: Mapping[Any, FunctionProto] = functions
        self.arguments: Mapping[str, AttributeProto] = arguments or {}

    def run_graph(self, graph: GraphProto, inputs: Scope, outer: Scope | None = None) -> Scope:
        scope = dict(outer or {})
        scope |= {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        scope |= {tensor.values.name: dense(tensor) for tensor in graph.sparse_initializer}
        scope |= inputs
        if absent := [info.name for info in graph.input if info.name not in scope]:
            raise InvalidError(f"no value of the input {absent[0]!r}")
        self.run_nodes(graph.node, scope)
        return {info.name: scope[info.name] for info in graph.output}

    def run_nodes(self, nodes: Sequence[NodeProto], scope: Scope) -> None:
        for node in nodes:
            inputs = [scope[name] if name else None for name in node.input]
            outputs = self.run_node(node, inputs, scope)
            outputs = outputs if self.noise is None else list(map(self.noise, outputs))
            scope |= {name: value for name, value in zip(node.output, outputs, strict=False) if name}

    def run_node(self, node: NodeProto, inputs: list[Value], scope: Scope) -> list[Value]:
        domain = _domain(node.domain)
        if function := self.functions.get((domain, node.op_type, node.overload)):
            return self.run_function(function, node, inputs)
        schema = schema_of(domain, node.op_type, self.opsets.get(domain, 1))
        if schema is None:
            raise MissingError(f"{domain}.{node.op_type} of opset {self.opsets.get(domain)}")
        attributes = self.attributes_of(node, schema.attributes)
        compute = function_of(domain, node.op_type, schema.since_version)
        if compute is None:
            return self.run_body(schema, node, inputs)

        def run(graph: GraphProto, values: Sequence[Value]) -> list[Value]:
            names = [info.name for info in graph.input]
            return list(self.run_graph(graph, dict(zip(names, values, strict=True)), scope).values())

        call = Call(node, schema.since_version, attributes, [element_dtype(value) for value in inputs], run)
        result = compute(call, *(inputs if takes_values(compute) else map(widened, inputs)))
        outputs = list(result) if isinstance(result, tuple) else [result]
        if takes_values(compute):
            return outputs
        return results_as_declared(schema, inputs, outputs[: max(len(node.output), 1)])

    def attributes_of(self, node: NodeProto, declared: Mapping[str, Any]) -> dict[str, Any]:
        found = {
            name: value_of_attribute(attribute.default_value)
            for name, attribute in declared.items()
            if attribute.default_value.name
        }
        return found | {a.name: value_of_attribute(a) for a in self.resolved(node)}

    def resolved(self, node: NodeProto) -> list[AttributeProto]:
        """Returns the attributes of a node of a function with the caller's values in place of references."""
        found = []
        for attribute in node.attribute:
            if not attribute.ref_attr_name:
                found.append(attribute)
            elif attribute.ref_attr_name in self.arguments:
                given = AttributeProto()
                given.CopyFrom(self.arguments[attribute.ref_attr_name])
                given.name = attribute.name
                found.append(given)
        return found

    def run_function(self, function: FunctionProto, node: NodeProto, inputs: list[Value]) -> list[Value]:
        arguments = {attribute.name: attribute for attribute in function.attribute_proto}
        arguments |= {attribute.name: attribute for attribute in self.resolved(node)}
        opsets = {_domain(entry.domain): entry.version for entry in function.opset_import}
        scope: Scope = {name: inputs[i] if i < len(inputs) else None for i, name in enumerate(function.input)}
        _Frame({**self.opsets, **opsets}, self.functions, arguments, self.noise).run_nodes(function.node, scope)
        return [scope[name] for name in function.output]

    def run_body(self, schema: Any, node: NodeProto, inputs: list[Value]) -> list[Value]:
        """Computes an operator by the function that its schema gives."""
        body, plain = FunctionProto(), NodeProto()
        plain.CopyFrom(node)
        del plain.attribute[:]
        plain.attribute.extend(self.resolved(node))
        if schema.has_function:
            body.CopyFrom(schema.function_body)
        elif schema.has_context_dependent_function:
            types = [type_of(value).SerializeToString() for value in inputs]
            body.ParseFromString(schema.get_context_dependent_function(plain.SerializeToString(), types))
        else:
            raise MissingError(f"{node.domain}.{node.op_type}-{schema.since_version}")
        defaults = [a.default_value for a in schema.attributes.values() if a.default_value.name]
        body.attribute_proto.extend(defaults)
        return self.run_function(body, plain, inputs)


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def type_of(value: Value) -> TypeProto:
    """Returns the type of a value, an empty one where it is absent."""
    if value is None:
        return TypeProto()
    if isinstance(value, list):
        return helper.make_sequence_type_proto(type_of(value[0]))
    array = np.asarray(value)
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def value_of_attribute(attribute: AttributeProto) -> Any:
    """Returns an attribute as plain Python: text as str, tensors as arrays, graphs and types as they are."""
    if attribute.type == AttributeProto.TENSOR:
        return numpy_helper.to_array(attribute.t)
    if attribute.type == AttributeProto.TENSORS:
        return [numpy_helper.to_array(tensor) for tensor in attribute.tensors]
    if attribute.type == AttributeProto.SPARSE_TENSOR:
        return dense(attribute.sparse_tensor)
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    is_text = attribute.type == AttributeProto.STRINGS
    return [item.decode() if is_text else item for item in value] if _is_repeated(attribute) else value


def _is_repeated(attribute: AttributeProto) -> bool:
    return attribute.type in (AttributeProto.FLOATS, AttributeProto.INTS, AttributeProto.STRINGS)


def dense(tensor: SparseTensorProto) -> Any:
    """Returns a sparse tensor with its zeros: indices are linear, or one row of coordinates for each value."""
    values, indices = numpy_helper.to_array(tensor.values), numpy_helper.to_array(tensor.indices)
    found = np.zeros(list(tensor.dims), values.dtype)
    for value, index in zip(values, indices, strict=True):
        found[tuple(index) if indices.ndim == 2 else np.unravel_index(index, found.shape)] = value
    return found
