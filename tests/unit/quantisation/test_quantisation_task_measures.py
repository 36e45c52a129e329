# SPDX-License-Identifier: Apache-2.0
"""What an error means for the task, classes, vectors, boxes and texts, from outputs and from a pipeline."""

import json
from pathlib import Path

import numpy as np
import pytest
from quantised_models import convolutions, images

from nndeploy.cli.main import run_command
from nndeploy.quantisation.task_measures import task_measures
from nndeploy.stream.pipeline.bundled_pipeline import carried_pipeline

PIPELINE = """
[source]
kind = "images"
[[level]]
[[level.pipeline]]
name = "it"
outputs = {{ {output} = "rows" }}
[[level.pipeline.loader]]
steps = [{{ use = "decode" }}, {{ use = "letterbox", width = 16, height = 16, out = ["image", "transform"] }},
         {{ use = "layout", in = ["image"], out = ["image"] }}]
[[level.pipeline.post]]
steps = [{steps}]
[[sink]]
kind = "json-lines"
"""


def measured(got: dict[str, object], want: dict[str, object]) -> dict[str, tuple[str, float, int]]:
    """Returns kind, agreement and count by result, of one sample whose outputs are the results."""
    found = task_measures([{}], [{"": 0}], [], lambda outputs: want if outputs else got)
    return {one.result: (one.kind, one.agreement, one.count) for one in found}


def test_outputs_tell_what_they_are() -> None:
    """Probabilities by the likeliest class, numbers that may be below 0 by their angle, whole numbers as they are."""
    want = {
        "p": np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]], np.float32),
        "e": np.array([[1, 0], [0, 2]], np.float32), "n": np.array([1, 2, 3, 4]),
    }  # fmt: skip
    got = {
        "p": np.array([[0.8, 0.2], [0.6, 0.4], [0.1, 0.9]], np.float32),
        "e": np.array([[0, 3], [0, 1]], np.float32), "n": np.array([1, 2, 3, 5]),
    }  # fmt: skip
    found = task_measures([got], [want], ["p", "e", "n"], None)
    assert [(one.result, one.kind, one.agreement, one.count) for one in found] == [
        ("p", "classes", 0.6667, 3), ("e", "cosine", 0.5, 2), ("n", "classes", 0.75, 4),
    ]  # fmt: skip
    assert all(one.agreement == 1 for one in task_measures([want], [want], ["p", "e", "n"], None))


def test_boxes_count_for_both_sides_and_within_their_class() -> None:
    """A box that covers half of another one, of the same class; one too many covers nothing."""
    want = {"boxes": np.array([[0, 0, 10, 10]]), "classes": np.array([1])}
    assert measured({"boxes": np.array([[0, 0, 10, 5]]), "classes": np.array([1])}, want) == {
        "boxes": ("boxes", 0.5, 2)
    }
    assert measured({"boxes": np.array([[0, 0, 10, 10]]), "classes": np.array([2])}, want)["boxes"][1] == 0
    two = {"boxes": np.array([[0, 0, 10, 10], [20, 20, 30, 30]]), "classes": np.array([1, 1])}
    assert measured(two, want)["boxes"] == ("boxes", 0.6667, 3)
    nothing = {"boxes": np.zeros((0, 4)), "classes": np.zeros(0)}
    assert measured(nothing, want)["boxes"][1] == 0
    assert measured(nothing, nothing)["boxes"][1:] == (1, 0)
    quads = {"quads": np.array([[[0, 0], [4, 0], [4, 2], [0, 2]]])}
    assert measured(quads, quads)["quads"] == ("boxes", 1, 2)


def test_texts_labels_and_vectors() -> None:
    want = {"text": "MO", "labels": ["cat", "dog"], "classes": [3, 4], "embedding": [3.0, 4.0]}
    got = {"text": "M0", "labels": ["cat", "cow"], "classes": [3, 5], "embedding": [4.0, 3.0]}
    assert measured(got, want) == {
        "text": ("texts", 0, 1), "labels": ("classes", 1, 1), "embedding": ("cosine", 0.96, 1),
    }  # fmt: skip


def test_the_pipeline_s_steps_say_what_outputs_mean(tmp_path: Path) -> None:
    """What needs the image is left out, and the boxes of the steps before it stay."""
    steps = """{ use = "boxes-from-rows", in = ["rows"], objectness = false, form = "corners" }, { use = "nms" },
        { use = "map-back" }, { use = "crop" }"""
    (tmp_path / "p.toml").write_text(PIPELINE.format(output="y", steps=steps))
    rows = np.array([[0, 0, 4, 4, 0.9, 0.1], [0, 0, 4, 3.9, 0.8, 0.1], [5, 5, 8, 8, 0.1, 0.7]], np.float32)
    found = carried_pipeline(tmp_path / "p.toml").results({"y": rows})
    assert sorted(found) == ["boxes", "classes", "scores"]
    np.testing.assert_array_equal(found["boxes"], [[0, 0, 4, 4], [5, 5, 8, 8]])


def test_a_compile_reports_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import onnx

    onnx.save(convolutions(1), tmp_path / "m.onnx")
    samples = tmp_path / "samples"
    samples.mkdir()
    for i, sample in enumerate(images(4)):
        np.savez(samples / f"{i}.npz", allow_pickle=False, **sample)
    (tmp_path / "p.toml").write_text(PIPELINE.format(output="scores", steps='{ use = "top-k", in = ["rows"], k = 1 }'))
    command = [
        "compile", tmp_path / "m.onnx", "-o", tmp_path / "q.nnd", "--quantise", "int8", "--samples", samples,
        "--objective", "priority", "--backends", "onnxruntime", "--no-fallback", "--calibration", "min-max",
    ]  # fmt: skip
    for more, result in (([], "scores"), (["--pipeline", tmp_path / "p.toml"], "labels")):
        assert run_command([str(one) for one in (*command, *more, "--json")]) == 0
        (found,) = json.loads(capfd.readouterr().out)["quantisation"]["measures"]
        assert found["result"] == result
        assert 0.9 <= found["agreement"] <= 1
