# SPDX-License-Identifier: Apache-2.0
"""The filter of system calls, run by a small machine of our own: on every architecture the same calls are refused."""

import errno
import struct
import subprocess
import sys

import pytest

from nndeploy.sandbox.seccomp import filter_program, has_seccomp
from nndeploy.sandbox.system_calls import ARCHITECTURES, CLONE, PRLIMIT, REFUSED, SESSIONS, UNKNOWN

ALLOWED, KILLED = "allowed", "killed"
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
HARMLESS = {"read": (0, 63), "mmap": (9, 222), "execve": (59, 221), "sendmsg": (46, 211), "kill": (62, 129)}


def answer(
    machine: str, number: int, first: int = 0, audit: int | None = None, *, starts_sessions: bool = False
) -> object:
    """Returns what the filter says to a call: an errno, `ALLOWED` or `KILLED`."""
    code = filter_program(machine, starts_sessions=starts_sessions)
    seen = {0: number, 4: audit or AUDIT[machine], 16: first & 0xFFFFFFFF}
    value, at = 0, 0
    while True:
        operation, if_true, if_false, operand = struct.unpack_from("=HBBI", code, 8 * at)
        at += 1
        if operation == 0x06:
            return {0x7FFF0000: ALLOWED, 0x80000000: KILLED}.get(operand, operand & 0xFFFF)
        if operation == 0x20:
            value = seen[operand]
        else:
            is_so = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[operation]
            at += if_true if is_so else if_false


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_every_listed_call_is_refused_and_others_are_not(machine: str) -> None:
    column = ARCHITECTURES.index(machine)
    for numbers in (REFUSED | SESSIONS).values():
        if numbers[column] >= 0:
            assert answer(machine, numbers[column]) == errno.EPERM
    for numbers in UNKNOWN.values():
        assert answer(machine, numbers[column]) == errno.ENOSYS
    for numbers in HARMLESS.values():
        assert answer(machine, numbers[column]) == ALLOWED
    for numbers in SESSIONS.values():
        assert answer(machine, numbers[column], starts_sessions=True) == ALLOWED


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_threads_and_processes_are_made_but_no_namespaces(machine: str) -> None:
    clone = CLONE[ARCHITECTURES.index(machine)]
    assert answer(machine, clone, 0x003D0F00) == ALLOWED  # as a thread is made
    assert answer(machine, clone, 0x10000011) == errno.EPERM  # CLONE_NEWUSER
    assert answer(machine, clone, 0x40000011) == errno.EPERM  # CLONE_NEWNET


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_limits_are_those_of_the_process_itself(machine: str) -> None:
    prlimit = PRLIMIT[ARCHITECTURES.index(machine)]
    assert answer(machine, prlimit, 0) == ALLOWED
    assert answer(machine, prlimit, 1234) == errno.EPERM


def test_calls_of_another_architecture_end_the_process() -> None:
    assert answer("x86_64", 0, audit=0x40000003) == KILLED  # those of 32 bits
    assert answer("aarch64", 63, audit=0x40000028) == KILLED
    assert answer("x86_64", 0x40000000 | 41) == errno.ENOSYS  # socket, as x32 numbers it


@pytest.mark.skipif(not has_seccomp(), reason="this kernel filters no calls")
def test_the_kernel_takes_the_filter() -> None:
    code = """
import errno, platform, socket
from nndeploy.sandbox.allowed import Sandbox
from nndeploy.sandbox.enter import enter
from nndeploy.sandbox.system_calls import ARCHITECTURES, REFUSED
enter(Sandbox(starts_sessions=True))
import ctypes
libc, column = ctypes.CDLL(None, use_errno=True), ARCHITECTURES.index(platform.machine())
for name, numbers in REFUSED.items():
    if numbers[column] >= 0:
        wrong = [ctypes.c_long(-1)] * 6
        assert libc.syscall(ctypes.c_long(numbers[column]), *wrong) == -1, name
        assert ctypes.get_errno() == errno.EPERM, (name, ctypes.get_errno())
import threading
thread = threading.Thread(target=print, args=("threads",))
thread.start()
thread.join()
a, b = socket.socketpair()
a.send(b"pairs")
print(b.recv(9).decode())
"""
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("threads\npairs\n", "")
