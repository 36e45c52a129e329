# SPDX-License-Identifier: Apache-2.0
"""Rules for TfIdfVectorizer, of whole numbers and of tokens of texts. Source: ONNX TfIdfVectorizer."""

import re
from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import int_attribute, ints_attribute, operand, text_attribute
from nndeploy_native.lowering.classes import floats_attribute
from nndeploy_native.lowering.context import Context
from nndeploy_native.steps.grams import Grams, GramTables, TextGrams, Tokens
from nndeploy_native.tensors import Array, Layout, Tensor
from nndeploy_native.transforms.text_grams import CHARACTERS

_Gram = tuple[int, ...]


def tf_idf_vectorizer(node: ir.Node, context: Context) -> None:
    """Lowers TfIdfVectorizer of whole numbers."""
    x, output = context.whole_numbers(operand(node, 0)), context.output(node.outputs[0], Layout.PLAIN)
    context.emit(Grams(output, x, _counted(node, output, ints_attribute(node, "pool_int64s") or ())))


def text_grams(node: ir.Node, context: Context) -> None:
    """Lowers a TfIdfVectorizer of tokens of texts, of which it has the bytes and the ends."""
    x, ends = (context.plain(operand(node, number)) for number in (0, 1))
    output = context.output(node.outputs[0], Layout.PLAIN)
    pool = node.attributes["pool_strings"].as_strings()
    words = {word: number for number, word in enumerate(dict.fromkeys(pool))}
    encoded = [word.encode() for word in words]
    tokens = Tokens(
        np.frombuffer(b"".join(encoded), np.uint8),
        np.cumsum([len(word) for word in encoded], dtype=np.int32),
        _set_of(text_attribute(node, "expression", CHARACTERS)),
        text_attribute(node, "case", "NONE"),
        text_attribute(node, "expression", CHARACTERS) != CHARACTERS,
        int_attribute(node, "least", 1),
    )
    grams = _counted(node, output, tuple(words[word] for word in pool))
    context.emit(TextGrams(output, x, ends, tokens, grams))


def _set_of(expression: str) -> Array:
    """Returns which bytes stand in what an expression of one character matches: beyond ASCII all or none."""
    matches = re.compile(expression, re.ASCII | re.DOTALL).fullmatch
    of_ascii = [matches(chr(code)) is not None for code in range(128)]
    return np.array([*of_ascii, *[matches("é") is not None] * 128], np.uint8)


def _counted(node: ir.Node, output: Tensor, pool: _Gram) -> GramTables:
    columns, mode = ints_attribute(node, "ngram_indexes") or (), text_attribute(node, "mode", "")
    if mode not in ("TF", "IDF", "TFIDF") or min(columns, default=-1) < 0 or output.shape[-1] != max(columns) + 1:
        raise BuildRefusedError(f"n-grams counted as {mode!r:.20}, in {len(columns)} columns")
    weights = floats_attribute(node, "weights") if mode != "TF" else np.array((), np.float32)
    if len(weights) not in (0, len(columns)) or (mode == "IDF" and len(set(columns)) < len(columns)):
        raise BuildRefusedError(f"{len(weights)} weights for n-grams of {len(columns)} columns")
    grams = list(_grams(node, pool))
    if len(grams) != len(columns) or len(set(grams)) < len(grams):
        raise BuildRefusedError(f"{len(grams)} n-grams, one of them twice, or other than {len(columns)} columns")
    least, most = int_attribute(node, "min_gram_length", 1), int_attribute(node, "max_gram_length", 1)
    number_of = {gram: number for number, gram in enumerate(grams) if least <= len(gram) <= most}
    prefixes = (gram[:end] for gram in sorted(number_of, key=len) for end in range(1, len(gram) + 1))
    place = {prefix: i for i, prefix in enumerate(dict.fromkeys(prefixes))}
    counted = [number_of.get(prefix) for prefix in place]
    return GramTables(
        np.array([prefix[-1] for prefix in place], np.int64),
        np.array([place.get(prefix[:-1], -1) for prefix in place], np.int32),
        np.array([-1 if gram is None else columns[gram] for gram in counted], np.int32),
        np.array([1 if gram is None else weights[gram] for gram in counted], np.float32) if len(weights) else None,
        is_once=mode == "IDF",
        skips=max(0, int_attribute(node, "max_skip_count", 0)),
        width=max(columns) + 1,
    )


def _grams(node: ir.Node, pool: _Gram) -> Iterator[_Gram]:
    """Passes the n-grams of the pool, in which those of one number stand first, then those of two."""
    starts = ints_attribute(node, "ngram_counts") or ()
    for length, (first, end) in enumerate(zip(starts, (*starts[1:], len(pool)), strict=True), 1):
        if not 0 <= first <= end <= len(pool) or (end - first) % length:
            raise BuildRefusedError(f"n-grams of {length} from {first} to {end} of {len(pool)}")
        for begin in range(first, end, length):
            yield pool[begin : begin + length]
