# SPDX-License-Identifier: Apache-2.0
"""The next token: with which probability each comes, the same one for a seed, and what ends a text."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trained_tokenizers import bytes_bpe

from nndeploy.errors import DataError, InputError
from nndeploy.processors.next_token import Choice
from nndeploy.processors.registry import processor_from_table

TOKENIZER = bytes_bpe()
SCORES = st.lists(st.integers(-40, 40).map(lambda n: n / 8), min_size=2, max_size=12, unique=True)


def expected(scores, seen, temperature, top_k, top_p, penalty):
    """Returns probabilities token by token, as transformers' processors of scores are described."""
    changed = {}
    for token, score in enumerate(scores):
        if token in seen:
            score = score * penalty if score < 0 else score / penalty
        changed[token] = score / temperature
    best = sorted(changed, key=lambda token: -changed[token])
    kept = best[:top_k] if top_k else best
    weights = {token: math.exp(changed[token] - changed[best[0]]) for token in kept}
    total, before, left = sum(weights.values()), 0.0, {}
    for token in kept:
        if before / total < top_p or token == best[0]:
            left[token] = weights[token]
        before += weights[token]
    return [left.get(token, 0) / sum(left.values()) for token in range(len(scores))]


def probabilities(choice, scores):
    """Returns the probability of each token, 0 where it is no candidate."""
    found = np.zeros(len(scores))
    tokens, shares = choice.candidates(scores)
    found[tokens] = shares
    assert abs(shares.sum() - 1) < 1e-9
    return found


@given(SCORES, st.sets(st.integers(0, 1)), st.sampled_from([0.3, 1, 2.5]), st.integers(0, 13),
       st.sampled_from([0, 0.11, 0.5, 0.93, 1]), st.sampled_from([0.7, 1, 1.3]))  # fmt: skip
def test_probabilities_are_those_that_the_settings_mean(scores, seen, temperature, top_k, top_p, penalty) -> None:
    choice = Choice(temperature, top_k, top_p, penalty)
    found = probabilities(choice, choice.penalised(np.array(scores), np.array(sorted(seen), np.int64)))
    np.testing.assert_allclose(found, expected(scores, seen, temperature, top_k, top_p, penalty), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("spread", "top_p"), [(8, 0.9), (0.01, 0.9)])  # few tokens reach it, and most of them
def test_a_large_vocabulary_is_no_other_case(spread, top_p) -> None:
    scores = np.random.default_rng(0).standard_normal(3000) * spread
    found = probabilities(Choice(1.0, top_p=top_p), scores)
    np.testing.assert_allclose(found, expected(scores.tolist(), (), 1, 0, top_p, 1), rtol=1e-9, atol=1e-12)


def test_tokens_are_drawn_as_often_as_their_probabilities_say() -> None:
    scores, none = np.log([0.5, 0.3, 0.15, 0.05]), np.zeros(0, np.int64)
    choice = Choice(temperature=1.0, top_k=3, seed=5)
    drawn = np.bincount([choice.token(scores, none, place) for place in range(20_000)], minlength=4)
    want = np.array([0.5, 0.3, 0.15, 0]) / 0.95
    assert abs(drawn / 20_000 - want).max() < 0.015  # four standard deviations
    assert drawn[3] == 0


def test_the_same_seed_gives_the_same_token_and_another_one_others() -> None:
    scores, none = np.zeros(1000), np.zeros(0, np.int64)
    tokens = [[Choice(1.0, seed=seed).token(scores, none, place) for place in range(8)] for seed in (1, 1, 2)]
    assert tokens[0] == tokens[1] != tokens[2]
    assert len(set(tokens[0])) > 1


def test_without_temperature_the_best_after_the_penalty_is_taken() -> None:
    scores, seen = np.array([1.0, 2.0, 1.9]), np.array([1])
    assert Choice().token(scores, seen, 0) == 1
    assert Choice(repetition_penalty=1.2).token(scores, seen, 0) == 2
    for wrong in (np.array([np.nan, 1]), np.array([-np.inf, -np.inf])):
        with pytest.raises(InputError):
            Choice().token(wrong, seen, 0)


def sample(**parameters):
    table = {"use": "sample", "tokenizer": "t.json", **{key.replace("_", "-"): one for key, one in parameters.items()}}
    return processor_from_table(table, "p.toml", lambda name: TOKENIZER)


def tokens_of(text):
    step = processor_from_table({"use": "tokenize", "tokenizer": "t.json"}, "p.toml", lambda name: TOKENIZER)
    return step({"text": text})["input_ids"][0].tolist()


def written(step, tokens, prompt=(10,), **wishes):
    """Returns what a model writes that gives these tokens one after the other: texts, and what ended it."""
    fields, texts = {"prompt": np.array(prompt), "tokens": np.zeros(0, np.int64), **wishes}, []
    for token in tokens:
        logits = np.zeros((1, 2, 400), np.float32)
        logits[0, -1, token] = 5
        fields |= step(fields | {"logits": logits})
        texts.append(fields["text"])
        if fields["end"]:
            break
    return texts, fields["end"], fields["tokens"].tolist()


def test_a_text_grows_by_whole_characters_until_a_stop_token() -> None:
    tokens = tokens_of("the 🦊")
    texts, end, found = written(sample(stop_tokens=["<|im_end|>"]), [*tokens, 2, 7])
    assert (texts[-1], end, found) == ("the 🦊", "stop-token", tokens)
    assert all("the 🦊".startswith(text) for text in texts)
    assert written(sample(stop_tokens=[2]), [*tokens, 2])[1] == "stop-token"
    assert written(sample(), [*tokens, 2, *tokens])[1] == ""


def test_a_stop_text_ends_a_text_before_it() -> None:
    texts, end, _ = written(sample(stop_texts=["zz", "\n\n"]), tokens_of("a cat\n\nb"))
    assert (texts[-1], end) == ("a cat", "stop-text")


def test_what_may_begin_a_stop_text_is_kept_back_until_it_does_not() -> None:
    tokens = [*tokens_of("a c"), *tokens_of("a"), *tokens_of("b")]
    texts, *_ = written(sample(stop_texts=["cat", "catch"]), tokens)
    assert (texts[-2:], written(sample(), tokens)[0][-2:]) == (["a ", "a cab"], ["a ca", "a cab"])
    texts, end, _ = written(sample(stop_texts=["cat"], max_tokens=len(tokens) - 1), tokens)
    assert (texts[-1], end) == ("a ca", "max-tokens")


def test_suppressed_tokens_are_not_taken_and_some_not_first() -> None:
    def chosen(parameters, *written):
        logits = np.linspace(0, 1, 260, dtype=np.float32)[None, None]
        fields = {"logits": logits, "prompt": np.array([5]), "tokens": np.array(written, np.int64)}
        return sample(**parameters)(fields)["tokens"].tolist()[-1]

    parameters = {"suppress_tokens": [259], "begin_suppress_tokens": ["<|end|>", 258]}
    assert (chosen(parameters), chosen(parameters, 9), chosen({})) == (257, 258, 259)
    assert {chosen(parameters | {"temperature": 50.0, "seed": seed}, 9) for seed in range(99)} <= {*range(259)}


def test_a_prompt_may_be_chosen_token_by_token() -> None:
    """The third token of it is the better one of two; what an earlier window chose is taken as it is."""
    step = sample(begin=[[7], ["<|im_end|>", 5]], max_tokens=2)
    scores = np.zeros((1, 1, 400), np.float32)
    scores[0, 0, [2, 5, 9]] = 1, 2, 3
    fields = {"prompt": np.array([4], np.int32), "tokens": np.zeros(0, np.int32), "logits": scores}
    seen = []
    for known in ({}, {"begun": np.array([4, 7, 2])}):
        record = fields | known
        while not record.get("end"):
            record |= step(record)
            seen.append((record["prompt"].tolist(), record["tokens"].tolist(), record["end"]))
    first, again = seen[:4], seen[4:]
    assert first == [([4, 7], [], ""), ([4, 7, 5], [], ""), ([4, 7, 5], [9], ""), ([4, 7, 5], [9, 9], "max-tokens")]
    assert [prompt for prompt, *_ in again] == [[4, 7], [4, 7, 2], [4, 7, 2], [4, 7, 2]]
    for wrong in (7, [7], [[]], [["no such token"]]):
        with pytest.raises(DataError):
            sample(begin=wrong)


@pytest.mark.parametrize(("written", "best", "second", "want"), [
    ([], 9, 302, 302), ([], 305, 303, 303), ([], 299, 301, 301),  # begins with a time, at most 3 late
    ([301], 304, 9, 9), ([301, 9], 299, 8, 8), ([301, 9], 301, 303, 303),  # a time comes alone, never back
    ([301, 9, 303], 9, 303, 303), ([301, 9, 303], 302, 304, 304), ([301, 9, 303], 9, 298, 298),  # a pair, or the end
])  # fmt: skip
def test_times_stand_before_and_behind_segments(written, best, second, want) -> None:
    step = sample(timestamps=300, max_initial_timestamp=3, stop_tokens=[298])
    scores = np.full((1, 1, 310), -20, np.float32)
    scores[0, 0, [best, second]] = 9, 8
    fields = {"prompt": np.array([4]), "tokens": np.array(written, np.int64), "logits": scores}
    found = step(fields)
    assert [*found["tokens"]] == [*written, *([] if want == 298 else [want])]


def test_times_together_may_be_likelier_than_a_word() -> None:
    scores = np.full((1, 1, 310), -20, np.float32)
    scores[0, 0, 9], scores[0, 0, 301:310] = 2, 0
    fields = {"prompt": np.array([4]), "tokens": np.array([300, 8]), "logits": scores}
    assert sample(timestamps=300)(fields)["tokens"].tolist() == [300, 8, 301]  # 9 of 1 are more than e^2
    scores[0, 0, 303:] = -20
    found = sample(timestamps=300)(fields)
    assert found["tokens"].tolist() == [300, 8, 9]
    assert found["text"] == sample()({**fields, "tokens": np.array([8])})["text"]


def test_limits_end_a_text_and_say_which() -> None:
    assert written(sample(max_tokens=3), [20] * 9)[1:] == ("max-tokens", [20] * 3)
    assert written(sample(context=5), [20] * 9, prompt=(10, 11, 12))[1:] == ("context", [20] * 2)
    assert written(sample(max_tokens=2, context=5), [20] * 9, prompt=(10, 11, 12))[1] == "max-tokens"


def test_how_likely_tokens_were_is_told_by_the_scores_as_they_are() -> None:
    scores = np.random.default_rng(1).standard_normal(400).astype(np.float32)
    step, fields = sample(logprobs=2, temperature=3.0, top_k=5, seed=4), {"prompt": np.array([10])}
    fields["tokens"] = np.zeros(0, np.int64)
    for _ in range(3):
        fields |= step(fields | {"logits": scores[None]})
    shares = [math.exp(one) / sum(math.exp(score) for score in scores.tolist()) for one in scores.tolist()]
    best = sorted(range(400), key=lambda token: -shares[token])[:2]
    assert [one["token"] for one in fields["logprobs"]] == fields["tokens"].tolist()
    for one in fields["logprobs"]:
        assert [top["token"] for top in one["top"]] == best
        for told in (one, *one["top"]):
            assert math.isclose(told["logprob"], math.log(shares[told["token"]]), abs_tol=1e-5)
    assert step(fields | {"logits": scores[None], "sampling": {"logprobs": -1}})["logprobs"] == fields["logprobs"]
    with pytest.raises(InputError, match="logprobs"):
        step(fields | {"logits": scores[None], "sampling": {"logprobs": 3}})
    assert "logprobs" not in sample()(fields | {"logits": scores[None]})


def test_bytes_of_tokens_are_those_of_the_text_also_of_half_a_character() -> None:
    step, fields = sample(logprobs=0), {"prompt": np.array([10]), "tokens": np.zeros(0, np.int64)}
    for token in tokens_of("the 🦊ü"):
        logits = np.zeros((1, 400), np.float32)
        logits[0, token] = 5
        fields |= step(fields | {"logits": logits})
    assert b"".join(bytes(one["bytes"]) for one in fields["logprobs"]).decode() == "the 🦊ü"


@pytest.mark.parametrize("parameters", [
    {"stop_tokens": ["none of it"]}, {"stop_tokens": [400]}, {"stop_tokens": "a"}, {"stop_texts": [""]},
    {"suppress_tokens": [400]}, {"begin_suppress_tokens": ["none of it"]}, {"fixed": ["tokenizer"]},
    {"temperature": -1}, {"top_p": 2}, {"seed": -1}, {"max_tokens": 0}, {"stop_texts": ["a"] * 65},
    {"stop_texts": ["a" * 1001]},
])  # fmt: skip
def test_settings_without_a_meaning_are_refused(parameters) -> None:
    with pytest.raises(DataError, match=r"p\.toml: sample"):
        sample(**parameters)


WISHES = {
    "temperature": 1.5, "top-k": 7, "top-p": 0.5, "repetition-penalty": 1.2, "seed": 3, "stop-texts": ["b"],
    "max-tokens": 4,
}  # fmt: skip


def test_what_a_record_wishes_is_what_the_step_would_do_with_these_parameters() -> None:
    scores = np.random.default_rng(1).standard_normal((8, 1, 1, 400)).astype(np.float32)
    begun = {"prompt": np.array([10]), "tokens": np.array([20, 21])}
    for name, value in WISHES.items():
        plain, other = sample(temperature=1.0), sample(**{"temperature": 1.0, name.replace("-", "_"): value})
        for logits in scores:
            want = other(begun | {"logits": logits})
            found = plain(begun | {"logits": logits, "sampling": {name: value}})
            assert (found["tokens"].tolist(), found["text"], found["end"]) == (
                want["tokens"].tolist(), want["text"], want["end"],
            )  # fmt: skip


def test_wishes_go_for_their_record_alone() -> None:
    step = sample(stop_texts=["b"])
    tokens = tokens_of("a cat b")
    assert written(step, tokens, sampling={"max-tokens": 2, "stop-texts": []})[1:] == ("max-tokens", tokens[:2])
    assert written(step, tokens)[1] == "stop-text"


@pytest.mark.parametrize(("parameters", "wishes", "place"), [
    ({}, {"temperature": 200}, "temperature"), ({}, {"temperature": "1"}, "temperature"), ({}, {"top_k": 1}, "top_k"),
    ({}, {"tokenizer": "t.json"}, "tokenizer"), ({}, {"stop-texts": "a"}, "stop-texts"), ({}, [], "table"),
    ({}, {"stop-texts": [""]}, "stop-texts"), ({"max_tokens": 5}, {"max-tokens": 6}, "max-tokens"),
    ({"fixed": ["seed"]}, {"seed": 1}, "seed"), ({}, {"seed": True}, "seed"),
])  # fmt: skip
def test_a_wish_that_cannot_be_granted_fails_its_record(parameters, wishes, place) -> None:
    with pytest.raises(InputError, match=rf"sample.*sampling: .*{place}"):
        written(sample(**parameters), [20], sampling=wishes)


def test_a_decoder_gets_the_whole_prompt_and_then_token_by_token(step) -> None:
    first = step("prompt")({"input_ids": np.array([[5, 6, 7]], np.int32)})
    assert first["prompt"].tolist() == [5, 6, 7]
    assert first["tokens"].tolist() == []
    inputs = ("input_ids", "attention_mask", "position_ids")
    assert [first[name].tolist() for name in inputs] == [[[5, 6, 7]], [[1, 1, 1]], [[0, 1, 2]]]
    then = step("next-inputs")({"prompt": first["prompt"], "tokens": np.array([8, 9])})
    assert [then[name].tolist() for name in inputs] == [[[9]], [[1] * 5], [[4]]]
    assert {then[name].dtype for name in inputs} == {np.dtype("int32")}
    again = step("next-inputs", cache=False)({"prompt": first["prompt"], "tokens": np.array([8])})
    assert again["input_ids"].tolist() == [[5, 6, 7, 8]]
    with pytest.raises(InputError, match=r"3 tokens.*context of 3"):
        step("prompt", context=3)({"input_ids": [5, 6, 7]})
