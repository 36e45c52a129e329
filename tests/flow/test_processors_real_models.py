# SPDX-License-Identifier: Apache-2.0
"""The pipelines of configs/pipelines, step by step around ONNX Runtime, find what a person finds in the real inputs.

What is in the pictures was looked at, and so were the drawings of what is found here; where speech is in a recording
was read off its loudness, 20 times a second. The threads and queues around the steps have tests of their own.
"""

import difflib
import io
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nndeploy.processors.registry import processor_from_table
from nndeploy.stream.sources.record_sources import record_source

PIPELINES = Path(__file__).resolve().parents[2] / "configs" / "pipelines"

Fields = dict[str, Any]
Run = Callable[..., Fields]


@cache
def session(path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def done(stages: list[Mapping[str, Any]], fields: Fields) -> None:
    for stage in stages:
        for table in stage["steps"]:
            step = processor_from_table(table, "test", lambda name: (PIPELINES / name).read_bytes())
            fields.update(step(fields))


def run_one(pipeline: Mapping[str, Any], path: Path, fields: Fields, state: Fields) -> Fields:
    """Returns the fields that a pipeline makes of one record or part, and puts what it carries into `state`."""
    given = dict(fields)
    done(pipeline.get("loader", []), given)
    if pipeline.get("runners", 1):
        model = session(path)
        inputs = {name: given[field] for name, field in pipeline["inputs"].items()} | state
        for item in model.get_inputs():
            if item.name in pipeline.get("carry", {}).values():
                inputs.setdefault(item.name, np.zeros([d if isinstance(d, int) else 1 for d in item.shape], np.float32))
        outputs = dict(zip([item.name for item in model.get_outputs()], model.run(None, inputs), strict=True))
        state.update({target: outputs[source] for source, target in pipeline.get("carry", {}).items()})
        given |= {field: outputs[name] for name, field in pipeline["outputs"].items()}
    done(pipeline.get("post", []), given)
    return {name: value for name, value in given.items() if fields.get(name) is not value}


@pytest.fixture
def run(models_folder: Path) -> Run:
    """Returns a function: pipeline, input, models by pipeline -> the fields at the end."""

    def run_file(name: str, source: str, **models: str) -> Fields:
        file = tomllib.loads((PIPELINES / f"{name}.toml").read_text(encoding="utf-8"))
        (item,) = record_source(file["source"]["kind"], [str(models_folder / "inputs" / source)], io.BytesIO).items
        fields: Fields = item.load()
        for level in file["level"]:
            (pipeline,) = level["pipeline"]
            path = models_folder / f"{models.get(pipeline['name'], '')}.onnx"
            if "each" not in pipeline:
                fields |= run_one(pipeline, path, fields, {})
                continue
            state: Fields = {}
            parts = [
                run_one(pipeline, path, {**fields, pipeline["part"]: part}, state) for part in fields[pipeline["each"]]
            ]
            fields |= {key: [part[key] for part in parts] for key in (parts[0] if parts else ())}
        return fields

    return run_file


def middle(box: np.ndarray) -> tuple[float, float]:
    return float(box[0] + box[2]) / 2, float(box[1] + box[3]) / 2


def test_the_faces_of_a_group_are_found(run) -> None:
    found = run("faces", "face_group.jpg", faces="ultraface_rfb320")
    assert 40 <= len(found["boxes"]) <= 50  # all 44 boxes of November 2026 are faces; some stand behind others
    sizes = found["boxes"][:, 2:] - found["boxes"][:, :2]
    assert ((sizes > 12) & (sizes < 60)).all()
    people = [(94, 237), (168, 228), (242, 227), (322, 221), (396, 221), (475, 241), (536, 229), (675, 211), (348, 32)]
    for x, y in people:
        assert any(x0 < x < x1 and y0 < y < y1 for x0, y0, x1, y1 in found["boxes"].tolist()), (x, y)


def test_the_people_in_a_field_are_found(run) -> None:
    found = run("objects", "objects_street.jpg", objects="fastestdet")
    assert found["labels"] == ["person"] * 4
    where = sorted(map(middle, found["boxes"]))
    for (x, y), (want_x, want_y) in zip(where, [(109, 177), (200, 200), (275, 200), (388, 218)], strict=True):
        assert abs(x - want_x) < 20
        assert abs(y - want_y) < 25
    assert found["drawing"].shape == found["image"].shape
    assert (found["drawing"] != found["image"]).any()


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        (
            "text_sample.jpg",
            ["Ministry of Land, Infrastructure, Transport and Tourism", "Japan Tourism Agency", "Japan Coast Guard"],
        ),
        ("text_photo.jpg", ["AGRICULTURAL BANK OF CHINA"]),
        ("text_11.jpg", ["ODM OEM", ":YM-X-3011", ":220ml"]),
    ],
)
def test_what_a_person_reads_is_read(run, source, lines) -> None:
    found = run("read-text", source, find="ppocr_det_mobile_v2", read="ppocr_rec_en_mobile_v2")
    sure = [text for text, score in zip(found["text"], found["score"], strict=True) if score > 0.9]
    for line in lines:
        without_spaces = [text.replace(" ", "") for text in sure]
        want = line.replace(" ", "")
        near = max(difflib.SequenceMatcher(None, want, text).ratio() for text in without_spaces)
        assert near > 0.95, (line, sure)
    assert [text for text in sure if len(text) > 10] == sorted(
        (text for text in sure if len(text) > 10), key=lambda text: found["quads"][found["text"].index(text)][0, 1]
    )


@pytest.mark.parametrize(
    ("source", "segments"),
    [
        ("speech_yes.wav", [(0.1, 0.8)]),  # one word, 0.1 to 0.8 s above -50 dB
        ("short_speech.wav", [(0.16, 1.76)]),  # one sentence, 0.1 to 1.7 s above -45 dB
        ("singing_44k.wav", [(0.35, 9.0)]),  # a song, from 0.4 s on above -30 dB
    ],
)
def test_speech_is_heard_when_somebody_speaks(run, source, segments) -> None:
    found = run("speech", source, listen="silero_vad_v5")["segments"]
    assert len(found) == len(segments)
    np.testing.assert_allclose(found, segments, atol=0.1)


@pytest.mark.parametrize(
    ("source", "label"),
    [
        ("file_code.py", "python"),
        ("file_magika_test.csv", "csv"),
        ("file_magika_test.md", "markdown"),
        ("file_magika_test.pdf", "pdf"),
        ("file_magika_test.pyc", "pythonbytecode"),
        ("file_magika_test.xlsx", "xlsx"),
        ("file_many-words.txt", "txt"),
        ("goldfish.jpg", "jpeg"),
        ("orange.png", "png"),
        ("short_speech.wav", "wav"),
    ],
)
def test_the_type_of_a_file_is_told(run, source, label) -> None:
    found = run("file-type", source, type="magika_standard_v3_3")
    assert found["labels"][0] == label
    assert found["scores"][0] > 0.75
