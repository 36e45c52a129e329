# SPDX-License-Identifier: Apache-2.0
"""Operators with which ONNX Runtime (1.31.1) ends the process, or never ends, on legal numbers -> those that do not.

Its Mod with fmod computes in float64, also of 64-bit integers.

    y = Div(a, b)           ->  c = Where(b = 0 or b = -1, 1, b)      integers, b not a constant without 0 and -1
                                y = Where(b = 0, 0, Where(b = -1, -a, Div(a, c)))
    y = Mod(a, b)           ->  y = Mod(a, c); with fmod, of 64 bits:  y = a - c Div(a, c)
    y = GRU(x, ...)         ->  y = GRU(x', ...), which fails where x has no elements: `needed_elements.py`
    y = Range(a, b, c)      ->  y = Range(a, b', c), which fails where these are too many: `bounded_sizes.py`
    StringNormalizer        ->  in the locale C.UTF-8, which glibc has since 2.35, and Debian before

Law: outputs do not change, where there were some. Source: rules 3 and 8 of docs/reference/verification.md.
"""

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from nndeploy.backend_kit.query import constant_of
from nndeploy.backend_kit.sizes_of_calls import unbounded_sizes
from nndeploy.backend_kit.spans import Spans
from nndeploy.graph.nodes_before import NodesBefore
from nndeploy.graph.operators import int_attribute, text_attribute
from nndeploy_onnxruntime.bounded_sizes import bound_size
from nndeploy_onnxruntime.needed_elements import inputs_in_need, need_elements

_SIGNED = frozenset({ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64})
_WHOLE = _SIGNED | {ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64}


def with_safe_operators(model: ir.Model) -> ir.Model:
    """Returns the model itself where there is nothing to do, else a copy with other nodes."""
    if not any(True for _ in _unsafe_nodes(model)):
        return model
    copy = model.clone()
    for node, sizes in list(_unsafe_nodes(copy)):
        _replace(node, sizes)
    return copy


def _unsafe_nodes(model: ir.Model) -> Iterator[tuple[ir.Node, list[int]]]:
    """Yields the nodes that are replaced or led, each with its inputs that may ask for too many elements."""
    spans = Spans()
    for node in model.graph.all_nodes():
        sizes = unbounded_sizes(node, spans)
        if sizes or is_unsafe_division(node) or any(True for _ in inputs_in_need(node)) or _is_of_usual_locale(node):
            yield node, sizes


def _is_of_usual_locale(node: ir.Node) -> bool:
    """Returns whether ONNX Runtime would ask for en_US.UTF-8, whose letters are those of C.UTF-8 (glibc)."""
    return node.op_type == "StringNormalizer" and text_attribute(node, "locale", "") in ("", "en_US", "en_US.UTF-8")


def is_unsafe_division(node: ir.Node) -> bool:
    """Returns whether a division of integers may be by 0, or of the least number by -1."""
    if node.domain not in ("", "ai.onnx") or node.op_type not in ("Div", "Mod"):
        return False
    if node.inputs[1] is None or node.inputs[1].dtype not in _WHOLE:
        return False
    divisor = constant_of(node.inputs[1])
    unsafe = (0, -1) if node.inputs[1].dtype in _SIGNED else (0,)
    return divisor is None or bool(np.isin(divisor.numpy(), unsafe).any()) or _is_wide_fmod(node)


def _is_wide_fmod(node: ir.Node) -> bool:
    wide = (ir.DataType.INT64, ir.DataType.UINT64)
    return node.op_type == "Mod" and bool(int_attribute(node, "fmod", 0)) and node.outputs[0].dtype in wide


def _replace(node: ir.Node, sizes: list[int]) -> None:
    if sizes:
        bound_size(node, sizes)
    if _is_of_usual_locale(node):
        node.attributes["locale"] = ir.AttrString("locale", "C.UTF-8")
    if is_unsafe_division(node):
        _divide(node, NodesBefore(node, "safe"))
    for number in list(inputs_in_need(node)):
        need_elements(node, number)


def _divide(node: ir.Node, before: NodesBefore) -> None:
    a, b = node.inputs
    assert b is not None
    assert b.dtype is not None
    zero, one = (before.constant(np.array(number, b.dtype.numpy())) for number in (0, 1))
    unsafe = is_zero = before.add("Equal", b, zero)
    if is_signed := b.dtype in _SIGNED:
        is_minus = before.add("Equal", b, before.constant(np.array(-1, b.dtype.numpy())))
        unsafe = before.add("Or", is_zero, is_minus)
    safe = before.add("Where", unsafe, one, b)
    if node.op_type == "Mod" and not _is_wide_fmod(node):  # by 1 leaves 0
        node.replace_input_with(1, safe)
        return
    quotient = before.add("Div", a, safe)
    if node.op_type == "Mod":
        _become(node, "Sub", a, before.add("Mul", safe, quotient))
        return
    if is_signed:
        quotient = before.add("Where", is_minus, before.add("Neg", a), quotient)
    _become(node, "Where", is_zero, zero, quotient)


def _become(node: ir.Node, op_type: str, *inputs: ir.Value | None) -> None:
    node.op_type = op_type
    node.attributes.clear()
    node.resize_inputs(len(inputs))
    for number, value in enumerate(inputs):
        node.replace_input_with(number, value)
