# SPDX-License-Identifier: Apache-2.0
"""Tunes a loaded program for this machine: its sessions try other ways of doing their work while it is run.

In: samples, of which one of each set of shapes is run again and again. Out: what was found, as plain data, which the
sessions have taken and kept for later loads. Law: no bit of a result changes, unless it is allowed.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import FastTunedSession, Json, TunedSession
from nndeploy.runtime.program import Program
from nndeploy.values.types import Value, shapes_text

OVERTIME = 2.0
"""A program whose runs take long ends after so many times the seconds that were given."""


def tune(
    program: Program, samples: Sequence[Mapping[str, Value]], seconds: float, *, is_fast: bool = False
) -> list[Json]:
    """Returns what was found for the shapes of the samples in about so many seconds.

    `is_fast`: ways are tried too whose results differ in last bits.

    Raises:
        UnavailableError: no session can be tuned.
        InputOutputError: what is found cannot be kept.
        NndeployError: a run fails.
    """
    sessions = _tuned_sessions(program)
    of_each_shape = {shapes_text(sample): sample for sample in reversed(samples)}.values()
    each = seconds / len(of_each_shape)
    return [one for sample in of_each_shape for one in _tuned(program, sessions, sample, each, is_fast)]


def replay(program: Program, found: Sequence[Json]) -> list[Json]:
    """Lets the sessions take and keep what `tune` found before; returns what was theirs.

    Raises:
        UnavailableError: no session can be tuned.
        DataError: it is malformed, or of another bundle or machine.
        InputOutputError: it cannot be kept.
    """
    return [one for session in _tuned_sessions(program) for one in session.replay_tuning(found)]


def tables_of(found: Sequence[Json]) -> Iterator[Mapping[str, Any]]:
    """Yields the tables of what was found, each for one set of shapes."""
    for one in found:
        yield from one["tables"]


def tuning_notes(program: Program) -> list[str]:
    """Returns why what was found before is not taken, a line each."""
    sessions = (one for one in program.sessions.values() if isinstance(one, TunedSession))
    return [note for note in (program.variants_note, *(one.tuning_note for one in sessions)) if note]


def is_tunable(program: Program) -> bool:
    """Whether a session can be tuned."""
    return any(isinstance(one, TunedSession) for one in program.sessions.values())


def nothing_to_tune(program: Program) -> UnavailableError:
    """Returns the error of a program without sessions that can be tuned."""
    hint = "the native backend can be tuned, in this process: compile with --backends native, run without --isolate all"
    return UnavailableError("nothing of the bundle can be tuned here", where=str(program.path), hint=hint)


def _tuned_sessions(program: Program) -> list[TunedSession]:
    found: list[TunedSession] = [one for one in program.sessions.values() if isinstance(one, TunedSession)]
    if found:
        return found
    raise nothing_to_tune(program)


def _tuned(
    program: Program, sessions: Sequence[TunedSession], sample: Mapping[str, Value], seconds: float, is_fast: bool
) -> list[Json]:
    for session in sessions:
        if is_fast and isinstance(session, FastTunedSession):
            session.begin_fast_tuning(seconds)
        else:
            session.begin_tuning(seconds)
    until = time.perf_counter() + OVERTIME * seconds
    is_over = False
    while not is_over:
        program.run(sample)
        is_over = time.perf_counter() > until or all(session.is_tuned for session in sessions)
    return [one for session in sessions for one in session.end_tuning()]
