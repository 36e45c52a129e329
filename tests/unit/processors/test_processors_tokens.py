# SPDX-License-Identifier: Apache-2.0
"""Texts and tokens: what a model takes, the text again, and one vector of many."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trained_tokenizers import bert_words, bytes_bpe

from nndeploy.errors import DataError, InputError, UnavailableError
from nndeploy.processors.registry import processor_from_table


@pytest.fixture
def bert(tmp_path, step):
    (tmp_path / "t.json").write_bytes(bert_words(["a", "b", "c", "d"]))
    return lambda use="tokenize", **parameters: step(use, tokenizer="t.json", **parameters)


def rows(fields):
    return [fields[name].tolist() for name in ("input_ids", "attention_mask", "token_type_ids")]


def test_a_text_gets_what_its_tokenizer_puts_around_it(bert) -> None:
    found = bert()({"text": "a b x"})
    assert rows(found) == [[[2, 4, 5, 1, 3]], [[1] * 5], [[0] * 5]]
    assert {value.dtype for value in found.values()} == {np.dtype("int64")}
    assert bert(special_tokens=False, dtype="int32")({"text": "a"})["input_ids"].dtype == np.int32
    assert rows(bert(special_tokens=False)({"text": "a b"}))[0] == [[4, 5]]


def test_long_texts_are_cut_or_refused_and_short_ones_filled_up(bert) -> None:
    assert rows(bert(max_length=4)({"text": "a b c d"}))[0] == [[2, 4, 5, 3]]
    assert rows(bert(max_length=4, cut_side="left")({"text": "a b c d"}))[0] == [[2, 6, 7, 3]]
    padded = bert(max_length=8, pad_to=8)({"text": "a b"})
    assert rows(padded) == [[[2, 4, 5, 3, 0, 0, 0, 0]], [[1, 1, 1, 1, 0, 0, 0, 0]], [[0] * 8]]
    assert rows(bert(pad_to=5, pad_side="left")({"text": "a b"}))[:2] == [[[0, 2, 4, 5, 3]], [[0, 1, 1, 1, 1]]]
    with pytest.raises(InputError, match=r"6 tokens, more than 4"):
        bert(max_length=4, cut="refuse")({"text": "a b c d"})
    with pytest.raises(DataError, match=r"p\.toml: tokenize: max-length"):
        bert(max_length=2)


def test_a_pair_is_one_sequence_of_two_types(bert) -> None:
    found = rows(bert("tokenize-pair")({"text": "a", "pair": "b c"}))
    assert found == [[[2, 4, 3, 5, 6, 3]], [[1] * 6], [[0, 0, 0, 1, 1, 1]]]
    cut = bert("tokenize-pair", max_length=5, cut="only-second")({"text": "a", "pair": "b c d"})
    assert rows(cut)[0] == [[2, 4, 3, 5, 3]]


@pytest.mark.parametrize("text", ["\ud800", 5, None, b"a"])
def test_what_is_no_text_is_refused(bert, text) -> None:
    with pytest.raises(InputError):
        bert()({"text": text})


def test_a_text_without_tokens_is_refused(bert) -> None:
    with pytest.raises(InputError):
        bert(special_tokens=False)({"text": " "})


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b'{"model": 3}', b"[" * 100_000])
def test_a_file_that_is_no_tokenizer_is_one_line(step, tmp_path, data) -> None:
    (tmp_path / "t.json").write_bytes(data)
    with pytest.raises(DataError, match=r"p\.toml: tokenize: tokenizer: t\.json is no tokenizer"):
        step("tokenize", tokenizer="t.json")


BYTES = bytes_bpe()


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_text_comes_back_from_its_tokens(text) -> None:
    step, back = (
        processor_from_table({"use": use, "tokenizer": "t.json"}, "p", lambda name: BYTES)
        for use in ("tokenize", "detokenize")
    )
    assert back({"tokens": step({"text": text})["input_ids"]})["text"] == text


def test_an_unfinished_text_has_whole_characters_alone() -> None:
    def made(use, **more):
        return processor_from_table({"use": use, "tokenizer": "t.json", **more}, "p", lambda name: BYTES)

    text = "a 🦊 中"
    tokens = made("tokenize")({"text": text})["input_ids"][0]
    begun = [made("detokenize", unfinished=True)({"tokens": tokens[:n]})["text"] for n in range(len(tokens) + 1)]
    assert all(text.startswith(one) for one in begun)
    assert (begun[0], begun[-1]) == ("", text)
    assert len(tokens) > len(text)  # so that some of them end within a character


def test_special_tokens_are_written_if_that_is_asked_for(bert) -> None:
    tokens = np.array([[2, 4, 3]])
    assert bert("detokenize")({"tokens": tokens})["text"] == "a"
    assert bert("detokenize", special_tokens=True)({"tokens": tokens})["text"] == "[CLS] a [SEP]"
    with pytest.raises(InputError):
        bert("detokenize")({"tokens": [0.5]})


def test_pooling_counts_the_tokens_that_the_mask_leaves(step) -> None:
    vectors = np.arange(12, dtype=np.float32).reshape(1, 4, 3)
    fields = {"last_hidden_state": vectors, "attention_mask": np.array([[0, 1, 1, 0]])}
    assert step("pool")(fields)["embedding"].tolist() == [4.5, 5.5, 6.5]
    assert step("pool", by="cls")(fields)["embedding"].tolist() == [3, 4, 5]
    assert step("pool", by="last")(fields)["embedding"].tolist() == [6, 7, 8]
    for mask in (np.zeros((1, 4), np.int64), np.ones((1, 3), np.int64), [[0.5]]):
        with pytest.raises(InputError):
            step("pool")(fields | {"attention_mask": mask})


def test_a_normalised_vector_has_length_1(step) -> None:
    found = step("l2-normalise")({"embedding": np.array([3, 4], np.float32)})["embedding"]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [0.6, 0.8])
    assert step("l2-normalise")({"embedding": [0.0, 0.0]})["embedding"].tolist() == [0, 0]


def test_without_the_package_one_line_names_the_extra(step, tmp_path, monkeypatch) -> None:
    (tmp_path / "t.json").write_bytes(BYTES)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UnavailableError, match=r"nndeploy-toolchain\[text\]"):
        step("tokenize", tokenizer="t.json")


def test_a_pipeline_without_texts_imports_no_tokenizers() -> None:
    code = (
        "import sys; from nndeploy.processors.registry import processor_from_table as step;"
        "step({'use': 'pool'}, 'p'); step({'use': 'softmax'}, 'p'); sys.exit('tokenizers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_template_that_names_no_token_is_found_before_anything_runs(step, tmp_path) -> None:
    data = bert_words(["a"]).replace(b'"[SEP]":{"id":"[SEP]"', b'"[SEQ]":{"id":"[SEQ]"')
    assert b"[SEQ]" in data
    (tmp_path / "t.json").write_bytes(data)
    with pytest.raises(DataError, match=r"p\.toml: tokenize: tokenizer: t\.json"):
        step("tokenize", tokenizer="t.json")
