# SPDX-License-Identifier: Apache-2.0
"""The models that benches measure: the real ones beside the repository, the zoo's exports, and built networks.

The networks are MobileNetV1, MobileNetV2 and ResNet-18: width 1.0, 1000 classes, ReLU6 as Clip, batch normalisation
folded, seeded weights. These are scaled for their fan-in (He et al., 2015), by 1 instead of 2 where the input was not
rectified, and by 0.1 where a residual is added: the root mean square of every value stays between 0.2 and 1.3.

Source: Howard et al., 2017, table 1; Sandler et al., 2018, table 2; He et al., 2016, table 1.
"""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from interleaved import Array
from onnx import TensorProto, helper, numpy_helper

ANY_SIZES = ("silero_vad_v5",)
"""Networks that are malformed at fixed sizes: a branch for another sampling rate fits other ones."""
EXPORTED, REAL = "exported graphs", "real models"


@dataclass(frozen=True)
class Subject:
    """A model with inputs that run, by tensor name in the model's order; recorded outputs where there are some."""

    name: str
    path: Path
    inputs: dict[str, Array]
    outputs: dict[str, Array] = field(default_factory=dict)
    group: str = REAL
    about: str = "trained"


def real_names(folder: Path) -> list[str]:
    """Returns the names of the real models; none where the folder has no index."""
    return list(_real_entries(folder))


def real_model(folder: Path, name: str) -> Subject:
    """Returns a real model with its recorded sample."""
    entry = _real_entries(folder).get(name)
    if entry is None:
        raise SystemExit(f"no model {name!r} in {folder}")
    with np.load(folder / entry["sample_npz"]) as arrays:
        sample = {key: arrays[key] for key in sorted(arrays.files)}
    inputs, outputs = (
        {entry["sample_keys"][key]: value for key, value in sample.items() if key.startswith(kind)}
        for kind in ("in", "out")
    )
    return Subject(name, folder / entry["file"], inputs, outputs)


def _real_entries(folder: Path) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in _json(folder / "index.json", {"models": []})["models"]}


def _json(path: Path, otherwise: Any) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else otherwise


def all_names(zoo: Path, models: Path) -> list[str]:
    return [*_json(zoo / "index.json", {}), *real_names(models)]


def subject(name: str, zoo: Path, models: Path) -> Subject:
    entry = _json(zoo / "index.json", {}).get(name)
    if entry is None:
        return real_model(models, name)
    with np.load(zoo / "inputs" / f"{name}.npz") as arrays:
        inputs = {key: arrays[key] for key in arrays.files}
    return Subject(name, zoo / f"{name}.onnx", inputs, {}, EXPORTED, f"{entry['kind']}; {entry['exporter']}")


def of_batch(one: Subject, batch: int) -> Subject | None:
    """Returns a model with its inputs repeated along an open batch; None where the model fixes its batch.

    The batch is what the first axis of the first input is called, wherever an input has it in front.
    """
    given = onnx.load(one.path, load_external_data=False).graph.input
    names = {value.name: [size.dim_param for size in value.type.tensor_type.shape.dim][:1] for value in given}
    batch_name = names[next(iter(one.inputs))]
    if batch_name in ([], [""]):
        return None
    inputs = {
        name: np.concatenate([array] * batch) if names[name] == batch_name else array
        for name, array in one.inputs.items()
    }
    return replace(one, name=f"{one.name}{batch_text(batch)}", inputs=inputs, outputs={})


def batch_text(batch: int) -> str:
    return f", batch {batch}"


def with_constant_weights(path: str | Path) -> onnx.ModelProto:
    """Returns the model of a file without inputs that are weights: libraries would not fold these."""
    model = onnx.load(path)
    weights = {tensor.name for tensor in model.graph.initializer}
    for value in [value for value in model.graph.input if value.name in weights]:
        model.graph.input.remove(value)
    return model


def compiled(model: Path, bundle: Path, **options: Any) -> Any:
    """Returns the report of a compile in a child process, without fallback variants by default."""
    import nndeploy
    from nndeploy.jobs.workers import ChildWorkers

    how = nndeploy.CompileOptions(**{"keep_fallback": False, **options})
    with closing(ChildWorkers(num_parallel=1, seconds_limit=300.0)) as workers:
        return nndeploy.compile_model(model, bundle, how, workers=workers)


def paced_bundle(one: Subject, folder: Path, backends: Sequence[str]) -> Path:
    """Returns a new bundle that can be paced, for the sizes of the sample."""
    bundle = folder / f"{one.name}.nnd"
    compiled(one.path, bundle, backends=backends, pace=True, shapes=fixed_shapes(one.inputs))
    return bundle


def fixed_shapes(inputs: dict[str, Array]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in inputs.items()}


def shares_of(chain: dict[str, Any]) -> str:
    """Returns who takes which share of a reported chain: "native 88.0% (1), onnxruntime 12.0% (2)", with submodels."""
    shares: dict[str, list[float]] = {}
    for one in chain["submodels"]:
        shares.setdefault(one["backend"], []).append(one["share"])
    ordered = sorted(shares.items(), key=lambda item: -sum(item[1]))
    return ", ".join(f"{name} {sum(parts):.1%} ({len(parts)})" for name, parts in ordered)


CLASSES = 1000
V1 = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1), (512, 1), (512, 1),
    (1024, 2), (1024, 1),
)  # fmt: skip
"""Out channels and stride of each separable block."""
V2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, out channels, repeats, stride of the first."""
RECTIFIED, LINEAR, RESIDUAL = 2.0, 1.0, 0.1


def network(kind: str, size: int = 224, batch: int = 1) -> onnx.ModelProto:
    """Returns a network, "v1", "v2" or "resnet", for x (batch, 3, size, size); y is (batch, 1000), without softmax."""
    net = _Network(np.random.default_rng(0))
    {"v1": _mobilenet_v1, "v2": _mobilenet_v2, "resnet": _resnet}[kind](net)
    return net.model((batch, 3, size, size))


def network_subject(kind: str, folder: Path, size: int = 224, batch: int = 1) -> Subject:
    """Writes a network into a folder; returns it with random inputs."""
    path = folder / f"{kind}-{size}-{batch}.onnx"
    onnx.save(network(kind, size, batch), path)
    x = np.random.default_rng(1).standard_normal((batch, 3, size, size), dtype=np.float32)
    return Subject(f"{kind}, {size}, batch {batch}", path, {"x": x})


def encoder(layers: int, width: int = 1024) -> onnx.ModelProto:
    """Returns a transformer's encoder with random weights, 50 MB a layer: token numbers in, rows of `width` out."""
    dice, inner, heads, lines = np.random.default_rng(0), 4 * width, width // 64, list[str]()
    arrays: dict[str, Array] = {
        "table": dice.standard_normal((1000, width), np.float32),
        "split": np.array([0, 0, heads, 64]), "joined": np.array([0, 0, width]),
        "scale": np.ones(width, np.float32), "shift": np.zeros(width, np.float32),
    }  # fmt: skip
    numbers = {"eighth": 1 / 8, "half": 1 / 2, "one": 1.0, "root": 2**0.5}
    arrays |= {name: np.array(number, np.float32) for name, number in numbers.items()}

    def product(made: str, x: str, weights: str, rows: int, columns: int) -> None:
        arrays[weights] = dice.standard_normal((rows, columns), np.float32) * np.float32(rows**-0.5)
        arrays[f"{weights}_b"] = dice.standard_normal(columns, np.float32) * np.float32(0.1)
        lines.append(f"{made}_m = MatMul({x}, {weights}) {made} = Add({made}_m, {weights}_b)")

    lines.append("x0 = Gather(table, ids)")
    for i in range(layers):
        for part, order in (("q", "0, 2, 1, 3"), ("k", "0, 2, 3, 1"), ("v", "0, 2, 1, 3")):
            product(f"{part}{i}", f"x{i}", f"w{part}{i}", width, width)
            lines.append(f"{part}{i}_r = Reshape({part}{i}, split)")
            lines.append(f"{part}{i}_t = Transpose<perm = [{order}]>({part}{i}_r)")
        lines.append(f"s{i} = MatMul(q{i}_t, k{i}_t) e{i} = Mul(s{i}, eighth) a{i} = Softmax<axis = -1>(e{i})")
        lines.append(f"c{i} = MatMul(a{i}, v{i}_t) t{i} = Transpose<perm = [0, 2, 1, 3]>(c{i})")
        lines.append(f"j{i} = Reshape(t{i}, joined)")
        product(f"o{i}", f"j{i}", f"wo{i}", width, width)
        lines.append(f"d{i} = Add(x{i}, o{i}) n{i} = LayerNormalization<axis = -1>(d{i}, scale, shift)")
        product(f"f{i}", f"n{i}", f"wf{i}", width, inner)
        lines.append(f"g{i} = Div(f{i}, root) h{i} = Erf(g{i}) l{i} = Add(h{i}, one) u{i} = Mul(f{i}, l{i})")
        lines.append(f"z{i} = Mul(u{i}, half)")
        product(f"y{i}", f"z{i}", f"wy{i}", inner, width)
        lines.append(f"r{i} = Add(n{i}, y{i}) x{i + 1} = LayerNormalization<axis = -1>(r{i}, scale, shift)")
    header = '<ir_version: 8, opset_import: ["" : 17]>'
    given, taken = "int64[batch,length] ids", f"float[batch,length,{width}] x{layers}"
    model = onnx.parser.parse_model(f"{header} g ({given}) => ({taken}) {{ {' '.join(lines)} }}")
    model.graph.initializer.extend(numpy_helper.from_array(one, name) for name, one in arrays.items())
    return model


class Lstm(NamedTuple):
    """Two layers over frames (frames, batch, width), as wide as what they read, in one direction or both."""

    width: int
    frames: int
    batch: int = 1
    directions: int = 1


LSTMS = {
    "lstm": Lstm(256, 50), "lstm_64": Lstm(64, 20), "lstm_1024": Lstm(1024, 20), "lstm_both": Lstm(256, 60, 1, 2),
    "lstm_both_4": Lstm(256, 60, 4, 2), "lstm_both_16": Lstm(256, 60, 16, 2), "lstm_512_8": Lstm(512, 40, 8),
}  # fmt: skip


def lstm_subject(name: str, folder: Path) -> Subject:
    """Writes one of `LSTMS`; returns it with random inputs."""
    (width, frames, batch, directions), random = LSTMS[name], np.random.default_rng(0)
    nodes, weights = [], [numpy_helper.from_array(np.array([0, 0, -1]), "rows")]
    for layer in range(2):
        for one, inputs in (("w", width if layer == 0 else width * directions), ("r", width)):
            array = (random.standard_normal((directions, 4 * width, inputs)) / np.sqrt(width)).astype(np.float32)
            weights.append(numpy_helper.from_array(array, f"{one}{layer}"))
        names, direction = [f"x{layer}", f"w{layer}", f"r{layer}"], ("forward", "bidirectional")[directions - 1]
        nodes.append(helper.make_node("LSTM", names, [f"y{layer}"], hidden_size=width, direction=direction))
        nodes.append(helper.make_node("Transpose", [f"y{layer}"], [f"t{layer}"], perm=[0, 2, 1, 3]))
        nodes.append(helper.make_node("Reshape", [f"t{layer}", "rows"], [f"x{layer + 1}"]))
    ends = [
        helper.make_tensor_value_info(end, TensorProto.FLOAT, [frames, batch, size])
        for end, size in (("x0", width), ("x2", width * directions))
    ]
    graph, path = helper.make_graph(nodes, "lstm", ends[:1], ends[1:], weights), folder / f"{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return Subject(name, path, {"x0": random.standard_normal((frames, batch, width)).astype(np.float32)})


def _mobilenet_v1(net: "_Network") -> None:
    x, channels = net.conv("x", 3, 32, kernel=3, stride=2, gain=LINEAR), 32
    for outputs, stride in V1:
        x = net.conv(x, channels, channels, kernel=3, stride=stride, groups=channels)
        x, channels = net.conv(x, channels, outputs), outputs
    net.classify(x, channels)


def _mobilenet_v2(net: "_Network") -> None:
    x, channels = net.conv("x", 3, 32, kernel=3, stride=2, gain=LINEAR), 32
    for expansion, outputs, repeats, stride in V2:
        for repeat in range(repeats):
            x = net.inverted_residual(x, channels, outputs, expansion, stride if repeat == 0 else 1)
            channels = outputs
    net.classify(net.conv(x, channels, 1280, gain=LINEAR), 1280)


def _resnet(net: "_Network") -> None:
    x, channels = net.conv("x", 3, 64, kernel=7, stride=4, gain=LINEAR), 64
    for outputs in (64, 128, 256, 512):
        for stride in (1 if outputs == 64 else 2, 1):
            x, channels = net.basic_residual(x, channels, outputs, stride), outputs
    net.classify(x, channels)


@dataclass
class _Network:
    """Nodes and weights as they grow; each method adds a block and returns its output."""

    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)

    def conv(
        self, x: str, inputs: int, outputs: int, *, kernel: int = 1, stride: int = 1, groups: int = 1,
        gain: float = RECTIFIED, relu6: bool = True,
    ) -> str:  # fmt: skip
        shape = (outputs, inputs // groups, kernel, kernel)
        w = self.rng.standard_normal(shape) * np.sqrt(gain / np.prod(shape[1:]))
        names = [x, self._weight(w), self._weight(self.rng.standard_normal(outputs) * 0.1)]
        sizes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4, "group": groups}
        y = self._node("Conv", names, **sizes)
        return self._node("Clip", [y, "zero", "six"]) if relu6 else y

    def inverted_residual(self, x: str, inputs: int, outputs: int, expansion: int, stride: int) -> str:
        wide, residual = inputs * expansion, stride == 1 and inputs == outputs
        y = self.conv(x, inputs, wide, gain=LINEAR) if expansion > 1 else x
        y = self.conv(y, wide, wide, kernel=3, stride=stride, groups=wide)
        y = self.conv(y, wide, outputs, gain=RESIDUAL if residual else RECTIFIED, relu6=False)
        return self._node("Add", [x, y]) if residual else y

    def basic_residual(self, x: str, inputs: int, outputs: int, stride: int) -> str:
        y = self.conv(x, inputs, outputs, kernel=3, stride=stride)
        y = self.conv(y, outputs, outputs, kernel=3, gain=RESIDUAL, relu6=False)
        if (inputs, stride) != (outputs, 1):
            x = self.conv(x, inputs, outputs, stride=stride, gain=LINEAR, relu6=False)
        return self._node("Relu", [self._node("Add", [x, y])])

    def classify(self, x: str, channels: int) -> None:
        flat = self._node("Flatten", [self._node("GlobalAveragePool", [x])])
        matrix = self._weight(self.rng.standard_normal((channels, CLASSES)) / np.sqrt(channels))
        bias = self._weight(self.rng.standard_normal(CLASSES) * 0.1)
        self.nodes.append(helper.make_node("Gemm", [flat, matrix, bias], ["y"]))

    def model(self, shape: tuple[int, ...]) -> onnx.ModelProto:
        constants = [numpy_helper.from_array(np.array(v, np.float32), n) for n, v in (("zero", 0), ("six", 6))]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (shape[0], CLASSES))
        graph = helper.make_graph(self.nodes, "network", [x], [y], [*self.weights, *constants])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)

    def _node(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def _weight(self, values: Array) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name
