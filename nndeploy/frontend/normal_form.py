# SPDX-License-Identifier: Apache-2.0
"""One way to say each thing: what old or unusual models say differently is rewritten, in place.

training information                          ->  none (the model is for inference)
a graph without a name                        ->  one with a name
an output that is listed again                ->  listed once; in a body a copy of the value
IR version 1 or 2, which import no operators  ->  version 1 of ai.onnx is imported
a size of -1, or one called "?", "None" ...   ->  a size that is not known
a sparse constant                             ->  a dense one (`sparse.py`)
an operator set that is imported again        ->  imported once
the domain "ai.onnx"                          ->  ""
numbers of few bits, as training writes them  ->  operators of ONNX (`lower_quant.py`)
"""

import re
from collections.abc import Set

import onnx

from nndeploy.frontend.free_names import FreeNames
from nndeploy.frontend.lower_quant import lower_quant
from nndeploy.frontend.shapes import symbolic_dims
from nndeploy.frontend.sparse import make_dense
from nndeploy.frontend.traversal import bodies_of, graphs_of, nodes_of
from nndeploy.frontend.unique_names import made_in
from nndeploy.graph.operator_rules import normal_domain

_NO_SYMBOL = re.compile(r"\W*|_+|-?\d+|none|null|nan|unk(nown)?([-_.]*\d+)?", re.IGNORECASE)
"""Names of sizes that exporters write where they know none: "?", "*", "-1", "None", "unk__12", "unknown"."""


def make_normal(model: onnx.ModelProto, nameless: Set[str] = frozenset()) -> None:
    """Rewrites the model as the module's docstring says; symbols in `nameless` are treated as names that say nothing.

    Raises:
        ModelError: a sparse constant, or an operator that is rewritten, is malformed.
    """
    model.ClearField("training_info")
    model.graph.name = model.graph.name or "model"
    if not model.opset_import:  # the gate saw that it may have none
        model.opset_import.add(domain="", version=1)
    _name_default_domain(model)
    _list_outputs_once(model)
    make_dense(model)
    lower_quant(model)
    for graph in graphs_of(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            _forget_nameless_sizes(value.type, nameless)


def _name_default_domain(model: onnx.ModelProto) -> None:
    """The gate saw that equal domains have equal versions."""
    for node in nodes_of(model):
        node.domain = normal_domain(node.domain)
    for function in model.functions:
        function.domain = normal_domain(function.domain)
    for owner in (model, *model.functions):
        versions = {normal_domain(opset.domain): opset.version for opset in owner.opset_import}
        del owner.opset_import[:]
        owner.opset_import.extend(onnx.OperatorSetIdProto(domain=d, version=v) for d, v in versions.items())


def _list_outputs_once(model: onnx.ModelProto) -> None:
    listed = {output.name: output for output in reversed(model.graph.output)}
    if len(listed) < len(model.graph.output):
        outputs = list(reversed(listed.values()))
        del model.graph.output[:]
        model.graph.output.extend(outputs)
    bodies = [body for node in nodes_of(model) for body in bodies_of(node)]
    free_name = FreeNames(name for graph in (model.graph, *bodies) for name in made_in(graph))
    for body in bodies:
        seen: set[str] = set()
        for output in body.output:
            if output.name in seen:
                copy = free_name(output.name)
                body.node.add(op_type="Identity", input=[output.name], output=[copy])
                output.name = copy
            seen.add(output.name)


def _forget_nameless_sizes(value_type: onnx.TypeProto, nameless: Set[str]) -> None:
    """Forgets sizes that are -1, or symbols that only say that nothing is known: each of these is a size of its own."""
    for dim in value_type.tensor_type.shape.dim if value_type.HasField("tensor_type") else ():
        if dim.dim_value < 0:
            dim.ClearField("dim_value")
    for dim in symbolic_dims(value_type):
        if dim.dim_param in nameless or _NO_SYMBOL.fullmatch(dim.dim_param):
            dim.ClearField("dim_param")
