# SPDX-License-Identifier: Apache-2.0
"""Facts about single nodes that several passes ask for: whose operator, which opset, which bodies.

A node is looked into only when it is an operator of ONNX's own domain that no function of the model overrides. A
fact that cannot be read is answered so that the asking pass leaves the node alone.
"""

from collections.abc import Iterator

import onnx_ir as ir

from nndeploy.graph.constants import constant_flag
from nndeploy.graph.nodes import bodies

RANDOM_OPS = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
FLOATS = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE})


def opset_of(model: ir.Model) -> int:
    """Returns the version of ONNX's own operators that the model imports; 0 where it imports none."""
    imports = model.opset_imports
    return imports.get("", imports.get("ai.onnx", 0))


def is_standard(node: ir.Node, model: ir.Model) -> bool:
    """Returns whether the node is an operator of ONNX's own domain with the meaning that ONNX gives it."""
    return node.domain == "" and not is_overridden(node, model)


def is_overridden(node: ir.Node, model: ir.Model) -> bool:
    """Returns whether a function of the model, or a version of its own, gives the node another meaning."""
    return node.version is not None or node.op_identifier() in model.functions


def graphs_within(graph: ir.Graph) -> Iterator[ir.Graph]:
    """Yields the graph and then every body inside it, outer ones first."""
    waiting = [graph]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(body for node in current for body in bodies(node))


def graphs_entered_without_inputs(graph: ir.Graph) -> Iterator[ir.Graph]:
    """Yields the graph and the branches of If inside it: what runs at most once, on values that do not change.

    In bodies of Loop and Scan sizes may change from one iteration to the next.
    """
    yield graph
    for node in graph:
        for body in bodies(node):
            if not body.inputs:
                yield from graphs_entered_without_inputs(body)


def operand(node: ir.Node, index: int) -> ir.Value | None:
    """Returns the node's input at `index`, None where it is left out."""
    return node.inputs[index] if index < len(node.inputs) else None


def has_one_output(node: ir.Node) -> bool:
    """Returns whether the node's first output is the only one that it was asked for."""
    return len(node.outputs) > 0 and not any(output.name for output in node.outputs[1:])


def only_user(value: ir.Value) -> ir.Node | None:
    """Returns the one node that reads `value`, once, and nothing else does; None otherwise.

    A graph output has a reader outside. A reader inside a body counts, and is returned only when it is the only one.
    """
    if value.is_graph_output() or len(uses := value.uses()) != 1:
        return None
    return next(iter(uses)).node


def sole_producer(value: ir.Value | None, reader: ir.Node) -> ir.Node | None:
    """Returns the node of the reader's graph that produces `value` for `reader` alone; None otherwise."""
    producer = value.producer() if value is not None else None
    if value is None or producer is None or producer.graph is not reader.graph:
        return None
    return producer if only_user(value) is reader else None


def static_shape(value: ir.Value | None) -> tuple[int, ...] | None:
    """Returns the value's sizes when every one of them is known; None otherwise."""
    if value is None or value.shape is None:
        return None
    dims = tuple(dim for dim in value.shape if isinstance(dim, int))
    return dims if len(dims) == len(value.shape) else None


def rank_of(value: ir.Value | None) -> int | None:
    """Returns the number of the value's dimensions; None where it is not known."""
    return len(value.shape) if value is not None and value.shape is not None else None


def ints_attribute(node: ir.Node, name: str) -> tuple[int, ...] | None:
    """Returns the list of integers of an attribute; None where it is left out."""
    attribute = node.attributes.get(name)
    return tuple(attribute.as_ints()) if attribute is not None else None


def int_attribute(node: ir.Node, name: str, default: int) -> int:
    """Returns the integer of an attribute, or `default` where it is left out."""
    attribute = node.attributes.get(name)
    return attribute.as_int() if attribute is not None else default


def float_attribute(node: ir.Node, name: str, default: float) -> float:
    """Returns the number of an attribute, or `default` where it is left out."""
    attribute = node.attributes.get(name)
    return attribute.as_float() if attribute is not None else default


def text_attribute(node: ir.Node, name: str, default: str) -> str:
    """Returns the text of an attribute, or `default` where it is left out."""
    attribute = node.attributes.get(name)
    return attribute.as_string() if attribute is not None else default


def is_inference_dropout(node: ir.Node, opset: int) -> bool:
    """Returns whether a Dropout hands on its input as it is.

    Source: ONNX Dropout: `is_test` up to opset 6 (0 by default), no training from 7 to 11, `training_mode` from 12.
    """
    if opset < 7:
        return int_attribute(node, "is_test", 0) != 0
    mode = operand(node, 2)
    return opset < 12 or mode is None or constant_flag(mode) is False


def is_inference_batchnorm(node: ir.Node, opset: int) -> bool:
    """Returns whether a BatchNormalization uses its given mean and variance, one of each per channel.

    Source: ONNX BatchNormalization: `is_test` up to opset 6, `spatial` up to 8, extra outputs ask for training up
    to 13, `training_mode` from 14.
    """
    if not has_one_output(node) or len(node.inputs) != 5 or any(value is None for value in node.inputs):
        return False
    if opset < 7 and int_attribute(node, "is_test", 0) == 0:
        return False
    return int_attribute(node, "spatial", 1) == 1 and int_attribute(node, "training_mode", 0) == 0
