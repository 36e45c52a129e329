# SPDX-License-Identifier: Apache-2.0
"""Quant and BipolarQuant, of networks that were trained with few bits, become operators of ONNX, in place.

    Quant(x, scale, zero, bits)  ->  (round(min(max(x / scale + zero, low), high)) - zero) * scale
    BipolarQuant(x, scale)       ->  where(x >= 0, 1, -1) * scale

    signed: -2 ** (bits - 1) .. 2 ** (bits - 1) - 1, from 1 more if `narrow`; else 0 .. 2 ** bits - 1, to 1 less
    one bit, signed: where(x / scale + zero >= 0, 1, -1) in place of the rounded number

In comes a model that has passed the gate. Brevitas writes these operators in a domain of its own, QONNX in another one,
and no runtime knows them. A function of the model with such a name goes first. Numbers are computed in the order of the
definition, in float32; only a zero point that is 0 is left out.

Source: QONNX, docs/qonnx-custom-ops/quant_op.md and src/qonnx/custom_op/general/quant.py, bipolar_quant.py.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import onnx
import onnx.helper
import onnx.numpy_helper

from nndeploy.errors import ModelError
from nndeploy.frontend.traversal import bodies_of, nodes_below
from nndeploy.graph.operator_rules import QUANT_DOMAINS, QUANT_OPERATORS, normal_domain

LEAST_OPSET = 12
"""The least version of ONNX's operators that has all that is written: GreaterOrEqual is the newest."""
MOST_BITS = 32

_NUM_INPUTS = {"Quant": 4, "BipolarQuant": 2}
_ROUNDED = {
    "ROUND": ("Round",),
    "HALF_EVEN": ("Round",),
    "CEIL": ("Ceil",),
    "FLOOR": ("Floor",),
    "UP": ("Abs", "Ceil"),
    "DOWN": ("Abs", "Floor"),
    "HALF_UP": ("Abs", "Add", "Floor"),
    "HALF_DOWN": ("Abs", "Sub", "Ceil"),
}
"""Rounding mode -> operators in their order; Add and Sub are of one half, what begins with Abs gets its sign again."""


def lower_quant(model: onnx.ModelProto) -> None:
    """Replaces every Quant and BipolarQuant that no function of the model defines.

    Raises:
        ModelError: one is malformed, its number of bits is not constant, or the model's operator set is too old.
    """
    defined = {(normal_domain(function.domain), function.name) for function in model.functions}
    wanted = {(domain, op) for domain in QUANT_DOMAINS for op in QUANT_OPERATORS} - defined
    for owner, graph in ((model, model.graph), *((function, function) for function in model.functions)):
        used = {(node.domain, node.op_type) for node in nodes_below(graph.node)}
        if used & wanted:
            _Lowering(wanted, _opset(owner), dict(_constants(graph)), set(_names(graph))).lower(graph)
            _forget_imports(owner, graph)


@dataclass(slots=True)
class _Lowering:
    """Rewrites the graph of a model, or a function, with the bodies inside; `names` are those of values in use."""

    wanted: set[tuple[str, str]]
    opset: int
    constants: Mapping[str, onnx.TensorProto]
    names: set[str]
    made: list[onnx.NodeProto] = field(default_factory=list)

    def lower(self, graph: onnx.GraphProto | onnx.FunctionProto) -> None:
        nodes: list[onnx.NodeProto] = []
        for node in graph.node:
            for body in bodies_of(node):
                self.lower(body)
            nodes += self.lowered(node) if (node.domain, node.op_type) in self.wanted else [node]
        kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(kept)

    def lowered(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        self.made = []
        try:
            if self.opset < LEAST_OPSET:
                raise ModelError(
                    f"the model imports version {self.opset} of ONNX's operators",
                    hint=f"export it again with opset {LEAST_OPSET} or newer",
                )
            count = _NUM_INPUTS[node.op_type]
            if len(node.input) != count or not all(node.input) or len(node.output) != 1:
                raise ModelError(f"it has {count} inputs and one output, not {len(node.input)} and {len(node.output)}")
            if node.op_type == "Quant":
                self.quant(node)
            else:
                self.times(self.sign(node.input[0], node), node.input[1], node)
        except ModelError as err:
            err.within(f"node {node.name!r:.80} ({node.op_type})")
            raise
        return self.made

    def quant(self, node: onnx.NodeProto) -> None:
        x, scale, zero, bits = node.input
        is_signed, is_narrow, rounding = _attributes(node)
        count = _number_of_bits(self.constants.get(bits))
        has_zero = not _is_zero(self.constants.get(zero))
        level = self.add("Div", (x, scale), node)
        if has_zero:
            level = self.add("Add", (level, zero), node)
        if count == 1 and is_signed:
            level = self.sign(level, node)
        else:
            low, high = _range(count, is_signed, is_narrow)
            level = self.add("Max", (level, self.constant(low, node)), node)
            level = self.rounded(self.add("Min", (level, self.constant(high, node)), node), rounding, node)
        if has_zero:
            level = self.add("Sub", (level, zero), node)
        self.times(level, scale, node)

    def rounded(self, value: str, rounding: str, node: onnx.NodeProto) -> str:
        found = value
        for op_type in _ROUNDED[rounding]:
            half = (self.constant(0.5, node),) if op_type in ("Add", "Sub") else ()
            found = self.add(op_type, (found, *half), node)
        if "Abs" in _ROUNDED[rounding]:
            found = self.add("Mul", (self.add("Sign", (value,), node), found), node)
        return found

    def sign(self, value: str, node: onnx.NodeProto) -> str:
        is_high = self.add("GreaterOrEqual", (value, self.constant(0.0, node)), node)
        return self.add("Where", (is_high, self.constant(1.0, node), self.constant(-1.0, node)), node)

    def times(self, level: str, scale: str, node: onnx.NodeProto) -> None:
        self.made.append(onnx.helper.make_node("Mul", (level, scale), (node.output[0],), name=node.name))

    def constant(self, number: float, node: onnx.NodeProto) -> str:
        value = onnx.numpy_helper.from_array(np.array(number, np.float32))
        return self.add("Constant", (), node, value=value)

    def add(self, op_type: str, inputs: Iterable[str], node: onnx.NodeProto, **attributes: onnx.TensorProto) -> str:
        wish, number = f"{node.output[0]}/{op_type}", 1
        name = wish
        while name in self.names:
            name, number = f"{wish}_{number}", number + 1
        self.names.add(name)
        self.made.append(onnx.helper.make_node(op_type, tuple(inputs), (name,), **attributes))
        return name


def _attributes(node: onnx.NodeProto) -> tuple[bool, bool, str]:
    """Returns (signed, narrow, rounding mode)."""
    found = {attribute.name: attribute for attribute in node.attribute}
    if any(attribute.ref_attr_name for attribute in node.attribute):
        raise ModelError("its attributes are those of the function around it")
    numbers = {name: found[name].i if name in found else default for name, default in (("signed", 1), ("narrow", 0))}
    mode = found["rounding_mode"].s.decode("utf-8", "replace").upper() if "rounding_mode" in found else "ROUND"
    if mode not in _ROUNDED:
        raise ModelError(f"the rounding mode {mode!r:.80} is unknown", hint=f"there are {', '.join(_ROUNDED)}")
    return bool(numbers["signed"]), bool(numbers["narrow"]), mode


def _number_of_bits(tensor: onnx.TensorProto | None) -> int:
    array = _array(tensor)
    if array is None or array.size != 1:
        raise ModelError("the number of bits is not one constant number")
    count = float(array.reshape(()))
    if not 1 <= count <= MOST_BITS or count != int(count):
        raise ModelError(f"the number of bits is {count:g}", hint=f"there may be 1 to {MOST_BITS}")
    return int(count)


def _range(bits: int, is_signed: bool, is_narrow: bool) -> tuple[float, float]:
    """Returns the least and the largest whole number of so many bits."""
    if is_signed:
        return float(-(2 ** (bits - 1)) + is_narrow), float(2 ** (bits - 1) - 1)
    return 0.0, float(2**bits - 1 - is_narrow)


def _is_zero(tensor: onnx.TensorProto | None) -> bool:
    array = _array(tensor)
    return array is not None and array.size == 1 and not array.any()


def _array(tensor: onnx.TensorProto | None) -> npt.NDArray[np.generic] | None:
    """Returns a constant of one number; None for a larger one, and for what is none."""
    if tensor is None or any(size != 1 for size in tensor.dims) or tensor.data_type == onnx.TensorProto.STRING:
        return None
    return np.asarray(onnx.numpy_helper.to_array(tensor))


def _constants(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Yields the constants of a graph, or function, and of all bodies, by name."""
    if isinstance(graph, onnx.GraphProto):
        yield from ((tensor.name, tensor) for tensor in graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                yield from ((name, attribute.t) for name in node.output)
        for body in bodies_of(node):
            yield from _constants(body)


def _names(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[str]:
    """Yields the names of the values of a graph, or function, and of all bodies."""
    if isinstance(graph, onnx.GraphProto):
        yield from (value.name for value in (*graph.input, *graph.initializer))
    else:
        yield from graph.input
    for node in graph.node:
        yield from (*node.input, *node.output)
        for body in bodies_of(node):
            yield from _names(body)


def _opset(owner: onnx.ModelProto | onnx.FunctionProto) -> int:
    return max((opset.version for opset in owner.opset_import if not normal_domain(opset.domain)), default=0)


def _forget_imports(owner: onnx.ModelProto | onnx.FunctionProto, graph: onnx.GraphProto | onnx.FunctionProto) -> None:
    """Removes the domains of which nothing is left."""
    left = {node.domain for node in nodes_below(graph.node)}
    kept = [one for one in owner.opset_import if one.domain in left or one.domain not in QUANT_DOMAINS]
    if len(kept) < len(owner.opset_import):
        imports = [onnx.OperatorSetIdProto(domain=one.domain, version=one.version) for one in kept]
        del owner.opset_import[:]
        owner.opset_import.extend(imports)
