# SPDX-License-Identifier: Apache-2.0
"""Members for OpenVINO that say something else: of a seed and a number follows one mutant and what is changed in it.

Many keep the form of what the backend's gate lets through, so that the library meets them: other sizes with as many
bytes, attributes of the same form, layers of the same kind, edges from elsewhere, other numbers in tables of integers.
The others break that form, as somebody would who knows what the library believes. In some the numbers of the call are
such as nobody expects.
"""

import random
import struct
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace

from nndeploy_openvino.ir_layers import ELEMENT_BITS, KINDS
from openvino_seeds import Seed

from nndeploy.values.types import TensorType

WHOLE = (0, 1, 2, 3, 4, 5, 7, 8, 16, 17, 63, 64, 65, 255, 1000, 4096, 65536, 2**20, 2**24, 2**31 - 1, 2**31, 2**32,
         2**40, 2**62, 2**63 - 1)  # fmt: skip
HUGE = (2**63, 2**64 - 1, 2**64 - 8, 2**64 - 64, 2**64, 10**30, -(2**63))
WORDS = """
    numpy none pdpd explicit bidirectional valid same_upper same_lower notset floor ceil ceil_torch constant reflect
    edge symmetric nearest linear linear_onnx cubic bilinear_pillow bicubic_pillow bilinear bicubic sizes scales
    half_pixel asymmetric align_corners pytorch_half_pixel tf_half_pixel_for_nn round_prefer_floor simple zeros
    border reflection max min sum prod mean add value index corner center avg forward reverse sigmoid tanh relu
    hardsigmoid half_to_even half_away_from_zero blocks_first depth_first INSIDE_SQRT OUTSIDE_SQRT ERF TANH
    normalize ignore_negative tensorflow pytorch nonsense mask half_pixel_for_nn
""".split()  # noqa: SIM905
FOREIGN = (
    ("ReadValue", "opset6"), ("Assign", "opset6"), ("FrameworkNode", "framework"), ("Abs", "extension"),
    ("Proposal", "opset4"), ("Bucketize", "opset3"), ("Inverse", "opset14"), ("GatherTree", "opset1"),
)  # fmt: skip
"""Layers that are not made here."""
TYPES = tuple(ELEMENT_BITS)
ODD_TYPES = ("string", "nf4", "u1", "f8e4m3", "dynamic", "f4e2m1", "")
TEXTS = (
    '<!DOCTYPE net [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>',
    '<!DOCTYPE net SYSTEM "/etc/passwd">', "<!-- -->", "<![CDATA[<layer/>]]>", "<?xml-stylesheet href='x'?>",
    "&#0;", "\0",
)  # fmt: skip

UNUSUAL_CALLS = 0.3
UNUSUAL_ALONE = 0.3
"""The share of mutants with unusual numbers of their call, and of those among them with no other change."""

Change = Callable[[ET.Element, Seed, random.Random], tuple[Seed, str]]


def mutant(seed: Seed, number: int) -> tuple[Seed, str]:
    dice = random.Random(number)  # noqa: S311 - no secret
    said = []
    if dice.random() < UNUSUAL_CALLS:
        seed = replace(seed, call=number + 1)
        said.append("unusual numbers of the call")
        if dice.random() < UNUSUAL_ALONE:
            return seed, said[0]
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        if dice.random() < 0.06:
            seed, what = dice.choice((_text, _metadata, _types))(seed, dice)
        else:
            net = ET.fromstring(seed.graph)  # noqa: S314 - made by the backend
            change: Change = dice.choices(list(_CHANGES), list(_CHANGES.values()))[0]
            try:
                seed, what = change(net, seed, dice)
            except (IndexError, KeyError, TypeError, ValueError):
                continue  # there is nothing of that kind in this one
            seed = replace(seed, graph=_written(net))
        said.append(what)
        if what.startswith("text"):
            break
    return seed, "; ".join(said) or "nothing"


def _written(net: ET.Element) -> bytes:
    """Returns a graph as OpenVINO writes it, which leaves `>` in values as it is."""
    return b'<?xml version="1.0"?>\n' + ET.tostring(net).replace(b"&gt;", b">")


def _layers(net: ET.Element) -> list[ET.Element]:
    return list(net.iter("layer"))


def _data(net: ET.Element, dice: random.Random, kinds: tuple[str, ...] = ()) -> tuple[ET.Element, ET.Element]:
    found = [
        (layer, data)
        for layer in _layers(net)
        if (data := layer.find("data")) is not None
        and (layer.get("type") in kinds if kinds else layer.get("type") not in ("Const", "Parameter"))
    ]
    return dice.choice(found)


def _whole(dice: random.Random, old: int) -> int:
    return dice.choice(
        (old - 1, old + 1, old * 2, old // 2, -old, 0, 1, -1, 2, dice.choice(WHOLE), -dice.choice(WHOLE))
    )


def _attribute(net: ET.Element, seed: Seed, dice: random.Random) -> tuple[Seed, str]:
    layer, data = _data(net, dice)
    name = dice.choice(list(data.attrib))
    old = data.attrib[name]
    fields = [field.strip() for field in old.split(",")]
    if dice.random() < 0.15:
        fields = dice.choice((fields[:-1], [*fields, fields[-1]], [], fields * 3))
    else:
        at = dice.randrange(len(fields))
        fields[at] = _other(fields[at], dice)
    data.set(name, ", ".join(fields))
    return seed, f"{layer.get('type')} {name}: {old} -> {data.get(name)}"


def _other(field: str, dice: random.Random) -> str:
    if field in ("true", "false"):
        return "false" if field == "true" else "true"
    if field in TYPES:
        return dice.choice(TYPES)
    try:
        return str(_whole(dice, int(field)))
    except ValueError:
        pass
    try:
        return str(dice.choice((-float(field), 0.0, 1e38, 1e-40, 1e300, 0.5)))
    except ValueError:
        return dice.choice(WORDS)


def _shape(net: ET.Element, seed: Seed, dice: random.Random) -> tuple[Seed, str]:
    """Gives a constant another shape, type or place, with as many bytes as that needs."""
    layer, data = _data(net, dice, ("Const",))
    sizes = [int(size) for size in data.attrib["shape"].split(",") if size.strip()]
    old = f"{data.attrib['element_type']}[{data.attrib['shape']}]"
    match dice.randrange(6):
        case 0:
            data.set("element_type", dice.choice(TYPES))
        case 1 if sizes:
            at = dice.randrange(len(sizes))
            sizes[at] = max(0, dice.choice((sizes[at] - 1, sizes[at] + 1, 0, 1, 2, 64, 1000, 65536)))
        case 2:
            sizes = dice.choice(([], [1, *sizes], [*sizes, 1], sizes[1:], sizes[:-1], [0], [*sizes, *sizes]))
        case 3:
            dice.shuffle(sizes)
        case 4:
            other = _data(net, dice, ("Const",))[1]
            data.set("offset", other.attrib["offset"])
        case _:
            data.set("offset", str(max(0, int(data.attrib["offset"]) + dice.choice((-1, 1, -8, 8, -4, 4, 3)))))
    count = 1
    for size in sizes:
        count *= size
    num_bytes = (count * ELEMENT_BITS[data.attrib["element_type"]] + 7) // 8
    data.set("shape", ", ".join(map(str, sizes)))
    data.set("size", str(num_bytes or 1))
    weights = seed.weights
    missing = int(data.attrib["offset"]) + num_bytes - len(weights)
    if 0 < missing < 2**24 and dice.random() < 0.9:
        weights += (weights or b"\1") * (missing // max(1, len(weights)) + 1)
    return replace(seed, weights=weights), f"Const {layer.get('id')}: {old} -> {data.attrib}"


def _lie(net: ET.Element, seed: Seed, dice: random.Random) -> tuple[Seed, str]:
    """Lets a constant say what is not so: a size, a shape, a place beyond the weights, sums beyond 64 bits."""
    _, data = _data(net, dice, ("Const",))
    old = dict(data.attrib)
    match dice.randrange(5):
        case 0:
            size = dice.choice((8, 16, 64, int(old["size"])))
            data.set("offset", str(2**64 - size))
            data.set("size", str(size))
        case 1:
            data.set(dice.choice(("offset", "size")), str(dice.choice((*WHOLE, *HUGE))))
        case 2:
            data.set("shape", ", ".join(str(dice.choice((*WHOLE[-6:], *HUGE, 4))) for _ in range(dice.randint(1, 4))))
        case 3:
            data.set("value", "x" * dice.choice((0, 1, 100)))
        case _:
            data.set("element_type", dice.choice(ODD_TYPES))
    return seed, f"Const {old} -> {data.attrib}"


def _parameter(net: ET.Element, seed: Seed, dice: random.Random) -> tuple[Seed, str]:
    layer, data = _data(net, dice, ("Parameter",))
    old = dict(data.attrib)
    if dice.random() < 0.25:
        data.set("element_type", dice.choice(TYPES if dice.random() < 0.9 else ODD_TYPES))
    else:
        sizes = old["shape"].split(",") if old["shape"] else []
        if dice.random() < 0.3 or not sizes:
            sizes = dice.choice((sizes[1:], [*sizes, "1"], ["?", *sizes], [], ["?"], ["..."], ["?"] * 4))
        else:
            sizes[dice.randrange(len(sizes))] = dice.choice(
                ("?", "1", "2", "4", "8", "0", "0..", "..4", "1..9", "7..2", "100000", "9999999999", "-1", "5..5")
            )
        data.set("shape", ",".join(sizes))
    return seed, f"Parameter {layer.get('id')}: {old} -> {data.attrib}"


def _kind(net: ET.Element, seed: Seed, dice: random.Random) -> tuple[Seed, str]:
    """Makes a layer one of another kind that has the same attributes, or any."""
    layer = dice.choice([layer for layer in _layers(net) if layer.get("type") not in ("Const", "Parameter", "Result")])
    old = layer.get("type")
    data = layer.find("data")
    names = set(data.attrib) if data is not None else set()
    num_inputs = len(layer.findall("input/port"))
    alike = [
        key
        for key, kind in KINDS.items()
        if set(kind.attributes) == names
        and kind.least <= num_inputs <= kind.most
        and "Loop" not in key
        and "If" not in key
    ]
    if dice.random() < 0.1:
        alike = [*KINDS, *FOREIGN]
    kind, version = dice.choice(alike)
    layer.set("type", kind)
    layer.set("version", version)
    return seed, f"{old} becomes {kind}"


def _edge(net: ET.Element, seed: Seed, dice: random.Random) -> tuple[Seed, str]:
    """Lets a layer read something else, most often what stands before it."""
    parent = dice.choice(list(net.iter("edges")))
    edges = list(parent)
    edge = dice.choice(edges)
    old = dict(edge.attrib)
    match dice.randrange(6):
        case 0 | 1 | 2:
            earlier = [one for one in edges if int(one.attrib["from-layer"]) < int(edge.attrib["to-layer"])]
            other = dice.choice(earlier)
            edge.set("from-layer", other.attrib["from-layer"])
            edge.set("from-port", other.attrib["from-port"])
        case 3:
            other = dice.choice(edges)
            for name in ("from-layer", "from-port"):
                mine, its = edge.attrib[name], other.attrib[name]
                edge.set(name, its)
                other.set(name, mine)
        case 4:
            edge.set(dice.choice(list(edge.attrib)), str(dice.choice((0, 1, 2, 3, 9, 2**31, 2**32, 2**63))))
        case _:
            if dice.random() < 0.5:
                parent.remove(edge)
            else:
                parent.append(ET.Element("edge", edge.attrib))
    return seed, f"edge {old} -> {edge.attrib}"


def _bypass(net: ET.Element, seed: Seed, dice: random.Random) -> tuple[Seed, str]:
    """Takes a layer away; who read it reads what it read."""
    parents = [(layers, edges) for layers, edges in zip(net.iter("layers"), net.iter("edges"), strict=True)]
    layers, edges = dice.choice(parents)
    layer = dice.choice([one for one in layers if one.find("input") is not None and one.find("output") is not None])
    number = layer.get("id")
    into = dice.choice([edge for edge in edges if edge.get("to-layer") == number])
    for edge in list(edges):
        if edge.get("to-layer") == number:
            edges.remove(edge)
        elif edge.get("from-layer") == number:
            edge.set("from-layer", into.attrib["from-layer"])
            edge.set("from-port", into.attrib["from-port"])
    layers.remove(layer)
    return seed, f"{layer.get('type')} {number} taken away"


def _structure(net: ET.Element, seed: Seed, dice: random.Random) -> tuple[Seed, str]:
    """Removes, repeats or moves any element, or changes any attribute of one."""
    parents = [parent for parent in net.iter() if len(parent)]
    parent = dice.choice(parents)
    child = dice.choice(list(parent))
    match dice.randrange(6):
        case 0:
            parent.remove(child)
        case 1:
            parent.append(child)
        case 2:
            parent.remove(child)
            dice.choice(parents).append(child)
        case 3:
            child.set(
                dice.choice(("PrimitivesPriority", "alt_width", "names", "type", "id")),
                dice.choice(("1", "ref", "cpu:ref", "")),
            )
        case 4:
            ET.SubElement(ET.SubElement(child, "rt_info"), "attribute", name="fused_names", version="0", value="x")
        case _:
            name = dice.choice(list(child.attrib))
            child.set(name, str(dice.choice((*WHOLE, *HUGE, -1, "", "x"))))
    return seed, f"{child.tag} in {parent.tag} {child.attrib}"


def _table(net: ET.Element, seed: Seed, dice: random.Random) -> tuple[Seed, str]:
    """Puts other numbers into a constant of integers: indices, shapes, axes, bounds."""
    found = [
        data.attrib
        for layer in _layers(net)
        if layer.get("type") == "Const" and (data := layer.find("data")) is not None
    ]
    tables = [data for data in found if data["element_type"] in ("i64", "i32") and int(data["size"]) >= 4]
    data = dice.choice(tables)
    width = ELEMENT_BITS[data["element_type"]] // 8
    at = int(data["offset"]) + width * dice.randrange(int(data["size"]) // width)
    weights = bytearray(seed.weights)
    old = int.from_bytes(weights[at : at + width], "little", signed=True)
    number = _whole(dice, old)
    limit = 2 ** (8 * width - 1)
    weights[at : at + width] = max(-limit, min(number, limit - 1)).to_bytes(width, "little", signed=True)
    return replace(seed, weights=bytes(weights)), f"table at {at}: {old} -> {number}"


def _main_layers(net: ET.Element, kind: str) -> list[ET.Element]:
    return [layer for layer in net.findall("layers/layer") if layer.get("type") == kind]


def _edges_from(net: ET.Element, layer: ET.Element) -> list[ET.Element]:
    return [edge for edge in net.findall("edges/edge") if edge.get("from-layer") == layer.get("id")]


def _computed(net: ET.Element, seed: Seed, dice: random.Random) -> tuple[Seed, str]:
    """Makes an input of a constant of integers: an axis, a shape, an index that nobody knows when the model is read."""
    found = [(layer, layer.find("data")) for layer in _main_layers(net, "Const")]
    layer, data = dice.choice(
        [(one, d) for one, d in found if d is not None and d.get("element_type") in ("i32", "i64")]
    )
    kind = TensorType({"i32": "int32", "i64": "int64"}[data.attrib["element_type"]], _sizes_of(data.attrib["shape"]))
    layer.set("type", "Parameter")
    del data.attrib["offset"], data.attrib["size"]
    at, name = _main_layers(net, "Parameter").index(layer), f"computed{len(seed.inputs)}"
    names = list(seed.metadata["inputs"])
    metadata = {**seed.metadata, "inputs": [*names[:at], name, *names[at:]]}
    call = seed.call or dice.randrange(2**31)
    readers = ", ".join(f"{one.attrib['to-layer']}:{one.attrib['to-port']}" for one in _edges_from(net, layer))
    changed = replace(seed, metadata=metadata, inputs={**seed.inputs, name: kind}, call=call)
    return changed, f"{name} for the constant {layer.get('id')}, which {readers} read"


def _folded(net: ET.Element, seed: Seed, dice: random.Random) -> tuple[Seed, str]:
    """Makes a constant of an input, with numbers that nobody expects: the library computes with it when it reads."""
    found = [(layer, layer.find("data")) for layer in _main_layers(net, "Parameter")]
    at, (layer, data) = dice.choice([(at, pair) for at, pair in enumerate(found) if pair[1] is not None])
    name = seed.metadata["inputs"][at]
    raw = replace(seed, call=dice.randrange(1, 2**31)).values()[name].tobytes()
    layer.set("type", "Const")
    data.set("shape", ", ".join(str(size) for size in replace(seed, call=0).values()[name].shape))
    data.set("offset", str(len(seed.weights)))
    data.set("size", str(len(raw) or 1))
    rest = [other for other in seed.metadata["inputs"] if other != name]
    inputs = {other: kind for other, kind in seed.inputs.items() if other != name}
    changed = replace(
        seed, metadata={**seed.metadata, "inputs": rest}, inputs=inputs, weights=seed.weights + (raw or b"0")
    )
    return changed, f"a constant for {name}"


def _sizes_of(shape: str) -> tuple[int, ...]:
    return tuple(int(size) for size in shape.split(",")) if shape else ()


def _weights(net: ET.Element, seed: Seed, dice: random.Random) -> tuple[Seed, str]:
    data = seed.weights
    at = dice.randrange(len(data))
    match dice.randrange(5):
        case 0:
            return replace(seed, weights=b""), "no weights"
        case 1:
            return replace(seed, weights=data[:at]), f"weights cut at {at}"
        case 2:
            bits = struct.pack("<f", dice.choice((float("nan"), float("inf"), -float("inf"), 3e38, 1e-42, -0.0)))
            at -= at % 4
            return replace(seed, weights=data[:at] + bits + data[at + 4 :]), f"weights at {at}"
        case 3:
            return replace(seed, weights=dice.randbytes(len(data))), "other weights"
    return replace(seed, weights=data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :]), f"byte {at} of the weights"


def _text(seed: Seed, dice: random.Random) -> tuple[Seed, str]:
    graph = bytearray(seed.graph)
    at = dice.randrange(len(graph))
    match dice.randrange(5):
        case 0:
            graph[at] = dice.randrange(256)
        case 1:
            del graph[at : at + dice.randint(1, 40)]
        case 2:
            graph[at:at] = graph[(start := dice.randrange(len(graph))) : start + dice.randint(1, 60)]
        case 3:
            at = graph.index(b"\n") if dice.random() < 0.5 else at
            graph[at:at] = dice.choice(TEXTS).encode()
        case _:
            del graph[at:]
    return replace(seed, graph=bytes(graph)), f"text at {at}"


def _metadata(seed: Seed, dice: random.Random) -> tuple[Seed, str]:
    metadata = dict(seed.metadata)
    side = dice.choice(("inputs", "outputs"))
    names = list(metadata[side] or ())
    metadata[side] = dice.choice((names[::-1], names[:-1], names + names[:1], [], ["nobody"] * len(names), None, [1]))
    return replace(seed, metadata=metadata), f"metadata {side}: {metadata[side]}"


def _types(seed: Seed, dice: random.Random) -> tuple[Seed, str]:
    name = dice.choice(list(seed.outputs))
    kind = seed.outputs[name]
    shape = list(kind.shape or ())
    match dice.randrange(3):
        case 0:
            kind = TensorType(dice.choice(("float32", "int32", "int64", "float16", "bool")), kind.shape)
        case 1:
            kind = TensorType(kind.dtype, dice.choice(((*shape, 1), tuple(shape[1:]))))
        case _ if shape:
            shape[dice.randrange(len(shape))] = dice.choice((1, 2, 9, 64, "n"))
            kind = TensorType(kind.dtype, tuple(shape))
    return replace(seed, outputs={**seed.outputs, name: kind}), f"the manifest says that {name} is {kind}"


_CHANGES: dict[Change, int] = {
    _attribute: 22, _shape: 18, _lie: 5, _parameter: 9, _kind: 9, _edge: 9, _bypass: 4, _structure: 6, _table: 15,
    _weights: 4, _computed: 14, _folded: 10,
}  # fmt: skip
