# SPDX-License-Identifier: Apache-2.0
"""A filter of system calls: a short program of the kernel's own machine (BPF) that looks at the number of each.

    another architecture than ours     ends the process
    a call of system_calls.REFUSED     "operation not permitted"
    a call of system_calls.UNKNOWN     "no such call"
    clone with a new namespace         "operation not permitted"
    prlimit of another process         "operation not permitted"
    anything else                      is allowed

Whoever executes another program keeps the filter. Law: no instruction jumps further than over its own rule.

Source: Linux, Documentation/userspace-api/seccomp_filter.rst and include/uapi/linux/{seccomp,filter,audit}.h.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterator

from nndeploy.sandbox.system_calls import AARCH64, ARCHITECTURES, CLONE, PRLIMIT, REFUSED, SESSIONS, UNKNOWN, X86_64

_SECCOMP = {X86_64: 317, AARCH64: 277}
_AUDIT = {X86_64: 0xC000003E, AARCH64: 0xC00000B7}
_SET_MODE_FILTER, _GET_ACTION_AVAIL = 1, 2
_SPEC_ALLOW = 1 << 2
"""Without it kernels before 5.16 make every branch of the process slower; it measures models."""

_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data; arguments' low halves come first
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def has_seccomp() -> bool:
    """Returns whether this kernel filters system calls, and we know their numbers here."""
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        return False
    action = ctypes.c_uint32(_ERRNO)
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.syscall(ctypes.c_long(_SECCOMP[machine]), _GET_ACTION_AVAIL, 0, ctypes.byref(action)) == 0)


def filter_calls(*, starts_sessions: bool) -> None:
    """Filters the calls of this thread and of all that it starts; who may not gain privileges may do so.

    Raises:
        OSError: the kernel does not do it.
    """
    machine = platform.machine()
    code = filter_program(machine, starts_sessions=starts_sessions)
    program = _Program(len(code) // 8, code)
    libc = ctypes.CDLL(None, use_errno=True)
    number = ctypes.c_long(_SECCOMP[machine])
    if libc.syscall(number, _SET_MODE_FILTER, _SPEC_ALLOW, ctypes.byref(program)) != 0:
        raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")


def filter_program(machine: str, *, starts_sessions: bool) -> bytes:
    """Returns the instructions of the filter for an architecture of `ARCHITECTURES`."""
    return b"".join(_instructions(machine, starts_sessions))


def _instructions(machine: str, starts_sessions: bool) -> Iterator[bytes]:
    column = ARCHITECTURES.index(machine)
    refusal = _ERRNO | errno.EPERM
    yield _instruction(_LOAD, _ARCHITECTURE)
    yield _instruction(_IF_EQUAL, _AUDIT[machine], 1, 0)
    yield _instruction(_RETURN, _KILL_PROCESS)
    yield _instruction(_LOAD, _NUMBER)
    if machine == X86_64:
        yield _instruction(_IF_AT_LEAST, _X32, 0, 1)  # the same calls under other numbers
        yield _instruction(_RETURN, _ERRNO | errno.ENOSYS)
    for numbers in (REFUSED | ({} if starts_sessions else SESSIONS)).values():
        if numbers[column] >= 0:
            yield _instruction(_IF_EQUAL, numbers[column], 0, 1)
            yield _instruction(_RETURN, refusal)
    for numbers in UNKNOWN.values():
        yield _instruction(_IF_EQUAL, numbers[column], 0, 1)
        yield _instruction(_RETURN, _ERRNO | errno.ENOSYS)
    yield from _unless(CLONE[column], _instruction(_IF_ANY_BIT, _NEW_NAMESPACES, 0, 1), refusal)
    yield from _unless(PRLIMIT[column], _instruction(_IF_EQUAL, 0, 1, 0), refusal)
    yield _instruction(_RETURN, _ALLOW)


def _unless(number: int, jumps_to_refusal_or_over: bytes, refusal: int) -> Iterator[bytes]:
    """Yields a rule about the first argument of one call."""
    yield _instruction(_IF_EQUAL, number, 0, 4)
    yield _instruction(_LOAD, _FIRST_ARGUMENT)
    yield jumps_to_refusal_or_over
    yield _instruction(_RETURN, refusal)
    yield _instruction(_RETURN, _ALLOW)


def _instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)
