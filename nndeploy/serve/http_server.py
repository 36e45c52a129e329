# SPDX-License-Identifier: Apache-2.0
"""The Open Inference Protocol over HTTP, and the page of figures.

bytes -> head judged (who asks, how long the body is) -> body read, so large and so long at most -> `Answering` -> bytes

Laws: every answer to what is HTTP, if it is not 2xx, is {"error": one line}, or what OpenAI's API has for it on that
API's paths; nothing is kept of the body of a request that its head refuses; the bodies that are in memory together have
a limit, whatever clients announce.

Source: Open Inference Protocol, HTTP/REST. aiohttp is the server because it is one maintained library with a parser in
C that listens on sockets that we bind, speaks TLS, and lets us read bodies piece by piece.
"""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial

from aiohttp import web

from nndeploy.errors import InputError, NndeployError
from nndeploy.serve.access import SCHEME
from nndeploy.serve.answering import EXTENSIONS, LAST_ANSWERS_SECONDS, NAME, RAW_BYTES, VERSION, Answering, apart
from nndeploy.serve.http_bodies import body_of, json_answer
from nndeploy.serve.http_connections import PROTOCOL, Connections
from nndeploy.serve.infer_request import INTERNAL, Answer, RefusedError, status_of, told
from nndeploy.serve.json_form import HttpRequest, body_from_answer, is_listed, request_from_body
from nndeploy.serve.openai_form import PATHS as OPENAI_PATHS
from nndeploy.serve.openai_form import error_object
from nndeploy.serve.served_model import ServedModel
from nndeploy.serve.text_paths import TextPaths

HEALTH, FIGURES = "/v2/health/", "/metrics"
JSON_BYTES = "Inference-Header-Content-Length"
SENT_AT_ONCE_BYTES = 1 << 15
"""An answer so large fits into the buffer of a connection that has nothing left to send."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HttpServer:
    """Answers on one socket from `start` to `close`, both called in the event loop."""

    def __init__(self, answering: Answering, places: Connections) -> None:
        self._answering, self._places = answering, places
        self._telling = ThreadPoolExecutor(1, "nndeploy figures")
        """Writes the page of figures: to ask the system for the memory of several processes takes milliseconds."""
        self._runner: web.AppRunner | None = None
        self._accepting: asyncio.Task[None] | None = None

    async def start(self, listening: socket.socket) -> None:
        """Begins to accept connections on a socket that listens."""
        app = web.Application(middlewares=[self._judged])
        model = "/v2/models/{name}"
        models = (model, f"{model}/versions/{{version}}")
        for path in models:
            app.router.add_get(path, self._model_metadata)
            app.router.add_get(f"{path}/ready", self._model_ready)
            app.router.add_post(f"{path}/infer", self._infer)
        TextPaths(self._answering).add_to(app.router, models)
        app.router.add_get("/v2", self._server_metadata)
        app.router.add_get(f"{HEALTH}live", self._live)
        app.router.add_get(f"{HEALTH}ready", self._ready)
        app.router.add_get(FIGURES, self._metrics)
        self._runner = web.AppRunner(
            app, handle_signals=False, handler_cancellation=True, shutdown_timeout=LAST_ANSWERS_SECONDS
        )
        await self._runner.setup()
        server = self._runner.server
        assert server is not None
        accepting = self._places.accept(listening, server, self._answering.access.context)
        self._accepting = asyncio.get_running_loop().create_task(accepting)
        self._accepting.add_done_callback(lambda _: listening.close())

    async def close(self) -> None:
        """Ends every connection."""
        if self._accepting is not None:
            self._accepting.cancel()
        if self._runner is not None:
            await self._runner.cleanup()
        self._telling.shutdown(wait=False, cancel_futures=True)

    @web.middleware
    async def _judged(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Returns the answer to a request, which is refused where too many are being answered."""
        is_probe = request.path.startswith(HEALTH) or request.path == FIGURES
        with self._places.at_work(request.protocol, is_probe=is_probe) as has_place:
            if has_place:
                return await self._answered(request, handler)
            self._answering.figures.add("", PROTOCOL, "UNAVAILABLE")
            busy = RefusedError(503, "UNAVAILABLE", "too many requests at once", hint="try again")
            return self._refused(request, busy)

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        access = self._answering.access
        is_health = request.path.startswith(HEALTH)  # a balancer asks without a token
        if access.refuses_page(request.headers):
            what = "cross-origin requests are refused; without a token, Host must be an address"
            return _refusal(request, 403, what)
        if not is_health and not access.is_granted(request.headers.get("Authorization", "")):
            answer = _refusal(request, 401, f"this service requires a token (hint: Authorization: {SCHEME}TOKEN)")
            answer.headers["WWW-Authenticate"] = SCHEME.strip()
            return answer
        try:
            return await handler(request)
        except web.HTTPException as err:  # aiohttp's own: no such path, no such method
            answer = _refusal(request, err.status, f"{request.method} {request.path:.200}: {err.reason}")
            answer.headers.extend({name: err.headers[name] for name in ("Allow",) if name in err.headers})
            return answer
        except NndeployError as err:
            return self._refused(request, err)
        except Exception as err:  # told on standard error where it came up
            return _refusal(request, INTERNAL[0], told(err))

    @staticmethod
    def _refused(request: web.Request, err: NndeployError) -> web.Response:
        status, _ = status_of(err)
        answer = _refusal(request, status, told(err), err)
        if status in (429, 503):
            answer.headers["Retry-After"] = "1"
        return answer

    async def _live(self, request: web.Request) -> web.Response:
        return json_answer({"live": True})

    async def _ready(self, request: web.Request) -> web.Response:
        is_ready = self._answering.is_ready
        return json_answer({"ready": is_ready, "live": True}, 200 if is_ready else 503)

    async def _server_metadata(self, request: web.Request) -> web.Response:
        return json_answer({"name": NAME, "version": VERSION, "extensions": list(EXTENSIONS)})

    async def _model_ready(self, request: web.Request) -> web.Response:
        model = self._model(request)
        is_ready = self._answering.is_model_ready(model)
        return json_answer({"name": model.name, "ready": is_ready}, 200 if is_ready else 503)

    async def _model_metadata(self, request: web.Request) -> web.Response:
        model = self._model(request)
        served = model.served
        told = {"inputs": list(map(asdict, served.inputs)), "outputs": list(map(asdict, served.outputs))}
        return json_answer({"name": model.name, "versions": [model.version], "platform": served.platform, **told})

    async def _metrics(self, request: web.Request) -> web.Response:
        answering, accept = self._answering, request.headers.get("Accept", "")
        page = partial(answering.figures.page, answering.models, accept)
        text, kind = await asyncio.get_running_loop().run_in_executor(self._telling, page)
        return web.Response(body=text.encode(), headers={"Content-Type": kind})

    def _model(self, request: web.Request) -> ServedModel:
        return self._answering.model(request.match_info["name"], request.match_info.get("version", ""))

    async def _infer(self, request: web.Request) -> web.StreamResponse:
        began_ns = time.monotonic_ns()
        answering = self._answering
        with answering.counted(request.match_info["name"], PROTOCOL), answering.budget.held() as take:
            model = self._model(request)
            body = await body_of(request, answering.options, take)
            json_bytes = _json_bytes(request)
            work = max(len(body) // RAW_BYTES, len(body) if json_bytes is None else json_bytes)
            asked = await apart(work, request_from_body, body, json_bytes)
            del body
            found = await answering.infer(model, asked.request, began_ns)
            return await self._answer(request, model.name, asked, found)

    async def _answer(self, request: web.Request, model: str, asked: HttpRequest, found: Answer) -> web.StreamResponse:
        """Sends the answer, for so long at most as a request may take: who does not read it loses the connection."""
        work = sum(value.nbytes for name, value in found.outputs.items() if is_listed(asked, name, value))
        body, json_bytes = await apart(work, body_from_answer, model, found, asked)
        answer = web.Response(body=body, content_type="application/json")
        if json_bytes is not None:
            answer.content_type = "application/octet-stream"
            answer.headers[JSON_BYTES] = str(json_bytes)
        transport = request.transport
        waits = len(body) > SENT_AT_ONCE_BYTES or transport is None or transport.get_write_buffer_size()
        try:
            async with asyncio.timeout(self._answering.options.request_timeout) if waits else nullcontext():
                await answer.prepare(request)
                await answer.write_eof()
        except TimeoutError:
            if transport is not None:
                transport.abort()
        return answer


def _json_bytes(request: web.Request) -> int | None:
    text = request.headers.get(JSON_BYTES)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise InputError(f"{JSON_BYTES} is no number of bytes: {text!r:.40}")
    return int(text)


def _refusal(request: web.Request, status: int, what: str, error: Exception | None = None) -> web.Response:
    is_openai = request.path.startswith(OPENAI_PATHS)
    return json_answer(error_object(status, what, error) if is_openai else {"error": what}, status)
