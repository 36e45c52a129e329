# SPDX-License-Identifier: Apache-2.0
"""Streams that start and end again and again, each in one of the ways in which a stream can end."""

import random
import threading
from itertools import count

from streaming import Make, Program, Sink, items_of, pipeline, plan_of, within_limit, x_to_y

from nndeploy.errors import InputError, InputOutputError
from nndeploy.stream.engine.engine import Stream, StreamOptions
from nndeploy.stream.stopping import Stop

ENDINGS = ("end", "stop", "error", "full", "bug")
MOST = 40
"""Items after which a stream ends at the latest."""
SECONDS = 20.0


class _BugError(Exception):
    """What no record can have."""


def _plan(dice):
    steps = [Make(("x",), ("x",), lambda x: x)]
    runner = x_to_y(batch=dice.choice((1, 1, 3)), batch_delay_ns=dice.choice((0, 100_000)))
    workers = dice.randint(1, 3)
    posts = [([Make(("y",), ("y",), lambda y: y)], workers)] if dice.random() < 0.5 else []
    return plan_of(pipeline(loaders=[(steps, workers)], runner=runner, posts=posts), in_flight=dice.choice((0, 4, 9)))


def cycle(dice: random.Random) -> str:
    """Starts one stream and sees it end, with one outcome for each item in order; returns in which way it ended."""
    ending, last, stop, sink = dice.choice(ENDINGS), dice.randrange(MOST), Stop(), Sink()
    caller = threading.Timer(dice.random() / 1000, stop.request)

    def values():
        for index in range(last) if ending == "end" else count():
            if ending == "bug" and index == last:
                raise _BugError
            yield InputError("bad") if ending == "error" and index == last else index

    class Full(Sink):
        def write(self, outcome):
            if outcome.index == last:
                raise InputOutputError("full")
            super().write(outcome)

    if ending == "full":
        sink = Full()
    if ending == "stop":
        caller.start()
    before = set(threading.enumerate())
    options = StreamOptions(stop_on_error=ending == "error")
    made = Stream(_plan(dice), {"p": [Program(lambda x: {"y": x})]}, options, stop)
    try:
        within_limit(lambda: made.run(items_of(values()), sink), SECONDS)
    except (_BugError, InputOutputError):
        assert ending in ("full", "bug")
    else:
        assert ending in ("end", "stop", "error")
    caller.cancel()
    if caller.ident is not None:
        caller.join(SECONDS)
    stop.close()
    num = len(sink.outcomes)
    assert [one.index for one in sink.outcomes] == list(range(num))
    assert ending not in ("end", "full", "error") or num == last + (ending == "error")
    within_limit(lambda: [one.join() for one in set(threading.enumerate()) - before if "stream" in one.name], SECONDS)
    return ending
