# SPDX-License-Identifier: Apache-2.0
"""A bundle in the process, behind the service, and bare echoes of the same two libraries, as engines of a race.

Each is a server in a process of its own and a client here, which takes the same pains for the service and the echo: a
call is one request over a connection that stays, or `clients` connections that ask `EACH` times at once. An echo takes
as many bytes as the service and gives as many back, and does nothing else.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp
import grpc
import grpc.aio
import numpy as np
import psutil
from aiohttp import web
from interleaved import Array, Ready

from nndeploy.runtime.program import load_bundle
from nndeploy.serve.datatypes import DATATYPES, array_from_raw
from nndeploy.serve.http_server import JSON_BYTES
from nndeploy.serve.messages import MESSAGES, SERVICE

EACH = 16
"""How often each of several clients asks in a call."""
ANY = "127.0.0.1:0"
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]

Ask = Callable[[], Awaitable[bytes]]


def in_process(inputs: Mapping[str, Array], bundle: str) -> Ready:
    program = load_bundle(bundle)
    names = [item.name for item in program.outputs]
    return Ready(lambda: program.run(inputs), lambda found: [found[name] for name in names])


def over_http(
    inputs: Mapping[str, Array], bundle: str, clients: int = 1, is_binary: bool = True, options: tuple[str, ...] = ()
) -> Ready:
    address = served(bundle, "http", options)
    body, headers = http_body(inputs, is_binary=is_binary)
    return asked_http(f"http://{address}/v2/models/m/infer", body, headers, clients, arrays_of_http)


def over_http_echo(inputs: Mapping[str, Array], bundle: str, clients: int = 1) -> Ready:
    body, headers = http_body(inputs, is_binary=True)
    address = _echo("http", _answer_bytes(over_http(inputs, bundle)))
    return asked_http(f"http://{address}/", body, headers, clients, lambda found: [])


def over_grpc(inputs: Mapping[str, Array], bundle: str, clients: int = 1, options: tuple[str, ...] = ()) -> Ready:
    message = grpc_message(inputs).SerializeToString()
    return asked_grpc(served(bundle, "grpc", options), message, clients, arrays_of_grpc)


def over_grpc_echo(inputs: Mapping[str, Array], bundle: str, clients: int = 1) -> Ready:
    message = grpc_message(inputs).SerializeToString()
    address = _echo("grpc", _answer_bytes(over_grpc(inputs, bundle)))
    return asked_grpc(address, message, clients, lambda found: [])


def _answer_bytes(ready: Ready) -> int:
    found: bytes = ready.call()
    end_server()
    return len(found)


def end_server() -> None:
    server = _SERVERS.pop()
    server.terminate()
    server.wait()


def server_processes() -> list[psutil.Process]:
    """Returns the process of the server that was started last, and those that it has started."""
    first = psutil.Process(_SERVERS[-1].pid)
    return [first, *first.children(recursive=True)]


def served(bundle: str, protocol: str, options: tuple[str, ...] = ()) -> str:
    """Starts the service of a bundle as the model m, over one protocol; returns where it listens."""
    other = "grpc" if protocol == "http" else "http"
    command = [sys.executable, "-m", "nndeploy", "serve", f"m={bundle}", f"--{protocol}", ANY, f"--{other}", "none"]
    return started([*command, *options], "ready:")


def _echo(protocol: str, num_bytes: int) -> str:
    return started([sys.executable, __file__, protocol, str(num_bytes)], "ready:")


def started(command: list[str], until: str) -> str:
    """Starts a server in the process group of this one, with which it ends; returns where it listens."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    _SERVERS.append(process)
    assert process.stdout is not None
    address = ""
    for line in process.stdout:
        if line.startswith("listening:"):
            address = line.split()[-1]
        if line.startswith(until):
            return address
    raise RuntimeError(f"{command} did not start")


def http_body(inputs: Mapping[str, Array], *, is_binary: bool = True) -> tuple[bytes, dict[str, str]]:
    told: list[dict[str, Any]] = []
    for name, array in inputs.items():
        one = {"name": name, "datatype": DATATYPES[array.dtype.name], "shape": array.shape}
        how = {"parameters": {"binary_data_size": array.nbytes}} if is_binary else {"data": array.ravel().tolist()}
        told.append(one | how)
    head = json.dumps({"inputs": told, "parameters": {"binary_data_output": is_binary}}).encode()
    if not is_binary:
        return head, {}
    return b"".join((head, *(array.tobytes() for array in inputs.values()))), {JSON_BYTES: str(len(head))}


def grpc_message(inputs: Mapping[str, Array]) -> Any:
    message = MESSAGES["ModelInferRequest"](model_name="m")
    for name, array in inputs.items():
        message.inputs.add(name=name, datatype=DATATYPES[array.dtype.name], shape=array.shape)
        message.raw_input_contents.append(array.tobytes())
    return message


def arrays_of_http(body: bytes) -> list[Array]:
    answer, num_characters = json.JSONDecoder().raw_decode(body.decode("latin-1"))  # the JSON is ASCII
    raw, end = body[num_characters:], 0
    arrays = []
    for one in answer["outputs"]:
        if "data" in one:
            arrays.append(np.array(one["data"], np.float32).reshape(one["shape"]))
            continue
        size = one["parameters"]["binary_data_size"]
        arrays.append(array_from_raw(one["name"], one["datatype"], tuple(one["shape"]), raw[end : end + size]))
        end += size
    return arrays


def arrays_of_grpc(data: bytes) -> list[Array]:
    answer = MESSAGES["ModelInferResponse"].FromString(data)
    every = zip(answer.outputs, answer.raw_output_contents, strict=True)
    return [array_from_raw(one.name, one.datatype, tuple(one.shape), raw) for one, raw in every]


class _Loop:
    """An event loop in a thread; what runs in it is waited for."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _asked(loop: _Loop, asks: list[Ask], arrays_of: Callable[[bytes], list[Array]]) -> Ready:
    async def together() -> bytes:
        async def several(ask: Ask) -> bytes:
            for _ in range(EACH - 1):
                await ask()
            return await ask()

        found = await asyncio.gather(*(several(ask) for ask in asks))
        return found[0]

    def call() -> bytes:
        found: bytes = loop.run(together() if len(asks) > 1 else asks[0]())
        return found

    return Ready(call, arrays_of)


def asked_http(
    url: str, body: bytes, headers: dict[str, str], clients: int, arrays_of: Callable[[bytes], list[Array]]
) -> Ready:
    loop = _Loop()

    async def session() -> aiohttp.ClientSession:
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1))

    def ask_of(one: aiohttp.ClientSession) -> Ask:
        async def ask() -> bytes:
            async with one.post(url, data=body, headers=headers) as answer:
                assert answer.status == 200, await answer.read()
                return await answer.read()

        return ask

    return _asked(loop, [ask_of(loop.run(session())) for _ in range(clients)], arrays_of)


def asked_grpc(address: str, message: bytes, clients: int, arrays_of: Callable[[bytes], list[Array]]) -> Ready:
    loop = _Loop()

    async def channel() -> Any:
        options = [*UNLIMITED, ("grpc.use_local_subchannel_pool", 1)]
        return grpc.aio.insecure_channel(address, options=options).unary_unary(f"/{SERVICE}/ModelInfer")

    def ask_of(call: Any) -> Ask:
        async def ask() -> bytes:
            found: bytes = await call(message)
            return found

        return ask

    return _asked(loop, [ask_of(loop.run(channel())) for _ in range(clients)], arrays_of)


async def _echo_http(answer: bytes) -> int:
    async def handle(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=answer)

    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return int(runner.addresses[0][1])


async def _echo_grpc(answer: bytes) -> int:
    async def handle(message: bytes, context: Any) -> bytes:
        return answer

    server = grpc.aio.server(options=UNLIMITED)
    handler = grpc.method_handlers_generic_handler(SERVICE, {"ModelInfer": grpc.unary_unary_rpc_method_handler(handle)})
    server.add_generic_rpc_handlers([handler])
    port = int(server.add_insecure_port(ANY))
    await server.start()
    _KEPT.append(server)
    return port


_KEPT: list[Any] = []
_SERVERS: list[subprocess.Popen[str]] = []


async def _echo_main(protocol: str, num_bytes: int) -> None:
    port = await (_echo_http if protocol == "http" else _echo_grpc)(bytes(num_bytes))
    print(f"listening: {protocol} 127.0.0.1:{port}\nready:", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_echo_main(sys.argv[1], int(sys.argv[2])))
