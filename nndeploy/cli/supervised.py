# SPDX-License-Identifier: Apache-2.0
"""Commands that open what strangers made, once: a process of their own does the work, and this one waits for it.

Whatever ends that process, a crash of a library or of a probe, is one line and an exit code, and no signal. A second
signal to this process kills it, whatever a library does there.
"""

import os
import signal
from collections.abc import Sequence

from nndeploy.errors import CrashedError, describe_exit
from nndeploy.sandbox.child_process import PARENT, die_with_parent
from nndeploy.sandbox.memory import default_memory_limit, limit_memory

COMMANDS = ("verify", "install", "inspect", "doctor")
GROUP_SECONDS = 0.2
"""A signal that went to the whole group ends the other process by itself so soon."""
_SI_KERNEL = 0x80  # from a terminal, whose whole foreground has it
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def is_supervised(arguments: Sequence[str]) -> bool:
    """Returns whether a command line is of such a command."""
    return bool(arguments) and arguments[0] in COMMANDS and hasattr(signal, "sigwaitinfo")


def ended_elsewhere() -> int | None:
    """Returns None in a new process, which is to do the work; in this one its exit code, when it has ended.

    Raises:
        CrashedError: something ended it.
    """
    awaited = {signal.SIGCHLD, *(number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN)}
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    pid = os.fork()
    if pid == 0:
        os.environ[PARENT] = str(parent)
        die_with_parent()
        limit_memory(default_memory_limit())
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return None
    code = _awaited(pid, awaited)
    if code >= 0:
        return code
    if -code in _ENDING:
        return 128 - code
    raise CrashedError(f"a library {describe_exit(code)}", hint="nndeploy doctor checks this machine")


def _awaited(pid: int, awaited: set[signal.Signals]) -> int:
    """Returns how a process ended, as `os.waitstatus_to_exitcode` says; hands signals on to it."""
    handed_on = 0
    while True:
        info = signal.sigwaitinfo(awaited)
        if info.si_signo != signal.SIGCHLD and info.si_code != _SI_KERNEL and not handed_on:
            signal.sigtimedwait({signal.SIGCHLD}, GROUP_SECONDS)
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            code = os.waitstatus_to_exitcode(status)
            return -handed_on if handed_on and code == -signal.SIGKILL else code
        if info.si_signo == signal.SIGCHLD:
            continue
        if handed_on:
            os.kill(pid, signal.SIGKILL)
        elif info.si_code != _SI_KERNEL:
            os.kill(pid, info.si_signo)
        handed_on = info.si_signo
