# SPDX-License-Identifier: Apache-2.0
"""A submodel, or one node of a model, as operations and then as steps: what `supports` and `build` share.

Where the batch is in a range, that is done for each rung of a ladder, and rows must not touch each other.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from nndeploy.backend_kit.query import constant_of
from nndeploy.graph.nodes import values_read
from nndeploy.values.size import Size
from nndeploy.values.types import DimRange
from nndeploy_cudnn.batch_rows import check_alike, is_first_axis, places_of_rows
from nndeploy_cudnn.emitter import Emission, emit
from nndeploy_cudnn.ladder import Ladder, ladder_of, size_of
from nndeploy_cudnn.operations import Operation, Value
from nndeploy_cudnn.patterns import translate
from nndeploy_cudnn.patterns.translation import NotTakenError, Translation
from nndeploy_cudnn.planner import Plans


@dataclass(frozen=True, slots=True)
class Lowered:
    """`inputs` are those that some step reads, a shape that was known beforehand is not among them."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    emission: Emission


@dataclass(frozen=True, slots=True)
class _Translated:
    """Operations, and what stands for the inputs that some of them read and for the outputs."""

    operations: Sequence[Operation]
    inputs: Mapping[ir.Value, Value]
    outputs: tuple[Value, ...]


def lower(
    nodes: Sequence[ir.Node], inputs: Sequence[ir.Value], outputs: Sequence[ir.Value], planner: Plans,
    ranges: Mapping[str, DimRange],
) -> Lowered:  # fmt: skip
    """Returns the steps that compute `outputs` from `inputs`.

    Raises:
        NotTakenError: a node is not taken.
    """
    return _lowered(_translated(nodes, inputs, outputs, ranges), planner)


def lower_rungs(graph: ir.Graph, ladder: Ladder, planner: Plans, ranges: Mapping[str, DimRange]) -> list[Lowered]:
    """Returns the steps of a graph for each rung of a ladder.

    Raises:
        NotTakenError: a node is not taken, or a row of the batch may read another; the batch must be the first axis.
    """
    every = [
        _translated(list(graph), graph.inputs, graph.outputs, _at(ladder.symbol, rows, ranges)) for rows in ladder.rungs
    ]
    for rows, found in zip(ladder.rungs, every, strict=True):
        axes = {value: _open_axes(of, ladder.symbol, ranges) for of, value in found.inputs.items()}
        places = {value: math.prod(value.dims[1:]) for value in axes if axes[value]}
        if any(axes[value] != [0] or value.dims[0] != rows for value in places):
            raise NotTakenError(f"{ladder.symbol} is not the first axis alone of each input")
        if rows == 1:
            continue  # nothing is filled up to it
        places = places_of_rows(found.operations, places, rows)
        for output, largest in zip(found.outputs, every[-1].outputs, strict=True):
            is_same = output not in places and output.dims == largest.dims
            if not is_same and not (output in places and is_first_axis(output.dims, places[output], rows)):
                raise NotTakenError(f"{ladder.symbol} is not the first axis of {output.name!r}")
        check_alike(every[-1].operations, found.operations)
    return [_lowered(found, planner) for found in every]


def _at(symbol: str, rows: int, ranges: Mapping[str, DimRange]) -> dict[str, DimRange]:
    return {**ranges, symbol: DimRange(rows, rows, rows)}


def _open_axes(value: ir.Value, symbol: str, ranges: Mapping[str, DimRange]) -> list[int]:
    """Returns the axes of a value whose size depends on a symbol."""
    sizes = [dim if isinstance(dim, int) else size_of(dim.value, ranges) for dim in value.shape or ()]
    return [
        axis
        for axis, size in enumerate(sizes)
        if isinstance(size, Size) and any(one.name == symbol for one in size.symbols)
    ]


def _lowered(found: _Translated, planner: Plans) -> Lowered:
    used = tuple(found.inputs.values())
    return Lowered(used, found.outputs, emit(found.operations, used, found.outputs, planner))


def _translated(
    nodes: Sequence[ir.Node], inputs: Sequence[ir.Value], outputs: Sequence[ir.Value], ranges: Mapping[str, DimRange]
) -> _Translated:
    translation = Translation(ranges)
    for node in nodes:
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
            continue
        translate(node, translation)
    found = tuple(translation.value(output) for output in outputs)
    used = {one: value for one in inputs if (value := translation.known(one)) is not None}
    return _Translated(translation.operations, used, found)


def batches_of(inputs: Sequence[ir.Value], ranges: Mapping[str, DimRange]) -> set[str]:
    """Returns the symbols that are the first axis, and no other, of each of a model's inputs that have them."""
    return {
        symbol
        for symbol in ranges
        if all(_open_axes(value, symbol, ranges) in ([], [0]) for value in inputs)
        and any(_open_axes(value, symbol, ranges) for value in inputs)
    }


def refusal_of(node: ir.Node, planner: Plans, ranges: Mapping[str, DimRange], batches: Collection[str] = ()) -> str:
    """Returns why cuDNN does not take a node by itself, or ""; `batches` are symbols that a ladder may stand for."""
    inputs = [value for value in values_read(node) if constant_of(value) is None]
    outputs = [output for output in node.outputs if output.uses() or output.is_graph_output()] or node.outputs[:1]
    ladder = ladder_of([*inputs, *outputs], ranges)
    try:
        if ladder is None or ladder.symbol not in batches:
            lower([node], inputs, list(outputs), planner, ranges)
        else:
            _check_node(node, inputs, list(outputs), planner, ranges, ladder)
    except NotTakenError as err:
        return str(err)
    return ""


def _check_node(
    node: ir.Node, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value], planner: Plans,
    ranges: Mapping[str, DimRange], ladder: Ladder,
) -> None:  # fmt: skip
    """Checks a node at the top of a ladder; in between, rows may have others inside them, but none around.

    Raises:
        NotTakenError: it is not taken, or rows of the batch may meet.
    """
    rows = ladder.rungs[-1]
    found = _translated([node], inputs, outputs, _at(ladder.symbol, rows, ranges))
    places = dict[Value, int]()
    for of, value in found.inputs.items():
        axes = _open_axes(of, ladder.symbol, ranges)
        if len(axes) > 1 or any(value.dims[axis] % rows for axis in axes):
            raise NotTakenError(f"{ladder.symbol} is no batch of {value.name!r}, cuDNN plans fixed sizes (see --shape)")
        if axes:
            places[value] = math.prod(value.dims[axes[0] :]) // rows
    places_of_rows(found.operations, places, rows)
    _lowered(found, planner)
