# SPDX-License-Identifier: Apache-2.0
"""The next variant of a submodel, for calls that the chosen one does not take.

Own kernels refuse sizes for which what the model says of them does not hold, as sizes of zero; other libraries refuse
NaN, or integers beyond 32 bits, with which they do not compute. The next variant is opened when the first such call
comes: most programs never need it.
"""

import threading
from collections.abc import Callable, Mapping

import numpy as np

from nndeploy.plugin.interface import Session
from nndeploy.values.types import Value


def _dense(value: Value) -> Value:
    """Returns a value whose elements follow each other: the chosen variant may have taken others."""
    return np.asarray(value, order="C") if isinstance(value, np.ndarray) else value


class NextVariant:
    """A session that is opened when it is needed first; several threads may call at once."""

    def __init__(self, opened: Callable[[], tuple[Session, str]]) -> None:
        """Takes what opens the session, and says of which backend it is."""
        self._opened = opened
        self._session: Session | None = None
        self._backend = ""
        self._lock = threading.Lock()

    def open(self) -> str:
        """Opens the session, unless it is; returns its backend.

        Raises:
            UnavailableError: no other variant can run here.
        """
        with self._lock:
            if self._session is None:
                self._session, self._backend = self._opened()
        return self._backend

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name.

        Raises:
            OtherVariantError: it does not take this call either.
        """
        assert self._session is not None, "it was opened"
        return self._session.run({name: _dense(value) for name, value in inputs.items()})

    def close(self) -> None:
        """Frees what the session holds, if it was opened."""
        with self._lock:
            if self._session is not None:
                self._session.close()
