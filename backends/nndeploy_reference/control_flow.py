# SPDX-License-Identifier: Apache-2.0
"""Graphs inside nodes, sequences and optional values.

    Loop      scan outputs are stacked along a new first axis, also of no iteration
    Scan      along any axis, in both directions, and of batches as version 8 has it
    Optional  gives its input, or nothing; an absent optional passes through If and Identity

Source: ONNX operators Loop, If, Identity (1-25), Scan (8-25), Optional (15, 28), SequenceInsert (11).
"""

from typing import Any

import numpy as np
from onnx import TypeProto, helper

from nndeploy_reference.operator_table import Array, Node, front_axis, operator


@operator("Loop", runs_graphs=True)
def _loop(node: Node, limit: Array = None, condition: Array = None, *state: Any) -> tuple[Any, ...]:
    num_carried, count = len(state), 0
    passes_over = condition is None and limit is not None  # a counted loop, whose body's condition is ignored
    scanned: list[list[Any]] = [[] for _ in node.body.output_names[1 + num_carried :]]
    going = condition is None or bool(np.asarray(condition).item())
    while going and (limit is None or count < int(np.asarray(limit).item())):
        outputs = node.run(node.body, [np.array(count, np.int64), np.array(going), *state])
        going = passes_over or bool(np.asarray(outputs[0]).item())
        state = tuple(outputs[1 : 1 + num_carried])
        for values, value in zip(scanned, outputs[1 + num_carried :], strict=True):
            values.append(value)
        count += 1
    types = node.body.output_types[1 + num_carried :]
    return (*state, *(_stacked(values, declared) for values, declared in zip(scanned, types, strict=True)))


def _stacked(values: list[Any], declared: TypeProto, axis: int = 0) -> Array:
    if values:
        return np.stack([np.asarray(value) for value in values], axis)
    tensor = declared.tensor_type
    sizes = [dim.dim_value for dim in tensor.shape.dim]
    sizes.insert(axis, 0)
    return np.empty(sizes, helper.tensor_dtype_to_np_dtype(tensor.elem_type) if tensor.elem_type else np.float32)


@operator("If", runs_graphs=True)
def _if(node: Node, condition: Array) -> tuple[Any, ...]:
    return tuple(node.run(node.then_branch if np.asarray(condition).item() else node.else_branch, []))


@operator("Scan", before=9, runs_graphs=True)
def _scan_batches(node: Node, lengths: Array, *inputs: Array) -> tuple[Array, ...]:
    split = len(inputs) - node.num_scan_inputs
    states, xs = inputs[:split], inputs[split:]
    if any(node.directions or []):
        raise ValueError("Scan of opset 8 is not read backwards here")
    length, found = xs[0].shape[1], []
    for batch in range(xs[0].shape[0]):
        steps = length if lengths is None else int(lengths[batch])
        last, scanned = _scanned(node, [s[batch] for s in states], [x[batch, :steps] for x in xs])
        types = node.body.output_types[split:]
        parts = [_stacked(values, declared) for values, declared in zip(scanned, types, strict=True)]
        found.append([*last, *(np.pad(p, [(0, length - steps), *[(0, 0)] * (p.ndim - 1)]) for p in parts)])
    return tuple(np.stack(values) for values in zip(*found, strict=True))


@operator("Scan", since=9, runs_graphs=True)
def _scan(node: Node, *inputs: Array) -> tuple[Array, ...]:
    split = len(inputs) - node.num_scan_inputs
    states, xs = inputs[:split], list(inputs[split:])
    for i, axis in enumerate(node.scan_input_axes or []):
        xs[i] = np.moveaxis(xs[i], axis, 0)
    for i, is_backward in enumerate(node.scan_input_directions or []):
        xs[i] = xs[i][::-1] if is_backward else xs[i]
    last, scanned = _scanned(node, list(states), xs)
    types = node.body.output_types[split:]
    axes = node.scan_output_axes or [0] * len(types)
    directions = node.scan_output_directions or [0] * len(types)
    found = []
    for values, declared, axis, is_backward in zip(scanned, types, axes, directions, strict=True):
        rank = 1 + (np.ndim(values[0]) if values else len(declared.tensor_type.shape.dim))
        found.append(_stacked(values[::-1] if is_backward else values, declared, front_axis(axis, rank)))
    return (*last, *found)


def _scanned(node: Node, states: list[Array], xs: list[Array]) -> tuple[list[Array], list[list[Array]]]:
    """Runs the body on each item along the first axis of xs; returns the last states and what each step gave."""
    num_states = len(states)
    scanned: list[list[Array]] = [[] for _ in node.body.output_names[num_states:]]
    for items in zip(*xs, strict=True):
        outputs = node.run(node.body, [*states, *map(np.asarray, items)])
        states = outputs[:num_states]
        for values, value in zip(scanned, outputs[num_states:], strict=True):
            values.append(value)
    return states, scanned


@operator("Optional")
@operator("Identity")
def _same(_: Node, value: Any = None) -> tuple[Any, ...]:
    return (value,)


@operator("SequenceInsert")
def _insert(_: Node, items: list[Any], item: Array, position: Array = None) -> tuple[Any, ...]:
    place = len(items) if position is None else int(position.reshape(()))
    if not -len(items) <= place <= len(items):
        raise IndexError(f"a position out of range in SequenceInsert: {place} of {len(items)}")
    found = list(items)
    found.insert(place, item)
    return (found,)
