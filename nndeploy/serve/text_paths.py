# SPDX-License-Identifier: Apache-2.0
"""The paths of HTTP that write texts: the generate extension of the protocol, and OpenAI's API.

body -> form (`generate_form`, `openai_form`) -> `TextInProgress` -> the text as a whole, or as events while it is
written. Law: an error before the first event is the answer's status; one behind it is the last event.

Source: Server-sent events (WHATWG HTML, 9.2).
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from aiohttp import web

from nndeploy.errors import MissingInputError, NndeployError
from nndeploy.serve.answering import Answering, apart
from nndeploy.serve.generate_form import generate_request
from nndeploy.serve.http_bodies import body_of, json_answer
from nndeploy.serve.http_connections import PROTOCOL
from nndeploy.serve.openai_form import PATHS, chat_request, completion_request, model_name, model_object
from nndeploy.serve.served_model import ServedModel
from nndeploy.serve.text_in_progress import TextInProgress
from nndeploy.serve.text_request import AskedText, Piece, Written, begin_of
from nndeploy.stream.formats.json_lines import object_from_json

ReadForm: TypeAlias = Callable[[Mapping[str, object], ServedModel], AskedText]
"""Returns the request to a model that the fields of a body make."""


class TextPaths:
    """Answers requests for texts; all of it runs in the event loop."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._created_s = int(time.time())

    def add_to(self, router: web.UrlDispatcher, models: tuple[str, ...]) -> None:
        """Adds the paths; `models` are those of a model of the protocol, {name} in them."""
        for path in models:
            router.add_post(f"{path}/generate", partial(self._write, partial(generate_request, is_stream=False)))
            router.add_post(f"{path}/generate_stream", partial(self._write, partial(generate_request, is_stream=True)))
        router.add_post(f"{PATHS}completions", partial(self._write, completion_request))
        router.add_post(f"{PATHS}chat/completions", partial(self._write, chat_request))
        router.add_get(f"{PATHS}models", self._models)
        router.add_get(f"{PATHS}models/{{name}}", self._model)

    async def _write(self, form: ReadForm, request: web.Request) -> web.StreamResponse:
        """Writes a text for a request, whose model is named by its path, or else by its body."""
        began_ns = time.monotonic_ns()
        answering, named = self._answering, request.match_info
        with answering.counted(named.get("name", ""), PROTOCOL) as counted, answering.budget.held() as take:
            model = answering.model(named["name"], named.get("version", "")) if "name" in named else None
            body = await body_of(request, answering.options, take)
            fields = await apart(len(body), partial(object_from_json, body, "the request", allow_nan=False))
            if model is None:
                model = answering.model(model_name(fields), "")
                counted.name = model.name
            asked = form(fields, model)
            del body, fields
            texts = [TextInProgress(answering, model, one, began_ns) for one in asked.requests]
            try:
                if asked.is_stream:
                    return await self._stream(_Events(request, answering.options.request_timeout), asked, texts)
                return json_answer(asked.whole(await asyncio.gather(*(text.written() for text in texts))))
            finally:
                for text in texts:
                    text.close()

    async def _stream(self, events: "_Events", asked: AskedText, texts: Sequence[TextInProgress]) -> web.StreamResponse:
        """Sends what is new of texts as they are written."""
        tasks = [asyncio.ensure_future(_sent(events, asked, number, text)) for number, text in enumerate(texts)]
        try:
            last = asked.end(await asyncio.gather(*tasks))
        except NndeployError as err:
            if not events.answer.prepared:
                raise
            last = [asked.failed(err)]
        finally:
            await _cancelled(tasks)
        await events.send(*last)
        await events.answer.write_eof()
        return events.answer

    async def _models(self, _: web.Request) -> web.Response:
        """Tells which models write texts and are ready."""
        names = [name for name, model in self._answering.models.items() if _writes(model)]
        return json_answer({"object": "list", "data": [model_object(name, self._created_s) for name in names]})

    async def _model(self, request: web.Request) -> web.Response:
        model = self._answering.model(request.match_info["name"], "")
        if not _writes(model):
            raise MissingInputError(f"{model.name!r} writes no texts, or is not ready")
        return json_answer(model_object(model.name, self._created_s))


class _Events:
    """The events of one answer, which its texts send in turn."""

    def __init__(self, request: web.Request, timeout_s: float | None) -> None:
        self.answer = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        self._request, self._timeout_s, self._turn = request, timeout_s, asyncio.Lock()

    async def send(self, *events: object) -> None:
        """Sends events; who does not read them in time loses the connection."""
        try:
            async with asyncio.timeout(self._timeout_s), self._turn:
                if not self.answer.prepared:
                    await self.answer.prepare(self._request)
                for event in events:
                    line = event if isinstance(event, str) else json.dumps(event)
                    await self.answer.write(b"data: %s\n\n" % line.encode("ascii"))
        except TimeoutError as err:
            if self._request.transport is not None:
                self._request.transport.abort()
            raise ConnectionError("the client does not read") from err


async def _sent(events: _Events, asked: AskedText, number: int, text: TextInProgress) -> Written:
    """Sends one text piece by piece, and returns it."""
    sent, count = "", 0
    async for piece in text.pieces():
        await events.send(*(() if sent else asked.first(number)), asked.piece(number, piece))
        sent, count = sent + piece.text, count + len(piece.likelihoods)
    written = await text.written()
    likelihoods = written.likelihoods
    rest = Piece(written.text.removeprefix(sent), begin_of(likelihoods, count), likelihoods[count:])
    await events.send(*(() if sent else asked.first(number)), *asked.last(number, written, rest))
    return written


async def _cancelled(tasks: Sequence["asyncio.Future[Written]"]) -> None:
    """Ends tasks that still run, and waits for that."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _writes(model: ServedModel) -> bool:
    return model.is_ready and model.served.writer is not None
