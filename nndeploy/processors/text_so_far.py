# SPDX-License-Identifier: Apache-2.0
"""The text of tokens that come one by one: of each new one only the last few are decoded, not all.

    t0 t1 ... t40 are decoded; then t41 comes:     text + what t41 adds behind t33 ... t40

Law: the text is that of all tokens decoded at once. So a text is kept only where it ends with a whole character, and
all is decoded where the last tokens before give another text with a new one behind them: some decoders judge a run of
bytes that are tokens of their own (`<0xE2>`) as a whole.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from nndeploy.processors.arrays import Array
from nndeploy.processors.tokenizer_file import decoded

TAIL = 8
"""So many tokens of the prompt, or of the text, are decoded with what follows: some decoders drop the space where a
text begins."""
MOST_TEXTS = 256
"""Texts that are remembered: more than are written at once."""
HALF = "\ufffd"
"""What a decoder writes for half a character."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The text of the first `count` tokens, which stays, whatever follows."""

    text: str
    count: int


@dataclass(frozen=True, slots=True)
class TextsSoFar:
    """What was decoded of some texts, each found by its tokens; of any other all is decoded. For many threads."""

    tokenizer: Any
    _known: OrderedDict[bytes, _Known] = field(default_factory=OrderedDict)

    def text(self, prompt: Array, tokens: Array, *, is_whole: bool) -> str:
        """Returns the text of tokens as it follows that of a prompt, both (length,).

        Where more may follow (not `is_whole`), without half a character at its end.

        Raises:
            InputError: the tokenizer cannot decode them.
        """
        before = prompt[-TAIL:]
        known = self._known.pop(_key(before, tokens[:-1]), None)
        text = None if known is None else self._longer(known, tokens)
        if text is None:
            text = text_behind(self.tokenizer, before.tolist(), tokens.tolist())
        if is_whole:
            return text
        if not text.endswith(HALF):
            known = _Known(text, len(tokens))
        if known is not None:
            self._known[_key(before, tokens)] = known
        while len(self._known) > MOST_TEXTS:
            self._known.popitem(last=False)
        return text.rstrip(HALF)

    def _longer(self, known: _Known, tokens: Array) -> str | None:
        """Returns what is known with what the tokens behind it add; None where the last ones before do not tell."""
        first = known.count - TAIL
        if first < 0:
            return None
        head, both = self._decoded(tokens[first : known.count].tolist()), self._decoded(tokens[first:].tolist())
        tells = head.strip() and not head.endswith(HALF) and both.startswith(head)
        return known.text + both[len(head) :] if tells else None

    def _decoded(self, tokens: list[int]) -> str:
        return decoded(self.tokenizer, tokens, special_tokens=False)


def text_behind(tokenizer: Any, before: Sequence[int], tokens: Sequence[int]) -> str:
    """Returns the text of tokens as it follows that of others.

    Raises:
        InputError: the tokenizer cannot decode them.
    """
    head, both = (decoded(tokenizer, some, special_tokens=False) for some in ([*before], [*before, *tokens]))
    return both[len(head) :] if both.startswith(head) else decoded(tokenizer, [*tokens], special_tokens=False)


def _key(before: Array, tokens: Array) -> bytes:
    return len(before).to_bytes(1, "little") + before.tobytes() + tokens.tobytes()
