# SPDX-License-Identifier: Apache-2.0
"""Real models: all load, two are refused with one line, five hostile ones never get to a library that they crash."""

import time
from pathlib import Path

import onnx_ir as ir
import pytest

from nndeploy.errors import ModelError, PolicyError
from nndeploy.frontend.load import load_model
from nndeploy.frontend.value_sizes import check_value_sizes
from nndeploy.graph.map_types import holds_map
from nndeploy.onnx_gate.gate import check_file

SOUND = (
    "basic_pitch", "fastestdet", "fsmn_vad_online", "magika_standard_v3_3", "micro_kws_qdq", "mobilenet_v2_quant",
    "nnsplit_en", "ppocr_det_mobile_v2", "ppocr_rec_en_mobile_v2", "random_forest_iris", "silero_vad_v2_mini",
    "silero_vad_v5", "ultraface_rfb320", "unet_stress_field", "unsw_nb15_mlp_w2a2",
)  # fmt: skip
FOREIGN = ("superres_ortext",)


def test_every_model_is_in_one_list(models_folder: Path) -> None:
    assert {path.stem for path in models_folder.glob("*.onnx")} == {*SOUND, *FOREIGN}


@pytest.mark.parametrize("name", SOUND)
def test_loads_with_a_type_and_a_name_for_everything(models_folder: Path, name: str) -> None:
    loaded = load_model(models_folder / f"{name}.onnx")
    nodes = list(loaded.model.graph.all_nodes())
    assert len({node.name for node in nodes}) == len(nodes)
    untyped = [str(v.name) for node in nodes for v in node.outputs if v.type is None and not holds_map(v)]
    assert untyped == []
    assert not set(loaded.model.graph.initializers) & {value.name for value in loaded.model.graph.inputs}
    assert ir.to_proto(loaded.model).graph.node


def test_a_model_whose_weights_are_inputs_has_one_input(models_folder: Path) -> None:
    loaded = load_model(models_folder / "ultraface_rfb320.onnx")
    assert [(v.name, str(v.type)) for v in loaded.inputs] == [("input", "float32[1,3,240,320]")]


def test_sizes_can_be_fixed(models_folder: Path) -> None:
    loaded = load_model(models_folder / "ppocr_det_mobile_v2.onnx", shapes={"x": "1,3,64,96"})
    assert str(loaded.outputs[0].type) == "float32[1,1,64,96]"


def test_a_foreign_operator_is_refused_with_one_line_that_names_it(models_folder: Path) -> None:
    with pytest.raises(PolicyError) as caught:
        load_model(models_folder / "superres_ortext.onnx")
    assert caught.value.exit_code == 77
    assert "the operator com.microsoft.extensions::DecodeImage is not allowed" in str(caught.value)
    assert "`--custom-ops LIBRARY`" in str(caught.value)


def test_a_foreign_operator_passes_when_a_library_is_named(models_folder: Path) -> None:
    loaded = load_model(models_folder / "superres_ortext.onnx", extra_domains={"com.microsoft.extensions"})
    assert loaded.model.graph.node(0).op_type == "DecodeImage"


@pytest.mark.parametrize("number", [0, 2, 4, 6, 8])
def test_a_hostile_model_is_refused(models_folder: Path, number: int) -> None:
    def load() -> None:
        check_value_sizes(load_model(models_folder / "hostile" / f"{number}.onnx").model, 1 << 29)

    with pytest.raises(ModelError) as caught:
        load()
    assert caught.value.exit_code == 65
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", SOUND)
def test_the_gate_takes_less_than_50_ms_of_a_core(models_folder: Path, name: str) -> None:
    def once() -> float:
        start = time.process_time()
        check_file(models_folder / f"{name}.onnx")
        return time.process_time() - start

    assert min(once() for _ in range(5)) < 0.050
