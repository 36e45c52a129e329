# SPDX-License-Identifier: Apache-2.0
"""A text that a pipeline writes for a request: what is new of it, as it comes, and at last all of it.

Lives in the event loop; the thread that writes only leaves the text so far. Law: who reads slowly gets more at a time.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence

import numpy as np

from nndeploy.processors.sampling import LOGPROBS
from nndeploy.processors.token_logprobs import TokenLikelihood
from nndeploy.serve.answering import Answering
from nndeploy.serve.infer_request import InferRequest
from nndeploy.serve.served_model import ServedModel
from nndeploy.serve.text_request import Piece, Written, begin_of
from nndeploy.serve.text_writer import END
from nndeploy.stream.engine.loop import TEXT
from nndeploy.values.types import Value

PROMPT_TOKENS, TOKENS = "prompt", "tokens"
"""The fields of the tokens of prompt and text, as the steps `prompt` and `sample` give them."""


class TextInProgress:
    """The text of one request, from its submission to `close`."""

    def __init__(self, answering: Answering, model: ServedModel, request: InferRequest, began_ns: int) -> None:
        """Submits the request, which came at `began_ns` of the monotonic clock."""
        self._loop, self._is_new = asyncio.get_running_loop(), asyncio.Event()
        self._text, self._is_wanted = "", True
        self._likelihoods: Sequence[TokenLikelihood] = ()
        self._num_prompt_tokens: int | None = None
        self._num_tokens: int | None = None
        self._answer = self._loop.create_task(answering.infer(model, request, began_ns, self._take))
        self._answer.add_done_callback(lambda _: self._is_new.set())

    def _take(self, fields: Mapping[str, Value]) -> bool:
        self._num_prompt_tokens, self._num_tokens = _length(fields, PROMPT_TOKENS), _length(fields, TOKENS)
        text, likelihoods = fields.get(TEXT), fields.get(LOGPROBS)
        if isinstance(likelihoods, list):
            self._likelihoods = likelihoods
        if isinstance(text, str):
            self._text = text
            self._loop.call_soon_threadsafe(self._is_new.set)
        return self._is_wanted

    async def pieces(self) -> AsyncIterator[Piece]:
        """Yields what is new of the text, until all of it is written or an error ends it."""
        sent, count = "", 0
        while not self._answer.done():
            await self._is_new.wait()
            self._is_new.clear()
            if self._text.startswith(sent) and (new := self._text[len(sent) :]):
                likelihoods = self._likelihoods[count:]
                yield Piece(new, begin_of(self._likelihoods, count), likelihoods)
                sent, count = sent + new, count + len(likelihoods)

    async def written(self) -> Written:
        """Returns the whole text; raises as `Answering.infer`."""
        found = await self._answer
        text, end = (json.loads(found.outputs[name][0]) for name in (TEXT, END))
        return Written(text, end, self._num_prompt_tokens, self._num_tokens, self._likelihoods)

    def close(self) -> None:
        """Ends the request, if it still goes on: its text is written no further."""
        self._is_wanted = False
        self._answer.cancel()


def _length(fields: Mapping[str, Value], name: str) -> int | None:
    tokens = fields.get(name)
    return len(tokens) if isinstance(tokens, np.ndarray) and tokens.ndim == 1 else None
