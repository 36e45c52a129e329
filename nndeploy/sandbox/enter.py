# SPDX-License-Identifier: Apache-2.0
"""Shuts this process into a sandbox: before it starts a thread, and before it sees anything of a stranger's.

What Landlock and the filter of calls restrict is a thread and what it starts later, so `enter` comes before NumPy and
every other library that has threads, or in a process that was just forked and has one.
"""

import ctypes
import os

from nndeploy.sandbox import landlock, places
from nndeploy.sandbox.allowed import Sandbox, sandbox_from_text
from nndeploy.sandbox.capabilities import PR_SET_NO_NEW_PRIVS, drop_capabilities
from nndeploy.sandbox.seccomp import filter_calls, has_seccomp


def missing() -> str:
    """Returns what of the sandbox this kernel has not, in words; "" where it is whole."""
    parts = {"Landlock": landlock.landlock_abi() > 0, "seccomp": has_seccomp()}
    return " and ".join(name for name, is_there in parts.items() if not is_there)


def enter_said(text: str) -> None:
    """Enters the sandbox that an argument of this process's command describes; "" is none."""
    if text:
        enter(sandbox_from_text(text))


def enter(sandbox: Sandbox) -> None:
    """Keeps this process, and all that it starts, to what `sandbox` allows, as far as this kernel can.

    Raises:
        OSError: the kernel has a part of it and does not do it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"no_new_privs: {os.strerror(ctypes.get_errno())}")
    drop_capabilities()
    if landlock.landlock_abi():
        landlock.restrict_files(
            {
                landlock.RUN: list(places.programs(sandbox.hidden)),
                landlock.READ: [*places.kernel_files(), *sandbox.reads],
                landlock.READ | landlock.WRITE_FILE | landlock.TRUNCATE: places.NULL,
                landlock.WRITE: sandbox.writes,
                landlock.DEVICE: places.gpu_nodes(),
            }
        )
    if has_seccomp():
        filter_calls(starts_sessions=sandbox.starts_sessions)
