# SPDX-License-Identifier: Apache-2.0
"""`new classify`, `detect` and `ocr`: sizes, pixels and names are those of the model and the files beside it."""

import json
import tomllib
from pathlib import Path

import onnx
import pytest

from nndeploy.cli.main import run_command

pytest.importorskip("PIL", reason="the extra vision is not installed")

FLOAT, BYTE = onnx.TensorProto.FLOAT, onnx.TensorProto.UINT8
NAMES = {"names": "{0: 'person', 1: 'big \"cat\"'}", "task": "detect", "imgsz": "[320, 640]"}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write_model(takes, gives, metadata=None, dtype=FLOAT, out="y", path="m.onnx", others=()):
    """Writes a model with one input x and outputs of these sizes; what it computes does not matter."""
    value = onnx.helper.make_tensor_value_info
    outputs = {out: gives, **dict(others)}
    node = onnx.helper.make_node("Op", ["x"], list(outputs), domain="any")
    made = [value(name, FLOAT, sizes) for name, sizes in outputs.items()]
    graph = onnx.helper.make_graph([node], "g", [value("x", dtype, takes)], made)
    sets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("any", 1)]
    model = onnx.helper.make_model(graph, opset_imports=sets, ir_version=10)
    onnx.helper.set_model_props(model, metadata or {})
    onnx.save(model, path)


def written(kind, code=0):
    """Returns the pipeline that a call writes, and its steps by name."""
    assert run_command(["new", kind, "--model", "m.onnx", "-o", "p.toml"]) == code
    if code:
        return None
    (pipeline,) = tomllib.loads(Path("p.toml").read_text())["level"][0]["pipeline"]
    return pipeline, {
        step["use"]: step for stage in (*pipeline["loader"], *pipeline["post"]) for step in stage["steps"]
    }


def test_a_classifier_takes_images_as_its_files_say() -> None:
    write_model(["n", 3, "h", "w"], ["n", 3])
    for name, data in {
        "preprocessor_config.json": {
            "size": {"shortest_edge": 256}, "crop_size": {"height": 192, "width": 160}, "resample": 3,
            "rescale_factor": 1 / 255, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.1, 0.2, 0.3],
        },
        "config.json": {"id2label": {"0": "cat", "2": "dog", "1": "fox"}},
    }.items():  # fmt: skip
        Path(name).write_text(json.dumps(data))
    pipeline, steps = written("classify")
    assert (pipeline["inputs"], pipeline["outputs"]) == ({"x": "tensor"}, {"y": "scores"})
    assert {key: steps["resize"][key] for key in ("width", "height", "filter")} == {
        "width": 160, "height": 192, "filter": "bicubic",
    }  # fmt: skip
    assert steps["normalise"] == {
        "use": "normalise", "in": ["small"], "divide-by": 255, "mean": [0.5, 0.4, 0.3], "std": [0.1, 0.2, 0.3],
    }  # fmt: skip
    assert "softmax" in steps
    assert steps["top-k"] == {"use": "top-k", "k": 3, "labels": ["cat", "fox", "dog"]}


@pytest.mark.parametrize(("takes", "dtype", "layout"), [
    (["n", 3, 8, 8], FLOAT, {}), (["n", 8, 8, 3], FLOAT, {"order": "HWC"}), (["n", 1, 8, 8], FLOAT, {"channels": "L"}),
    (["n", 8, 8, 3], BYTE, {"order": "HWC", "in": ["small"], "out": ["small"]}),
])  # fmt: skip
def test_axes_and_types_are_the_model_s(takes, dtype, layout) -> None:
    write_model(takes, ["n", 1000], dtype=dtype, out="probs")
    pipeline, steps = written("classify")
    assert steps["layout"] == {"use": "layout", **layout}
    assert ("normalise" in steps) == (dtype == FLOAT)
    assert "softmax" not in steps
    assert pipeline["outputs"] == {"probs": "probabilities"}
    assert steps["top-k"]["k"] == 5
    assert (steps["resize"]["width"], steps["resize"]["height"]) == (8, 8)


@pytest.mark.parametrize(("gives", "order", "objectness"), [
    ([1, 6, 8400], "columns", False), ([1, 25200, 7], "rows", True), (["n", "boxes", 6], "rows", False),
])  # fmt: skip
def test_a_detector_is_what_its_metadata_say(gives, order, objectness) -> None:
    write_model([1, 3, "h", "w"], gives, NAMES)
    _, steps = written("detect")
    assert [steps["letterbox"][key] for key in ("width", "height", "antialias")] == [640, 320, False]
    assert (steps["boxes-from-rows"]["order"], steps["boxes-from-rows"]["objectness"]) == (order, objectness)
    assert steps["nms"]["iou"] == (0.45 if objectness else 0.7)
    assert steps["labels"]["labels"] == ["person", 'big "cat"']
    assert steps["normalise"]["divide-by"] == 255


@pytest.mark.parametrize(("rows", "metadata"), [
    (300, {}), (100, {"end2end": "True"}), (200, {"args": "{'nms': True}"}),
])  # fmt: skip
def test_a_detector_that_chooses_itself_has_no_nms(rows, metadata) -> None:
    write_model([1, 3, "h", "w"], [1, rows, 6], NAMES | metadata)
    _, steps = written("detect")
    assert "boxes-from-detections" in steps
    assert not {"boxes-from-rows", "nms"} & set(steps)


def test_an_rt_detr_takes_whole_images_and_gives_fractions_of_them() -> None:
    write_model([1, 3, 320, 640], [1, 300, 6], NAMES | {"head": "RTDETRDecoder", "end2end": "False"})
    _, steps = written("detect")
    assert [steps["resize"][key] for key in ("width", "height", "antialias")] == [640, 320, False]
    chosen = steps["boxes-from-detections"]
    assert (chosen["form"], chosen["unit"], chosen["width"], chosen["height"]) == ("centres", "fractions", 640, 320)
    assert not {"letterbox", "nms"} & set(steps)


def test_a_pose_model_gives_points() -> None:
    write_model([1, 3, "h", "w"], [1, 57, 8400], NAMES | {"kpt_shape": "[17, 3]"})
    _, steps = written("detect")
    assert steps["boxes-from-rows"]["rest"] == 51
    assert steps["nms"]["also"] == ["rest"]
    assert steps["keypoints"]["values"] == 3


def test_a_model_of_segments_gives_masks() -> None:
    write_model([1, 3, "h", "w"], [1, 38, 8400], NAMES | {"task": "segment"}, others={"p": [1, 32, "a", "b"]})
    pipeline, steps = written("detect")
    assert pipeline["outputs"] == {"y": "output", "p": "protos"}
    assert steps["boxes-from-rows"]["rest"] == 32
    assert (steps["nms"]["also"], steps["nms"]["max"]) == (["rest"], 255)
    assert list(steps)[-4:] == ["map-back", "labels", "masks", "encode-map"]
    assert [sink["kind"] for sink in tomllib.loads(Path("p.toml").read_text())["sink"]] == ["json-lines", "images"]


def test_a_depth_model_gives_a_deep_grey_image() -> None:
    write_model([1, 3, 56, 70], [1, 56, 70])
    pipeline, steps = written("depth")
    assert pipeline["outputs"] == {"y": "map"}
    assert (steps["resize"]["width"], steps["resize"]["height"], steps["map-to-image"]["whole"]) == (70, 56, True)
    assert (steps["encode-map"]["deep"], steps["encode-map"]["spread"]) == (True, True)
    write_model([1, 3, 56, 70], [1, 1, 14, 14])
    assert "class-map" not in written("depth")[1]


@pytest.mark.parametrize(("count", "deep"), [(3, None), (300, True)])
def test_a_segmenter_gives_numbers_of_classes(count, deep) -> None:
    Path("config.json").write_text(json.dumps({"id2label": {str(i): f"c{i}" for i in range(count)}}))
    Path("preprocessor_config.json").write_text(json.dumps({"size": 512, "image_mean": [0.5], "image_std": [0.5]}))
    write_model(["n", 3, "h", "w"], ["n", count, "a", "b"])
    _, steps = written("segment")
    assert list(steps)[-3:] == ["map-to-image", "class-map", "encode-map"]
    assert (steps["class-map"]["axis"], steps["encode-map"].get("deep")) == (-3, deep)
    assert (steps["resize"]["width"], steps["normalise"]["mean"]) == (512, [0.5])
    assert "#   1 c1" in Path("p.toml").read_text()


CELLS = (8, 16, 32)
YUNET = {f"{kind}_{cell}": n for kind, n in {"kps": 10, "bbox": 4, "cls": 1, "obj": 1}.items() for cell in CELLS}


def test_faces_are_told_by_the_outputs_of_their_models() -> None:
    outputs = {name: [1, "n", columns] for name, columns in YUNET.items()}
    write_model([1, 3, 320, 640], outputs.pop("kps_8"), out="kps_8", others=outputs)
    pipeline, steps = written("detect")
    assert pipeline["outputs"] == {
        f"{name}_{stride}": f"{field}-{stride}"
        for name, field in {"cls": "classes", "obj": "objectness", "bbox": "boxes", "kps": "points"}.items()
        for stride in CELLS
    }
    assert (steps["faces-from-grids"]["head"], steps["layout"]["channels"]) == ("yunet", "BGR")
    fitted = [steps["letterbox"][key] for key in ("width", "height", "place", "fill", "antialias")]
    assert fitted == [640, 320, "top-left", [0, 0, 0], False]
    assert steps["normalise"].keys() == {"use", "in"}


@pytest.mark.parametrize(("columns", "strides", "declares"), [
    ([1, 4, 10], None, True), ([1, 4], None, True), ([1, 4, 10], [8, 16, 32, 64, 128], True), ([1, 4, 10], None, False),
])  # fmt: skip
def test_scrfd_is_told_by_the_columns_of_its_outputs(columns, strides, declares) -> None:
    sizes = [["rows", number if declares else None] for number in columns for _ in strides or CELLS]
    write_model(["n", 3, "h", "w"], sizes[0], out="0", others={str(i): size for i, size in enumerate(sizes) if i})
    pipeline, steps = written("detect")
    step = steps["faces-from-grids"]
    fields = [f"{kind}-{stride}" for kind in ("scores", "boxes", "points") for stride in strides or CELLS]
    assert [*pipeline["outputs"].values()] == fields[: len(sizes)]
    assert (step["width"], step["height"], step.get("strides"), step.get("points")) == (
        640, 640, strides, None if 10 in columns else False,
    )  # fmt: skip
    assert steps["normalise"] == {"use": "normalise", "in": ["small"], "mean": [127.5], "std": [128]}
    assert (steps["nms"]["inclusive"], steps["nms"].get("also")) == (True, ["keypoints"] if 10 in columns else None)


@pytest.mark.parametrize(("kind", "takes", "gives", "metadata"), [
    ("detect", ["n", 3, 8, 8], ["n", 38, 10], NAMES | {"task": "segment"}),
    ("classify", ["n", 8], ["n", 3], {}), ("classify", ["n", 3, 8, 8], ["n", 3, 4], {}),
    ("classify", ["n", 3, 8, 8], ["n", 3], NAMES), ("detect", ["n", 3, 8, 8], ["n", 6, 10], {}),
    ("detect", ["n", 3, 8, 8], ["n", 6, 6], NAMES), ("depth", ["n", 3, 8, 8], ["n", 2, 8, 8], {}),
    ("segment", ["n", 3, 8, 8], ["n", 1, 8, 8], {}), ("segment", ["n", 3, 8, 8], ["n", 3, 8, 8], NAMES),
    ("detect", ["n", 3, 8, 8], ["n", 57, 10], NAMES | {"kpt_shape": "[17, 4]"}),
    ("detect", ["n", 3, 8, 8], ["n", 6, 10], NAMES | {"kpt_shape": "[17, 3]"}),
    ("detect", ["n", 3, 8, 8], ["n", 6, 10], {"names": "{0: open('x')}"}),
    ("detect", ["n", 3, 8, 8], ["n", 6, 10], {"names": "(" * 9999}),
    ("detect", ["n", 3, 8, 8], ["n", 6, 10], {"names": "{1: 'a', 2: 'b'}"}),
])  # fmt: skip
def test_another_kind_of_model_is_one_line_and_no_file(capsys, kind, takes, gives, metadata) -> None:
    write_model(takes, gives, metadata)
    written(kind, code=65)
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not Path("p.toml").exists()


def write_ocr(count, metadata=None, height="h"):
    write_model(["n", 3, "h", "w"], ["n", 1, "h", "w"], path="det.onnx")
    write_model(["n", 3, height, "w"], ["n", "t", count], metadata, path="rec.onnx")


def written_ocr(*names, code=0):
    models = (word for name in names or ("det", "rec") for word in ("--model", f"{name}.onnx"))
    assert run_command(["new", "ocr", *models, "-o", "p.toml"]) == code
    return None if code else [level["pipeline"][0] for level in tomllib.loads(Path("p.toml").read_text())["level"]]


def test_models_of_texts_may_come_in_any_order_and_note_their_characters() -> None:
    write_ocr(5, {"character": "a\nb\n \n"})
    for order in (("det", "rec"), ("rec", "det")):
        find, read, choose = written_ocr(*order)
        assert (find.get("model"), read["model"]) == (None, "rec.nnd")
        (ctc,) = read["post"][0]["steps"]
        assert (ctc["characters"], ctc["space"]) == (["a", "b", " "], True)
        assert read["loader"][0]["steps"][0]["height"] == 48
        assert choose["post"][0]["steps"][0]["also"] == ["text", "quads"]


def test_a_classifier_of_angles_turns_lines_before_they_are_read() -> None:
    write_ocr(4, {"character": "a\nb\n"})
    write_model([None, 3, None, None], ["n", 2], path="cls.onnx")
    _, turn, read, _ = written_ocr("cls", "rec", "det")
    assert (turn["model"], turn["each"]) == ("cls.nnd", "crops")
    assert turn["loader"][0]["steps"][0]["width-at-most"] == turn["loader"][0]["steps"][2]["width"] == 192
    (step,) = turn["post"][0]["steps"]
    assert (step["use"], step["out"]) == ("turn", [read["each"]])
    assert written_ocr("rec", "det")[1]["each"] == "crops"


def test_characters_may_be_a_file_and_the_height_the_model_s() -> None:
    write_ocr(4, height=32)
    Path("dict.txt").write_text("a\nb\nc\n")
    _, read, _ = written_ocr()
    assert (read["post"][0]["steps"][0]["characters"], read["post"][0]["steps"][0]["space"]) == ("dict.txt", False)
    assert read["loader"][0]["steps"][0]["height"] == 32


def test_characters_and_thresholds_may_stand_in_what_paddleocr_writes() -> None:
    write_ocr(5)
    said = "  thresh: 0.2\n  unclip_ratio: 1.6\n  box_thresh: high\n  character_dict:\n  - '!'\n  - a\n  - '0'\n"
    Path("inference.yml").write_text(f"PostProcess:\n{said}")
    find, read, _ = written_ocr()
    assert (read["post"][0]["steps"][0]["characters"], read["post"][0]["steps"][0]["space"]) == (["!", "a", "0"], True)
    boxes = find["post"][0]["steps"][0]
    assert (boxes["threshold"], boxes["unclip"], boxes.get("box-threshold")) == (0.2, 1.6, None)
    Path("inference.yml").write_text("PostProcess: &a\n")
    written_ocr(code=65)
    Path("inference.yml").write_text("PostProcess:\n  a: &b 1\n")
    written_ocr(code=65)


def test_other_models_of_texts_are_refused(capsys) -> None:
    write_ocr(9, {"character": "a\nb"})
    written_ocr(code=65)  # 2 characters, 9 classes
    write_ocr(4)
    written_ocr(code=65)  # nothing says which
    written_ocr("det", "det", code=65)
    write_ocr(4, {"character": "a\nb\nc"})
    write_model([None, 3, None, None], ["n", 4], path="cls.onnx")
    written_ocr("det", "rec", "cls", code=65)  # four angles
    assert len(capsys.readouterr().err.strip().splitlines()) == 4
    assert run_command(["new", "ocr", "--model", "det.onnx", "-o", "p.toml"]) == 2
    assert not Path("p.toml").exists()


def test_what_is_written_for_real_models_is_the_pipeline_that_reads_signs(models_folder) -> None:
    shipped = Path(__file__).resolve().parents[3] / "configs" / "pipelines"
    Path("dict.txt").write_bytes((shipped / "labels" / "ppocr_en.txt").read_bytes())
    for name, path in (("ppocr_det_mobile_v2", "det"), ("ppocr_rec_en_mobile_v2", "rec")):
        Path(f"{path}.onnx").symlink_to(models_folder / f"{name}.onnx")
    for found, level in zip(
        written_ocr(), tomllib.loads((shipped / "read-text.toml").read_text())["level"], strict=True
    ):
        expected = level["pipeline"][0]
        for one in (found, expected):
            one.pop("model", None)
            for post in one["post"]:
                for step in post["steps"]:
                    step.pop("characters", None)
        assert found == expected
