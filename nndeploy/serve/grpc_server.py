# SPDX-License-Identifier: Apache-2.0
"""The Open Inference Protocol over gRPC.

message -> who asks -> `Answering` -> message. Laws: an error is a status with one line; a call whose deadline passes,
or that its client gives up, is cancelled by the library, and never run where it still waits.

Source: Open Inference Protocol, gRPC; ModelStreamInfer is Triton's extension, answered message by message, in order.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio

from nndeploy.errors import NndeployError
from nndeploy.serve.access import SCHEME
from nndeploy.serve.address import Address, not_bound, own_path
from nndeploy.serve.answering import EXTENSIONS, LAST_ANSWERS_SECONDS, NAME, RAW_BYTES, VERSION, Answering, apart
from nndeploy.serve.infer_request import status_of, told
from nndeploy.serve.message_form import message_from_answer, request_from_message
from nndeploy.serve.messages import MESSAGES, METHODS, SERVICE

PROTOCOL = "grpc"
_HEAD_BYTES = 1 << 16
"""What a message may have beside the tensors in it."""


class GrpcServer:
    """Answers at one address from `start` to `close`, both called in the event loop."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._server: grpc.aio.Server | None = None

    async def start(self, address: Address) -> Address:
        """Begins to accept calls; returns the address with its port.

        Raises:
            CannotCreateError: it cannot be listened to.
        """
        options, access = self._answering.options, self._answering.access
        self._server = grpc.aio.server(
            maximum_concurrent_rpcs=options.max_connections,
            options=[
                ("grpc.max_receive_message_length", options.max_body + _HEAD_BYTES),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),  # a second service would silently take a part of the calls
            ],
        )
        self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, self._handlers())])
        try:
            if address.path:
                with own_path(address):
                    port = self._add(str(address), access.key, access.certificate)
            else:
                port = self._add(str(address), access.key, access.certificate)
        except RuntimeError as err:
            raise not_bound(address, "the address is in use, or is none of this machine") from err
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
            self._model_infer,
        )  # fmt: skip
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                self._judged(answer), MESSAGES[f"{name}Request"].FromString,
                MESSAGES[f"{name}Response"].SerializeToString,
            )
            for name, answer in zip(METHODS, answers, strict=True)
        }  # fmt: skip
        handlers["ModelStreamInfer"] = grpc.stream_stream_rpc_method_handler(
            self._model_stream_infer, MESSAGES["ModelInferRequest"].FromString,
            MESSAGES["ModelStreamInferResponse"].SerializeToString,
        )  # fmt: skip
        return handlers

    def _judged(self, answer: Any) -> Any:
        """Returns the answer to a method, for those who may call it, with errors as statuses."""

        async def judged(message: Any, context: Any) -> Any:
            if answer not in (self._server_live, self._server_ready):
                await self._check_access(context)
            try:
                return await answer(message, context)
            except Exception as err:
                await context.abort(grpc.StatusCode[status_of(err)[1]], told(err))

        return judged

    async def _check_access(self, context: Any) -> None:
        headers = {key: value for key, value in context.invocation_metadata() or () if key == "authorization"}
        if not self._answering.access.is_granted(str(headers.get("authorization", ""))):
            what = f"this service asks for a token (hint: authorization: {SCHEME}TOKEN)"
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, what)

    async def _server_live(self, message: Any, context: Any) -> Any:
        return MESSAGES["ServerLiveResponse"](live=True)

    async def _server_ready(self, message: Any, context: Any) -> Any:
        return MESSAGES["ServerReadyResponse"](ready=self._answering.is_ready)

    async def _model_ready(self, message: Any, context: Any) -> Any:
        model = self._answering.model(message.name, message.version)
        return MESSAGES["ModelReadyResponse"](ready=model.is_ready and not self._answering.is_ending)

    async def _server_metadata(self, message: Any, context: Any) -> Any:
        return MESSAGES["ServerMetadataResponse"](name=NAME, version=VERSION, extensions=EXTENSIONS)

    async def _model_metadata(self, message: Any, context: Any) -> Any:
        model = self._answering.model(message.name, message.version)
        served = model.served
        how = {"name": model.name, "versions": [model.version], "platform": served.platform}
        answer = MESSAGES["ModelMetadataResponse"](**how)
        for tensors, told_tensors in ((served.inputs, answer.inputs), (served.outputs, answer.outputs)):
            for one in tensors:
                told_tensors.add(name=one.name, datatype=one.datatype, shape=one.shape)
        return answer

    async def _model_infer(self, message: Any, context: Any) -> Any:
        return await self._inferred(message)

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

    async def _model_stream_infer(self, messages: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        await self._check_access(context)
        kind = MESSAGES["ModelStreamInferResponse"]
        async for message in messages:
            try:
                yield kind(infer_response=await self._inferred(message))
            except NndeployError as err:
                yield kind(error_message=told(err), infer_response=MESSAGES["ModelInferResponse"](id=message.id))
            except asyncio.CancelledError:
                raise
            except Exception as err:
                await context.abort(grpc.StatusCode.INTERNAL, told(err))
