# SPDX-License-Identifier: Apache-2.0
"""What tests of processes have in common."""

import select
from collections.abc import Callable

import pytest


@pytest.fixture
def is_gone() -> Callable[[int, float], bool]:
    """A function that says whether the process of a descriptor ends within so many seconds."""

    def is_readable(descriptor: int, seconds: float) -> bool:
        poll = select.poll()  # which takes a descriptor of any number, unlike select
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    return is_readable
