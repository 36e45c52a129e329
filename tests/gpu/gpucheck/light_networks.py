# SPDX-License-Identifier: Apache-2.0
"""ONNX's light networks, from its wheel, with random weights instead of the constants that they are filled with.

A network whose weights are all alike gives outputs that are all alike, which would hide most errors. Kernels are
scaled so that values keep their size from layer to layer; what must be positive (a variance) is.
"""

from pathlib import Path
from typing import Any

import numpy as np
import onnx

SMALL = ("squeezenet", "resnet50", "shufflenet", "inception_v1", "inception_v2", "densenet121")
LARGE = ("zfnet512", "bvlc_alexnet", "vgg19")
_SCALE, _VARIANCE = 1, 4  # positions of BatchNormalization's inputs


def names(all_of_them: bool) -> list[str]:
    """Returns the names of the networks that the installed onnx has."""
    wanted = (*SMALL, *LARGE) if all_of_them else SMALL
    return [name for name in wanted if _file(name).is_file()]


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
