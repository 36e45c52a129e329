# SPDX-License-Identifier: Apache-2.0
"""The example of docs/guide/pictures.md that needs models which are not part of nndeploy, where such models are."""

import shutil

import pytest
from page_examples import ROOT, examples, run_example

pytest.importorskip("PIL", reason="the extra vision is not installed")


@pytest.mark.slow
def test_a_page_becomes_its_texts(tmp_path, models_folder) -> None:
    (tmp_path / "pages").mkdir()
    shutil.copy(models_folder / "inputs" / "text_sample.jpg", tmp_path / "pages" / "signs.jpg")
    shutil.copy(ROOT / "configs" / "pipelines" / "labels" / "ppocr_en.txt", tmp_path / "dict.txt")
    for name, model in (("det", "ppocr_det_mobile_v2"), ("rec", "ppocr_rec_en_mobile_v2")):
        (tmp_path / f"{name}.onnx").symlink_to(models_folder / f"{model}.onnx")
    both = [one for one in examples(ROOT / "docs" / "guide" / "pictures.md") if "ocr.toml" in one.text]
    assert len(both) == 2
    for one in both:
        run_example(one, tmp_path, tmp_path)
