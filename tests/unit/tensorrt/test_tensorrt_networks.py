# SPDX-License-Identifier: Apache-2.0
"""Real networks and ONNX's light ones through parser and builder, without a GPU."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import pytest
from nndeploy_tensorrt.files import ENGINE_FILE
from nndeploy_tensorrt.plugin import Plugin

from nndeploy.frontend.load import LoadedModel, load_model
from nndeploy.passes import optimise
from nndeploy.plugin.interface import BuildOptions, Support
from nndeploy.target.target import Target

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("library")]

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
LIGHT_NETWORKS = ("bvlc_alexnet", "inception_v1", "shufflenet", "squeezenet")
SHAPES: Mapping[str, Mapping[str, str]] = {
    "basic_pitch": {"serving_default_input_2:0": "1..4,43844,1"}, "fastestdet": {},
    "fsmn_vad_online": {"speech": "1,10..200,400"}, "magika_standard_v3_3": {"bytes": "1..8,2048"},
    "micro_kws_qdq": {"serving_default_input:0": "1..4,1960"}, "mobilenet_v2_quant": {},
    "nnsplit_en": {"input": "1..4,50..500"}, "ppocr_det_mobile_v2": {"x": "1,3,32..960,32..960"},
    "ppocr_rec_en_mobile_v2": {"x": "1..4,3,32,32..640"}, "silero_vad_v2_mini": {"input": "1..4,4000"},
    "ultraface_rfb320": {}, "unet_stress_field": {"input": "1..4,1,224,224"},
}  # fmt: skip
TURING_REFUSES = {"nnsplit_en", "ppocr_rec_en_mobile_v2", "silero_vad_v2_mini"}
"""Recurrences, and products of two values that are both known only at run time: not in float32 on Turing."""


@pytest.fixture
def real(models_folder: Path) -> Callable[[str], LoadedModel]:
    """Returns a function: name of a real model -> it, with its ranges declared, optimised."""

    def load(name: str) -> LoadedModel:
        domains = frozenset({"com.microsoft"})
        loaded = load_model(models_folder / f"{name}.onnx", shapes=SHAPES[name], extra_domains=domains)
        optimise(loaded.model)
        return loaded

    return load


def answers(loaded: LoadedModel, target: Target) -> list[Support]:
    """Returns what the backend says after its transforms were tried on what it refused."""
    options = BuildOptions(ranges=loaded.ranges)
    found = Plugin().supports(loaded.model, target, options)
    refused = {node.name for node, answer in zip(loaded.model.graph, found, strict=True) if not answer.ok}
    count = sum(transform(loaded.model, lambda node: node.name in refused) for transform in Plugin().transforms(target))
    return Plugin().supports(loaded.model, target, options) if count else found


def build(model: ir.Model, target: Target, ranges: Mapping[str, Any], workdir: Path) -> tuple[bytes, bool]:
    workdir.mkdir()
    artifact = Plugin().build(model, target, BuildOptions(ranges=ranges), workdir)
    return artifact.files[ENGINE_FILE], artifact.deterministic


@pytest.mark.parametrize("name", SHAPES)
def test_real_network_is_taken_whole_and_builds(
    real: Callable[[str], LoadedModel], rtx4090: Target, tmp_path: Path, name: str
) -> None:
    loaded = real(name)
    assert [answer.reason for answer in answers(loaded, rtx4090) if not answer.ok] == []
    engine, is_deterministic = build(loaded.model, rtx4090, loaded.ranges, tmp_path / "first")
    if is_deterministic:
        assert build(loaded.model, rtx4090, loaded.ranges, tmp_path / "second")[0] == engine


@pytest.mark.parametrize("name", sorted(SHAPES.keys() - TURING_REFUSES))
def test_real_network_is_taken_whole_on_turing(
    real: Callable[[str], LoadedModel], with_gpu: Callable[..., Target], tmp_path: Path, name: str
) -> None:
    loaded, turing = real(name), with_gpu("7.5")
    assert [answer.reason for answer in answers(loaded, turing) if not answer.ok] == []
    assert build(loaded.model, turing, loaded.ranges, tmp_path / "engine")[0]


@pytest.mark.parametrize("name", LIGHT_NETWORKS)
def test_light_network_is_taken_whole_and_builds_to_the_same_bytes(rtx4090: Target, tmp_path: Path, name: str) -> None:
    loaded = load_model(LIGHT / f"light_{name}.onnx", shapes={})
    optimise(loaded.model)
    assert [answer.reason for answer in answers(loaded, rtx4090) if not answer.ok] == []
    engine, is_deterministic = build(loaded.model, rtx4090, loaded.ranges, tmp_path / "first")
    if is_deterministic:
        assert build(loaded.model, rtx4090, loaded.ranges, tmp_path / "second")[0] == engine
