# SPDX-License-Identifier: Apache-2.0
"""A child whose memory is laid out as in every other run, for libraries whose output depends on addresses.

It starts itself once more without address space randomisation, if the kernel lets it (a container's default seccomp
profile does not), and with a fixed limit of the stack, which decides where mappings begin.

Source: personality(2), ADDR_NO_RANDOMIZE; measured in docs/internals/tensorrt.md and docs/internals/cudnn.md.
"""

import contextlib
import ctypes
import os
import resource
import sys

_ADDR_NO_RANDOMIZE = 0x0040000
_ASK = 0xFFFFFFFF
_STACK_BYTES = 8 * 1024 * 1024
_STARTED_AGAIN = "NNDEPLOY_FIXED_LAYOUT"


def start_again_with_fixed_layout() -> None:
    """Starts this process once more, with its memory laid out as in every other run; returns in the second one."""
    if _STARTED_AGAIN in os.environ:
        return
    libc = ctypes.CDLL(None)
    libc.personality(ctypes.c_ulong(_persona(libc) | _ADDR_NO_RANDOMIZE))  # refused: `is_layout_fixed` tells
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    with contextlib.suppress(ValueError):
        resource.setrlimit(resource.RLIMIT_STACK, (_STACK_BYTES, hard))
    os.execve(sys.executable, sys.orig_argv, {**os.environ, _STARTED_AGAIN: "1"})  # noqa: S606 - itself, no shell


def is_layout_fixed() -> bool:
    """Returns whether memory is laid out as in every other run."""
    return bool(_persona(ctypes.CDLL(None)) & _ADDR_NO_RANDOMIZE)


def _persona(libc: ctypes.CDLL) -> int:
    persona: int = libc.personality(ctypes.c_ulong(_ASK))
    return 0 if persona == -1 else persona
