# SPDX-License-Identifier: Apache-2.0
"""A call of a function that the model defines -> the nodes of its body, in the caller's names.

    f<k, m = 3>(a) => (b) { t = Elu<alpha = @k>(a)  b = LeakyRelu<alpha = @m>(t) }
    y = f<k = 2>(x)   ->   f/t = Elu<alpha = 2>(x)   y = LeakyRelu<alpha = 3>(f/t)

An attribute has the value of the call, else the function's default; an attribute that refers to one that has neither
is left out. Inputs that the call leaves out are left out inside; outputs that nobody asked for get names of their own.
In comes a model whose wiring was checked, and in which no function calls itself.

Source: ONNX IR.md, "Functions".
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import onnx
import onnx.helper

from nndeploy.errors import ModelError
from nndeploy.frontend.free_names import FreeNames
from nndeploy.frontend.unique_names import made_in, rename_made
from nndeploy.graph.operator_rules import normal_domain
from nndeploy.onnx_gate.limits import PROTOBUF_MAX_BYTES

Attributes: TypeAlias = Mapping[str, onnx.AttributeProto]
FunctionKey: TypeAlias = tuple[str, str, str]

_MAX_NAME = 80


def function_key(proto: onnx.NodeProto | onnx.FunctionProto) -> FunctionKey:
    """Returns what tells one function from another, of a function or of a call."""
    name = proto.op_type if isinstance(proto, onnx.NodeProto) else proto.name
    return normal_domain(proto.domain), name, proto.overload


@dataclass(slots=True)
class Calls:
    """Puts bodies in the place of calls; `free_name` gives names to the values inside."""

    free_name: FreeNames
    _num_attribute_bytes: int = 0

    def body(self, call: onnx.NodeProto, function: onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
        """Yields the function's nodes as the call wants them; those that are calls themselves stay calls.

        Raises:
            ModelError: the attributes that are put in place are larger than a model may be.
        """
        inside = {name: call.input[i] if i < len(call.input) else "" for i, name in enumerate(function.input)}
        made = {name for node in function.node for name in node.output if name}
        copies = []
        for name, wanted in zip(function.output, call.output, strict=False):
            if wanted and name in made and name not in inside:
                inside[name] = wanted
            elif wanted:
                copies.append((name, wanted))
        for name in (name for node in function.node for name in node.output):
            if name and name not in inside:
                inside[name] = self.free_name(_path(call.name, name))
        attributes = {attribute.name: attribute for attribute in (*function.attribute_proto, *call.attribute)}
        for node in function.node:
            copy = self._as_called(node, inside, attributes)
            copy.name = _path(call.name, node.name)
            yield copy
        for name, wanted in copies:
            yield onnx.helper.make_node("Identity", [inside[name]], [wanted], name=_path(call.name, wanted))

    def _as_called(self, node: onnx.NodeProto, inside: Mapping[str, str], attributes: Attributes) -> onnx.NodeProto:
        """Returns a copy of a node in the names and with the attributes of a call."""
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        del copy.attribute[:]
        for written in node.attribute:
            if not written.ref_attr_name:
                self._fill_bodies(copy.attribute.add(), written, inside, attributes)
            elif (given := attributes.get(written.ref_attr_name)) is not None:
                self._fill_bodies(copy.attribute.add(), given, {}, {})  # its graphs are in the caller's names
                copy.attribute[-1].name = written.name
                self._count_bytes(given)
        for names in (copy.input, copy.output):
            renamed = [inside.get(name, name) for name in names]
            del names[:]
            names.extend(renamed)
        return copy

    def _fill_bodies(
        self,
        attribute: onnx.AttributeProto,
        written: onnx.AttributeProto,
        inside: Mapping[str, str],
        attributes: Attributes,
    ) -> None:
        """Makes `attribute` a copy of `written` in which the values of graphs have names that nothing has yet."""
        attribute.CopyFrom(written)
        for graph in (*attribute.graphs, *((attribute.g,) if attribute.HasField("g") else ())):
            known = {**inside, **{name: self.free_name(name) for name in sorted(set(made_in(graph)))}}
            rename_made(graph, known)
            nodes = [self._as_called(node, known, attributes) for node in graph.node]
            del graph.node[:]
            graph.node.extend(nodes)

    def _count_bytes(self, attribute: onnx.AttributeProto) -> None:
        self._num_attribute_bytes += attribute.ByteSize()
        if self._num_attribute_bytes > PROTOBUF_MAX_BYTES:
            raise ModelError("the attributes of function calls are larger than a model may be")


def _path(call: str, name: str) -> str:
    """Returns the name of what is inside a call; calls may lie deep in one another, their names stay short."""
    return f"{call[-_MAX_NAME:]}/{name[:_MAX_NAME]}"
