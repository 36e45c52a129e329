# SPDX-License-Identifier: Apache-2.0
"""OpenAI's API of a served language model: prompts and conversations, whole and in pieces, and what it refuses."""

import http.client
import json
from contextlib import closing

import pytest
from small_decoder import PIPELINE, compiled

from nndeploy import load_bundle
from nndeploy.cli.main import run_command
from nndeploy.serve.address import Address
from nndeploy.serve.options import ServeOptions
from nndeploy.serve.service import Service

TALK = [{"role": "user", "content": "the cat"}]
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
ASKED = {CHAT: {"model": "m", "messages": TALK}, COMPLETIONS: {"model": "m", "prompt": "the cat"}}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Returns a folder with a bundle of conversations, and pipelines beside it: of prompts alone, and of messages."""
    folder = compiled(tmp_path_factory.mktemp("openai"))
    text = PIPELINE.format(sample='max-tokens = 12, fixed = ["top-p"], logprobs = 3')
    text = text.replace('name = "write"', 'name = "write"\nmodel = "m.nnd"')
    chat = '    { use = "chat", template = "tokenizer_config.json", in = ["text"], out = ["asked"] },\n'
    assert chat in text
    (folder / "plain.toml").write_text(text.replace(chat, "").replace('in = ["asked"]', 'in = ["text"]'))
    talk = text.replace('kind = "lines"', 'kind = "json-lines"\nfields = ["messages"]')
    (folder / "talk.toml").write_text(talk.replace('in = ["text"]', 'in = ["messages"]'))
    return folder


@pytest.fixture(scope="module")
def port(made):
    options = ServeOptions(http=Address("127.0.0.1", 0), grpc=None, max_body=10_000)
    names = {"m": made / "m.nnd", "plain": made / "plain.toml", "talk": made / "talk.toml"}
    with Service(names, options, load_bundle, print) as one:
        one.load()
        yield one.addresses["http"].port


def asked(port, path, body=None):
    """Returns status and content of an answer: what its JSON says, or the data of its events."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, data)
        answer = connection.getresponse()
        content = answer.read()
        if answer.getheader("Content-Type") != "text/event-stream":
            return answer.status, json.loads(content)
        return answer.status, [part.removeprefix(b"data: ") for part in content.split(b"\n\n")[:-1]]


def run_of(folder, tmp_path, pipeline, line):
    """Returns what `nndeploy run` writes for one line."""
    given = tmp_path / ("x.jsonl" if line.startswith("{") else "x.txt")
    given.write_text(f"{line}\n")
    command = ["run", f"{folder}/m.nnd", "--pipeline", f"{folder}/{pipeline}", "--input", str(given)]
    assert run_command([*command, "--output", f"{tmp_path}/y.jsonl"]) == 0
    return json.loads((tmp_path / "y.jsonl").read_text())["outputs"]


def text_of(answer):
    (choice,) = answer["choices"]
    return choice["message"]["content"] if "message" in choice else choice["text"]


@pytest.mark.parametrize(("path", "kind"), [(CHAT, "chat.completion"), (COMPLETIONS, "text_completion")])
def test_an_answer_has_the_text_of_a_run_why_it_ends_and_how_long_it_is(path, kind, made, port, tmp_path) -> None:
    run = run_of(made, tmp_path, "p.toml", "the cat")
    status, answer = asked(port, path, ASKED[path])
    assert (status, answer["object"], answer["model"], text_of(answer)) == (200, kind, "m", run["text"])
    (choice,) = answer["choices"]
    assert (choice["index"], choice["finish_reason"]) == (0, "length")
    assert path == COMPLETIONS or choice["message"]["role"] == "assistant"
    usage = answer["usage"]
    assert (usage["completion_tokens"], usage["total_tokens"]) == (12, 12 + usage["prompt_tokens"])
    stop = run["text"][2:4]
    _, cut = asked(port, path, ASKED[path] | {"stop": stop})
    assert (text_of(cut), cut["choices"][0]["finish_reason"]) == (run["text"][: run["text"].index(stop)], "stop")


def test_tokens_of_a_prompt_are_those_of_the_tokenizer(made, port) -> None:
    tokenizer = pytest.importorskip("tokenizers").Tokenizer.from_file(f"{made}/tokenizer.json")
    count = len(tokenizer.encode("the cat", add_special_tokens=False).ids)
    assert asked(port, COMPLETIONS, {"model": "plain", "prompt": "the cat"})[1]["usage"]["prompt_tokens"] == count


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("has_usage", [False, True])
def test_a_stream_has_the_same_text_in_pieces_and_ends_with_done(path, has_usage, port) -> None:
    whole = asked(port, path, ASKED[path])[1]
    options = {"stream": True} | ({"stream_options": {"include_usage": True}} if has_usage else {})
    status, events = asked(port, path, ASKED[path] | options)
    assert (status, events.pop()) == (200, b"[DONE]")
    chunks = [json.loads(event) for event in events]
    assert len({chunk["id"] for chunk in chunks}) == 1
    if has_usage:
        last = chunks.pop()
        assert (last["choices"], last["usage"]) == ([], whole["usage"])
        assert {chunk["usage"] for chunk in chunks} == {None}
    else:
        assert not any("usage" in chunk for chunk in chunks)
    choices = [chunk["choices"][0] for chunk in chunks]
    assert [one["finish_reason"] for one in choices] == [None] * (len(choices) - 1) + ["length"]
    if path == CHAT:
        assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
        assert [one["delta"].get("role") for one in choices] == ["assistant"] + [None] * (len(choices) - 1)
        assert "".join(one["delta"].get("content", "") for one in choices) == text_of(whole)
    else:
        assert "".join(one["text"] for one in choices) == text_of(whole)


@pytest.mark.parametrize("most", ["max_tokens", "max_completion_tokens"])
def test_a_request_says_how_its_text_is_drawn(most, made, port, tmp_path) -> None:
    line = {"messages": TALK, "sampling": {"temperature": 0.8, "seed": 9, "max-tokens": 6}}
    run = run_of(made, tmp_path, "talk.toml", json.dumps(line))
    body = ASKED[CHAT] | {"temperature": 0.8, "seed": 9, most: 6, "n": 1, "user": "someone", "top_p": None}
    for model in ("m", "talk"):
        status, answer = asked(port, CHAT, body | {"model": model})
        assert (status, text_of(answer), answer["usage"]["completion_tokens"]) == (200, run["text"], 6)
    assert text_of(asked(port, CHAT, ASKED[CHAT])[1]) != run["text"]


def test_messages_go_through_the_template_and_parts_of_one_are_its_lines(made, port, tmp_path) -> None:
    system = {"role": "system", "content": "be\nbrief"}
    run = run_of(made, tmp_path, "talk.toml", json.dumps({"messages": [system, *TALK]}))
    parts = [{"type": "text", "text": "be"}, {"type": "text", "text": "brief"}]
    for one in (system, {"role": "system", "content": parts}):
        assert text_of(asked(port, CHAT, {"model": "m", "messages": [one, *TALK]})[1]) == run["text"]


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_several_texts_are_those_of_the_seeds_that_follow(path, port) -> None:
    body = ASKED[path] | {"temperature": 1.5, "max_tokens": 6}
    alone = [asked(port, path, body | {"seed": seed})[1] for seed in (7, 8, 9)]
    wanted = [text_of(one) for one in alone]
    status, answer = asked(port, path, body | {"seed": 7, "n": 3})
    assert (status, [one["index"] for one in answer["choices"]]) == (200, [0, 1, 2])
    assert [text_of({"choices": [one]}) for one in answer["choices"]] == wanted
    assert len(set(wanted)) > 1
    counts = [one["usage"]["completion_tokens"] for one in alone]
    assert answer["usage"]["completion_tokens"] == sum(counts)
    assert answer["usage"]["prompt_tokens"] == alone[0]["usage"]["prompt_tokens"]
    _, events = asked(port, path, body | {"seed": 7, "n": 3, "stream": True})
    assert events.pop() == b"[DONE]"
    texts, ends = [""] * 3, [""] * 3
    for event in events:
        (choice,) = json.loads(event)["choices"]
        texts[choice["index"]] += choice["delta"].get("content", "") if path == CHAT else choice["text"]
        ends[choice["index"]] += choice["finish_reason"] or ""
    assert (texts, ends) == (wanted, ["length"] * 3)


def test_of_a_prompt_tokens_are_told_with_how_likely_they_were(port) -> None:
    body = ASKED[COMPLETIONS] | {"model": "plain", "logprobs": 2}
    answer = asked(port, COMPLETIONS, body)[1]
    told, text = answer["choices"][0]["logprobs"], text_of(answer)
    data = (
        bytes.fromhex(one[6:].replace("\\x", "")) if one.startswith("bytes:") else one.encode()
        for one in told["tokens"]
    )
    assert b"".join(data).decode(errors="replace") == text
    assert told["text_offset"][:2] == [0, len(told["tokens"][0])]
    for token, logprob, top in zip(told["tokens"], told["token_logprobs"], told["top_logprobs"], strict=True):
        assert top[token] == logprob == max(top.values()) < 0  # the likeliest is taken
        assert len(top) == 2
    events = [json.loads(event) for event in asked(port, COMPLETIONS, body | {"stream": True})[1][:-1]]
    parts = [one["choices"][0]["logprobs"] for one in events]
    for name, wanted in told.items():
        assert [value for part in parts if part for value in part[name]] == wanted


def test_of_an_answer_tokens_are_told_with_how_likely_they_were(port) -> None:
    body = ASKED[CHAT] | {"model": "talk", "logprobs": True, "temperature": 2, "seed": 3}
    answer = asked(port, CHAT, body | {"top_logprobs": 3})[1]
    content = answer["choices"][0]["logprobs"]["content"]
    assert b"".join(bytes(one["bytes"]) for one in content).decode(errors="replace") == text_of(answer)
    assert [len(one["top_logprobs"]) for one in content] == [3] * len(content)
    assert all(one["logprob"] <= one["top_logprobs"][0]["logprob"] < 0 for one in content)
    (choice,) = asked(port, CHAT, body)[1]["choices"]
    assert [one["top_logprobs"] for one in choice["logprobs"]["content"]] == [[]] * len(content)
    assert asked(port, CHAT, ASKED[CHAT] | {"model": "talk"})[1]["choices"][0]["logprobs"] is None


def test_models_are_listed(port) -> None:
    status, found = asked(port, "/v1/models")
    assert (status, found["object"]) == (200, "list")
    assert {(one["id"], one["object"]) for one in found["data"]} == {(x, "model") for x in ("m", "plain", "talk")}
    assert asked(port, "/v1/models/plain")[1] in found["data"]


def test_openais_own_client_reads_answers_streams_and_errors(port) -> None:
    openai = pytest.importorskip("openai", reason="the package openai is not installed")
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0)
    assert {one.id for one in client.models.list()} == {"m", "plain", "talk"}
    whole = client.chat.completions.create(model="m", messages=TALK, temperature=0.8, seed=9)
    parts = client.chat.completions.create(model="m", messages=TALK, temperature=0.8, seed=9, stream=True)
    assert "".join(one.choices[0].delta.content or "" for one in parts) == whole.choices[0].message.content
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model="m", prompt="the cat", n=17)
    assert caught.value.param == "n"
    with pytest.raises(openai.NotFoundError):
        client.completions.create(model="other", prompt="the cat")


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(("path", "change", "param"), [
    (COMPLETIONS, {"model": None}, "model"), (COMPLETIONS, {"prompt": None}, "prompt"),
    (COMPLETIONS, {"prompt": ["a", "b"]}, "prompt"), (COMPLETIONS, {"prompt": [1, 2]}, "prompt"),
    (COMPLETIONS, {"temperature": 101}, "temperature"), (COMPLETIONS, {"max_tokens": 13}, "max_tokens"),
    (COMPLETIONS, {"stop": [1]}, "stop"), (COMPLETIONS, {"n": 0}, "n"), (COMPLETIONS, {"n": 17}, "n"),
    (COMPLETIONS, {"n": "2"}, "n"), (COMPLETIONS, {"best_of": 2}, "best_of"), (COMPLETIONS, {"suffix": "x"}, "suffix"),
    (COMPLETIONS, {"logprobs": 1}, "logprobs"), (COMPLETIONS, {"logprobs": True, "model": "plain"}, "logprobs"),
    (COMPLETIONS, {"logprobs": 4, "model": "plain"}, "logprobs"), (COMPLETIONS, {"top_logprobs": 1}, "top_logprobs"),
    (CHAT, {"logprobs": 1, "model": "talk"}, "logprobs"), (CHAT, {"top_logprobs": 1, "model": "talk"}, "top_logprobs"),
    (CHAT, {"logprobs": True, "top_logprobs": 4, "model": "talk"}, "top_logprobs"),
    (COMPLETIONS, {"stream_options": {"x": 1}}, "stream_options"),
    (COMPLETIONS, {"model": "plain", "top_p": 0.5}, "top_p"), (COMPLETIONS, {"max_completion_tokens": 2},
     "max_completion_tokens"),
    (CHAT, {"messages": None}, "messages"), (CHAT, {"messages": ["a"]}, "messages[0]"),
    (CHAT, {"messages": [{"role": "user"}]}, "messages[0].content"), (CHAT, {"tools": []}, "tools"),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content"),
    (CHAT, {"messages": [{"role": "user", "content": "a", "tool_calls": []}]}, "messages[0].tool_calls"),
    (CHAT, {"max_tokens": 1, "max_completion_tokens": 1}, "max_completion_tokens"),
])  # fmt: skip
def test_what_is_not_done_is_refused_by_the_name_of_its_field(path, change, param, is_stream, port) -> None:
    status, answer = asked(port, path, ASKED[path] | {"stream": is_stream} | change)
    error = answer["error"]
    assert (status, error["type"], error["param"]) == (400, "invalid_request_error", param)
    assert list(error) == ["message", "type", "param", "code"]


@pytest.mark.parametrize(("path", "body", "status"), [
    (CHAT, ASKED[CHAT] | {"model": "plain"}, 400), (CHAT, ASKED[CHAT] | {"messages": []}, 400),
    (COMPLETIONS, ASKED[COMPLETIONS] | {"prompt": "a cat " * 40}, 400), (COMPLETIONS, b"{", 400),
    (COMPLETIONS, ASKED[COMPLETIONS] | {"model": "other"}, 404), (COMPLETIONS, b"x" * 20_000, 413),
    ("/v1/embeddings", {}, 404), ("/v1/models/other", None, 404), (COMPLETIONS, None, 405),
])  # fmt: skip
def test_every_error_has_the_form_of_the_api(path, body, status, port) -> None:
    found, answer = asked(port, path, body)
    assert (found, list(answer), list(answer["error"])) == (status, ["error"], ["message", "type", "param", "code"])
