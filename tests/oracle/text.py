# SPDX-License-Identifier: Apache-2.0
"""Operators on text, and n-grams."""

import re
from typing import Any

import numpy as np

from oracle.elementwise import broadcasts
from oracle.registry import Call, InvalidError, UnspecifiedError, operator


def _objects(values: list[Any], shape: Any) -> Any:
    found = np.empty(len(values), object)
    found[:] = values
    return found.reshape(shape)


@operator("StringConcat")
def _concat(_: Call, x: Any, y: Any) -> Any:
    shape = broadcasts(x.shape, y.shape)
    pairs = zip(np.broadcast_to(x, shape).ravel(), np.broadcast_to(y, shape).ravel(), strict=True)
    return _objects([a + b for a, b in pairs], shape)


@operator("StringNormalizer")
def _normalise(call: Call, x: Any) -> Any:
    if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
        raise InvalidError(f"shape {x.shape}")
    fold = (lambda s: s) if call.is_case_sensitive else str.lower
    stop = {fold(word) for word in call.stopwords or []}
    kept = [word for word in x.ravel().tolist() if fold(word) not in stop] or [""]
    change = {"LOWER": str.lower, "UPPER": str.upper, "NONE": lambda s: s}[call.case_change_action]
    return _objects([change(word) for word in kept], (-1,) if x.ndim == 1 else (1, -1))


@operator("StringSplit")
def _split(call: Call, x: Any) -> Any:
    most = -1 if call.maxsplit is None else call.maxsplit
    if call.delimiter and "" in x.ravel().tolist():
        raise UnspecifiedError("how many parts an empty text has")
    texts = x.ravel().tolist() if call.delimiter else [text.strip() for text in x.ravel().tolist()]
    rows = [text.split(call.delimiter or None, most) for text in texts]
    width = max(map(len, rows), default=0)
    flat = [part for row in rows for part in row + [""] * (width - len(row))]
    return _objects(flat, (*x.shape, width)), np.array([len(row) for row in rows], np.int64).reshape(x.shape)


@operator("RegexFullMatch")
def _match(call: Call, x: Any) -> Any:
    pattern = re.compile(call.pattern)  # the cases keep to what RE2 and Python have in common
    return np.array([pattern.fullmatch(text) is not None for text in x.ravel()], bool).reshape(x.shape)


@operator("TfIdfVectorizer")
def _tf_idf(call: Call, x: Any) -> Any:
    pool = list(call.pool_strings or call.pool_int64s)
    starts = [*call.ngram_counts, len(pool)]
    grams = []
    for n in range(1, len(starts)):
        part = pool[starts[n - 1] : starts[n]]
        grams += [tuple(part[i : i + n]) for i in range(0, len(part), n)]
    rows = [_counted(call, row, grams) for row in (x.reshape(1, -1) if x.ndim == 1 else x).tolist()]
    found = np.array(rows, np.float64).reshape(len(rows), max(call.ngram_indexes) + 1)
    return found[0] if x.ndim == 1 else found


def _counted(call: Call, row: list[Any], grams: list[Any]) -> list[float]:
    counts = [0.0] * (max(call.ngram_indexes) + 1)
    weights = call.weights or [1.0] * len(grams)
    for gram, index, weight in zip(grams, call.ngram_indexes, weights, strict=True):
        if not call.min_gram_length <= len(gram) <= call.max_gram_length:
            continue
        skips = range(call.max_skip_count + 1) if len(gram) > 1 else range(1)
        times = sum(
            tuple(row[i + k * (skip + 1)] for k in range(len(gram))) == gram
            for skip in skips
            for i in range(len(row) - (len(gram) - 1) * (skip + 1))
        )
        counts[index] += {"TF": times, "IDF": min(times, 1) * weight, "TFIDF": times * weight}[call.mode]
    return counts
