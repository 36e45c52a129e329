# SPDX-License-Identifier: Apache-2.0
"""A signal whose exception Python dropped still ends what looks for it, and handlers are what they were afterwards."""

import os
import signal
import weakref
from collections.abc import Iterator

import pytest

from nndeploy.farm.noted_signals import NotedSignals


class Thing:
    """Something that can be forgotten."""


@pytest.fixture
def interrupting() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupting")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_came_in_a_callback_is_not_lost() -> None:
    with NotedSignals() as signals:
        signals.check()
        thing = Thing()
        reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
        del thing  # what the callback raises is dropped by Python
        assert reference() is None
        with pytest.raises(KeyboardInterrupt):
            signals.check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interrupting")
def test_a_signal_is_raised_at_once_where_it_can_be() -> None:
    with NotedSignals(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_who_ignores_a_signal_goes_on_doing_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with NotedSignals() as signals:
            os.kill(os.getpid(), signal.SIGINT)
            signals.check()
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
