# SPDX-License-Identifier: Apache-2.0
"""Whole networks with inputs: ONNX's light ones, with random weights, and the real ones beside the repository.

A network of free sizes is compiled for the sizes of its sample. Light networks come with the wheel of ONNX, filled with
constants; one whose weights are all alike gives outputs that are all alike, which would hide most errors. Kernels are
scaled so that values keep their size from layer to layer; what must be positive (a variance) is.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from gpu_backends import ort_session, random_inputs

SMALL = ("squeezenet", "resnet50", "shufflenet", "inception_v1", "inception_v2", "densenet121")
REAL = ("ultraface_rfb320", "fastestdet", "ppocr_det_mobile_v2", "unet_stress_field", "magika_standard_v3_3")
ROUNDING = ("QuantizeLinear", "DynamicQuantizeLinear", "ConvInteger", "MatMulInteger")
MODELS = Path(__file__).resolve().parents[3] / "shared" / "models"
_SCALE, _VARIANCE = 1, 4  # positions of BatchNormalization's inputs


@dataclass(frozen=True, slots=True)
class Network:
    """A network: its file or itself, one sample by input name, the sizes to compile for where the file leaves them."""

    source: "str | onnx.ModelProto"
    sample: dict[str, Any]
    shapes: dict[str, tuple[int, ...]]
    quantised: bool


def names() -> list[str]:
    """Returns "light/resnet50" and "real/ultraface_rfb320", of what is here, the most telling first."""
    real = sorted(_index(), key=lambda name: (name not in REAL, name))
    return [*(f"light/{name}" for name in SMALL if _file(name).is_file()), *(f"real/{name}" for name in real)]


def network(name: str) -> Network:
    """Returns a network by its name."""
    kind, _, short = name.partition("/")
    if kind == "light":
        proto = light_network(short)
        return Network(proto, random_inputs(ort_session(proto)), {}, quantised=False)
    path, proto = MODELS / f"{short}.onnx", onnx.load(MODELS / f"{short}.onnx")
    keys = _index()[short]["sample_keys"]
    with np.load(MODELS / "samples" / f"{short}.npz") as arrays:
        sample = {keys[key]: arrays[key] for key in arrays.files if key.startswith("in") and key in keys}
    free = [value.name for value in proto.graph.input if value.name in sample and _is_free(value)]
    quantised = any(node.op_type in ROUNDING or node.op_type.startswith("QLinear") for node in proto.graph.node)
    return Network(str(path), sample, {name: sample[name].shape for name in free}, quantised)


def _index() -> dict[str, Any]:
    path = MODELS / "index.json"
    return {entry["name"]: entry for entry in json.loads(path.read_text())["models"]} if path.is_file() else {}


def _is_free(value: onnx.ValueInfoProto) -> bool:
    tensor = value.type.tensor_type
    return not tensor.HasField("shape") or any(not dim.HasField("dim_value") for dim in tensor.shape.dim)


def light_network(name: str) -> onnx.ModelProto:
    """Returns a network with random weights, the same every time."""
    proto = onnx.load(_file(name))
    graph, random = proto.graph, np.random.default_rng(11)
    shapes = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    readers = {place: (node, number) for node in graph.node for number, place in enumerate(node.input)}
    for node in [node for node in graph.node if node.op_type == "ConstantOfShape" and node.input[0] in shapes]:
        reader, position = readers.get(node.output[0], (None, 0))
        shape = [int(size) for size in shapes[node.input[0]]]
        is_positive = reader is not None and reader.op_type == "BatchNormalization" and position in (_SCALE, _VARIANCE)
        array = _weights(random, shape, is_positive)
        graph.initializer.append(onnx.numpy_helper.from_array(array, node.output[0]))
        graph.node.remove(node)
    _show_what_softmax_hides(graph)
    return proto


def _show_what_softmax_hides(graph: onnx.GraphProto) -> None:
    """Makes the input of the last Softmax an output too: with random weights one class may take all."""
    last = graph.node[-1]
    if last.op_type == "Softmax":
        graph.output.append(onnx.helper.make_empty_tensor_value_info(last.input[0]))
        graph.output[-1].type.CopyFrom(onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None))


def _weights(random: np.random.Generator, shape: list[int], is_positive: bool) -> Any:
    if is_positive:
        return random.uniform(0.5, 1.5, shape).astype(np.float32)
    if len(shape) < 2:
        return (0.1 * random.standard_normal(shape)).astype(np.float32)
    inputs_a_sum = int(np.prod(shape[1:]))
    return (random.standard_normal(shape) * np.sqrt(2.0 / inputs_a_sum)).astype(np.float32)


def _file(name: str) -> Path:
    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
