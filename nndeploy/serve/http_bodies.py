# SPDX-License-Identifier: Apache-2.0
"""Bodies of HTTP: read piece by piece, so large and in so much time at most; and JSON as the body of an answer."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from nndeploy.errors import InputError
from nndeploy.serve.infer_request import RefusedError
from nndeploy.serve.options import ServeOptions


async def body_of(request: web.Request, options: ServeOptions, take: Callable[[int], None]) -> bytes:
    """Returns the body of a request; `take` is told of so many bytes more, before they are kept.

    Raises:
        RefusedError: it is compressed, too large, or was not received in time.
        InputError: it is malformed.
    """
    limit, content = options.max_body, request.content
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise RefusedError(415, "INVALID_ARGUMENT", "a body must be sent as it is, without Content-Encoding")
    if (request.content_length or 0) > limit:
        raise _too_large(request.content_length, limit)
    pieces, num_bytes = [], 0

    def keep(piece: bytes) -> None:
        nonlocal num_bytes
        num_bytes += len(piece)
        if num_bytes > limit:
            raise _too_large(num_bytes, limit)
        take(len(piece))
        pieces.append(piece)

    try:
        if content.is_eof():  # all of it came with the head: nothing is waited for
            keep(content.read_nowait())
        else:
            async with asyncio.timeout(options.request_timeout):
                async for piece in content.iter_any():
                    keep(piece)
    except web.RequestPayloadError as err:  # which quotes the body
        raise InputError("the body is malformed HTTP") from err
    except TimeoutError as err:
        raise RefusedError(408, "DEADLINE_EXCEEDED", "the body was not received in time") from err
    return b"".join(pieces)


def _too_large(num_bytes: int | None, limit: int) -> RefusedError:
    what = f"the body has {num_bytes} bytes or more; the limit is {limit}"
    return RefusedError(413, "RESOURCE_EXHAUSTED", what, hint="nndeploy serve --max-body")


def json_answer(data: Any, status: int = 200) -> web.Response:
    """Returns an answer that is JSON."""
    return web.Response(body=json.dumps(data).encode("ascii"), status=status, content_type="application/json")
