# SPDX-License-Identifier: Apache-2.0
"""Small tokenizers, trained where they are needed: BPE of bytes, as of language models, and whole words, as of BERT."""

from collections.abc import Sequence

import pytest

tokenizers = pytest.importorskip("tokenizers", reason="the extra text is not installed")

SENTENCES = (
    "the cat sat on the mat and the dog sat on the cat",
    "a quick brown fox jumps over the lazy dog",
    "grüße aus köln, über die brücke",
)
SPECIAL = ("<|end|>", "<|im_start|>", "<|im_end|>")


def bytes_bpe(sentences: Sequence[str] = SENTENCES, size: int = 400) -> bytes:
    """Returns a tokenizer.json of bytes, as GPT-2 and Qwen have; tokens 0 to 2 are special."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(sentences, trainer)
    return tokenizer.to_str().encode()


def bert_words(words: Sequence[str]) -> bytes:
    """Returns a tokenizer.json of whole words that puts [CLS] and [SEP] around texts, as BERT's does."""
    vocabulary = {text: number for number, text in enumerate(("[PAD]", "[UNK]", "[CLS]", "[SEP]", *words))}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106 - no password
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer.to_str().encode()
