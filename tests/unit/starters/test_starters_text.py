# SPDX-License-Identifier: Apache-2.0
"""`new embed` and `new generate`: what a model and the files beside it say stands in the pipeline, and it fits."""

import json
import tomllib
from pathlib import Path

import numpy as np
import onnx
import pytest
from trained_tokenizers import bert_words, bytes_bpe

from nndeploy.cli.commands import new
from nndeploy.cli.main import run_command
from nndeploy.starters.written import KINDS

IDS = {"input_ids": "int64[n,t]", "attention_mask": "int64[n,t]"}
STATES = {"last_hidden_state": "float32[n,t,8]"}
POSITIONS = {"position_ids": "int64[n,t]"}
SCORES = {"logits": "float32[n,t,400]"}
KINDS_OF = "token_type_ids"
IDENTITY, SIGMOID = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Sigmoid"


def test_the_command_knows_each_kind() -> None:
    assert set(new.KINDS) == set(KINDS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(bert_words(["a", "b"]))
    return tmp_path


def write_model(path, inputs, outputs):
    """Writes a model of one node with these inputs and outputs, by name; what it computes does not matter."""

    def values(types):
        for name, text in types.items():
            dtype, _, axes = text[:-1].partition("[")
            sizes = [int(axis) if axis.isdecimal() else axis for axis in axes.split(",") if axis]
            yield onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), sizes)

    node = onnx.helper.make_node("Op", [*inputs], [*outputs], domain="any")
    graph = onnx.helper.make_graph([node], "g", [*values(inputs)], [*values(outputs)])
    sets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("any", 1)]
    Path(path).parent.mkdir(exist_ok=True)
    onnx.save(onnx.helper.make_model(graph, opset_imports=sets, ir_version=10), path)


def written(kind, model="m.onnx", code=0):
    """Returns the pipeline of the only level that a call writes, and its steps by name."""
    assert run_command(["new", kind, "--model", model, "-o", "p.toml"]) == code
    if code:
        return None
    file = tomllib.loads(Path("p.toml").read_text())
    (pipeline,) = file["level"][0]["pipeline"]
    stages = [*pipeline["loader"], pipeline.get("loop", {}), *pipeline.get("post", [])]
    return pipeline, {step["use"]: step for stage in stages for step in stage.get("steps", [])}


def beside(**files):
    for name, data in files.items():
        path = Path(name.replace("__", "/") + ".json")
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(data))


@pytest.mark.parametrize(("files", "length", "by", "is_normalised"), [
    ({}, None, "mean", True),
    ({"config": {"max_position_embeddings": 512}, "tokenizer_config": {"model_max_length": 10**30}}, 512, "mean", True),
    ({"sentence_bert_config": {"max_seq_length": 128}, "config": {"max_position_embeddings": 512},
      "1_Pooling__config": {"pooling_mode_cls_token": True}, "modules": [{"type": "x.models.Normalize"}]},
     128, "cls", True),
    ({"modules": [{"type": "x.models.Pooling"}], "1_Pooling__config": {"pooling_mode_lasttoken": True}},
     None, "last", False),
])  # fmt: skip
def test_an_embedder_is_as_sentence_transformers_has_it(folder, files, length, by, is_normalised) -> None:
    write_model("m.onnx", IDS, STATES)
    beside(**files)
    pipeline, steps = written("embed")
    assert steps["tokenize"] == {"use": "tokenize", "tokenizer": "tokenizer.json"} | (
        {} if length is None else {"max-length": length}
    )
    assert steps["pool"]["by"] == by
    assert ("l2-normalise" in steps) == is_normalised
    assert "outputs" not in pipeline
    assert (pipeline["batch"], pipeline["runners"]) == (32, 2)


@pytest.mark.parametrize(("config", "steps"), [
    ({}, ["tokenize-pair", "sigmoid", "class-probability"]),
    ({"sentence_transformers": {"activation_fn": SIGMOID}}, ["tokenize-pair", "sigmoid", "class-probability"]),
    ({"sentence_transformers": {"activation_fn": IDENTITY}}, ["tokenize-pair", "class-probability"]),
    ({"sbert_ce_default_activation_function": IDENTITY}, ["tokenize-pair", "class-probability"]),
])  # fmt: skip
def test_a_reranker_ends_as_its_configuration_says(folder, config, steps) -> None:
    write_model("m.onnx", IDS, {"logits": "float32[n,1]"})
    beside(config=config)
    pipeline, found = written("rerank")
    assert [*found] == steps
    assert pipeline["batch"] == 32


def test_a_reranker_scores_pairs_whose_longer_text_is_cut(folder, capfd) -> None:
    """The model gives the share of tokens that are of the second text, of [CLS] a [SEP] b [SEP], less a half."""
    kinds = onnx.helper.make_node("ReduceMean", ["floats", "axes"], ["share"])
    nodes = [
        onnx.helper.make_node("Cast", ["token_type_ids"], ["floats"], to=onnx.TensorProto.FLOAT), kinds,
        onnx.helper.make_node("Sub", ["share", "half"], ["logits"]),
    ]  # fmt: skip
    ids = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT64, ["n", "t"]) for name in (*IDS, KINDS_OF)]
    logits = onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["n", 1])
    constants = [onnx.numpy_helper.from_array(np.array([1]), "axes"),
                 onnx.numpy_helper.from_array(np.float32(0.5), "half")]  # fmt: skip
    graph = onnx.helper.make_graph(nodes, "g", ids, [logits], constants)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9), "m.onnx")
    beside(config={"max_position_embeddings": 9})
    assert run_command(["new", "rerank", "--model", "m.onnx", "-o", "p.toml"]) == 0
    assert run_command(["compile", "m.onnx", "--pipeline", "p.toml", "-o", "m.nnd", "-q"]) == 0
    pairs = [{"text": "a b a", "pair": "b"}, {"text": "a", "pair": "a " * 30}]  # 7 and, cut, 9 tokens
    Path("pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    assert run_command(["run", "m.nnd", "--input", "pairs.jsonl", "--output", "scores.jsonl", "-q"]) == 0
    found = [json.loads(line)["outputs"]["score"][0] for line in Path("scores.jsonl").read_text().splitlines()]
    of_second = np.array([2 / 7, 6 / 9])
    np.testing.assert_allclose(found, 1 / (1 + np.exp(0.5 - of_second)), rtol=1e-6)


@pytest.mark.parametrize(("inputs", "states"), [
    (dict.fromkeys(IDS, "int64[1,t]"), "float32[1,t,8]"), (dict.fromkeys(IDS, "int64[n,t]"), "float32[m,t,8]"),
    (dict.fromkeys(IDS, "int64[?,t]"), "float32[?,t,8]"),
])  # fmt: skip
def test_texts_go_one_by_one_where_the_model_may_take_no_batch(folder, inputs, states) -> None:
    write_model("m.onnx", inputs, {"y": states})
    assert "batch" not in written("embed")[0]


def test_names_sizes_and_types_are_those_of_the_model(folder) -> None:
    write_model("m.onnx", dict.fromkeys(IDS, "int32[1,16]"), {"y": "float32[1,16,8]"})
    pipeline, steps = written("embed")
    assert pipeline["outputs"] == {"y": "last_hidden_state"}
    assert {key: steps["tokenize"][key] for key in ("max-length", "pad-to", "dtype")} == {
        "max-length": 16, "pad-to": 16, "dtype": "int32",
    }  # fmt: skip
    write_model("m.onnx", IDS, {"token_embeddings": "float32[n,t,8]", "sentence_embedding": "float32[n,8]"})
    pipeline, steps = written("embed")
    assert pipeline["outputs"] == {"sentence_embedding": "embedding"}
    assert "pool" not in steps


def test_files_may_lie_above_the_model_and_the_pipeline_elsewhere(folder) -> None:
    write_model("onnx/m.onnx", IDS, STATES)
    assert written("embed", "onnx/m.onnx")[1]["tokenize"]["tokenizer"] == "tokenizer.json"
    (folder / "apps").mkdir()
    assert run_command(["new", "embed", "--model", "onnx/m.onnx", "-o", "apps/p.toml"]) == 0
    assert 'tokenizer = "../tokenizer.json"' in (folder / "apps" / "p.toml").read_text()


@pytest.mark.parametrize(("kind", "inputs", "outputs"), [
    ("embed", {"x": "float32[n,t]"}, STATES), ("embed", IDS, {"y": "float32[n]"}),
    ("embed", IDS, {"y": "int64[n,t,8]"}),
    ("embed", IDS | {"other": "float32[n]"}, STATES), ("embed", {"input_ids": "int64[n]"}, STATES),
    ("embed", IDS | {"token_type_ids": "int32[n,t]"}, STATES),
    ("rerank", IDS, {"y": "float32[n,2]"}), ("classify", IDS, {"y": "float32[n,1]"}),
    ("generate", IDS, {"y": "float32[n,8]"}), ("generate", {"x": "int64[n,t]"}, SCORES),
    ("generate", IDS | {"past.0": "float32[n,2,p,8]"}, SCORES | {"cache": "float32[n,2,q,8]"}),
])  # fmt: skip
def test_another_kind_of_model_is_one_line_and_no_file(folder, capsys, kind, inputs, outputs) -> None:
    write_model("m.onnx", inputs, outputs)
    written(kind, code=65)
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not Path("p.toml").exists()


def test_what_has_to_be_there_is_named(folder, capsys) -> None:
    write_model("m.onnx", IDS, STATES)
    Path("config.json").write_text("[")
    written("embed", code=65)
    assert "config.json" in capsys.readouterr().err
    Path("tokenizer.json").unlink()
    written("embed", code=66)
    assert "tokenizer.json" in capsys.readouterr().err
    written("embed", "no.onnx", code=66)
    written("embed", "p.nnd", code=2)


@pytest.fixture
def decoder(folder):
    (folder / "tokenizer.json").write_bytes(bytes_bpe())

    def write(past="past_key_values.", present="present.", ends=("0.key", "0.value", "1.key", "1.value")):
        into, out = ({head + end: "float32[n,2,p,8]" for end in ends} for head in (past, present))
        write_model("m.onnx", IDS | POSITIONS | into, SCORES | out)

    return write


@pytest.mark.parametrize(("name", "type_", "value"), [
    ("num_logits_to_keep", "int64[]", 1), ("logits_to_keep", "int64[1]", [1]), ("logits_to_keep", "int32[]", 1),
])  # fmt: skip
def test_scores_of_the_last_token_alone_are_asked_for(folder, name, type_, value) -> None:
    write_model("m.onnx", IDS | POSITIONS | {name: type_, "past.0": "float32[n,2,p,8]"},
                SCORES | {"present.0": "float32[n,2,q,8]"})  # fmt: skip
    pipeline, steps = written("generate")
    assert steps["constant"] == {"use": "constant", "value": value, "dtype": type_.split("[")[0], "out": [name]}
    assert pipeline["carry"] == {"present.*": "past.*"}
    assert "batch" not in Path("p.toml").read_text()  # such a number has no axis of texts


@pytest.mark.parametrize(("past", "present", "ends"), [
    ("past_key_values.", "present.", ("0.key", "0.value", "10.key", "10.value")),
    ("past_", "present_", ("key_0", "value_0")), ("past.", "present_cache.", ("0",)),
])  # fmt: skip
def test_a_cache_is_carried_by_one_pattern(decoder, past, present, ends) -> None:
    decoder(past, present, ends)
    ((source, into),) = written("generate")[0]["carry"].items()
    assert [source.replace("*", "X").startswith(present), into.startswith(past)] == [True, True]
    for end in ends:
        rest = (present + end)[len(source) - 1 :]
        assert source.replace("*", rest) == present + end
        assert into.replace("*", rest) == past + end


def test_a_merged_decoder_is_told_which_branch_to_take(decoder) -> None:
    into, out = ({f"{head}.{i}": "float32[n,2,p,8]" for i in range(2)} for head in ("past_key_values", "present"))
    write_model("m.onnx", IDS | {"use_cache_branch": "bool[1]"} | into, SCORES | out)
    pipeline, _ = written("generate")
    assert [*pipeline["carry"]] == ["present.*"]
    assert run_command(["new", "generate", "--model", "m.onnx", "-o", "p.toml", "--json"]) == 0


def test_a_text_is_written_as_the_files_of_the_model_say(decoder) -> None:
    decoder()
    beside(
        config={"max_position_embeddings": 4096, "eos_token_id": 0},
        generation_config={"do_sample": True, "temperature": 0.6, "top_p": 0.9, "eos_token_id": [2, 0]},
        tokenizer_config={"chat_template": "{{ messages[0].content }}", "eos_token": {"content": "<|im_end|>"}},
    )
    _, steps = written("generate")
    assert steps["chat"]["template"] == "tokenizer_config.json"
    assert steps["tokenize"]["special-tokens"] is False
    assert steps["prompt"]["context"] == steps["sample"]["context"] == 4096
    assert steps["sample"]["stop-tokens"] == ["<|im_end|>", "<|end|>"]
    chosen = {key: steps["sample"][key] for key in ("temperature", "top-k", "top-p", "repetition-penalty", "seed")}
    assert chosen == {"temperature": 0.6, "top-k": 50, "top-p": 0.9, "repetition-penalty": 1.0, "seed": 0}
    assert steps["next-inputs"] == {"use": "next-inputs"}


def test_a_chat_template_may_lie_beside_the_special_tokens(decoder, folder) -> None:
    decoder()
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}")
    assert written("generate")[1]["chat"]["template"] == "chat_template.jinja"
    beside(tokenizer_config={"eos_token": "<|im_end|>"})
    assert written("generate")[1]["chat"]["template"] == "tokenizer_config.json"


def test_without_files_the_likeliest_tokens_are_taken(decoder) -> None:
    write_model("m.onnx", IDS, {"scores": "float32[n,t,400]"})
    beside(generation_config={"temperature": 0.6, "repetition_penalty": 1.1})
    pipeline, steps = written("generate")
    assert pipeline["outputs"] == {"scores": "logits"}
    assert "carry" not in pipeline
    assert steps["next-inputs"]["cache"] is False
    assert "chat" not in steps
    assert (steps["sample"]["temperature"], steps["sample"]["repetition-penalty"]) == (0.0, 1.1)
    assert "context" not in steps["sample"]


def test_a_classifier_of_texts_has_the_names_of_its_classes(folder) -> None:
    write_model("m.onnx", IDS, {"logits": "float32[n,2]"})
    beside(config={"id2label": {"0": "bad", "1": "good"}, "max_position_embeddings": 512})
    pipeline, steps = written("classify")
    assert pipeline["outputs"] == {"logits": "scores"}
    assert steps["tokenize"]["max-length"] == 512
    assert steps["top-k"] == {"use": "top-k", "k": 2, "labels": ["bad", "good"]}
    (folder / "texts.txt").write_text("a b\n")
    assert run_command(["run", "--pipeline", "p.toml", "--input", "texts.txt"]) == 2  # it lacks the bundle alone
