# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/guide/pictures.md that need models which are not part of nndeploy.

Those of texts and boxes are run where such models are, those of maps with models that are made here.
"""

import json
import shutil

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from page_examples import ROOT, examples, run_example

pytest.importorskip("PIL", reason="the extra vision is not installed")
PAGE = ROOT / "docs" / "guide" / "pictures.md"
RECIPES = ROOT / "build" / "recipes-env"


def run_examples_about(text, folder) -> None:
    """Runs the examples in which `text` stands, whatever the page says of them."""
    found = [one for one in examples(PAGE) if text in one.text]
    assert found
    for one in found:
        run_example(one, folder, folder)


def write_weights(path, weights, side) -> None:
    """Writes a model that gives each of `side` x `side` pixels sums of its channels, with these weights (sums, 3)."""
    count = len(weights)
    kernel = numpy_helper.from_array(np.array(weights, np.float32).reshape(count, 3, 1, 1), "w")
    value, kind = helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])], "g", [value("x", kind, ["n", 3, side, side])],
        [value("y", kind, ["n", count, side, side])], [kernel],
    )  # fmt: skip
    path.parent.mkdir()
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_photo(folder, pixels) -> None:
    import PIL.Image

    (folder / "photos").mkdir()
    PIL.Image.fromarray(pixels.astype(np.uint8)).save(folder / "photos" / "street.png")


def read_map(folder):
    import PIL.Image

    (path,) = folder.iterdir()
    with PIL.Image.open(path) as image:
        return np.asarray(image)


@pytest.mark.slow
def test_depths_become_a_deep_grey_image_of_the_photo_s_size(tmp_path) -> None:
    write_weights(tmp_path / "depth" / "model.onnx", [[0, -1, 0]], 16)
    ramp = np.zeros((20, 48, 3))
    ramp[..., 1] = np.linspace(0, 255, 48)
    write_photo(tmp_path, ramp)
    run_examples_about("new depth", tmp_path)
    found = read_map(tmp_path / "depths")
    assert (found.shape, found.min(), found.max()) == ((20, 48), 0, 65535)
    assert (np.diff(found.astype(int), axis=1) <= 0).all()  # what is greener is nearer
    assert (found == found[0]).all()


@pytest.mark.slow
def test_pixels_become_numbers_of_classes(tmp_path) -> None:
    write_weights(tmp_path / "segformer" / "model.onnx", np.eye(3), 16)
    (tmp_path / "segformer" / "config.json").write_text(json.dumps({"id2label": {"0": "r", "1": "g", "2": "b"}}))
    stripes = np.repeat(np.eye(3)[:, np.newaxis] * 255, 20, axis=0).repeat(30, axis=1)
    write_photo(tmp_path, stripes)
    run_examples_about("new segment", tmp_path)
    found = read_map(tmp_path / "classes")
    assert found.shape == (60, 30)
    for number in range(3):
        assert (found[20 * number + 4 : 20 * number + 16] == number).all()


@pytest.mark.slow
def test_a_page_becomes_its_texts(tmp_path, models_folder) -> None:
    (tmp_path / "pages").mkdir()
    shutil.copy(models_folder / "inputs" / "text_sample.jpg", tmp_path / "pages" / "signs.jpg")
    shutil.copy(ROOT / "configs" / "pipelines" / "labels" / "ppocr_en.txt", tmp_path / "dict.txt")
    for name, model in (("det", "ppocr_det_mobile_v2"), ("rec", "ppocr_rec_en_mobile_v2")):
        (tmp_path / f"{name}.onnx").symlink_to(models_folder / f"{model}.onnx")
    both = [one for one in examples(PAGE) if "ocr.toml" in one.text and "cls" not in one.text]
    assert len(both) == 2
    for one in both:
        run_example(one, tmp_path, tmp_path)


@pytest.mark.slow
def test_things_become_names_and_boxes(tmp_path, models_folder) -> None:
    folder = tmp_path / "page"  # not the account's home, of which a compile sees no folders
    shutil.copytree(ROOT / "configs" / "pipelines" / "labels", folder / "labels")
    shutil.copy(ROOT / "configs" / "pipelines" / "objects.toml", folder)
    shutil.copy(models_folder / "inputs" / "objects_1.jpg", folder / "street.jpg")
    (folder / "fastestdet.onnx").symlink_to(models_folder / "fastestdet.onnx")
    (example,) = [one for one in examples(PAGE) if "fastestdet.onnx" in one.text]
    run_example(example, folder, tmp_path)


@pytest.mark.slow
def test_a_yolo_says_itself_what_it_finds(tmp_path, models_folder) -> None:
    found = [*RECIPES.glob("lib/python*/site-packages/nudenet/320n.onnx")]
    if not found:
        pytest.skip("nudenet is not in build/recipes-env: make recipes")
    (tmp_path / "photos").mkdir()
    shutil.copy(models_folder / "inputs" / "face_small.jpg", tmp_path / "photos" / "friends.jpg")
    (tmp_path / "320n.onnx").symlink_to(found[0])
    run_examples_about("320n.onnx", tmp_path)
