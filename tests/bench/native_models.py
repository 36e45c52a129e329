# SPDX-License-Identifier: Apache-2.0
"""MobileNetV1, MobileNetV2 and ResNet-18 as ONNX models: width 1.0, 1000 classes, ReLU6 as Clip, seeded weights.

Batch normalisation is folded already: each convolution has a bias. Weights are scaled for their fan-in (He et al.,
2015), by 1 instead of 2 where the input was not rectified, and by 0.1 where a residual is added: the root mean square
of every value stays between 0.2 and 1.3. Law: the same arguments give the same model.

Source: Howard et al., 2017, table 1; Sandler et al., 2018, table 2.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

CLASSES = 1000
V1 = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1), (512, 1), (512, 1),
    (1024, 2), (1024, 1),
)  # fmt: skip
"""Out channels and stride of each separable block."""
V2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, out channels, repeats, stride of the first."""
RECTIFIED, LINEAR, RESIDUAL = 2.0, 1.0, 0.1


def mobilenet_v1(size: int, batch: int, seed: int = 0) -> ModelProto:
    """Returns MobileNetV1 for an input "x" of (batch, 3, size, size); the output "y" is (batch, 1000), no softmax."""
    net = _Network(np.random.default_rng(seed))
    x, channels = net.conv("x", 3, 32, kernel=3, stride=2, gain=LINEAR), 32
    for outputs, stride in V1:
        x = net.conv(x, channels, channels, kernel=3, stride=stride, groups=channels)
        x = net.conv(x, channels, outputs)
        channels = outputs
    net.classify(x, channels)
    return net.model("mobilenet_v1", (batch, 3, size, size))


def mobilenet_v2(size: int, batch: int, seed: int = 0) -> ModelProto:
    """Returns MobileNetV2 for an input "x" of (batch, 3, size, size); the output "y" is (batch, 1000), no softmax."""
    net = _Network(np.random.default_rng(seed))
    x, channels = net.conv("x", 3, 32, kernel=3, stride=2, gain=LINEAR), 32
    for expansion, outputs, repeats, stride in V2:
        for repeat in range(repeats):
            x = net.inverted_residual(x, channels, outputs, expansion, stride if repeat == 0 else 1)
            channels = outputs
    x = net.conv(x, channels, 1280, gain=LINEAR)
    net.classify(x, 1280)
    return net.model("mobilenet_v2", (batch, 3, size, size))


def residual_network(size: int, batch: int, seed: int = 0) -> ModelProto:
    """Returns ResNet-18 for an input "x" of (batch, 3, size, size), its first pooling as strides; output as above.

    Source: He et al., 2016, table 1.
    """
    net = _Network(np.random.default_rng(seed))
    x, channels = net.conv("x", 3, 64, kernel=7, stride=4, gain=LINEAR), 64
    for outputs in (64, 128, 256, 512):
        for stride in (1 if outputs == 64 else 2, 1):
            x = net.basic_residual(x, channels, outputs, stride)
            channels = outputs
    net.classify(x, channels)
    return net.model("resnet18", (batch, 3, size, size))


NETWORKS = {"v1": mobilenet_v1, "v2": mobilenet_v2}


@dataclass
class _Network:
    """Nodes and weights as they grow."""

    rng: np.random.Generator
    nodes: list[NodeProto] = field(default_factory=list)
    weights: list[TensorProto] = field(default_factory=list)

    def conv(
        self, x: str, inputs: int, outputs: int, *, kernel: int = 1, stride: int = 1, groups: int = 1,
        gain: float = RECTIFIED, relu6: bool = True,
    ) -> str:  # fmt: skip
        """Adds a convolution that keeps the size at stride 1, with ReLU6 or without; returns its output."""
        shape = (outputs, inputs // groups, kernel, kernel)
        w = self.rng.standard_normal(shape) * np.sqrt(gain / np.prod(shape[1:]))
        names = [x, self._weight(w), self._weight(self.rng.standard_normal(outputs) * 0.1)]
        sizes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4, "group": groups}
        y = self._node("Conv", names, **sizes)
        return self._node("Clip", [y, "zero", "six"]) if relu6 else y

    def inverted_residual(self, x: str, inputs: int, outputs: int, expansion: int, stride: int) -> str:
        """Adds expand, depthwise and project, and the residual where the shapes agree; returns the output."""
        wide, residual = inputs * expansion, stride == 1 and inputs == outputs
        y = self.conv(x, inputs, wide, gain=LINEAR) if expansion > 1 else x
        y = self.conv(y, wide, wide, kernel=3, stride=stride, groups=wide)
        y = self.conv(y, wide, outputs, gain=RESIDUAL if residual else RECTIFIED, relu6=False)
        return self._node("Add", [x, y]) if residual else y

    def basic_residual(self, x: str, inputs: int, outputs: int, stride: int) -> str:
        """Adds two dense convolutions and the residual, projected where shapes differ; returns the output."""
        y = self.conv(x, inputs, outputs, kernel=3, stride=stride)
        y = self.conv(y, outputs, outputs, kernel=3, gain=RESIDUAL, relu6=False)
        if (inputs, stride) != (outputs, 1):
            x = self.conv(x, inputs, outputs, stride=stride, gain=LINEAR, relu6=False)
        return self._node("Relu", [self._node("Add", [x, y])])

    def classify(self, x: str, channels: int) -> None:
        """Adds the mean over the image and the last matrix product, whose output is "y"."""
        flat = self._node("Flatten", [self._node("GlobalAveragePool", [x])])
        matrix = self._weight(self.rng.standard_normal((channels, CLASSES)) / np.sqrt(channels))
        bias = self._weight(self.rng.standard_normal(CLASSES) * 0.1)
        self.nodes.append(helper.make_node("Gemm", [flat, matrix, bias], ["y"]))

    def model(self, name: str, shape: tuple[int, ...]) -> ModelProto:
        """Returns the whole as a model of opset 17."""
        constants = [numpy_helper.from_array(np.array(v, np.float32), n) for n, v in (("zero", 0), ("six", 6))]
        graph = helper.make_graph(
            self.nodes,
            name,
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, (shape[0], CLASSES))],
            [*self.weights, *constants],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)

    def _node(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def _weight(self, values: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name
