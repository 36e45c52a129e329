# SPDX-License-Identifier: Apache-2.0
"""A signal handler that a second signal need not wait for.

Python runs a handler when the interpreter goes on, which a library that holds it may not let it for minutes. So the
kernel takes the handler away when it is called, and the handler puts itself back when it runs: two signals that no
Python has seen end the process as if it had none.
"""

import ctypes
import signal
import struct
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]

_SA_RESETHAND = 0x80000000
_FLAGS_AT = 8 + 128
"""Where `sa_flags` stands in Linux's `struct sigaction` of a C library with pointers of 8 bytes: behind the handler and
1,024 bits of signals (glibc and musl)."""


def handle(number: int, handler: Handler) -> Any:
    """Makes `handler` that of a signal; returns the one before. Only of use in the main thread."""

    def called(number: int, frame: FrameType | None) -> Any:
        _install(number, called)
        return handler(number, frame)

    return _install(number, called)


def _install(number: int, handler: Handler) -> Any:
    before = signal.signal(number, handler)
    if sys.platform == "linux" and struct.calcsize("P") == 8:
        libc, action = ctypes.CDLL(None), ctypes.create_string_buffer(256)
        if libc.sigaction(number, None, action) == 0:
            (flags,) = struct.unpack_from("i", action, _FLAGS_AT)
            struct.pack_into("I", action, _FLAGS_AT, (flags & 0xFFFFFFFF) | _SA_RESETHAND)
            libc.sigaction(number, action, None)
    return before
