# SPDX-License-Identifier: Apache-2.0
"""Trials in forked children: what a library does to its process is an outcome like others.

A child makes one trial after another and writes a line for each; the parent reads the lines, and where a child ends
by a signal, or is silent for too long, that is the outcome of the trial that it was at, and the next child goes on
behind it. The parent must not have started threads of the library.
"""

import os
import resource
import select
import signal
from collections.abc import Callable, Iterator

Trial = Callable[[int], str]

CHILD_TRIALS = 400
"""A fresh child after so many, so that what one trial spoils is not borne by many others."""


def outcomes(trial: Trial, numbers: range, seconds: float, memory_bytes: int) -> Iterator[tuple[int, str]]:
    """Yields (number, outcome) of each trial: its own line, "signal NAME", "hang" or "memory"."""
    at = numbers.start
    while at < numbers.stop:
        until = min(at + CHILD_TRIALS, numbers.stop)
        for number, line in _child(trial, range(at, until), seconds, memory_bytes):
            yield number, line
            at = number + 1


def _child(trial: Trial, numbers: range, seconds: float, memory_bytes: int) -> Iterator[tuple[int, str]]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(trial, numbers, writing, memory_bytes)
    os.close(writing)
    at, rest = numbers.start, b""
    try:
        while select.select([reading], [], [], seconds)[0]:
            if not (data := os.read(reading, 65536)):
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield at, line.decode()
                at += 1
        else:
            os.kill(child, signal.SIGKILL)
            yield at, f"hang: no answer within {seconds:g} s"
            return
    finally:
        os.close(reading)
        _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        yield at, f"signal {signal.Signals(os.WTERMSIG(status)).name}"
    elif at < numbers.stop and (code := os.WEXITSTATUS(status)):
        yield at, f"exit {code}"


def _work(trial: Trial, numbers: range, writing: int, memory_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    silent = os.open(os.devnull, os.O_WRONLY)  # what the library prints is not the parent's
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    try:
        for number in numbers:
            os.write(writing, trial(number).replace("\n", " ").encode() + b"\n")
    except BaseException as err:  # what is no outcome is a fault of the trial, told by the parent
        os.write(writing, f"untyped {type(err).__name__}: {err}".replace("\n", " ").encode() + b"\n")
    finally:
        os._exit(0)
