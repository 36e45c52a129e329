# SPDX-License-Identifier: Apache-2.0
"""A text that a pipeline writes for a request: what is new of it, as it comes, and at last its answer.

Lives in the event loop; the thread that writes only leaves the text so far. Law: who reads slowly gets more at a time.
"""

import asyncio
from collections.abc import AsyncIterator

from nndeploy.serve.answering import Answering
from nndeploy.serve.infer_request import Answer, InferRequest
from nndeploy.serve.served_model import ServedModel
from nndeploy.values.types import Value


class TextInProgress:
    """The text of one request, from its submission to `close`."""

    def __init__(self, answering: Answering, model: ServedModel, request: InferRequest, began_ns: int) -> None:
        """Submits the request, which came at `began_ns` of the monotonic clock."""
        self._loop, self._is_new = asyncio.get_running_loop(), asyncio.Event()
        self._text, self._is_wanted = "", True
        self._answer = self._loop.create_task(answering.infer(model, request, began_ns, self._take))
        self._answer.add_done_callback(lambda _: self._is_new.set())

    def _take(self, text: Value) -> bool:
        if isinstance(text, str):
            self._text = text
            self._loop.call_soon_threadsafe(self._is_new.set)
        return self._is_wanted

    async def pieces(self) -> AsyncIterator[str]:
        """Yields what is new of the text, until all of it is written or an error ends it."""
        sent = ""
        while not self._answer.done():
            await self._is_new.wait()
            self._is_new.clear()
            if self._text.startswith(sent) and (new := self._text[len(sent) :]):
                sent += new
                yield new

    async def answer(self) -> Answer:
        """Returns the answer; raises as `Answering.infer`."""
        return await self._answer

    def close(self) -> None:
        """Ends the request, if it still goes on: its text is written no further."""
        self._is_wanted = False
        self._answer.cancel()
