# SPDX-License-Identifier: Apache-2.0
"""Many images, some of them bad: a result for each good one, an error record for each bad one, in order."""

import io
import json

import numpy as np
import pytest
from PIL import Image
from tests_flow_bundles import write_picture

from nndeploy.cli.main import run_command


def encoded(image, kind) -> bytes:
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


GOOD = encoded(Image.new("L", (30, 20), 200), "PNG")
BAD = {
    "truncated.png": encoded(Image.fromarray(np.arange(10_000, dtype=np.uint8).reshape(100, 100)), "PNG")[:-200],
    "truncated.jpg": encoded(Image.new("RGB", (300, 200), 200), "JPEG")[:-100],
    "empty.png": b"",
    "text.jpg": b"this is no image",
    "wrong.png": encoded(Image.new("RGB", (30, 20)), "EPS"),
    "cmyk.jpg": encoded(Image.new("CMYK", (30, 20)), "JPEG"),
    "deep.png": encoded(Image.new("I;16", (30, 20)), "PNG"),
    "bomb.png": GOOD[:16] + (60_000).to_bytes(4, "big") * 2 + GOOD[24:],
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_picture(tmp_path / "m.nnd")
    (tmp_path / "in").mkdir()
    for i in range(40):
        (tmp_path / "in" / f"{i}.png").write_bytes(GOOD)
    for name, data in BAD.items():
        (tmp_path / "in" / name).write_bytes(data)
    return tmp_path


def test_each_image_has_one_outcome(here, capsys) -> None:
    assert run_command(["run", "m.nnd", "--input", "in", "--output", "-"]) == 1
    captured = capsys.readouterr()
    records = [json.loads(line) for line in captured.out.splitlines()]
    assert [record["index"] for record in records] == list(range(40 + len(BAD)))
    failed = {record["origin"].removeprefix("in/"): record["error"] for record in records if "error" in record}
    assert set(failed) == set(BAD)
    assert {error["code"] for error in failed.values()} == {"bad-input"}
    assert all(record["label"] == "bright" for record in records if "error" not in record)
    assert f"{len(BAD)} of {40 + len(BAD)} items failed" in captured.err
    assert "Traceback" not in captured.err
