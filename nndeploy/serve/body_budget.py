# SPDX-License-Identifier: Apache-2.0
"""How many bytes of requests a service has in memory, from the first that comes to the last of the answer.

Used by the thread of the event loop alone, so nothing is locked. Law: what a request took is given back when it ends,
however it ends.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nndeploy.serve.infer_request import RefusedError

BODIES = 8
"""So many requests of the largest size may be in memory at once."""


class BodyBudget:
    """The bytes that all requests have taken together, at most `BODIES` times the largest body."""

    def __init__(self, max_body: int) -> None:
        self._most = BODIES * max_body
        self._taken = 0

    @contextmanager
    def held(self) -> Iterator[Callable[[int], None]]:
        """Yields what a request takes bytes with, which are its own until the block ends.

        Raises, where it is called:
            RefusedError: too many are taken already.
        """
        own = 0

        def take(num_bytes: int) -> None:
            nonlocal own
            if self._taken + num_bytes > self._most:
                what = f"more than {self._most} bytes of requests are in memory"
                raise RefusedError(429, "RESOURCE_EXHAUSTED", what, hint="try again")
            own += num_bytes
            self._taken += num_bytes

        try:
            yield take
        finally:
            self._taken -= own
