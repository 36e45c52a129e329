# SPDX-License-Identifier: Apache-2.0
"""A service in an event loop that ends in order when a signal comes."""

import asyncio
import signal
from collections.abc import Awaitable
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def until_signal(service: Awaitable[Any]) -> None:
    """Returns when a service ends by itself.

    Raises:
        SystemExit: a signal came; its status is the shell's.
    """
    loop, came = asyncio.get_running_loop(), asyncio.Event()
    number = 0

    def hear(one: int) -> None:
        nonlocal number
        number = one
        came.set()

    for one in SIGNALS:
        loop.add_signal_handler(one, hear, one)
    waiting = {asyncio.ensure_future(service), asyncio.ensure_future(came.wait())}
    _, left = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    if number:
        raise SystemExit(128 + number)
