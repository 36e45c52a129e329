# SPDX-License-Identifier: Apache-2.0
"""sample: scores of all tokens -> the next token of a text, the text so far, and whether it ends there."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from nndeploy.errors import DataError, InputError
from nndeploy.processors.arrays import Array, floats_from_value, shape_text, tokens_from_value, without_batch
from nndeploy.processors.next_token import Choice
from nndeploy.processors.parameters import Count, ReadFile
from nndeploy.processors.sampling import FIELD, LOGPROBS, NO_LOGPROBS, Sampling, check_names
from nndeploy.processors.text_so_far import TextsSoFar
from nndeploy.processors.timestamps import Timestamps
from nndeploy.processors.token_logprobs import TokenTexts
from nndeploy.processors.tokenizer_file import TokenizerFile

_PLAIN = Choice()


@dataclass(frozen=True, slots=True)
class TokenList:
    """Tokens by number, or by the text that the tokenizer has for them."""

    written_as: ClassVar[str] = "a list of numbers or texts of tokens"

    tokens: tuple[int | str, ...] = ()

    @classmethod
    def from_parameter(cls, value: object, read_file: ReadFile) -> Self:
        """Returns the tokens of a list.

        Raises:
            DataError: it is none, or holds something else.
        """
        del read_file
        if not isinstance(value, list) or not all(type(one) in (int, str) for one in value):
            raise DataError(f"must be {cls.written_as}, is {value!r:.60}")
        return cls(tuple(value))

    def __str__(self) -> str:
        return str(list(self.tokens))

    def numbers(self, tokenizer: Any, where: str) -> tuple[int, ...]:
        """Returns their numbers, each once; `where` is the parameter that has them.

        Raises:
            DataError: the tokenizer has no such token.
        """
        found = {one: tokenizer.token_to_id(one) if isinstance(one, str) else one for one in self.tokens}
        for one, number in found.items():
            if number is None or tokenizer.id_to_token(number) is None:
                raise DataError(f"the tokenizer has no token {one!r:.60}", where=where)
        return tuple(dict.fromkeys(found.values()))


@dataclass(frozen=True, slots=True)
class TokenChoices:
    """Lists of tokens, of each of which one is chosen."""

    written_as: ClassVar[str] = "a list of lists of numbers or texts of tokens"

    lists: tuple[TokenList, ...] = ()

    @classmethod
    def from_parameter(cls, value: object, read_file: ReadFile) -> Self:
        """Returns the lists.

        Raises:
            DataError: it is no list of such lists, or one is empty.
        """
        if not isinstance(value, list) or not all(value):
            raise DataError(f"must be {cls.written_as}, is {value!r:.60}")
        return cls(tuple(TokenList.from_parameter(one, read_file) for one in value))

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.lists))}]"


@dataclass(frozen=True, kw_only=True)
class Sample(Sampling):
    """Adds the likeliest token of the last row of `logits` to a text, or draws one (`temperature` above 0).

    Before it is drawn, `repetition-penalty` above 1 lowers tokens that are in prompt or text, and of the rest stay the
    `top-k` best (0: all), then the best that reach the probability `top-p` together: what transformers means by these.
    The same prompt and `seed` give the same text. `suppress-tokens` are never taken, `begin-suppress-tokens` not as the
    first one of the text. With `begin` the prompt is one token, behind which go the best of each of these lists, such
    as those of languages, before the text begins: `prompt` grows. What it became, `begun`, is not chosen again where a
    record has it, as the next window of a sound.

    `timestamps` is the first of the tokens that are times, as Whisper writes them: before and behind each segment,
    never back, and where all of them together are likelier than any other token. None is in `text`. The first one is
    at most `max-initial-timestamp` behind that.

    `text` is what was written, without special tokens, without half a character and, as long as it may go on, without
    what may be the beginning of a stop text. `end` is empty as long as it may go on; else it says what ended it:
    `stop-token` (one of `stop-tokens`, numbers or texts of the tokenizer; not in the text), `stop-text` (one of
    `stop-texts`; the text ends before it), `max-tokens`, or `context`: prompt and text fill the most tokens that the
    model takes.

    A record may have the field `sampling`, a table of `temperature`, `top-k`, `top-p`, `repetition-penalty`, `seed`,
    `stop-texts`, `max-tokens` and `logprobs`, which replace the step's own for that record, the last two up to the
    step's. Those that `fixed` names cannot be replaced.

    With `logprobs` from 0 on the step gives the field `logprobs` too: for each token of the text a table with `token`,
    `text`, `bytes`, `logprob`, the natural logarithm of its probability by the scores as the model gave them, `end`,
    the length of the text with it, and `top`, the same of so many of the likeliest tokens. A record may ask for fewer,
    -1 for none.
    """

    name: ClassVar[str] = "sample"
    takes: ClassVar[tuple[str, ...]] = ("logits", "prompt", "tokens")
    may_take: ClassVar[tuple[str, ...]] = (FIELD, "begun", LOGPROBS)
    reads_last: ClassVar[tuple[str, ...]] = ("logits",)

    tokenizer: TokenizerFile
    stop_tokens: TokenList = TokenList()
    context: Count | None = None
    suppress_tokens: TokenList = TokenList()
    begin_suppress_tokens: TokenList = TokenList()
    fixed: tuple[str, ...] = ()
    begin: TokenChoices = TokenChoices()
    timestamps: Count | None = None
    max_initial_timestamp: Count | None = None

    @property
    def gives(self) -> tuple[str, ...]:
        """The text so far, the prompt where it grows, and how likely tokens were where that is told."""
        grown = ("prompt", "begun") if self.begin.lists else ()
        return ("tokens", "text", "end", *grown, *([LOGPROBS] if self.logprobs > NO_LOGPROBS else []))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names(self.fixed, "fixed")
        tokenizer = self.tokenizer.opened()
        own = Sampling(**{field.name: getattr(self, field.name) for field in fields(Sampling)})
        never = self.suppress_tokens.numbers(tokenizer, "suppress-tokens")
        not_first = (*self.begin_suppress_tokens.numbers(tokenizer, "begin-suppress-tokens"), *never)
        stops = self.stop_tokens.numbers(tokenizer, "stop-tokens")
        begin = tuple(one.numbers(tokenizer, "begin") for one in self.begin.lists)
        times = None
        if self.timestamps is not None:
            times = Timestamps(self.timestamps, min(stops, default=0), self.max_initial_timestamp)
        texts = TextsSoFar(tokenizer), TokenTexts(tokenizer)
        object.__setattr__(self, "_made", _Made(*texts, stops, own, never, not_first, begin, times))

    def sampling_of(self, wishes: object) -> Sampling:
        """Returns how the text of a record is written whose field `sampling` is `wishes`; raises as `of_record`."""
        return self._parts.own.of_record(wishes, self.fixed)

    def __call__(
        self, logits: object, prompt: object, tokens: object, *, sampling: object = None, begun: object = (),
        logprobs: object = None,
    ) -> tuple[object, ...]:  # fmt: skip
        """Returns the tokens so far (length,), their text, what ended it, and the other fields that it gives.

        Raises:
            InputError: the scores are none, or hold NaN; or `sampling` is wrong.
        """
        made = self._parts
        how = made.own if sampling is None else self.sampling_of(sampling)
        scores = without_batch(floats_from_value(logits, "logits"), 2)
        if scores.ndim not in (1, 2):
            raise InputError(f"logits must be (1, length, tokens), these are {shape_text(logits)}")
        asked, written = tokens_from_value(prompt, "prompt"), tokens_from_value(tokens, "tokens")
        last = scores if scores.ndim == 1 else scores[-1]
        if len(asked) > len(made.begin):
            *found, likely = self._continued(how, last, asked, written, logprobs)
            return (*found, *([asked, asked] if made.begin else ()), *self._told(likely))
        known = tokens_from_value([*np.asarray(begun).reshape(-1)], "begun")
        if len(known) <= len(asked):
            best = _PLAIN.token(_only_tokens(last, made.begin[len(asked) - 1]), written, 0)
            known = np.append(asked, best).astype(getattr(prompt, "dtype", np.int64))
        return written, "", "", known[: len(asked) + 1], known, *self._told([])

    def _told(self, likely: list[object]) -> list[object]:
        return [likely] if self.logprobs > NO_LOGPROBS else []

    def _continued(
        self, how: Sampling, last: Array, asked: Array, written: Array, logprobs: object
    ) -> tuple[Array, str, str, list[object]]:
        """Returns the tokens with one more, or what ended them, and how likely each was."""
        made = self._parts
        seen = np.concatenate([asked, written])
        allowed = _without_tokens(last, made.never if len(written) else made.not_first)
        if made.times is not None:
            allowed = made.times.allowed(allowed, written)
        new = how.token(allowed, seen, len(seen))
        end = "stop-token" if new in made.stops else ""
        likely: list[object] = [*logprobs] if isinstance(logprobs, list) and len(written) else []
        tells = not end and how.logprobs > NO_LOGPROBS
        if not end:
            written = np.append(written, new)
            is_full = self.context is not None and len(seen) + 1 >= self.context
            end = "max-tokens" if len(written) >= how.max_tokens else "context" if is_full else ""
        spoken = written if made.times is None else written[written < made.times.first]
        text = made.texts.text(asked, spoken, is_whole=bool(end))
        if tells:
            likely.append(made.token_texts.likelihood(last, new, how.logprobs, seen, len(text)))
        cuts = [place for one in how.stop_texts if (place := text.find(one)) >= 0]
        if cuts:
            text, end = text[: min(cuts)], "stop-text"
        return written, text if end else _without_begun(text, how.stop_texts), end, likely

    @property
    def _parts(self) -> "_Made":
        made: _Made = getattr(self, "_made")  # noqa: B009 - by __post_init__
        return made


@dataclass(frozen=True, slots=True)
class _Made:
    """What is made of the parameters once: `never` and `not_first` are the tokens that are not taken."""

    texts: TextsSoFar
    token_texts: TokenTexts
    stops: tuple[int, ...]
    own: Sampling
    never: Sequence[int]
    not_first: Sequence[int]
    begin: tuple[tuple[int, ...], ...]
    times: Timestamps | None


def _only_tokens(scores: Array, tokens: Sequence[int]) -> Array:
    """Returns scores of which all but those of tokens are the least that there is."""
    kept = [token for token in tokens if token < len(scores)]
    left = np.full(len(scores), -np.inf, scores.dtype)
    left[kept] = scores[kept]
    return left


def _without_tokens(scores: Array, tokens: Sequence[int]) -> Array:
    """Returns scores of which those of tokens are the least that there is."""
    if not tokens:
        return scores
    left = scores.copy()
    left[[token for token in tokens if token < len(scores)]] = -np.inf
    return left


def _without_begun(text: str, stop_texts: Sequence[str]) -> str:
    """Returns a text without an end that is the beginning of a stop text."""
    begun = (one[:size] for one in stop_texts for size in range(1, len(one)))
    return text[: len(text) - max((len(one) for one in begun if text.endswith(one)), default=0)]
