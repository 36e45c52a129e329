# SPDX-License-Identifier: Apache-2.0
"""Whether a text is OpenVINO's IR as its own writer makes it, and sound, before the library sees it.

`Core.read_model` asks each of its front ends (ONNX, TensorFlow, Paddle, IR and others) whose model the bytes are, and
only the one for IR cannot name a file: its weights come along in memory. That one takes a text whose root is `net`.
But not all of what it reads is checked there: a constant whose text stands in an attribute `value` has as few bytes
as that text, whatever its shape says, and the library reads on behind them; and some layers are orders, or do what a
number of a call makes end the process. So all of it is read here before, in one strict form that leaves two readers
nothing to differ about, without a comment, entity, document type or instruction, and nothing depends on what a
version of the library checks by itself.

    <net name=".." version="11"> <layers> layer* </layers> <edges> edge* </edges> <rt_info /> </net>
    layer = <layer id=".." name=".." type=".." version=".."> port maps? <data .. />? <input> port* </input>?
            <output> port* </output>? bodies? </layer>

Laws: every layer is of a kind in `ir_layers`; ids stand once; every input port has one edge, from an output port that
there is; there is no circle; a constant lies within the weights and has as many bytes as its shape says; no constant or
parameter is empty by its shape; what must be a constant is one, with numbers that the library takes.

Source: OpenVINO 2026.4, src/frontends/ir/src/frontend.cpp, src/core/xml_util/src/xml_deserialize_util.cpp.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from nndeploy.errors import BundleError, PolicyError
from nndeploy_openvino.ir_layers import ELEMENT_BITS, KINDS, MAX_RANK, WINDOW_LISTS
from nndeploy_openvino.pads import unsafe_pads

MAX_DEPTH = 8
"""How many bodies may stand in each other."""

_FLAGS = re.ASCII
_ID = r"(\d{1,9})"
_BEGIN = re.compile(
    r'<\?xml version="1\.0"(?: encoding="[A-Za-z0-9-]{1,20}")?\?>\s*<net name="[^"<>&]*" version="11">\s'
)
_DIMS = r"(?:\s*+<dim>-?\d{1,19}</dim>)*+"
_PORTS = rf'(?:\s*+<port id="\d{{1,9}}" precision="[A-Z0-9]{{1,12}}"(?: />|>{_DIMS}\s*+</port>))*+'
_LAYER = re.compile(rf'\s*+<layer id="{_ID}" name="[^"<>&]*" type="(\w{{1,60}})" version="(\w{{1,20}})">', _FLAGS)
_DATA = re.compile(r'\s*+<data((?: [A-Za-z_-]{1,60}="[^"<]*")*+) />', _FLAGS)
_ATTRIBUTE = re.compile(r' ([A-Za-z_-]+)="([^"]*)"')
_INPUT = re.compile(rf"\s*+<input>({_PORTS})\s*+</input>", _FLAGS)
_OUTPUT = re.compile(rf"\s*+<output>({_PORTS})\s*+</output>", _FLAGS)
_PORT_ID = re.compile(r'<port id="(\d+)"')
_EDGE = rf'<edge from-layer="{_ID}" from-port="{_ID}" to-layer="{_ID}" to-port="{_ID}" />'
_EDGES = re.compile(r"\s*+<edges(?: />|>((?:\s*+" + _EDGE.replace("(", "(?:") + r")*+)\s*+</edges>)", _FLAGS)
_EACH_EDGE = re.compile(_EDGE, _FLAGS)
_NOTES = r"<framework>(?:\s*+<[A-Za-z][\w.-]{0,99} value=\"[^\"<]*\" />)*+\s*+</framework>"
_RT_INFO = re.compile(rf"\s*+<rt_info(?: />|>(?:\s*+{_NOTES})?+\s*+</rt_info>)", _FLAGS)
_LAYERS_BEGIN, _LAYERS_END = re.compile(r"\s*+<layers>"), re.compile(r"\s*+</layers>")
_NAMES = r'<attribute name="fused_names" version="0" value="[^"<]*" />'
_FUSED_NAMES = re.compile(rf"(?:\s*+<rt_info>\s*+{_NAMES}\s*+</rt_info>)?+", _FLAGS)
"""The names of operators that the library joined. It reads no other note of a layer here: some are orders."""
_LAYER_END, _NET_END = re.compile(r"\s*+</layer>"), re.compile(r"\s*+</net>\s*+\Z")
_ITEM = (
    r'<(input|output)(?: axis="(-?\d{1,2})")?+ external_port_id="(-1|\d{1,9})" internal_layer_id="(\d{1,9})"'
    r'(?: start="(-?\d{1,9})" end="(-?\d{1,9})" stride="(-?\d{1,9})" part_size="(\d{1,9})")?+(?: purpose="(\w+)")?+ />'
)
_EACH_ITEM = re.compile(_ITEM, _FLAGS)
_BACK_EDGE = re.compile(rf'<edge from-layer="{_ID}" to-layer="{_ID}" />', _FLAGS)


def _block(name: str, item: str) -> re.Pattern[str]:
    return re.compile(rf"\s*+<{name}(?: />|>((?:\s*+{item})*+)\s*+</{name}>)", _FLAGS)


_ITEM_UNNAMED = re.sub(r"\((?!\?)", "(?:", _ITEM)
_BACK_EDGES = _block("back_edges", _BACK_EDGE.pattern.replace("(", "(?:"))
_MAPS = {name: _block(name, _ITEM_UNNAMED) for name in ("port_map", "then_port_map", "else_port_map")}
_BODIES = {"If": ("else_body", "then_body"), "Loop": ("body",), "TensorIterator": ("body",)}
"""In the order of their port maps, which come first; bodies come the other way round."""
_BODY_ENDS = {
    name: (re.compile(rf"\s*+<{name}>"), re.compile(rf"\s*+</{name}>")) for name in ("body", "then_body", "else_body")
}
_SLICES = {("0", "-1", "1", "1"), ("-1", "0", "-1", "1")}
"""(start, end, stride, part_size) of what a body takes or gives piece by piece: forwards and backwards."""
_SIGNED = ("i32", "i64")
_WIDE = (*_SIGNED, "u32", "u64")
_STEP = 2
"""A Range of these divides by its step, and a zero there ends the process; a constant the library looks at."""
_REPEATS = 1
"""A Tile by less than none ends the process; a constant the library looks at."""
_LENGTHS = 2
_NEW_SIZES = 1
"""Sizes or scales of an Interpolate: where one is zero and another the largest, it reads beyond its tables."""
_AXES: dict[str, int] = {
    **dict.fromkeys(("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceL1", "ReduceL2"), 1),
    **dict.fromkeys(("CumSum", "MVN", "Reverse", "Split", "Squeeze", "Transpose", "Unsqueeze", "VariadicSplit"), 1),
    "Gather": 2,
    "Slice": 4,
}
"""Layer -> the input of its axes: those that only a call tells, or that are the largest integer, end the process."""
_INDICES = 1
"""An index of a Gather far behind the sizes of a shape ends the process."""
_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
_MOVING = frozenset({"Broadcast", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
_KEEPING_TYPE = _MOVING | {
    "Abs", "Add", "Concat", "Divide", "Exp", "Gather", "Maximum", "Minimum", "Multiply", "Negative", "Power", "Sqrt",
    "Subtract",
}  # fmt: skip
"""Layers that give numbers of the type of their first input."""
_FOLDED = _KEEPING_TYPE | {
    "Ceiling", "Clamp", "Const", "Convert", "ConvertLike", "Cos", "CumSum", "Equal", "Erf", "Eye", "Floor", "FloorMod",
    "Greater", "GreaterEqual", "If", "Less", "LessEqual", "Log", "LogicalAnd", "LogicalNot", "LogicalOr", "LogicalXor",
    "MatMul", "Mod", "NotEqual", "Parameter", "RandomUniform", "Range", "ReduceMax", "ReduceMin", "ReduceProd",
    "ReduceSum", "Relu", "Result", "Round", "Select", "ShapeOf", "Sigmoid", "Sign", "Sin", "Slice", "Split",
    "StridedSlice", "Tanh", "Tile", "VariadicSplit",
}  # fmt: skip
"""Layers that may have no number of a call among their inputs, as positions of a rotary embedding do not. The library
computes other layers when it reads them, and does not check what they get."""
_DIVISIONS = frozenset({"Divide", "FloorMod", "Mod"})
_DIVISOR = 1
"""Integers are divided when the library reads them, where no number of a call is among them: by 0 the process ends."""
_ROUNDS, _ENDLESS = 0, -1
"""The input of a Loop with the number of its rounds, and that of one that its body ends; less end the process."""
_BEGINS, _ENDS = 1, 2
"""The inputs of a Pad with the pads before and behind each axis."""
_PURPOSES = {"input": "current_iteration", "output": "execution_condition"}
"""What a port of a body may be for that is no port of the layer."""


@dataclass(slots=True)
class _Layer:
    """What others refer to: its number of input and output ports, which are numbered from 0 in one row."""

    kind: str
    inputs: int
    outputs: int
    constant_input: int | None = None
    """An input that must be a constant."""
    elements: int | None = None
    """The number of elements of a constant or a parameter, where it is known; of what is joined, as if each had one."""
    joins: bool = False
    """Whether it is a Loop with an output that is joined from pieces, whose number is that of the rounds."""
    integers: tuple[int, ...] | None = None
    """The numbers of a constant of integers that is no longer than a shape."""
    divides: bool = False
    """Whether it is a constant of integers that are neither 0 nor -1."""
    floats: bool = False
    """Whether it is a constant of floats, or gives floats of whatever it gets."""


@dataclass(slots=True)
class _PortMap:
    """How a body is connected: (port of the layer, layer of the body) of inputs and outputs, and its back edges."""

    inputs: list[tuple[int, int]] = field(default_factory=list)
    outputs: list[tuple[int, int]] = field(default_factory=list)
    back_edges: list[tuple[int, int]] = field(default_factory=list)
    joins: bool = False
    """Whether an output is joined from pieces of all rounds."""


def check_ir(graph: bytes, weights: bytes | memoryview) -> None:
    """Passes a graph in IR whose constants lie within the weights.

    Raises:
        PolicyError: it is something else, which might name files.
        BundleError: it is no sound IR, or holds what is not made here.
    """
    text = graph.decode("latin-1")  # every byte is a character; those beyond ASCII stand in values that nobody reads
    if not _BEGIN.match(text):
        raise PolicyError(f"the graph is not OpenVINO's IR: it begins with {graph[:24]!r}", hint="compile it again")
    _Reader(text, memoryview(weights)).read()


class _Reader:
    """A text, and how far it was read."""

    def __init__(self, text: str, weights: memoryview) -> None:
        self._text = text
        self._at = 0
        self._weights = weights

    def read(self) -> None:
        """Reads the whole text."""
        self._take(_BEGIN, "a net")
        self._graph(0)
        self._take(_NET_END, "the end of the net")

    def _maybe(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        if found := pattern.match(self._text, self._at):
            self._at = found.end()
        return found

    def _take(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        if found := self._maybe(pattern):
            return found
        raise _refusal(f"{what} was expected at {self._text[self._at : self._at + 40].strip()!r}")

    def _graph(self, depth: int) -> dict[int, _Layer]:
        """Reads the layers and edges of a net or a body; returns the layers by their ids."""
        self._take(_LAYERS_BEGIN, "layers")
        layers: dict[int, _Layer] = {}
        while found := self._maybe(_LAYER):
            number = int(found[1])
            if number in layers:
                raise _refusal(f"two layers have the id {number}")
            layers[number] = self._layer(found[2], found[3], depth)
        self._take(_LAYERS_END, "a layer")
        _check_edges(layers, _EACH_EDGE.findall(self._take(_EDGES, "edges")[1] or ""))
        self._take(_RT_INFO, "rt_info without orders")
        return layers

    def _layer(self, kind: str, version: str, depth: int) -> _Layer:
        if (known := KINDS.get((kind, version))) is None:
            raise _refusal(f"no layer {kind} of {version} is made here")
        maps = {name: self._port_map(name.replace("body", "port_map")) for name in _BODIES.get(kind, ())}
        if "body" in maps:
            maps["body"].back_edges = _numbers(_BACK_EDGE.findall(self._take(_BACK_EDGES, "back edges")[1] or ""))
        said = self._maybe(_DATA)
        attributes = _attributes(kind, said[1] if said else "", known.attributes)
        if kind == "Const":
            self._check_constant(attributes)
        inputs = self._ports(_INPUT, 0)
        outputs = self._ports(_OUTPUT, inputs)
        self._maybe(_FUSED_NAMES)
        if not known.least <= inputs <= known.most:
            raise _refusal(f"a layer {kind} with {inputs} inputs")
        divides = kind == "Range" and attributes["output_type"] in _SIGNED
        if kind == "Split" and int(attributes["num_splits"]) != outputs:
            raise _refusal(f"a split into {attributes['num_splits']} with {outputs} outputs")
        sizes = attributes.get("shape", "?") if kind in ("Const", "Parameter") else "?"
        if "0" in re.split(r", ?", sizes):
            raise _refusal(f"a layer {kind} of nothing, shape [{sizes:.60}]")
        if "strides" in attributes:
            _check_window(kind, [attributes[name] for name in WINDOW_LISTS if name in attributes])
        elements = None if "?" in sizes or "." in sizes else prod(_sizes(sizes))
        elements = inputs if kind == "Concat" else elements
        integers = self._integers(attributes, elements) if kind == "Const" else None
        constant = _STEP if divides else _REPEATS if kind == "Tile" else None
        joins = kind == "Loop" and maps["body"].joins
        is_divisor = kind == "Const" and self._divides(attributes)
        is_float = attributes.get("element_type", attributes.get("destination_type")) in _FLOATS
        layer = _Layer(kind, inputs, outputs, constant, elements, joins, integers, is_divisor, is_float)
        for name in reversed(maps):
            self._body(name, layer, maps[name], depth + 1)
        self._take(_LAYER_END, "the end of a layer")
        return layer

    def _ports(self, pattern: re.Pattern[str], first: int) -> int:
        """Reads the ports of one side, whose ids are counted from `first`; returns how many they are."""
        found = self._maybe(pattern)
        ids = _PORT_ID.findall(found[1]) if found else []
        if ids != [str(first + i) for i in range(len(ids))]:
            raise _refusal(f"ports with the ids {', '.join(ids):.60}")
        return len(ids)

    def _check_constant(self, attributes: Mapping[str, str]) -> None:
        sizes = _sizes(attributes["shape"])
        bits = prod(sizes) * ELEMENT_BITS[attributes["element_type"]]
        offset, size = int(attributes["offset"]), int(attributes["size"])
        if size != ((bits + 7) // 8 or 1):  # nothing is written as one byte
            raise _refusal(f"a constant of shape [{attributes['shape']:.60}] with {size} bytes")
        if offset + size > len(self._weights):
            raise _refusal(f"a constant of {size} bytes at {offset}, the weights are {len(self._weights)}")

    def _integers(self, attributes: Mapping[str, str], elements: int | None) -> tuple[int, ...] | None:
        kind, offset = attributes["element_type"], int(attributes["offset"])
        if kind not in _WIDE or elements is None or elements > MAX_RANK:
            return None
        width = ELEMENT_BITS[kind] // 8
        return tuple(
            int.from_bytes(self._weights[at : at + width], "little", signed=kind in _SIGNED)
            for at in range(offset, offset + width * elements, width)
        )

    def _divides(self, attributes: Mapping[str, str]) -> bool:
        """Returns whether a constant is of integers that are neither 0 nor -1."""
        kind, offset, size = attributes["element_type"], int(attributes["offset"]), int(attributes["size"])
        if kind[0] not in "iu" or ELEMENT_BITS[kind] < 8:
            return False
        numbers = np.frombuffer(self._weights[offset : offset + size], f"{kind[0]}{ELEMENT_BITS[kind] // 8}")
        return not bool(np.isin(numbers, (0, -1) if kind[0] == "i" else (0,)).any())

    def _port_map(self, name: str) -> _PortMap:
        port_map = _PortMap()
        found = self._take(_MAPS[name], name)
        for side, axis, outer, inner, start, end, stride, part, purpose in _EACH_ITEM.findall(found[1] or ""):
            if axis and (start, end, stride, part) not in _SLICES:
                raise _refusal(f"a slice from {start} to {end} by {stride}")
            if bool(purpose) != (outer == "-1") or purpose != _PURPOSES[side] * bool(purpose):
                raise _refusal(f"the port {outer} of a body for {purpose!r}")
            port_map.joins |= bool(axis) and side == "output"
            (port_map.inputs if side == "input" else port_map.outputs).append((int(outer), int(inner)))
        return port_map

    def _body(self, name: str, layer: _Layer, port_map: _PortMap, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise _refusal(f"bodies in bodies, {depth} deep")
        begin, end = _BODY_ENDS[name]
        self._take(begin, name)
        layers = self._graph(depth)
        self._take(end, f"the end of {name}")
        parameters = {number for number, one in layers.items() if one.kind == "Parameter"}
        results = {number for number, one in layers.items() if one.kind == "Result"}
        outer_inputs = [outer for outer, _ in port_map.inputs if outer >= 0]
        outer_outputs = [outer for outer, _ in port_map.outputs if outer >= 0]
        if sorted(inner for _, inner in port_map.inputs) != sorted(parameters):
            raise _refusal(f"{name} has other inputs than its port map")
        if not {inner for _, inner in port_map.outputs} <= results:
            raise _refusal(f"{name} has other outputs than its port map")
        if not set(outer_inputs) <= set(range(layer.inputs)) or len(set(outer_inputs)) != len(outer_inputs):
            raise _refusal(f"the port map of {name} names inputs of the layer that there are not")
        if sorted(outer_outputs) != [layer.inputs + i for i in range(layer.outputs)]:
            raise _refusal(f"the port map of {name} names outputs of the layer that there are not")
        targets = [to for _, to in port_map.back_edges]
        if not set(targets) <= parameters or len(set(targets)) != len(targets):
            raise _refusal(f"back edges of {name} that lead nowhere")
        if not {source for source, _ in port_map.back_edges} <= results:
            raise _refusal(f"back edges of {name} that come from nowhere")


def _refusal(what: str) -> BundleError:
    return BundleError(f"the graph is no IR that is made here: {what}", hint="compile it again")


def _attributes(kind: str, said: str, known: Mapping[str, re.Pattern[str]]) -> dict[str, str]:
    found = _ATTRIBUTE.findall(said)
    attributes = dict(found)
    if attributes.keys() != known.keys() or len(found) != len(known):
        names = ", ".join(sorted(attributes.keys() ^ known.keys()) or known)
        raise _refusal(f"a layer {kind} with more or fewer attributes: {names:.80}")
    for name, value in attributes.items():
        if not known[name].fullmatch(value):
            raise _refusal(f"a layer {kind} whose {name} is {value!r:.60}")
    return attributes


def _check_window(kind: str, lists: Sequence[str]) -> None:
    if "" in lists or len({one.count(",") for one in lists}) > 1:
        raise _refusal(f"a layer {kind} whose window is of {' and '.join(map(repr, lists)):.60} axes")


def _sizes(shape: str) -> list[int]:
    return [int(size) for size in shape.split(",")] if shape else []


def _numbers(pairs: Sequence[tuple[str, str]]) -> list[tuple[int, int]]:
    return [(int(a), int(b)) for a, b in pairs]


def _check_edges(layers: Mapping[int, _Layer], edges: Sequence[tuple[str, str, str, str]]) -> None:
    """Passes edges that fill each input port once, from output ports that there are, in no circle."""
    uses: dict[int, list[int]] = {number: [] for number in layers}
    waits = {number: layer.inputs for number, layer in layers.items()}
    sources: dict[tuple[int, int], int] = {}
    for source, source_port, target, port in ((int(a), int(b), int(c), int(d)) for a, b, c, d in edges):
        if source not in layers or target not in layers:
            raise _refusal(f"an edge from layer {source} to layer {target}")
        giver = layers[source]
        if not giver.inputs <= source_port < giver.inputs + giver.outputs or port >= layers[target].inputs:
            raise _refusal(f"an edge from port {source_port} of layer {source} to port {port} of layer {target}")
        sources[target, port] = source
        uses[source].append(target)
    if len(sources) != len(edges) or len(edges) != sum(waits.values()):
        raise _refusal("an input port has no edge, or two")
    for number, layer in layers.items():
        if layer.constant_input is not None and not _is_constant(
            layers, sources, sources[number, layer.constant_input]
        ):
            raise _refusal(f"a layer {layer.kind} with an input {layer.constant_input} that is no constant")
        if layer.kind == "VariadicSplit" and layers[sources[number, _LENGTHS]].elements != layer.outputs:
            raise _refusal(
                f"a split with {layer.outputs} outputs and other lengths"
            )  # it makes as many outputs as those
        if layer.joins:
            rounds = layers[sources[number, _ROUNDS]].integers
            if rounds is None or min(rounds, default=0) < _ENDLESS:
                raise _refusal(
                    "a layer Loop that joins the pieces of rounds whose number is no constant, or below none"
                )
        if layer.kind == "Pad":
            pads = (layers[sources[number, side]].integers for side in (_BEGINS, _ENDS))
            if reason := unsafe_pads(*pads):
                raise _refusal(f"a layer Pad with {reason}")
    ready = [number for number, waiting in waits.items() if not waiting]
    for number in ready:
        for target in uses[number]:
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
    if len(ready) != len(layers):
        raise _refusal("the layers need each other in a circle")
    of_calls = _of_calls(layers, sources, ready)
    for number, layer in layers.items():
        if number not in of_calls and layer.kind not in _FOLDED:
            raise _refusal(f"a layer {layer.kind} of constants alone")
        axes = sources.get((number, _AXES.get(layer.kind, -1)))
        if axes is not None and not _are_axes(layers, sources, axes):
            raise _refusal(f"a layer {layer.kind} with axes that are no small constants")
        divisor = sources[number, _DIVISOR] if layer.kind in _DIVISIONS else number
        if divisor != number and divisor not in of_calls and not _is_safe_divisor(layers, sources, divisor):
            raise _refusal(f"a layer {layer.kind} by constants that may be 0")
        if layer.kind == "Interpolate" and sources[number, _NEW_SIZES] in of_calls:
            raise _refusal("a layer Interpolate to sizes that are numbers of a call")
        of_shape = layer.kind == "Gather" and _is_shape(layers, sources, sources[number, 0])
        if of_shape and not _are_small(layers[sources[number, _INDICES]]):
            raise _refusal("a layer Gather with places in a shape that are no small constants")


def _is_constant(layers: Mapping[int, _Layer], sources: Mapping[tuple[int, int], int], number: int) -> bool:
    """Whether a layer is a constant, or one in another type or without axes of size 1, which the library computes."""
    if layers[number].kind in ("Squeeze", "Convert"):
        return all(layers[sources[number, port]].kind == "Const" for port in range(layers[number].inputs))
    return layers[number].kind == "Const"


def _of_calls(
    layers: Mapping[int, _Layer], sources: Mapping[tuple[int, int], int], ordered: Sequence[int]
) -> frozenset[int]:
    """Returns the layers that give numbers which depend on those of a caller, and not on their sizes alone."""
    found = set[int]()
    for number in ordered:
        layer = layers[number]
        reads = (sources[number, port] for port in range(layer.inputs))
        if layer.kind == "Parameter" or (layer.kind != "ShapeOf" and not found.isdisjoint(reads)):
            found.add(number)
    return frozenset(found)


def _is_safe_divisor(layers: Mapping[int, _Layer], sources: Mapping[tuple[int, int], int], number: int) -> bool:
    """Whether a divisor, which depends on no numbers of a call, is of floats or a constant that is neither 0 nor -1."""
    while layers[number].kind in _MOVING:
        number = sources[number, 0]
    if layers[number].divides:
        return True
    while layers[number].kind in _KEEPING_TYPE:
        number = sources[number, 0]
    return layers[number].floats


def _are_axes(layers: Mapping[int, _Layer], sources: Mapping[tuple[int, int], int], number: int) -> bool:
    """Whether a layer is a constant of integers that may be axes, or a row of such, which may end with a rank."""
    if layers[number].kind != "Range":
        return _are_small(layers[number])
    begin, end, step = (sources[number, port] for port in range(3))
    ends = _are_small(layers[end]) or _is_shape(layers, sources, end)
    return ends and _are_small(layers[begin]) and _are_small(layers[step])


def _are_small(layer: _Layer) -> bool:
    return layer.integers is not None and all(-MAX_RANK <= one <= MAX_RANK for one in layer.integers)


def _is_shape(layers: Mapping[int, _Layer], sources: Mapping[tuple[int, int], int], number: int) -> bool:
    """Whether a layer gives the sizes of another, or its rank, as they are."""
    while layers[number].kind in ("Convert", "Squeeze", "Unsqueeze"):
        number = sources[number, 0]
    return layers[number].kind == "ShapeOf"
