# SPDX-License-Identifier: Apache-2.0
"""The whole list on real models and on networks of ONNX's own suite: outputs stay, in time."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from passes_harness import assert_close, run_onnxruntime

from nndeploy.errors import ModelError, NndeployError
from nndeploy.frontend.load import load_model
from nndeploy.graph.invariants import check_graph
from nndeploy.passes import optimisations, optimise

MODELS = [
    "basic_pitch", "fastestdet", "fsmn_vad_online", "magika_standard_v3_3", "micro_kws_qdq", "mobilenet_v2_quant",
    "nnsplit_en", "ppocr_det_mobile_v2", "ppocr_rec_en_mobile_v2", "random_forest_iris", "silero_vad_v2_mini",
    "silero_vad_v5", "ultraface_rfb320", "unet_stress_field",
]  # fmt: skip
QUANTISED_STEP = 1 / 256
"""Quantised models may differ by one step."""
FLOAT_TOLERANCE = 1e-4
"""ONNX Runtime's own fusion of batch-norms changes ppocr_det by 3.1e-5 of its scale, ours by 3.7e-5."""

LIGHT = [
    Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
    for name in ("densenet121", "inception_v2", "shufflenet")
]
"""Those with batch normalisation; the others are convolutions and pools alone."""

# what the list must at least do, of what was counted on 2026-11-20
AT_LEAST = {
    "ultraface_rfb320": {"fuse-conv-batchnorm": 35, "fold-shapes": 48, "constants-to-initializers": 31},
    "fastestdet": {"fuse-pad-pool": 1, "group-conv-activations": 48},
    "ppocr_det_mobile_v2": {"fuse-conv-batchnorm": 48, "decompose-batchnorm": 1, "fuse-conv-bias": 3},
    "ppocr_rec_en_mobile_v2": {"fuse-conv-batchnorm": 35, "fold-constants": 42, "eliminate-common-subexpressions": 7},
    "silero_vad_v2_mini": {"eliminate-common-subexpressions": 53, "eliminate-no-ops": 12},
    "silero_vad_v5": {"inline-constant-if": 2, "fold-constants": 90, "eliminate-dead-code": 100},
    "magika_standard_v3_3": {"fold-shapes": 7},
    "basic_pitch": {"merge-reshapes": 52, "fuse-conv-scale": 9},
    "unet_stress_field": {"group-conv-activations": 10},
    "fsmn_vad_online": {"constants-to-initializers": 24, "eliminate-no-ops": 4},
}


def _optimised(source: Path | onnx.ModelProto) -> tuple[onnx.ModelProto, ir.Model, dict[str, int], float]:
    loaded = load_model(source)
    start = time.process_time()
    passes = optimisations({}, plans_branches=False)  # ONNX Runtime runs it
    reports = optimise(loaded.model, passes=passes)
    seconds = time.process_time() - start
    assert not any(report.count for report in optimise(loaded.model, passes=passes)), (
        "a second optimise changed something"
    )
    check_graph(loaded.model)
    return loaded.original, loaded.model, {report.name: report.count for report in reports}, seconds


@pytest.mark.parametrize("name", MODELS)
def test_real_model_computes_what_it_did(
    name: str, models_folder: Path, real_sample: Callable[[str], tuple[dict[str, Any], dict[str, Any]]]
) -> None:
    original, model, counts, seconds = _optimised(models_folder / f"{name}.onnx")
    inputs, _ = real_sample(name)
    proto = ir.to_proto(model)
    tolerance = QUANTISED_STEP if name in ("micro_kws_qdq", "mobilenet_v2_quant") else FLOAT_TOLERANCE
    for value, got, want in zip(
        original.graph.output, run_onnxruntime(proto, inputs), run_onnxruntime(original, inputs), strict=True
    ):
        assert_close(got, want, tolerance, value.name)
    done = {pass_name: min(counts[pass_name], least) for pass_name, least in AT_LEAST.get(name, {}).items()}
    assert done == AT_LEAST.get(name, {})
    assert len(list(model.graph.all_nodes())) <= sum(_num_nodes(original.graph)) + counts["decompose-batchnorm"] * 2
    assert seconds < 3  # of the processor, on a slow one


def _num_nodes(graph: onnx.GraphProto) -> list[int]:
    numbers = [len(graph.node)]
    for node in graph.node:
        for attribute in node.attribute:
            for body in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                numbers += _num_nodes(body)
    return numbers


def test_shapes_of_a_static_model_are_all_known(models_folder: Path) -> None:
    _, model, _, _ = _optimised(models_folder / "ultraface_rfb320.onnx")
    assert [node.name for node in model.graph for output in node.outputs if not output.shape.is_static()] == []


@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_light_network_computes_what_it_did(path: Path) -> None:
    original, model, _, _ = _optimised(path)
    generator = np.random.default_rng(0)
    (value,) = original.graph.input
    shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    feeds = {value.name: generator.random(shape, np.float32)}
    for got, want in zip(run_onnxruntime(ir.to_proto(model), feeds), run_onnxruntime(original, feeds), strict=True):
        assert_close(got, want, FLOAT_TOLERANCE, path.stem)


def test_hostile_models_never_reach_the_passes_or_come_out_sound(models_folder: Path) -> None:
    for path in sorted((models_folder / "hostile").glob("*.onnx")):
        try:
            loaded = load_model(path)
        except (ModelError, NndeployError):
            continue
        optimise(loaded.model)
        check_graph(loaded.model)
