# SPDX-License-Identifier: Apache-2.0
"""The demo's model, images and image description fit each other and do what the README says.

Pixels become the input here by plain numpy, straight from the words of `ImageInput`, and the model is run by ONNX
Runtime as the file is; so this holds without any code of ours.
"""

import json
import os
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

from nndeploy.bundle.manifest import ImageInput

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
PNGS = sorted((DIGITS / "png").glob("*.png"))
LARGEST_MODEL_BYTES = 200_000


def image_input() -> ImageInput:
    fields = tomllib.loads((DIGITS / "image.toml").read_text())
    as_tuples = {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
    return ImageInput(**as_tuples)


def label_in_name(png: Path) -> str:
    return png.stem.split("-is-")[1]


def batch_of(pngs: list[Path]) -> np.ndarray:
    """Returns `(N, 1, 8, 8)` float32 as `image.toml` says."""
    how = image_input()
    pixels = np.stack([np.asarray(Image.open(png), np.float32) for png in pngs])
    return ((pixels - np.float32(how.mean[0])) / np.float32(how.std[0]))[:, None]


def test_image_description_fits_the_model_s_input() -> None:
    how, graph = image_input(), onnx.load(DIGITS / "digits.onnx").graph
    (model_input,) = graph.input
    dims = [dim.dim_param or dim.dim_value for dim in model_input.type.tensor_type.shape.dim]
    assert (how.name, how.channels, how.layout) == (model_input.name, "L", "NCHW")
    assert dims == ["N", 1, how.height, how.width]
    assert len(how.mean) == len(how.std) == 1
    assert 255 / how.std[0] == 16.0
    (model_output,) = graph.output
    assert [d.dim_param or d.dim_value for d in model_output.type.tensor_type.shape.dim] == ["N", len(how.labels)]


def test_model_is_small_and_keeps_its_batch_normalisation() -> None:
    operators = Counter(node.op_type for node in onnx.load(DIGITS / "digits.onnx").graph.node)
    assert (DIGITS / "digits.onnx").stat().st_size < LARGEST_MODEL_BYTES
    assert operators["BatchNormalization"] == operators["Conv"] == 7


def test_every_node_has_a_name_of_its_own() -> None:
    names = [node.name for node in onnx.load(DIGITS / "digits.onnx").graph.node]
    assert all(names)
    assert len(set(names)) == len(names)


def test_there_are_two_images_of_each_digit() -> None:
    assert Counter(map(label_in_name, PNGS)) == dict.fromkeys(image_input().labels, 2)


def test_images_are_grey_and_of_the_size_that_the_model_reads() -> None:
    how = image_input()
    for png in PNGS:
        with Image.open(png) as image:
            assert (image.mode, image.size) == ("L", (how.width, how.height)), png.name


def test_onnxruntime_reads_at_least_95_percent_of_the_images() -> None:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the first import; its wheels report by default
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(DIGITS / "digits.onnx", providers=["CPUExecutionProvider"])
    (probabilities,) = session.run(["probabilities"], {"image": batch_of(PNGS)})
    read = [image_input().labels[i] for i in probabilities.argmax(axis=1)]
    right = sum(got == label_in_name(png) for got, png in zip(read, PNGS, strict=True))
    assert right >= 0.95 * len(PNGS)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)


def test_images_are_scikit_learn_s_digits_at_the_index_in_their_name() -> None:
    datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is needed by the training script alone")
    digits = datasets.load_digits()
    for png, values in zip(PNGS, batch_of(PNGS)[:, 0], strict=True):
        index = int(png.stem.split("-is-")[0])
        assert str(digits.target[index]) == label_in_name(png)
        np.testing.assert_array_equal(np.rint(values), digits.images[index])


def test_batch_and_json_lines_hold_the_first_images() -> None:
    by_digit = sorted(PNGS, key=lambda png: (label_in_name(png), png.name))[:4]
    with np.load(DIGITS / "batch.npz") as batch:
        assert batch.files == ["image"]
        images = batch["image"]
    lines = [json.loads(line) for line in (DIGITS / "lines.jsonl").read_text().splitlines()]
    assert images.dtype == np.float32
    assert sorted(map(bytes, images)) == sorted(map(bytes, np.rint(batch_of(by_digit))))
    np.testing.assert_array_equal(np.concatenate([line["image"] for line in lines]), images)
