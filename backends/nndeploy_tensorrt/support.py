# SPDX-License-Identifier: Apache-2.0
"""Which nodes TensorRT takes: asked of its parser and builder, on ever smaller pieces.

    all nodes -> regions (as the partition would cut them) -> ask each (see `ask.py`)
      a node is refused: it leaves, the regions are cut anew and asked again
      nothing is refused: done

What is asked last is whether an engine comes out, so what is taken here is built later. Where a library says no to a
region without naming a node, the shortest run of nodes from its start that it refuses tells which one it is.

Law: every round refuses at least one node, so it ends; a refusal's reason is the library's own.
"""

import re
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError, one_line
from nndeploy.graph.regions import Region, regions_of
from nndeploy.graph.submodels import region_inputs, submodel_of
from nndeploy.plugin.interface import TAKEN, Support
from nndeploy.values.types import DimRange
from nndeploy_tensorrt.ask import (
    NO_BLAME,
    first_refused,
    refused_by_builder,
    refused_by_parser,
    refused_by_shapes_or_types,
    refused_by_sizes,
)
from nndeploy_tensorrt.engine import EngineRequest
from nndeploy_tensorrt.model_bytes import unknown_version
from nndeploy_tensorrt.serving import Serving

_OURS, _OTHERS = "tensorrt", "others"


def supports(model: ir.Model, serving: Serving, ranges: Mapping[str, DimRange]) -> list[Support]:
    """Returns the library's answer for each node of the main graph.

    Raises:
        UnavailableError: the library does not load.
    """
    if not serving.flavour:
        return [Support(False, serving.reason)] * len(model.graph)
    request = EngineRequest(serving.flavour, serving.capabilities, serving.memory_bytes)
    return _Inquiry(_with_unique_names(model), request, ranges).answers()


class _Inquiry:
    """What is known of the nodes of one model: `_reasons` of those that are refused so far."""

    def __init__(self, model: ir.Model, request: EngineRequest, ranges: Mapping[str, DimRange]) -> None:
        self._model = model
        self._nodes = list(model.graph)
        self._index = {id(node): i for i, node in enumerate(self._nodes)}
        self._request = request
        self._ranges = ranges
        self._reasons: dict[int, str] = {}
        self._settled: set[tuple[int, ...]] = set()

    def answers(self) -> list[Support]:
        for i, node in enumerate(self._nodes):
            if why := unknown_version(node, self._model):
                self._reasons[i] = why
        while refused := self._ask_all():
            self._reasons.update(refused)
        return [Support(False, self._reasons[i]) if i in self._reasons else TAKEN for i in range(len(self._nodes))]

    def _ask_all(self) -> dict[int, str]:
        """Returns what is refused in any of the regions that the nodes still taken form."""
        if len(self._reasons) == len(self._nodes):
            return {}
        takers = {node.name or "": _OTHERS if i in self._reasons else _OURS for i, node in enumerate(self._nodes)}
        refused: dict[int, str] = {}
        for region in regions_of(self._model.graph, takers):
            key = tuple(self._index[id(node)] for node in region.nodes)
            if region.backend == _OURS and key not in self._settled:
                found = self._ask(region.nodes)
                refused.update((key[at], why) for at, why in found.items())
                if not found:
                    self._settled.add(key)
        return refused

    def _ask(self, nodes: Sequence[ir.Node]) -> Mapping[int, str]:
        """Returns which of `nodes`, by position, are refused when they are asked about together."""
        part = self._part(nodes)
        try:
            refused = refused_by_sizes(part, self._ranges) or refused_by_parser(part, self._request.flavour)
            if NO_BLAME in refused:
                return dict([first_refused(len(nodes), lambda n: self._parser_says(nodes[:n]))])
            return refused or refused_by_shapes_or_types(part, self._request.flavour) or self._ask_builder(nodes, part)
        except BuildRefusedError as err:
            return dict.fromkeys(range(len(nodes)), str(err))

    def _ask_builder(self, nodes: Sequence[ir.Node], part: ir.Model) -> dict[int, str]:
        why = refused_by_builder(part, self._request, self._ranges)
        if not why:
            return {}
        if (named := _named_in(why, nodes)) is not None:
            return {named: why, **self._refused_alike(nodes, named)}
        return dict([first_refused(len(nodes), lambda n: why if n == len(nodes) else self._builder_says(nodes[:n]))])

    def _refused_alike(self, nodes: Sequence[ir.Node], named: int) -> dict[int, str]:
        """Returns which other nodes with the operator of a refused one are refused by themselves.

        The builder stops at the first; where it has no kernel for an operator, this saves a round for each node.
        """
        alike = [i for i, node in enumerate(nodes) if i != named and node.op_type == nodes[named].op_type]
        asked = ((i, self._part([nodes[i]])) for i in alike)
        said = ((i, self._builder_alone(part)) for i, part in asked)
        return {i: why for i, why in said if why}

    def _builder_alone(self, part: ir.Model) -> str:
        """Returns the builder's refusal of one node, "" where it takes it or cannot be asked about it alone."""
        if refused_by_sizes(part, self._ranges) or refused_by_shapes_or_types(part, self._request.flavour):
            return ""
        return refused_by_builder(part, self._request, self._ranges)

    def _parser_says(self, nodes: Sequence[ir.Node]) -> str:
        return next(iter(refused_by_parser(self._part(nodes), self._request.flavour).values()), "")

    def _builder_says(self, nodes: Sequence[ir.Node]) -> str:
        return refused_by_builder(self._part(nodes), self._request, self._ranges)

    def _part(self, nodes: Sequence[ir.Node]) -> ir.Model:
        """Returns `nodes` as a model; what others or the program read of them are its outputs."""
        chosen = {id(node) for node in nodes}
        others = Region(_OTHERS, tuple(node for node in self._nodes if id(node) not in chosen))
        read_elsewhere = {id(value) for value in (*self._model.graph.outputs, *region_inputs(others))}
        return submodel_of(self._model, Region(_OURS, tuple(nodes)), read_elsewhere)


def _named_in(reason: str, nodes: Sequence[ir.Node]) -> int | None:
    """Returns the position of the node whose name, the longest if several, stands in `reason` like a name."""
    found = [
        (len(node.name), -i)
        for i, node in enumerate(nodes)
        if node.name and re.search(rf"(?:^|[\s('\"]){re.escape(one_line(node.name))}(?:[:\s)'\"]|$)", reason)
    ]
    return -max(found)[1] if found else None


def _with_unique_names(model: ir.Model) -> ir.Model:
    """Returns the model itself where every node has a name of its own, else a copy in which that is so."""
    names = [node.name for node in model.graph]
    if all(names) and len(set(names)) == len(names):
        return model
    copy = model.clone()
    for i, node in enumerate(copy.graph):
        node.name = f"{node.op_type}_{i}"
    return copy
