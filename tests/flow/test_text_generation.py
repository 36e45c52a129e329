# SPDX-License-Identifier: Apache-2.0
"""From a prompt to a text in one bundle: cache, chat template, sampling, and the text while it is written."""

import http.client
import json
from contextlib import closing

import numpy as np
import onnx
import pytest
from oracle.evaluator import evaluate
from small_decoder import PIPELINE, PROMPT, compiled

import nndeploy
from nndeploy import load_bundle
from nndeploy.cli.main import run_command
from nndeploy.runtime.program import Program
from nndeploy.serve.address import Address
from nndeploy.serve.open_served import open_served
from nndeploy.serve.options import ServeOptions
from nndeploy.serve.service import Service
from nndeploy.serve.watched_record import WatchedRecord
from nndeploy.stream.pipeline.bundled_pipeline import carried_pipeline


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("decoder"))


def expected(folder, text, count):
    """Returns the likeliest tokens, the model being given the whole text for each of them, and no cache."""
    tokenizer = pytest.importorskip("tokenizers").Tokenizer.from_file(f"{folder}/tokenizer.json")
    ids = tokenizer.encode(PROMPT.format(text), add_special_tokens=False).ids
    begin = len(ids)
    with nndeploy.load_bundle(folder / "m.nnd") as program:
        empty = {item.name: np.zeros((1, 2, 0, 8), np.float32) for item in program.manifest.inputs[3:]}
        for _ in range(count):
            given = np.array([ids])
            inputs = {"input_ids": given, "attention_mask": np.ones_like(given)}
            outputs = program.run({**inputs, "position_ids": np.arange(len(ids))[None], **empty})
            ids.append(int(outputs["logits"][0, -1].argmax()))
    return ids[begin:]


def ran(folder, tmp_path, *arguments, lines="the cat\nhi\n"):
    given = tmp_path / ("x.jsonl" if lines.startswith("{") else "x.txt")
    given.write_text(lines)
    command = ["run", f"{folder}/m.nnd", "--input", str(given), "--output", f"{tmp_path}/y.jsonl"]
    code = run_command([*command, *arguments])
    return code, [json.loads(line) for line in (tmp_path / "y.jsonl").read_text().splitlines()]


def pipeline(folder, sample):
    path = folder / "other.toml"
    path.write_text(PIPELINE.format(sample=sample))
    return "--pipeline", str(path)


def test_a_text_is_what_the_model_gives_without_a_cache(made, tmp_path) -> None:
    code, found = ran(made, tmp_path)
    assert code == 0
    assert [one["outputs"]["tokens"] for one in found] == [expected(made, text, 12) for text in ("the cat", "hi")]
    assert {one["outputs"]["end"] for one in found} == {"max-tokens"}


def test_scores_are_those_of_the_last_token_alone_where_nothing_else_is_read(made) -> None:
    dice, length = np.random.default_rng(4), 5
    inputs = {
        "input_ids": dice.integers(0, 400, (2, length)),
        "attention_mask": np.ones((2, length + 3), np.int64),
        "position_ids": np.tile(np.arange(3, length + 3), (2, 1)),
    }
    with nndeploy.load_bundle(made / "m.nnd") as program:
        states = {item.name: dice.standard_normal((2, 2, 3, 8), np.float32) for item in program.manifest.inputs[3:]}
        scores = program.run({**inputs, **states})["logits"]
    wanted = evaluate(onnx.load(made / "m.onnx"), {**inputs, **states})["logits"]
    assert wanted.shape == (2, length, 400)
    np.testing.assert_allclose(scores, wanted[:, -1:], atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize(("before", "after", "found"), [
    ("", "", {"logits"}),
    ('name = "write"', 'name = "write"\noutputs = { logits = "scores" }', set()),  # which `sample` does not take
    ('carry =', 'outputs = { logits = "tokens" }\ncarry =', set()),
    ('{ use = "sample",', '{ use = "sample", in = ["scores", "prompt", "tokens"],', set()),
    ('fields = ["text"', 'fields = ["logits", "text"', set()),
    ('[[sink]]', '[[level.pipeline.post]]\nsteps = [{ use = "softmax", in = ["logits"] }]\n[[sink]]', set()),
    ('[[sink]]', '[[level]]\n[[level.pipeline]]\nwhen = "has(logits)"\nmodel = "other.nnd"\n[[sink]]', set()),
    ('[[sink]]', '[[level]]\n[[level.pipeline]]\nrunners = 0\nwhen = "has(logits)"\npost = [{ steps = [{ use = '
     '"l2-normalise", in = ["tokens"] }] }]\n[[sink]]', set()),
])  # fmt: skip
def test_what_else_is_read_of_the_scores_is_computed(made, before, after, found) -> None:
    path = made / "reads.toml"
    path.write_text((made / "p.toml").read_text().replace(before, after))
    with nndeploy.load_bundle(made / "m.nnd") as program:
        assert carried_pipeline(path).last_positions(program.manifest) == found


def test_a_tokenizer_of_a_larger_model_is_refused_by_the_compile(made) -> None:
    carried = carried_pipeline(made / "p.toml")
    with nndeploy.load_bundle(made / "m.nnd") as program:
        carried.check(program.manifest, {"input_ids": 400})
        with pytest.raises(nndeploy.errors.DataError, match="from 100 rows") as caught:
            carried.check(program.manifest, {"input_ids": 100})
    assert "'tokenize'" in caught.value.where


def test_a_text_ends_where_the_context_is_full_and_a_longer_prompt_is_refused(made, tmp_path) -> None:
    code, found = ran(made, tmp_path, *pipeline(made, "max-tokens = 99"), lines=f"hi\n{'a cat ' * 40}\nhi\n")
    assert code == 1
    assert [one.get("outputs", {}).get("end") for one in found] == ["context", None, "context"]
    assert found[1]["error"]["code"] == "bad-input"
    assert found[0]["outputs"] == found[2]["outputs"]  # nothing stays of a text


def test_drawn_texts_depend_on_the_seed_alone(made, tmp_path) -> None:
    texts = [
        ran(made, tmp_path, *pipeline(made, f"temperature = 0.9, top-k = 50, max-tokens = 8, seed = {seed}"))[1]
        for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_a_line_says_how_its_own_text_is_drawn(made, tmp_path) -> None:
    lines = (made / "p.toml").read_text().replace('kind = "lines"', 'kind = "json-lines"\nfields = ["text"]')
    (made / "wishes.toml").write_text(lines)
    asked = [{"text": "hi", "sampling": one} for one in ({"max-tokens": 3}, {"temperature": 0.9, "seed": 1}, {"x": 1})]
    given = "".join(f"{json.dumps(one)}\n" for one in ({"text": "hi"}, *asked, {"text": "hi", "max-tokens": 3}))
    code, found = ran(made, tmp_path, "--pipeline", f"{made}/wishes.toml", lines=given)
    assert code == 1
    plain = expected(made, "hi", 12)
    drawn = ran(made, tmp_path, *pipeline(made, "temperature = 0.9, seed = 1, max-tokens = 12"), lines="hi\n")[1]
    tokens = [one["outputs"]["tokens"] for one in found[:3]]
    assert tokens == [plain, plain[:3], drawn[0]["outputs"]["tokens"]]
    assert plain != tokens[2]
    assert [one["error"]["code"] for one in found[3:]] == ["bad-input"] * 2


def test_texts_written_together_are_those_written_alone(made, tmp_path, monkeypatch) -> None:
    dice, words = np.random.default_rng(1), ["the", "a", "cat", "dog", "runs", "hi", "my", "old", "man", "sea"]
    lines = "".join(f"{' '.join(dice.choice(words, size))}\n" for size in dice.integers(1, 7, 12))
    (made / "together.toml").write_text((made / "p.toml").read_text().replace("carry =", "batch = 4\ncarry =", 1))
    _, alone = ran(made, tmp_path, lines=lines)
    calls = []
    run = Program.run
    monkeypatch.setattr(Program, "run", lambda self, given: calls.append(len(given["input_ids"])) or run(self, given))
    code, together = ran(made, tmp_path, "--pipeline", f"{made}/together.toml", lines=lines)
    assert code == 0
    assert together == alone
    assert max(calls) == 4
    assert len(calls) < 12 * 12 / 2


def test_a_text_is_printed_as_it_is_written(made, tmp_path, capsys) -> None:
    _, found = ran(made, tmp_path, "--stream")
    written = [one["outputs"]["text"] for one in found]
    shown = capsys.readouterr().out
    escaped = ["".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text) for text in written]
    assert shown == "".join(f"{text}\n" for text in escaped)


@pytest.mark.parametrize("arguments", [["--json"], ["--output", "-"], ["--no-pipeline"]])
def test_a_text_is_not_printed_where_nothing_writes_or_something_else_is(made, tmp_path, arguments) -> None:
    (tmp_path / "x.txt").write_text("hi\n")
    command = ["run", f"{made}/m.nnd", "--input", "input_ids=[[1]]" if "--no" in arguments[0] else f"{tmp_path}/x.txt"]
    assert run_command([*command, "--stream", *arguments]) == 2


@pytest.mark.parametrize(("before", "after", "place"), [
    ('"present.*" =', '"presents.*" =', "carry 'presents.*'"),
    ('"past_key_values.*"', '"past.*"', "carry 'present.*'"),
    ('"past_key_values.*"', '"past_key_values"', "carry 'present.*'"),
    ('name = "write"', 'name = "write"\nbatch-delay-ms = 2', "'write'"),
    ("[level.pipeline.loop]", '[level.pipeline.loop]\nuntil = "done"', "loop, until"),
    ('name = "write"', 'name = "write"\nrunners = 0', "'write'"),
    ('name = "write"', 'name = "write"\nsession = "text"', "'write'"),
])  # fmt: skip
def test_what_cannot_loop_is_one_line_before_anything_runs(made, capsys, before, after, place) -> None:
    path = made / "wrong.toml"
    text = (made / "p.toml").read_text()
    path.write_text(text.replace(before, after))
    assert path.read_text() != text
    assert run_command(["run", f"{made}/m.nnd", "--pipeline", str(path), "--input", str(path)]) == 65
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "wrong.toml" in line
    assert place in line


def test_a_conversation_may_come_as_messages(made, tmp_path) -> None:
    text = (made / "p.toml").read_text()
    text = text.replace('kind = "lines"', 'kind = "json-lines"\nfields = ["messages"]').replace(
        'in = ["text"], out', "out"
    )
    (made / "talk.toml").write_text(text)
    talk = [{"role": "user", "content": "hi"}]
    lines = [{"messages": talk}, {"messages": [{"role": "system", "content": "rhyme"}, *talk]}, {"messages": 3}]
    code, found = ran(
        made, tmp_path, "--pipeline", f"{made}/talk.toml", lines="".join(f"{json.dumps(one)}\n" for one in lines)
    )
    assert code == 1
    assert found[0]["outputs"] == ran(made, tmp_path, lines="hi\n")[1][0]["outputs"]
    assert found[1]["outputs"]["tokens"] != found[0]["outputs"]["tokens"]
    assert found[2]["error"]["code"] == "bad-input"


@pytest.fixture(scope="module")
def service(made):
    """Returns the address of a service of the bundle, whose texts have 12 tokens."""
    options = ServeOptions(http=Address("127.0.0.1", 0), grpc=None)
    with Service({"m": made / "m.nnd"}, options, load_bundle, print) as one:
        one.load()
        yield one.addresses["http"].port


def asked(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with closing(connection):
        connection.request("POST", f"/v2/models/m/{path}", json.dumps(body))
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type"), answer.read()


def test_the_service_writes_the_text_of_a_run_whole_and_piece_by_piece(made, service, tmp_path) -> None:
    _, (run,) = ran(made, tmp_path, lines="the cat\n")
    body = {"text_input": "the cat", "id": "7", "parameters": {"details": True}}
    status, _, whole = asked(service, "generate", body)
    assert (status, json.loads(whole)) == (
        200,
        {
            "id": "7", "model_name": "m", "model_version": json.loads(whole)["model_version"],
            "text_output": run["outputs"]["text"], "details": {"finish_reason": "length"},
        },
    )  # fmt: skip
    status, kind, stream = asked(service, "generate_stream", body)
    events = [json.loads(part.removeprefix(b"data: ")) for part in stream.split(b"\n\n")[:-1]]
    assert (status, kind) == (200, "text/event-stream")
    assert "".join(event["text_output"] for event in events) == run["outputs"]["text"]
    assert [event.get("details") for event in events] == [None] * (len(events) - 1) + [{"finish_reason": "length"}]


def test_a_request_says_how_its_own_text_is_drawn(made, service, tmp_path) -> None:
    sample = 'temperature = 0.9, top-k = 50, seed = 3, max-tokens = 5, stop-texts = ["zz"]'
    _, (run,) = ran(made, tmp_path, *pipeline(made, sample), lines="the cat\n")
    parameters = {"temperature": 0.9, "top_k": 50, "seed": 3, "max_tokens": 5, "stop": "zz", "details": True}
    body = {"text_input": "the cat", "parameters": parameters}
    whole = json.loads(asked(service, "generate", body)[2])
    assert (whole["text_output"], whole["details"]) == (run["outputs"]["text"], {"finish_reason": "length"})
    plain = json.loads(asked(service, "generate", {"text_input": "the cat"})[2])["text_output"]
    stop = plain[2:4]
    cut = {"text_input": "the cat", "parameters": {"stop": ["@@@", stop], "details": True}}
    _, _, stream = asked(service, "generate_stream", cut)
    events = [json.loads(part.removeprefix(b"data: ")) for part in stream.split(b"\n\n")[:-1]]
    assert "".join(event["text_output"] for event in events) == plain[: plain.index(stop)]
    assert events[-1]["details"] == {"finish_reason": "stop_sequence"}
    assert json.loads(asked(service, "generate", {"text_input": "the cat"})[2])["text_output"] == plain


@pytest.mark.parametrize("path", ["generate", "generate_stream"])
@pytest.mark.parametrize(("name", "value"), [
    ("temperature", 101), ("top_k", -1), ("top_p", 1.5), ("max_tokens", 13), ("max_tokens", 0), ("stop", 3),
    ("stop", [""]), ("seed", 0.5), ("repetition_penalty", 0),
])  # fmt: skip
def test_a_parameter_beyond_its_limits_is_refused_by_its_name(path, name, value, service) -> None:
    status, _, answer = asked(service, path, {"text_input": "the cat", "parameters": {name: value}})
    assert status == 400
    assert f"'{name}'" in json.loads(answer)["error"]


@pytest.mark.parametrize("path", ["generate", "generate_stream"])
@pytest.mark.parametrize("body", [
    {}, {"text_input": 1}, {"text_input": "the cat", "parameters": {"temperatur": 0.5}}, {"text_input": "a cat " * 40},
    {"text_input": "the cat", "stream": True}, ["the cat"],
])  # fmt: skip
def test_a_request_that_is_none_is_refused(path, body, service) -> None:
    status, kind, answer = asked(service, path, body)
    assert (status, kind, list(json.loads(answer))) == (400, "application/json", ["error"])


def test_a_text_that_nobody_waits_for_is_written_no_further(made) -> None:
    seen = []

    def watch(fields):
        seen.append(fields["text"])
        return len(seen) < 3

    def text_of(prompt):
        record = WatchedRecord(0, "", "", fields={"text": prompt}, watch=watch)
        pipeline.run([record])
        return record

    with closing(open_served("m", made / "m.nnd", ServeOptions(), load_bundle, print)) as pipeline:
        assert text_of("the cat").error is not None
        assert len(seen) == 3
        assert text_of("hi").error is not None
        assert len(seen) == 4
