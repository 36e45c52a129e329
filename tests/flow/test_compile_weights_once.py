# SPDX-License-Identifier: Apache-2.0
"""Trained weights stand once in a bundle, whatever libraries it is for; each variant still gives the right numbers."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from separable_model import needs_native

import nndeploy
from nndeploy.bundle.reader import open_bundle
from nndeploy.plugin.registry import backend
from nndeploy.target.target import host_target

LIBRARIES = ("native", "openvino", "onnxruntime")
CHANNELS = 160


def model(path: Path) -> Path:
    """Writes four convolutions: constants of 400 kB, large and small ones."""
    dice = np.random.default_rng(0)
    nodes, weights, value = [], [], "x"
    for i, kernel in enumerate((1, 3, 1, 1)):
        shape = (CHANNELS, CHANNELS, kernel, kernel) if kernel == 1 else (CHANNELS, 1, kernel, kernel)
        weights.append(numpy_helper.from_array(dice.standard_normal(shape, np.float32) / 10, f"w{i}"))
        weights.append(numpy_helper.from_array(dice.standard_normal(CHANNELS, np.float32), f"b{i}"))
        pads = [kernel // 2] * 4
        groups = CHANNELS if kernel > 1 else 1
        nodes.append(helper.make_node("Conv", [value, f"w{i}", f"b{i}"], [f"c{i}"], group=groups, pads=pads))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"]))
        value = f"r{i}"
    border = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, CHANNELS, 8, 8]) for name in ("x", value)]
    graph = helper.make_graph(nodes, "g", border[:1], border[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs_native()
    if missing := [name for name in LIBRARIES if not backend(name).probe(host_target()).can_run]:
        pytest.skip(f"{missing[0]} is not installed")
    folder = tmp_path_factory.mktemp("weights")
    out = folder / "m.nnd"
    options = nndeploy.CompileOptions(backends=LIBRARIES, objective="priority")
    nndeploy.compile_model(model(folder / "m.onnx"), out, options)
    return out


def test_a_fallback_adds_little(bundle) -> None:
    with open_bundle(bundle) as opened:
        (submodel,) = opened.manifest.submodels
        files = {name for variant in submodel.variants for name in variant.files.values()}
        stored = sum(opened.manifest.members[name].size_bytes for name in files)
        real = sum(opened.manifest.real(name).size_bytes for name in files)
        opened.verify()
    weights = 4 * (3 * CHANNELS**2 + 9 * CHANNELS + 4 * CHANNELS)
    assert submodel.variants[0].backend == "native"
    assert len(submodel.variants) >= 2
    assert real > 2 * weights
    assert stored < 1.1 * weights
