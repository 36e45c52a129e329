# SPDX-License-Identifier: Apache-2.0
"""A text that grows token by token is that of all tokens decoded at once, and each token costs the same."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trained_tokenizers import bert_words, bytes_bpe

from nndeploy.processors.text_so_far import TAIL, TextsSoFar

tokenizers = pytest.importorskip("tokenizers", reason="the extra text is not installed")


def bytes_among_words():
    """Returns a tokenizer as Llama's: words that begin with a mark, and bytes that are tokens where no word fits."""
    words = ["<unk>", "<s>", "▁a", "▁", "b", "▁the", "é", "�", "▁▁", "c▁", *(f"<0x{i:02X}>" for i in range(256))]
    fallback = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
                {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]  # fmt: skip
    special = {"id": 1, "content": "<s>", "single_word": False, "lstrip": False, "rstrip": False,
               "normalized": False, "special": True}  # fmt: skip
    return json.dumps({
        "version": "1.0", "added_tokens": [special], "decoder": {"type": "Sequence", "decoders": fallback},
        "model": {"type": "BPE", "vocab": {word: i for i, word in enumerate(words)}, "merges": [], "unk_token": "<unk>",
                  "byte_fallback": True},
    }).encode()  # fmt: skip


FILES = {
    "bytes": bytes_bpe(),
    "pieces of words": bert_words(["a", "##b", "cat", ".", "n", "'", "##t", "don"]),
    "bytes among words": bytes_among_words(),
}


def likely(size):
    """Tokens of which some come often: special ones, and the bytes of characters of three."""
    return st.lists(st.one_of(st.integers(0, min(size, 12) - 1), st.integers(0, size - 1)), max_size=60)


def check(tokenizer, prompt, tokens) -> None:
    texts = TextsSoFar(tokenizer)
    for count in range(1, len(tokens) + 1):
        is_whole = count == len(tokens)
        wanted = TextsSoFar(tokenizer).text(prompt, tokens[:count], is_whole=is_whole)
        assert texts.text(prompt, tokens[:count], is_whole=is_whole) == wanted


@pytest.mark.parametrize("kind", FILES)
@given(data=st.data())
def test_the_text_is_that_of_all_tokens_at_once(kind, data) -> None:
    tokenizer = tokenizers.Tokenizer.from_buffer(FILES[kind])
    check(tokenizer, *(np.array(data.draw(likely(tokenizer.get_vocab_size())), np.int64) for _ in range(2)))


@pytest.mark.parametrize("words", [
    ["▁a", *["<0x41>"] * 20, "<0xE2>", "b"], ["▁a", *["<s>"] * 20, "▁a"], ["▁a", "�", "▁the", *["<0xE2>"] * 20, "b"],
])  # fmt: skip
def test_long_runs_that_later_tokens_change(words) -> None:
    tokenizer = tokenizers.Tokenizer.from_buffer(bytes_among_words())
    check(tokenizer, np.zeros(0, np.int64), np.array([tokenizer.token_to_id(word) for word in words]))


class Counting:
    """A tokenizer that counts the tokens that it decodes."""

    def __init__(self, tokenizer) -> None:
        self.tokenizer, self.most = tokenizer, 0

    def decode(self, tokens, **how):
        self.most = max(self.most, len(tokens))
        return self.tokenizer.decode(tokens, **how)


def test_a_token_costs_the_same_however_long_the_text_is() -> None:
    tokenizer = Counting(tokenizers.Tokenizer.from_buffer(bytes_bpe()))
    fox = tokenizer.tokenizer.encode(" a cat, 🦊").ids
    texts, tokens = TextsSoFar(tokenizer), np.array(fox * 50)
    for count in range(1, len(tokens)):
        texts.text(np.array([5]), tokens[:count], is_whole=False)
    assert tokenizer.most <= 2 * TAIL + len(fox)
    assert texts.text(np.array([5]), tokens, is_whole=True) == " a cat, 🦊" * 50
