# SPDX-License-Identifier: Apache-2.0
"""The Open Inference Protocol over gRPC, and the protocol of health checks.

bytes of a message -> who asks -> message -> `Answering` -> message. Laws: an error is a status with one line; a call
whose deadline passes, or that its client gives up, is cancelled by the library, and never run where it still waits;
calls of health are answered however many others there are.

Messages are read here and not by the library: it would take bytes that are none for a failure of ours, and would let
those that never come whole wait for ever.

Source: Open Inference Protocol, gRPC; ModelStreamInfer is Triton's extension, answered message by message, in order;
GRPC Health Checking Protocol, grpc/doc/health-checking.md.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from nndeploy.errors import InputError, NndeployError
from nndeploy.serve.access import SCHEME
from nndeploy.serve.address import Address, not_bound, own_path
from nndeploy.serve.answering import EXTENSIONS, LAST_ANSWERS_SECONDS, NAME, RAW_BYTES, VERSION, Answering, apart
from nndeploy.serve.infer_request import RefusedError, status_of, told
from nndeploy.serve.message_form import message_from_answer, request_from_message
from nndeploy.serve.messages import HEALTH, MESSAGES, METHODS, SERVICE
from nndeploy.serve.open_files import RESERVED

PROTOCOL = "grpc"
_HEAD_BYTES = 1 << 16
"""What a message may have beside the tensors in it."""
HANDSHAKE_SECONDS, IDLE_SECONDS = 5.0, 60.0
"""After so long a connection is closed that has not begun to speak gRPC, or that has no call."""
LOOK_SECONDS = 0.25
"""How often who watches is told of a change, at most."""
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3
PROBES = ("ServerLive", "ServerReady")


class GrpcServer:
    """Answers at one address from `start` to `close`, both called in the event loop."""

    def __init__(self, answering: Answering, most_connections: int) -> None:
        self._answering = answering
        self._most_connections = most_connections
        self._num_at_work = 0
        self._server: grpc.aio.Server | None = None

    async def start(self, address: Address) -> Address:
        """Begins to accept calls; returns the address with its port.

        Raises:
            CannotCreateError: it cannot be listened to.
        """
        options, access = self._answering.options, self._answering.access
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", options.max_body + _HEAD_BYTES),
                ("grpc.max_send_message_length", -1),
                # Shared by processes of one service: another service would silently take a part of the calls.
                ("grpc.so_reuseport", int(options.processes > 1)),
                ("grpc.max_allowed_incoming_connections", self._most_connections),
                ("grpc.max_concurrent_streams", options.max_connections + RESERVED),  # of one connection
                ("grpc.server_handshake_timeout_ms", round(HANDSHAKE_SECONDS * 1e3)),
                ("grpc.max_connection_idle_ms", round(IDLE_SECONDS * 1e3)),
            ]
        )
        for service, handlers in ((SERVICE, self._handlers()), (HEALTH, self._health_handlers())):
            self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
        try:
            if address.path:
                with own_path(address):
                    port = self._add(str(address), access.key, access.certificate)
            else:
                port = self._add(str(address), access.key, access.certificate)
        except RuntimeError as err:
            raise not_bound(address, "the address is in use, or does not belong to this machine") from err
        await self._server.start()
        return address if address.path else Address(address.host, port)

    def _add(self, address: str, key: bytes, certificate: bytes) -> int:
        assert self._server is not None
        if key:
            return int(self._server.add_secure_port(address, grpc.ssl_server_credentials([(key, certificate)])))
        return int(self._server.add_insecure_port(address))

    async def close(self) -> None:
        """Takes no more calls, and ends those that are there a moment later."""
        if self._server is not None:
            await self._server.stop(LAST_ANSWERS_SECONDS)

    def _handlers(self) -> dict[str, Any]:
        answers = (
            self._server_live, self._server_ready, self._model_ready, self._server_metadata, self._model_metadata,
            self._inferred,
        )  # fmt: skip
        handlers = {
            name: self._unary(f"{name}Request", answer, is_probe=name in PROBES)
            for name, answer in zip(METHODS, answers, strict=True)
        }
        streamed = self._model_stream_infer
        handlers["ModelStreamInfer"] = grpc.stream_stream_rpc_method_handler(streamed, None, _serialised)
        return handlers

    def _health_handlers(self) -> dict[str, Any]:
        return {
            "Check": self._unary("HealthCheckRequest", self._health_check, is_probe=True),
            "Watch": grpc.stream_stream_rpc_method_handler(self._health_watch, None, _serialised),
        }

    def _unary(self, kind: str, answer: Any, *, is_probe: bool) -> Any:
        """Returns the handler of a method that takes one message of a kind, for those who may call it."""

        async def judged(messages: AsyncIterator[bytes], context: Any) -> Any:
            with self._counted(is_probe=is_probe) as has_place:
                try:
                    if not is_probe:
                        self._check_may_call(context, has_place=has_place)
                    return await answer(await self._first(kind, messages, is_probe=is_probe))
                except Exception as err:
                    await _abort(context, err)

        return grpc.stream_unary_rpc_method_handler(judged, None, _serialised)

    @contextmanager
    def _counted(self, *, is_probe: bool = False) -> Iterator[bool]:
        """Yields whether there is a place for one more call."""
        self._num_at_work += not is_probe
        try:
            yield self._num_at_work <= self._answering.options.max_connections
        finally:
            self._num_at_work -= not is_probe

    def _check_may_call(self, context: Any, *, has_place: bool, is_open: bool = False) -> None:
        """Refuses a call for which there is no place, or no token."""
        headers = {key: value for key, value in context.invocation_metadata() or () if key == "authorization"}
        error = None
        if not has_place:
            error = RefusedError(503, "RESOURCE_EXHAUSTED", "too many calls at once", hint="try again")
        elif not is_open and not self._answering.access.is_granted(str(headers.get("authorization", ""))):
            hint = f"authorization: {SCHEME}TOKEN"
            error = RefusedError(401, "UNAUTHENTICATED", "this service requires a token", hint=hint)
        if error is not None:
            self._answering.figures.add("", PROTOCOL, error.status[1])
            raise error

    async def _first(self, kind: str, messages: AsyncIterator[bytes], *, is_probe: bool) -> Any:
        """Returns the only message of a call, which does not wait for it long: of probes no number is limited."""
        seconds = self._answering.options.request_timeout
        async with asyncio.timeout(min(seconds, HANDSHAKE_SECONDS) if is_probe else seconds):
            return self._message(kind, await anext(messages))

    def _message(self, kind: str, data: bytes) -> Any:
        try:
            return MESSAGES[kind].FromString(data)
        except DecodeError as err:
            self._answering.figures.add("", PROTOCOL, "INVALID_ARGUMENT")
            raise InputError(f"the bytes are no message {kind}") from err

    async def _server_live(self, message: Any) -> Any:
        return MESSAGES["ServerLiveResponse"](live=True)

    async def _server_ready(self, message: Any) -> Any:
        return MESSAGES["ServerReadyResponse"](ready=self._answering.is_ready)

    async def _model_ready(self, message: Any) -> Any:
        model = self._answering.model(message.name, message.version)
        return MESSAGES["ModelReadyResponse"](ready=self._answering.is_model_ready(model))

    async def _server_metadata(self, message: Any) -> Any:
        return MESSAGES["ServerMetadataResponse"](name=NAME, version=VERSION, extensions=EXTENSIONS)

    async def _model_metadata(self, message: Any) -> Any:
        model = self._answering.model(message.name, message.version)
        served = model.served
        how = {"name": model.name, "versions": [model.version], "platform": served.platform}
        answer = MESSAGES["ModelMetadataResponse"](**how)
        for tensors, told_tensors in ((served.inputs, answer.inputs), (served.outputs, answer.outputs)):
            for one in tensors:
                told_tensors.add(name=one.name, datatype=one.datatype, shape=one.shape)
        return answer

    async def _inferred(self, message: Any) -> Any:
        began_ns = time.monotonic_ns()
        answering = self._answering
        with answering.counted(message.model_name, PROTOCOL), answering.budget.held() as take:
            model = answering.model(message.model_name, message.model_version)
            size = message.ByteSize()
            take(size)
            request = await apart(
                size // RAW_BYTES if message.raw_input_contents else size, request_from_message, message
            )
            found = await answering.infer(model, request, began_ns)
            size = sum(value.nbytes for value in found.outputs.values())
            size = size // RAW_BYTES if message.raw_input_contents else size
            return await apart(size, message_from_answer, model.name, found, message)

    async def _model_stream_infer(self, messages: AsyncIterator[bytes], context: Any) -> AsyncIterator[Any]:
        with self._counted() as has_place:
            try:
                self._check_may_call(context, has_place=has_place)
                async for data in messages:
                    yield await self._answered(self._message("ModelInferRequest", data))
            except Exception as err:
                await _abort(context, err)

    async def _answered(self, message: Any) -> Any:
        """Returns the answer to a message of a stream, which goes on after an error."""
        kind = MESSAGES["ModelStreamInferResponse"]
        try:
            return kind(infer_response=await self._inferred(message))
        except NndeployError as err:
            return kind(error_message=told(err), infer_response=MESSAGES["ModelInferResponse"](id=message.id))

    def _health(self, service: str) -> int:
        answering = self._answering
        if service in ("", SERVICE, HEALTH):
            return SERVING if answering.is_ready else NOT_SERVING
        if service not in answering.models:
            return SERVICE_UNKNOWN
        return SERVING if answering.is_model_ready(answering.models[service]) else NOT_SERVING

    async def _health_check(self, message: Any) -> Any:
        status = self._health(message.service)
        if status == SERVICE_UNKNOWN:
            raise RefusedError(404, "NOT_FOUND", f"no model is called {message.service!r:.80}")
        return MESSAGES["HealthCheckResponse"](status=status)

    async def _health_watch(self, messages: AsyncIterator[bytes], context: Any) -> AsyncIterator[Any]:
        with self._counted() as has_place:
            try:
                self._check_may_call(context, has_place=has_place, is_open=True)
                message = await self._first("HealthCheckRequest", messages, is_probe=True)
                last = None
                while True:
                    if (status := self._health(message.service)) != last:
                        yield MESSAGES["HealthCheckResponse"](status=status)
                        last = status
                    await asyncio.sleep(LOOK_SECONDS)
            except Exception as err:
                await _abort(context, err)


def _serialised(message: Any) -> bytes:
    return bytes(message.SerializeToString())


async def _abort(context: Any, err: Exception) -> None:
    """Ends a call with the status of an error."""
    if isinstance(err, TimeoutError):
        err = RefusedError(408, "DEADLINE_EXCEEDED", "the message was not received in time")
    elif isinstance(err, StopAsyncIteration):
        err = InputError("there is no message")
    await context.abort(grpc.StatusCode[status_of(err)[1]], told(err))
