# SPDX-License-Identifier: Apache-2.0
"""Landlock: a process gives up all files but those below the paths that it names, and what reaches other processes.

No library is needed: three system calls, with the same numbers on every architecture. A newer kernel knows more rights;
what this one does not know stays as it was. Without any rule: no file is opened, made, removed or renamed, no TCP port
bound or connected to, no signal sent to a process outside, no abstract socket of one reached, none traced.

Not in Landlock's power: to ask for the size, times and mode of a file, and to change its mode or times.

Source: Linux, Documentation/userspace-api/landlock.rst and include/uapi/linux/landlock.h, ABI 1 to 7.
"""

import ctypes
import os
import stat
from collections.abc import Iterable, Mapping

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE, IOCTL_DEV = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG, _MAKE_FIFO, _MAKE_SYM = (
    1 << 4,
    1 << 5,
    1 << 7,
    1 << 8,
    1 << 10,
    1 << 12,
)
_REFER = 1 << 13
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_FILE_RIGHTS_BY_ABI = {1: (1 << 13) - 1, 2: _REFER, 3: TRUNCATE, 5: IOCTL_DEV}
_BIND_AND_CONNECT_TCP = 0b11  # ABI 4
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11  # ABI 6

READ = READ_FILE | READ_DIR
RUN = READ | EXECUTE
WRITE = (
    RUN | WRITE_FILE | TRUNCATE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_FIFO | _MAKE_SYM | _REFER
)
DEVICE = READ | WRITE_FILE | IOCTL_DEV


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("folder", ctypes.c_int32))


def landlock_abi() -> int:
    """Returns the version of Landlock that the kernel offers, 0 where it has none or does not let us have it."""
    try:
        return _call(_CREATE_RULESET, None, 0, _VERSION)
    except OSError:
        return 0


def restrict_files(rights: Mapping[int, Iterable[str]]) -> None:
    """Keeps this thread, and all that it starts, to `rights` -> paths; who may not gain privileges may do so.

    A path that is not there, or may not be seen, gives no right.

    Raises:
        OSError: the kernel does not do it.
    """
    abi = landlock_abi()
    handled = sum(more for since, more in _FILE_RIGHTS_BY_ABI.items() if since <= abi)
    network = _BIND_AND_CONNECT_TCP if abi >= 4 else 0
    scoped = _ABSTRACT_SOCKETS_AND_SIGNALS if abi >= 6 else 0
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    rules = _call(_CREATE_RULESET, ctypes.byref(_Ruleset(handled, network, scoped)), size, 0)
    try:
        for allowed, paths in rights.items():
            for path in paths:
                _allow(rules, path, allowed & handled)
        _call(_RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _OF_FILES
        _call(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(_PathBeneath(rights, descriptor)), 0)
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    passed = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    libc.syscall.restype = ctypes.c_long
    result = int(libc.syscall(ctypes.c_long(number), *passed))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock: {os.strerror(ctypes.get_errno())}")
    return result
