# SPDX-License-Identifier: Apache-2.0
"""`served_by_hand.py BUNDLE`: the least that answers inference over HTTP, beside which the service is measured.

One thread reads, calls the program and answers. It takes what `served_load` sends and nothing else: raw tensors in
whole requests, of any name of a model, nothing checked, no limits, no figures.
"""

import asyncio
import json
import sys
from typing import Any

import numpy as np
import uvloop

from nndeploy.runtime.program import load_bundle
from nndeploy.serve.datatypes import DATATYPES, array_from_raw
from nndeploy.serve.http_server import JSON_BYTES


class _Connection(asyncio.Protocol):
    def __init__(self, program: Any) -> None:
        self._program, self._came = program, b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._came += data
        head, end, body = self._came.partition(b"\r\n\r\n")
        if not end or len(body) < _number(head, "Content-Length"):
            return
        self._came, told, at = b"", _number(head, JSON_BYTES), 0
        inputs, raw = {}, body[told:]
        for one in json.loads(body[:told])["inputs"]:
            size = one["parameters"]["binary_data_size"]
            inputs[one["name"]] = array_from_raw(one["name"], one["datatype"], one["shape"], raw[at : at + size])
            at += size
        outputs = [(name, np.asarray(value)) for name, value in self._program.run(inputs).items()]
        told_of = [
            {"name": name, "datatype": DATATYPES[value.dtype.name], "shape": value.shape,
             "parameters": {"binary_data_size": value.nbytes}}
            for name, value in outputs
        ]  # fmt: skip
        answer = json.dumps({"model_name": "m", "outputs": told_of}).encode()
        whole = b"".join((answer, *(value.tobytes() for _, value in outputs)))
        says = f"HTTP/1.1 200 OK\r\n{JSON_BYTES}: {len(answer)}\r\nContent-Length: {len(whole)}\r\n\r\n"
        self._transport.write(says.encode() + whole)


def _number(head: bytes, name: str) -> int:
    return int(head.partition(f"\r\n{name}: ".encode())[2].partition(b"\r\n")[0])


async def _serve(bundle: str) -> None:
    program = load_bundle(bundle)
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(program), "127.0.0.1", 0)
    print(f"listening: http 127.0.0.1:{server.sockets[0].getsockname()[1]}\nready:", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(sys.argv[1]))
