# SPDX-License-Identifier: Apache-2.0
"""Whole light networks in our own CPU kernels: every node taken, one layout inside, the recorded numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from nndeploy_native.plugin import Plugin
from onnx import TensorProto, helper, numpy_helper

from nndeploy.frontend.load import load_model
from nndeploy.passes import optimise
from nndeploy.plugin.interface import Artifact, BuildOptions, OpenOptions
from nndeploy.target.target import host_target

MODELS = Path(__file__).resolve().parents[2] / "../shared/models"
WHOLE = {
    "ultraface_rfb320": ("input", 0, 1e-5),
    "fastestdet": ("input.1", 2, 1e-4),
    "ppocr_det_mobile_v2": ("x", 0, 1e-4),
}
"""Input, layout conversions, and the largest difference to ONNX Runtime's recorded float32 outputs."""

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", WHOLE)
def test_network_is_taken_whole_and_gives_the_recorded_numbers(name: str, tmp_path: Path) -> None:
    if not (MODELS / f"{name}.onnx").exists():
        pytest.skip("the real models are not here")
    input_name, conversions, most = WHOLE[name]
    sample = np.load(MODELS / "samples" / f"{name}.npz")
    loaded = load_model(MODELS / f"{name}.onnx", shapes={input_name: sample["in0"].shape})
    optimise(loaded.model)
    artifact = _built(loaded.model, tmp_path)
    assert f" {conversions} layout conversions" in artifact.log
    found = _run(artifact, {loaded.inputs[0].name: sample["in0"]})
    for index, output in enumerate(loaded.outputs):
        assert np.abs(found[output.name] - sample[f"out{index}"]).max() < most


def test_mobilenet_v2_is_a_stem_and_inverted_residuals(tmp_path: Path) -> None:
    model = _mobilenet_v2(96)
    path = tmp_path / "v2.onnx"
    onnx.save(model, path)
    loaded = load_model(path)
    optimise(loaded.model)
    artifact = _built(loaded.model, tmp_path / "work")
    kinds = [line.split(":")[0] for line in artifact.log.splitlines()[1:]]
    assert kinds.count("inverted_residual") == 16
    assert kinds.count("stem") == 1
    assert not [kind for kind in kinds if kind.startswith("elementwise")]
    x = np.random.default_rng(1).standard_normal((2, 3, 96, 96)).astype(np.float32)
    wanted = _expected(model, x)
    found = _run(artifact, {"x": x})["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())


def _built(model: ir.Model, workdir: Path) -> Artifact:
    workdir.mkdir(exist_ok=True)
    probe = Plugin().probe(host_target())
    if not (probe.can_build and probe.can_run):
        pytest.skip(probe.reason)
    answers = Plugin().supports(model, host_target(), BuildOptions())
    assert [answer.reason for answer in answers if not answer.ok] == []
    return Plugin().build(model, host_target(), BuildOptions(), workdir)


def _run(artifact: Artifact, inputs: dict[str, Any]) -> dict[str, Any]:
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    return Plugin().open(files, artifact.metadata, OpenOptions(threads=1)).run(inputs)


def _mobilenet_v2(size: int) -> onnx.ModelProto:
    """Returns MobileNetV2 (Sandler et al., 2018, table 2) at batch 2 with random weights and 10 classes."""
    rng, nodes, weights = np.random.default_rng(0), [], []

    def conv(x: str, inputs: int, outputs: int, kernel: int, stride: int, groups: int, relu6: bool) -> str:
        number = len(weights)
        w = rng.standard_normal((outputs, inputs // groups, kernel, kernel)) / np.sqrt(inputs // groups * kernel**2)
        weights.extend(
            (
                numpy_helper.from_array((w * 1.4).astype(np.float32), f"w{number}"),
                numpy_helper.from_array(rng.standard_normal(outputs).astype(np.float32) * 0.1, f"b{number}"),
            )
        )
        pad = kernel // 2
        attributes = {"group": groups, "strides": [stride] * 2, "pads": [pad] * 4, "kernel_shape": [kernel] * 2}
        nodes.append(helper.make_node("Conv", [x, f"w{number}", f"b{number}"], [f"c{number}"], **attributes))
        if not relu6:
            return f"c{number}"
        nodes.append(helper.make_node("Clip", [f"c{number}", "zero", "six"], [f"r{number}"]))
        return f"r{number}"

    x, channels = conv("x", 3, 32, 3, 2, 1, True), 32
    table = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for expansion, outputs, repeats, first_stride in table:
        for repeat in range(repeats):
            before, stride, wide = x, first_stride if repeat == 0 else 1, channels * expansion
            x = conv(x, channels, wide, 1, 1, 1, True) if expansion > 1 else x
            x = conv(x, wide, wide, 3, stride, wide, True)
            x = conv(x, wide, outputs, 1, 1, 1, False)
            if stride == 1 and channels == outputs:
                nodes.append(helper.make_node("Add", [before, x], [f"a{len(nodes)}"]))
                x = nodes[-1].output[0]
            channels = outputs
    x = conv(x, channels, 1280, 1, 1, 1, True)
    nodes.append(helper.make_node("GlobalAveragePool", [x], ["pooled"]))
    nodes.append(helper.make_node("Flatten", ["pooled"], ["flat"]))
    nodes.append(helper.make_node("Gemm", ["flat", "wf"], ["y"]))
    weights.append(numpy_helper.from_array(rng.standard_normal((1280, 10)).astype(np.float32) * 0.05, "wf"))
    weights += [numpy_helper.from_array(np.array(v, np.float32), n) for n, v in (("zero", 0), ("six", 6))]
    graph = helper.make_graph(
        nodes,
        "mobilenet_v2",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, size, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 10])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _expected(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    """Returns the output of ONNX's own evaluator."""
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model).run(None, {"x": x})[0]
