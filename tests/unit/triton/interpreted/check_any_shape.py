# SPDX-License-Identifier: Apache-2.0
"""Networks whose sizes are not fixed: one artifact is right at every shape in range, and refuses every other one."""

from collections.abc import Mapping

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from float64_reference import random_values
from gpu_on_numpy import Interpreter, session_on_gpu
from onnx.reference import ReferenceEvaluator

from nndeploy.passes import optimise
from nndeploy.value_types import DimRange

RANGES = {"n": DimRange(1, 4, 2), "h": DimRange(1, 20, 10), "w": DimRange(1, 20, 10), "s": DimRange(8, 64, 32, 8)}
"""Sizes of the models below; `s` has steps."""
SOME = {"n": (1, 3, 2), "h": (1, 7, 20), "w": (5, 1, 13), "s": (8, 24, 16)}
"""What each is in the calls of one session."""


def dynamic(text: str, constants: Mapping[str, np.ndarray]) -> ir.Model:
    """Returns a model whose symbolic sizes are named."""
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}')
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())
    model = ir.from_proto(onnx.shape_inference.infer_shapes(proto))
    optimise(model, RANGES)
    return model


def inputs_at(model: ir.Model, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Returns inputs of a model of which each symbol has its size."""
    found = {}
    for number, value in enumerate(model.graph.inputs):
        shape = [dim if isinstance(dim, int) else sizes[dim.value] for dim in value.shape]
        found[value.name] = random_values(number, value.dtype.numpy().name, *shape)
    return found


NETWORKS: dict[str, tuple[str, dict[str, np.ndarray]]] = {
    "a chain of two inputs": (
        "g (float[n,h] x, float[n,h] z, float[h] b) => (float[n,h] y) { a = Add(x, z) c = Mul(a, b) y = Relu(c) }",
        {},
    ),
    "linear layers": (
        """g (float[n,h,9] x) => (float[n,h,5] y) { a = MatMul(x, v) c = Add(a, b) d = Relu(c) y = MatMul(d, w) }""",
        {"v": random_values(1, "float32", 9, 33), "b": random_values(2, "float32", 33),
         "w": random_values(3, "float32", 33, 5)},
    ),
    "attention": (
        """g (float[n,h,12] x) => (float[n,h,12] y) { k = Transpose<perm=[0,2,1]>(x) s = MatMul(x, k)
        p = Softmax<axis=-1>(s) y = MatMul(p, x) }""",
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_one_artifact_is_right_at_every_shape(name: str) -> None:
    text, constants = NETWORKS[name]
    model, interpreter = dynamic(text, constants), Interpreter()
    reference = ReferenceEvaluator(ir.to_proto(model))
    with session_on_gpu(model, interpreter, RANGES) as session:
        num_kernels = len(interpreter.specs)
        for number in range(3):
            inputs = inputs_at(model, {size: some[number] for size, some in SOME.items()})
            wanted = reference.run(None, inputs)
            for _ in range(2):  # queued, then recorded
                found = session.run(inputs)
                for value, expected in zip(model.graph.outputs, wanted, strict=True):
                    what = f"{value.name} at {[array.shape for array in inputs.values()]}"
                    got = found[value.name].numpy()
                    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5, err_msg=what)
        assert len(interpreter.specs) == num_kernels
