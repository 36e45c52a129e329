# SPDX-License-Identifier: Apache-2.0
"""What a process of root's may keep of root's rights: to open and make files as root does, nothing of the machine's."""

import ctypes
import os

PR_SET_NO_NEW_PRIVS = 38
"""An option of prctl(2): no program that is started gains what this process lacks."""
_VERSION_3 = 0x20080522
_KEPT = 0b1111  # CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def drop_capabilities() -> None:
    """Gives up, for this thread and all that it starts, every capability but those for files.

    Who may not gain privileges does not get them back by executing a program.

    Raises:
        OSError: the kernel does not do it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = _Header(_VERSION_3, 0), (_Sets * 2)()
    if libc.capget(ctypes.byref(header), ctypes.byref(sets)) != 0:
        raise OSError(ctypes.get_errno(), f"capget: {os.strerror(ctypes.get_errno())}")
    kept = sets[0].permitted & _KEPT
    sets[0], sets[1] = _Sets(sets[0].effective & kept, kept, 0), _Sets(0, 0, 0)
    if libc.capset(ctypes.byref(header), ctypes.byref(sets)) != 0:
        raise OSError(ctypes.get_errno(), f"capset: {os.strerror(ctypes.get_errno())}")
