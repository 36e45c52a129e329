# SPDX-License-Identifier: Apache-2.0
"""`new vad` and `new transcribe`: what models and the files beside them say stands in the pipeline, and it fits."""

import json
import tomllib
from pathlib import Path

import onnx
import pytest
from trained_tokenizers import bytes_bpe

from nndeploy.cli.main import run_command

FLOAT, INT = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
PIPELINES = Path(__file__).resolve().parents[3] / "configs" / "pipelines"
VAD = {"x": (FLOAT, ["n", "t"]), "s": (FLOAT, [2, "n", 128]), "sr": (INT, [])}
SAYS = {"y": (FLOAT, ["n", 1]), "after": (FLOAT, [2, "n", 128])}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write_model(inputs, outputs, path="m.onnx"):
    """Writes a model of one node with these inputs and outputs; what it computes does not matter."""
    values = [
        [onnx.helper.make_tensor_value_info(name, *kind) for name, kind in ends.items()] for ends in (inputs, outputs)
    ]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Op", [*inputs], [*outputs], domain="any")], "g", *values)
    sets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("any", 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=sets, ir_version=10), path)


def written(*arguments, code=0):
    assert run_command(["new", *arguments, "-o", "p.toml"]) == code
    return None if code else tomllib.loads(Path("p.toml").read_text())


@pytest.mark.parametrize(("rate", "value"), [({"sr": (INT, [])}, 16000), ({"sr": (INT, [1])}, [16000]), ({}, None)])
def test_a_voice_detector_is_fed_as_its_model_says(rate, value) -> None:
    write_model({name: VAD[name] for name in ("s", "x")} | rate, SAYS)
    cut, listen, times = (level["pipeline"][0] for level in written("vad", "--model", "m.onnx")["level"])
    constants = [step["value"] for step in cut["loader"][0]["steps"] if step["use"] == "constant"]
    assert constants == ([] if value is None else [value])
    assert listen["inputs"] == {"x": "window"} | dict.fromkeys(rate, "sr")
    assert (listen["outputs"], listen["carry"]) == ({"y": "probability"}, {"after": "s"})
    assert times["post"][0]["steps"][0]["hop-ms"] == 32


@pytest.mark.parametrize(("inputs", "outputs"), [
    ({"x": VAD["x"]}, SAYS), (VAD | {"s": (FLOAT, [2, "n", 64])}, SAYS), (VAD | {"x": (FLOAT, ["n", 512])}, SAYS),
    (VAD | {"sr": (FLOAT, [])}, SAYS), (VAD | {"more": (INT, [])}, SAYS), (VAD, {"y": SAYS["y"]}),
    (VAD, SAYS | {"y": (FLOAT, ["n", 2])}),
])  # fmt: skip
def test_another_kind_of_model_is_one_line_and_no_file(capsys, inputs, outputs) -> None:
    write_model(inputs, outputs)
    written("vad", "--model", "m.onnx", code=65)
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not Path("p.toml").exists()


def test_what_is_written_for_a_real_detector_is_the_pipeline_that_is_shipped(models_folder) -> None:
    Path("m.onnx").symlink_to(models_folder / "silero_vad_v5.onnx")
    assert written("vad", "--model", "m.onnx") == tomllib.loads((PIPELINES / "speech.toml").read_text())


CACHE = {f"past_key_values.0.{side}.key": (FLOAT, ["b", 2, side, 8]) for side in ("decoder", "encoder")}
PRESENT = {f"present.0.{side}.key": (FLOAT, ["b", 2, side, 8]) for side in ("decoder", "encoder")}
IDS, LOGITS = {"input_ids": (INT, ["b", "t"])}, {"logits": (FLOAT, ["b", "t", 400])}
WHISPER = {
    "encoder": ({"input_features": (FLOAT, ["b", 128, 3000])}, {"last_hidden_state": (FLOAT, ["b", 1500, 8])}),
    "plain": (IDS | {"encoder_hidden_states": (FLOAT, ["b", "s", 8])}, LOGITS | PRESENT),
    "cached": (IDS | CACHE, LOGITS | {"present.0.decoder.key": PRESENT["present.0.decoder.key"]}),
}
WHISPER["merged"] = (
    WHISPER["cached"][0] | WHISPER["plain"][0] | {"use_cache_branch": (onnx.TensorProto.BOOL, [1])},
    WHISPER["plain"][1],
)
SAID = {"decoder_start_token_id": 300, "no_timestamps_token_id": 399, "eos_token_id": 0}
MANY = {"lang_to_id": {"<|de|>": 301, "<|en|>": 302}, "task_to_id": {"translate": 303, "transcribe": 304}}


def write_whisper(said, **others):
    for name, ends in (WHISPER | others).items():
        write_model(*ends, f"{name}.onnx")
    Path("generation_config.json").write_text(json.dumps(said))
    Path("tokenizer.json").write_bytes(bytes_bpe(size=400))


def written_whisper(*names, code=0):
    models = [text for name in names or ("cached", "encoder", "plain") for text in ("--model", f"{name}.onnx")]
    return written("transcribe", *models, code=code)


@pytest.mark.parametrize(("said", "begin", "most"), [
    (SAID | MANY, [[301, 302], [304]], 445),
    (SAID | MANY | {"language": "de", "max_length": 30}, [[301], [304]], 29),
    (SAID | MANY | {"language": "<|de|>"}, [[301], [304]], 445),
    (SAID | {"lang_to_id": {"<|fr|>\n[[": 7}}, [[7]], 446), (SAID, [], 447),
    (SAID | {"lang_to_id": {"<|im_end|>": 2}}, [["<|im_end|>"]], 446),
])  # fmt: skip
@pytest.mark.parametrize("is_merged", [False, True])
def test_whisper_begins_as_its_files_say(said, begin, most, is_merged) -> None:
    write_whisper(said | {"suppress_tokens": [-1, 5, None], "begin_suppress_tokens": [6]})
    made = written_whisper(*(("merged", "encoder") if is_merged else ()))["level"]
    hear, listen, *others, write = (level["pipeline"][0] for level in made)
    assert hear["loader"][0]["steps"][1] == {
        "use": "log-mel", "bins": 128, "size": 400, "hop": 160, "seconds": 30, "whole": True, "out": ["features"],
    }  # fmt: skip
    assert hear["loader"][0]["steps"][2]["value"] == [300]
    assert listen["loader"][0]["steps"][0]["frames"] == 3000
    assert [one["model"] for one in others] == ([] if is_merged else ["plain.nnd"])
    assert (write["model"], "inputs" in write) == (("merged.nnd", False) if is_merged else ("cached.nnd", True))
    sample = write["loop"]["steps"][0]
    assert (sample["begin"], sample["timestamps"]) == (begin, 400)
    assert (sample["suppress-tokens"], sample["begin-suppress-tokens"]) == ([5], [6])
    assert (sample["stop-tokens"], sample["max-tokens"]) == ([0], most)
    assert (made[-1]["back-to"], made[-1]["until"]) == ("listen", "done")


@pytest.mark.parametrize("language", ["de", "<|de|>", "DE"])
@pytest.mark.parametrize("named", [{}, {"language": "en"}])
def test_a_language_that_is_asked_for_is_the_only_one(language, named) -> None:
    write_whisper(SAID | MANY | named)
    models = [text for name in ("merged", "encoder") for text in ("--model", f"{name}.onnx")]
    made = written("transcribe", *models, "--language", language)["level"]
    assert made[-1]["pipeline"][0]["loop"]["steps"][0]["begin"] == [[301], [304]]


@pytest.mark.parametrize("said", [SAID | MANY, SAID])
@pytest.mark.parametrize("language", ["xx", ""])
def test_a_language_that_the_model_does_not_know_is_one_line(said, language, capsys) -> None:
    write_whisper(said)
    models = [text for name in ("merged", "encoder") for text in ("--model", f"{name}.onnx")]
    written("transcribe", *models, "--language", language, code=2)
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert repr(language) in line
    assert not Path("p.toml").exists()


def test_a_kind_without_a_language_refuses_one() -> None:
    write_model({name: VAD[name] for name in ("s", "x")}, SAYS)
    written("vad", "--model", "m.onnx", "--language", "de", code=2)


def test_features_are_as_the_files_of_a_model_say() -> None:
    write_whisper(SAID)
    said = {"sampling_rate": 8000, "n_fft": 200, "hop_length": 80, "chunk_length": 30, "feature_size": 80}
    Path("preprocessor_config.json").write_text(json.dumps(said))
    resample, log_mel, _ = written_whisper()["level"][0]["pipeline"][0]["loader"][0]["steps"]
    assert resample["rate"] == 8000
    assert [log_mel[key] for key in ("bins", "size", "hop", "seconds")] == [128, 200, 80, 30]


def test_what_is_not_whisper_is_one_line_and_no_file(capsys) -> None:
    write_whisper(
        SAID,
        other=(IDS | {"past_key_values.1.decoder.key": (FLOAT, ["b", 2, "p", 8])}, LOGITS),
        short=({"input_features": (FLOAT, ["b", 80, 100])}, WHISPER["encoder"][1]),
    )
    refused = ("encoder", "plain", "merged"), ("encoder", "plain", "other"), ("plain", "plain", "cached"), (
        "short", "plain", "cached",
    ), ("encoder", "cached"), ("encoder", "plain")  # fmt: skip
    for names in refused:
        written_whisper(*names, code=65)
    written_whisper("encoder", code=2)
    for said in ({}, SAID | {"lang_to_id": {"<|en|>": "1"}}):
        Path("generation_config.json").write_text(json.dumps(said))
        written_whisper(code=65)
    Path("tokenizer.json").unlink()
    written_whisper(code=66)
    assert len(capsys.readouterr().err.strip().splitlines()) == 10
    assert not Path("p.toml").exists()
