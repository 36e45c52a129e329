# SPDX-License-Identifier: Apache-2.0
"""Records that go through several levels again and again: a sound that is heard window by window.

`Returning` stands behind the last of these levels. Laws: a record goes on once its field `until` has a value, or it has
an error; nobody waits here, and no more records are on their way than the schedule let in.
"""

from typing import Any

import numpy as np

from nndeploy.stream.engine.queues import Outlet
from nndeploy.stream.records import Record
from nndeploy.values.types import Value


class Returning:
    """Hands a record on, or back to `entry`, which stands before the first of the levels."""

    entry: Outlet

    def __init__(self, until: str, outlet: Outlet) -> None:
        """Looks at the field of this name."""
        self._until = until
        self._outlet = outlet

    def put(self, record: Record) -> None:
        """Takes one record."""
        is_done = record.error is not None or is_given(record.fields[self._until])
        (self._outlet if is_done else self.entry).put(record)


def is_given(value: Value) -> bool:
    """Returns whether a field has a value: an empty text, 0 and false are none."""
    found: Any = np.any(value) if isinstance(value, np.ndarray) else value
    return bool(found)
