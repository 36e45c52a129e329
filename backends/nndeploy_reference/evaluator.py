# SPDX-License-Identifier: Apache-2.0
"""ONNX's evaluator with operators of our own where it errs, and with functions as models define them.

Each call of a function is evaluated over a copy whose references to attributes were resolved: so attributes that nobody
gives are absent, defaults count, and functions may stand in any order. Sparse initializers are made dense.

Source: the intermediate representation of ONNX: FunctionProto, references to attributes, optional inputs.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, defs, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops import load_op

from nndeploy_reference import (  # noqa: F401 - they fill the table
    attention,
    between,
    control_flow,
    convolutions,
    elementwise,
    image_decoder,
    machines,
    normalisation,
    pooling,
    products,
    recurrent,
    reductions,
    tokens,
)
from nndeploy_reference.operator_table import own_operator
from nndeploy_reference.tensors import dense

_FIRST_DEQUANTISE = 19
_Functions = Mapping[tuple[str, str], FunctionProto]


class Evaluator(ReferenceEvaluator):
    """ONNX's evaluator with the operators of the table."""

    def __init__(self, proto: Any, functions: Iterable[FunctionProto] | None = None, **options: Any) -> None:
        """Looks up the operators of `proto`; raises what the evaluator raises where it has none."""
        if isinstance(proto, ModelProto):
            functions = proto.functions
            options["opsets"] = {_domain(entry.domain): entry.version for entry in proto.opset_import}
            proto = proto.graph
        self._functions: _Functions = {(f.domain, f.name): f for f in functions or ()}
        super().__init__(proto, **options)

    def _init(self) -> None:
        self.functions_ = dict(self._functions)  # graphs inside nodes get them
        sparse = list(getattr(self.onnx_graph_, "sparse_initializer", []))
        self.inits_ = list(getattr(self.onnx_graph_, "initializer", []))
        super()._init()
        for tensor in sparse:
            values, indices = numpy_helper.to_array(tensor.values), numpy_helper.to_array(tensor.indices)
            self.rt_inits_[tensor.values.name] = dense(values, indices, list(tensor.dims))

    def _load_impl(self, node: NodeProto, input_types: Any = None) -> Any:
        implementation = self._implementation(node, input_types)
        return lambda call, run_params: _Declared(implementation(call, run_params), self.opsets.get(call.domain, 1))

    def _implementation(self, node: NodeProto, input_types: Any) -> Any:
        if (function := self._functions.get((node.domain, node.op_type))) is not None:
            return lambda call, run_params: _Call(call, run_params, function, self._functions)
        node.domain = _domain(node.domain)
        version = self.opsets.get(node.domain, 1)
        try:
            own = own_operator(node.domain, node.op_type, version)
        except defs.SchemaError:
            own = None  # the evaluator says so in its own words
        if own is not None:
            return own
        if node.domain == "" and node.op_type == "DequantizeLinear" and version < _FIRST_DEQUANTISE:
            return load_op("", node.op_type, _FIRST_DEQUANTISE)  # fewer types, the same meaning
        return super()._load_impl(node, input_types)


class _Declared:
    """An operator whose outputs get the element types that its schema declares: ONNX's evaluator widens some.

    Outputs without a name are None: it would take them for inputs that are absent.
    """

    def __init__(self, operator: Any, version: int) -> None:
        self._operator = operator
        try:
            schema = defs.get_schema(operator.op_type, version, operator.domain)
            self._inputs, self._outputs = ([p.type_str for p in of] for of in (schema.inputs, schema.outputs))
        except defs.SchemaError:  # a function
            self._inputs, self._outputs = [], []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operator, name)

    def run(self, *inputs: Any, **context: Any) -> tuple[Any, ...]:
        """Returns the operator's outputs."""
        bound = {text: getattr(value, "dtype", None) for text, value in zip(self._inputs, inputs, strict=False)}
        results = list(self._operator.run(*inputs, **context))
        for i, name in enumerate(self._operator.output):
            if not name and i < len(results):
                results[i] = None
        for i, (text, value) in enumerate(zip(self._outputs, results, strict=False)):
            dtype = bound.get(text, np.dtype(np.float32) if text == "tensor(float)" else None)
            if (
                isinstance(value, np.ndarray)
                and dtype is not None
                and value.dtype != dtype
                and dtype.kind not in "OSUT"
            ):
                results[i] = value.astype(dtype)
        return tuple(results)


class _Call(OpRun):
    """A call of a function of the model."""

    op_schema = None

    def __init__(self, node: NodeProto, run_params: Any, function: FunctionProto, functions: _Functions) -> None:
        given = {a.name: a for a in [*function.attribute_proto, *node.attribute]}
        self.function = Evaluator(_resolved(function, given), functions.values())
        plain = NodeProto()
        plain.CopyFrom(node)
        del plain.attribute[:]
        super().__init__(plain, run_params)

    def _run(self, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        names = self.function.input_names
        feeds = dict(zip(names, [*inputs, *[None] * (len(names) - len(inputs))], strict=True))
        return tuple(self.function.run(None, feeds, attributes={}))

    def _check_and_fix_outputs(self, res: tuple[Any, ...]) -> tuple[Any, ...]:
        return res


def _resolved(function: FunctionProto, given: Mapping[str, AttributeProto]) -> FunctionProto:
    """Returns a copy of a function with values in place of references to its attributes."""
    found = FunctionProto()
    found.CopyFrom(function)
    for entry in found.opset_import:
        entry.domain = _domain(entry.domain)
    _resolve(found.node, given)
    return found


def _resolve(nodes: Iterable[NodeProto], given: Mapping[str, AttributeProto]) -> None:
    for node in nodes:
        attributes = [_value(a, given) for a in node.attribute if not a.ref_attr_name or a.ref_attr_name in given]
        del node.attribute[:]
        node.attribute.extend(attributes)
        for attribute in node.attribute:
            for graph in [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]:
                _resolve(graph.node, given)


def _value(attribute: AttributeProto, given: Mapping[str, AttributeProto]) -> AttributeProto:
    found = AttributeProto()
    found.CopyFrom(given[attribute.ref_attr_name] if attribute.ref_attr_name else attribute)
    found.name = attribute.name
    return found


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name
