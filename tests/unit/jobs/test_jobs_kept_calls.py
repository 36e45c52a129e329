# SPDX-License-Identifier: Apache-2.0
"""An answer that is kept is the whole of what a child said, and is given only for the same question."""

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from nndeploy.jobs import kept_calls as module
from nndeploy.jobs.kept_calls import KeptCalls, answers_in
from nndeploy.jobs.messages import Request, Response, response_to_folder
from nndeploy.plugin.interface import BuildOptions
from nndeploy.target.target import Target

REQUEST = Request(
    "build",
    {"backend": "native"},
    Target("box", "x86_64"),
    BuildOptions(threads=1),
    model=b"model",
    samples=[{"x": np.ones(3, np.float32)}],
)
RESPONSE = Response({"artifact": {}, "not_run": ""}, {"plan.bin": b"plan"}, [{"y": np.zeros(2, np.float32)}])


@pytest.fixture
def made(tmp_path: Path) -> Path:
    folder = tmp_path / "made"
    folder.mkdir()
    return folder


@pytest.fixture
def answered(tmp_path: Path) -> Path:
    folder = tmp_path / "answer"
    folder.mkdir()
    response_to_folder(RESPONSE, folder)
    return folder


def known(made: Path) -> dict[str, dict[str, tuple[str, str]]]:
    return {
        folder.name: {
            str(path.relative_to(folder)): (str(path), hashlib.sha256(path.read_bytes()).hexdigest())
            for path in folder.rglob("*")
            if path.is_file()
        }
        for folder in made.iterdir()
    }


def test_what_was_answered_is_answered_again(made: Path, answered: Path) -> None:
    first = KeptCalls({}, made, "packages")
    key = first.key(REQUEST)
    assert first.response(key) is None
    first.keep(key, answered)
    again = KeptCalls(known(made), made, "packages")
    found = again.response(again.key(REQUEST))
    assert found is not None
    assert found.result == RESPONSE.result
    assert {name: bytes(data) for name, data in found.files.items()} == RESPONSE.files
    assert (found.outputs[0]["y"] == 0).all()


@pytest.mark.parametrize("other", [
    replace(REQUEST, task="evaluate"), replace(REQUEST, arguments={"backend": "openvino"}),
    replace(REQUEST, target=Target("box", "aarch64")), replace(REQUEST, options=BuildOptions(threads=2)),
    replace(REQUEST, model=b"other"), replace(REQUEST, samples=[]),
    replace(REQUEST, samples=[{"x": np.zeros(3, np.float32)}]),
])  # fmt: skip
def test_another_question_has_another_key(made: Path, other: Request) -> None:
    calls = KeptCalls({}, made, "packages")
    assert calls.key(other) not in ("", calls.key(REQUEST))
    assert KeptCalls({}, made, "newer packages").key(REQUEST) != calls.key(REQUEST)


@pytest.mark.parametrize("other", [
    replace(REQUEST, task="measure"),
    replace(REQUEST, task="run_bundle"),
    replace(REQUEST, options=BuildOptions(custom_op_libraries=("/lib.so",))),
])  # fmt: skip
def test_what_may_be_answered_otherwise_next_time_has_no_key(made: Path, other: Request) -> None:
    assert KeptCalls({}, made, "").key(other) == ""


@pytest.mark.parametrize("text", ['{"refused": "no memory"}', '{"error": {}}', ""])
def test_refusals_and_errors_are_not_kept(made: Path, answered: Path, text: str) -> None:
    (answered / "response.json").write_text(text)
    KeptCalls({}, made, "").keep("0" * 64, answered)
    assert list(made.iterdir()) == []


@pytest.mark.parametrize("damage", ["flipped", "gone"])
def test_an_answer_whose_bytes_are_others_is_none(made: Path, answered: Path, damage: str) -> None:
    calls = KeptCalls({}, made, "")
    calls.keep("0" * 64, answered)
    again = KeptCalls(known(made), made, "")
    path = made / ("0" * 64) / "output-0.values"
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1] + b"\1")
    assert again.response("0" * 64) is None


def test_who_is_killed_while_keeping_leaves_no_answer(made, answered, monkeypatch) -> None:
    copy: Callable[..., Any] = shutil.copyfile
    copied = []

    def killed(source: Path, target: Path) -> None:
        if copied:
            raise KeyboardInterrupt
        copied.append(copy(source, target))

    monkeypatch.setattr(module.shutil, "copyfile", killed)
    with pytest.raises(KeyboardInterrupt):
        KeptCalls({}, made, "").keep("0" * 64, answered)
    assert [path.name for path in made.iterdir()] == ["0" * 64 + ".partial"]


def test_a_large_answer_is_not_kept(made: Path, answered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    KeptCalls({}, made, "").keep("0" * 64, answered)
    assert list(made.iterdir()) == []


def test_answers_are_found_with_all_their_files(made: Path, answered: Path) -> None:
    KeptCalls({}, made, "").keep("0" * 64, answered)
    assert {name: sorted(files) for name, files in answers_in(made)} == {
        "0" * 64: ["files/0", "output-0.values", "response.json"]
    }
    assert list(answers_in(made / "none")) == []


@pytest.mark.parametrize("what", ["link", "hard link", "folder link", "answer link", "other name", "pipe"])
def test_nothing_is_taken_of_an_answer_that_may_lead_elsewhere(made, answered, tmp_path, what) -> None:
    KeptCalls({}, made, "").keep("0" * 64, answered)
    answer, secret = made / ("0" * 64), tmp_path / "secret"
    secret.mkdir()
    (secret / "0").write_bytes(b"secret")
    place = answer / "output-1.values"
    match what:
        case "link":
            place.symlink_to(secret / "0")
        case "hard link":
            place.hardlink_to(secret / "0")
        case "folder link":
            shutil.rmtree(answer / "files")
            (answer / "files").symlink_to(secret)
        case "answer link":
            answer.rename(tmp_path / "moved")
            answer.symlink_to(tmp_path / "moved")
        case "other name":
            (answer / "..x").write_bytes(b"")
        case _:
            os.mkfifo(place)
    assert list(answers_in(made)) == []


def test_stored_weights_are_known_by_their_bytes_wherever_they_lie(made: Path, tmp_path: Path) -> None:
    def key(name: str, data: bytes) -> str:
        path = tmp_path / name
        path.write_bytes(b"before" + data)
        tensor = onnx.TensorProto(name="w", data_type=onnx.TensorProto.UINT8, dims=[4])
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for entry, value in (("location", path), ("offset", 6), ("length", 4)):
            tensor.external_data.add(key=entry, value=str(value))
        model = onnx.ModelProto(graph=onnx.GraphProto(initializer=[tensor]))
        return KeptCalls({}, made, "packages").key(replace(REQUEST, model=model.SerializeToString()))

    first = key("here", b"data")
    assert first == key("there", b"data, and more")
    assert first != key("here", b"Data")
