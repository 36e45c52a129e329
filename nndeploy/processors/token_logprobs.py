# SPDX-License-Identifier: Apache-2.0
"""How likely a model found a token, and which others: natural logarithms of softmax over its scores as they are.

    {"token": 17, "text": " cat", "bytes": [32, 99, 97, 116], "logprob": -0.2, "end": 9, "top": [the likeliest ones]}

`text` is what a token adds behind those before it: of half a character U+FFFD, whose `bytes` are the token's own.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypedDict

import numpy as np

from nndeploy.processors.arrays import Array
from nndeploy.processors.text_so_far import HALF, TAIL, text_behind
from nndeploy.processors.tokenizer_file import decoded


class Likelihood(TypedDict):
    """A token, and the natural logarithm of its probability."""

    token: int
    text: str
    bytes: list[int]
    logprob: float


class TokenLikelihood(Likelihood):
    """The same of a token that was chosen, with the likeliest ones, the best first.

    `end` is how many characters the text has with it.
    """

    end: int
    top: list[Likelihood]


class TokenTexts(NamedTuple):
    """What tokens of a tokenizer are, one by one."""

    tokenizer: Any

    def likelihood(self, scores: Array, token: int, count: int, before: Array, end: int) -> TokenLikelihood:
        """Returns that of a token behind others, by the scores of all tokens, with the `count` likeliest."""
        few = before[-TAIL:].tolist()
        most = scores.max()
        total = most + np.log(np.exp(scores - most).sum(dtype=np.float64))
        best = np.argpartition(-scores, min(count, len(scores) - 1))[:count]
        best = best[np.argsort(-scores[best], kind="stable")]
        of_all = (self._one(int(one), float(scores[one] - total), few) for one in (token, *best))
        chosen, *top = of_all
        return {**chosen, "end": end, "top": top}

    def _one(self, token: int, logprob: float, before: Sequence[int]) -> Likelihood:
        alone = decoded(self.tokenizer, [token], special_tokens=False)
        text, word = text_behind(self.tokenizer, before, [token]), str(self.tokenizer.id_to_token(token) or "")
        if not alone:  # a special token
            text, data = word, word.encode()
        elif not text or HALF in text:
            text, data = alone, _bytes_of(word)
        else:
            data = text.encode()
        return {"token": token, "text": text, "bytes": list(data), "logprob": logprob}


def _bytes_of(word: str) -> bytes:
    """Returns the bytes of a token that is no whole character: `<0xE2>`, or GPT-2's letter for each byte."""
    if len(word) == 6 and word.startswith("<0x"):
        return bytes.fromhex(word[3:5])
    return bytes(_BYTES[letter] for letter in word) if all(letter in _BYTES for letter in word) else word.encode()


def _letters() -> dict[str, int]:
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + i): byte for i, byte in enumerate(others)}


_BYTES = _letters()
