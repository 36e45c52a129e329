# SPDX-License-Identifier: Apache-2.0
"""Tunes programs while they are used: a thread makes trials between their calls, within a share of the time.

In: programs that are open, and called by whoever has them. Out: sessions that go on in the best way, which is kept for
later loads, and figures of it. Laws: no bit of a result changes; a call waits for one trial at most.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from nndeploy.errors import NndeployError
from nndeploy.plugin.interface import Json, SessionWithTrials
from nndeploy.runtime.program import Program
from nndeploy.runtime.tune_program import nothing_to_tune, tables_of

SHARE = 0.05
"""Trials take at most this share of the time."""
LOOK_SECONDS = 0.05
"""So often it is asked whether there is something to try."""
MOST_LINES = 100
"""Lines about what was found that are kept."""
TUNING_FIGURES = {
    "tuning_seconds": "Time that trials of other ways of doing the work took.",
    "tuned_shapes": "Sets of input shapes for which there is nothing left to try.",
    "faster_shapes": "Those of them for which something is faster than the rules.",
}
"""The numbers of tuning, and what each is."""

Say = Callable[[str], None]


@dataclass(slots=True)
class TuningFigures:
    """What tuning did so far; one thread writes it."""

    num_tuned: int = 0
    """Sets of input shapes for which nothing is left to try."""
    num_faster: int = 0
    """Those of them that are done otherwise than by the rules now, since that is faster."""
    seconds: float = 0.0
    """How long all trials took."""
    lines: list[str] = field(default_factory=list)
    """What was found, a line for each set of shapes."""

    def to_json(self) -> dict[str, float]:
        """Returns the numbers as plain data."""
        return dict(zip(TUNING_FIGURES, (self.seconds, self.num_tuned, self.num_faster), strict=True))


@contextmanager
def tuned_meanwhile(
    programs: Iterable[Program], seconds: float, say: Say, changed: Callable[[TuningFigures], None] = lambda _: None
) -> Iterator[TuningFigures]:
    """Tries other ways between calls within the block, for so many seconds of trials at each set of shapes.

    `say` gets a line for each program that cannot be tuned, or where what is found cannot be kept; `changed` is called
    with the figures after each trial, by the thread that made it.
    """
    figures = TuningFigures()
    begun = [(str(one.path), session) for one in programs for session in _begun(one, seconds, say)]
    is_over = threading.Event()
    thread = threading.Thread(
        target=_work, args=(begun, is_over, figures, say, changed), name="nndeploy tune", daemon=True
    )
    thread.start()
    try:
        yield figures
    finally:
        is_over.set()
        thread.join()
        for _, session in begun:
            session.end_trials()


def _begun(program: Program, seconds: float, say: Say) -> list[SessionWithTrials]:
    found = [one for one in program.sessions.values() if isinstance(one, SessionWithTrials)]
    if not found:
        say(f"not tuned: {nothing_to_tune(program)}")
    begun = list[SessionWithTrials]()
    for session in found:
        try:
            session.begin_trials(seconds)
            begun.append(session)
        except NndeployError as err:
            session.end_trials()
            say(f"not tuned: {err.about(str(program.path))}")
    return begun


def _work(
    begun: Sequence[tuple[str, SessionWithTrials]],
    is_over: threading.Event,
    figures: TuningFigures,
    say: Say,
    changed: Callable[[TuningFigures], None],
) -> None:
    left, wait = deque(begun), 0.0
    while left and not is_over.wait(wait):
        wait = LOOK_SECONDS
        for _ in range(len(left)):
            path, session = left.popleft()
            began = time.perf_counter()
            try:
                found = session.try_once()
            except NndeployError as err:
                say(f"tuning {path} ends: {err}")
                continue
            left.append((path, session))
            if found is not None:
                took = time.perf_counter() - began
                wait = took / SHARE - took
                _add(figures, path, found, took)
                changed(figures)
                break


def _add(figures: TuningFigures, path: str, found: Sequence[Json], took: float) -> None:
    figures.seconds += took
    for table in tables_of(found):
        figures.num_tuned += 1
        figures.num_faster += bool(table["steps"])
        shapes = " ".join("x".join(map(str, shape)) or "1" for shape in table["shapes"])
        now = f"{table['tuned_us'] / 1e3:.3f} ms" if table["steps"] else "nothing is faster"
        if len(figures.lines) < MOST_LINES:
            figures.lines.append(f"tuned {path} for {shapes}: by the rules {table['rule_us'] / 1e3:.3f} ms, {now}")
