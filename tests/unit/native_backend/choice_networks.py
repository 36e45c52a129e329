# SPDX-License-Identifier: Apache-2.0
"""A network whose last nodes stand in the branches of an If, in one of them with another end: same ranks, other sizes.

What the branches give is known from two networks without an If: one ends as before, the other as the branch does.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from native_models import Array
from onnx import TensorProto, helper
from oracle.in_float64 import outputs_in_float64

CHOICE = "choice"
"""The input that decides."""


@dataclass(frozen=True, eq=False)
class ChoiceNetwork:
    """`flat` are networks without the If, for true and for false; `results` name there what each output is."""

    model: onnx.ModelProto
    flat: tuple[onnx.ModelProto, onnx.ModelProto]
    results: tuple[Mapping[str, str], Mapping[str, str]]

    def inputs(self, given: Mapping[str, Array], truth: bool) -> dict[str, Array]:
        """Returns the inputs of a call that takes one of the branches."""
        return {**given, CHOICE: np.array(truth)}

    def wanted(self, given: Mapping[str, Array], truth: bool) -> dict[str, Array]:
        """Returns the outputs in float64."""
        which = 0 if truth else 1
        values = outputs_in_float64(self.flat[which], given)
        return {name: values[result] for name, result in self.results[which].items()}


def with_choice(model: onnx.ModelProto, dice: random.Random) -> ChoiceNetwork | None:
    """Returns a network with an If, None where no value of a known type leaves its last nodes."""
    nodes = list(model.graph.node)
    first = dice.randrange(len(nodes))
    before, last = nodes[:first], nodes[first:]
    infos = {one.name: one for one in (*model.graph.value_info, *model.graph.output)}
    made = [name for node in last for name in node.output if name]
    leaving = [one.name for one in model.graph.output if one.name in made]
    if not leaving or any(name not in infos for name in made):
        return None
    renamed = {name: f"{name}_other" for name in made}
    others = [_renamed(node, renamed) for node in last]
    ends, ended = [], {}
    for name in leaving:
        ended[name] = f"{name}_ended"
        ends.append(_end(renamed[name], ended[name], infos[name], dice))
    condition, turned = CHOICE, []
    if dice.random() < 0.5:
        condition = "turned"
        turned = [helper.make_node("Not", [CHOICE], [condition], name="turned")]
    kinds = {name: infos[name].type.tensor_type.elem_type for name in leaving}
    then, otherwise = (
        helper.make_graph(
            body, body_name, [], [helper.make_tensor_value_info(names[name], kinds[name], None) for name in leaving],
            value_info=[_info(infos[name], inside[name]) for name in made if inside[name] not in names.values()],
        )
        for body, body_name, inside, names in (
            (last, "same", dict(zip(made, made, strict=True)), {name: name for name in leaving}),
            ([*others, *ends], "other", renamed, ended),
        )
    )  # fmt: skip
    if turned:
        then, otherwise = otherwise, then
    after, outputs, behind = [], {}, []
    for name in leaving:
        chosen, output = f"{name}_chosen", f"{name}_chosen"
        if kinds[name] == TensorProto.FLOAT and dice.random() < 0.5:
            output = f"{name}_behind"
            behind.append(name)
            after.append(helper.make_node("Abs", [chosen], [output], name=output))
        outputs[name] = output
    choice = helper.make_node(
        "If", [condition], [f"{name}_chosen" for name in leaving], name="If", then_branch=then, else_branch=otherwise
    )
    kept = [one for one in model.graph.output if one.name not in leaving]
    said = [helper.make_tensor_value_info(outputs[name], kinds[name], None) for name in leaving]
    whole = _model(model, [*before, *turned, choice, *after], [*kept, *said])
    whole.graph.input.append(helper.make_tensor_value_info(CHOICE, TensorProto.BOOL, []))
    abs_of = {name: helper.make_node("Abs", [name], [f"{name}_abs"]) for name in (*behind, *map(ended.get, behind))}
    flat_then = _model(model, [*before, *last, *(abs_of[name] for name in behind)], [])
    flat_other = _model(model, [*before, *others, *ends, *(abs_of[ended[name]] for name in behind)], [])
    unchanged = {one.name: one.name for one in kept}
    first_results = {outputs[name]: f"{name}_abs" if name in behind else name for name in leaving}
    other_results = {outputs[name]: ended[name] + ("_abs" if name in behind else "") for name in leaving}
    whole = onnx.shape_inference.infer_shapes(whole, data_prop=True)
    return ChoiceNetwork(whole, (flat_then, flat_other), (unchanged | first_results, unchanged | other_results))


def _model(
    model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], outputs: Sequence[onnx.ValueInfoProto]
) -> onnx.ModelProto:
    """Returns a model with other nodes and outputs."""
    graph, inside = model.graph, {name for node in nodes for name in node.output}
    infos = [one for one in graph.value_info if one.name in inside]
    made = helper.make_graph(nodes, graph.name, graph.input, outputs, graph.initializer, value_info=infos)
    return helper.make_model(made, opset_imports=model.opset_import, ir_version=model.ir_version)


def _renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    other = onnx.NodeProto()
    other.CopyFrom(node)
    other.name = f"{node.name}_other"
    other.input[:] = [names.get(name, name) for name in node.input]
    other.output[:] = [names.get(name, name) for name in node.output]
    return other


def _end(value: str, output: str, info: onnx.ValueInfoProto, dice: random.Random) -> onnx.NodeProto:
    """Returns a last node, which now and then doubles the first axis."""
    kind = info.type.tensor_type
    rank = len(kind.shape.dim) if kind.HasField("shape") else 0
    if rank and dice.random() < 0.4:
        return helper.make_node("Concat", [value, value], [output], name=output, axis=0)
    return helper.make_node(
        "Neg" if kind.elem_type == TensorProto.FLOAT else "Identity", [value], [output], name=output
    )


def _info(info: onnx.ValueInfoProto, name: str) -> onnx.ValueInfoProto:
    other = onnx.ValueInfoProto()
    other.CopyFrom(info)
    other.name = name
    return other
