# SPDX-License-Identifier: Apache-2.0
"""`run --trace out.json`: who worked on which record when, for Chrome's or Perfetto's viewer.

One row a worker; each piece of work is a complete event ("X") with the indices of its records, and an arrow leads from
one piece of work on a record to the next, from the source to the sink. Events go to the file in groups as they come, so
a long stream needs no memory; the file appears when the stream ends.

Source: the Trace Event Format of Chromium (JSON object format, `ph` X, M, and s, t, f for arrows, times in
microseconds).
"""

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from nndeploy.files.named_outputs import new_output
from nndeploy.files.whole_files import wrapped_io

GROUP = 512
ARROWS = {"source": "s", "sink": "f"}
"""Stages at which the arrows of a record begin and end; it goes through all others."""


class Trace:
    """Writes events; any thread may add one."""

    def __init__(self, path: Path) -> None:
        """Begins the file.

        Raises:
            CannotCreateError: it cannot be made.
        """
        self._new = new_output(path)
        self._lock = Lock()
        self._rows: dict[str, int] = {}
        self._events: list[dict[str, Any]] = []
        self._began_ns = time.perf_counter_ns()
        self._pid = os.getpid()
        self._is_first = True
        with wrapped_io(path):
            self._new.file.write(b'{"displayTimeUnit": "ms", "traceEvents": [')

    def span(self, worker: str, name: str, began_ns: int, ended_ns: int, indices: Sequence[int]) -> None:
        """Adds one piece of work on the records of these indices."""
        with self._lock:
            row = self._rows.get(worker)
            if row is None:
                row = self._rows[worker] = len(self._rows) + 1
                self._events.append(self._event("M", "thread_name", row, {"name": worker}))
                self._events.append(self._event("M", "thread_sort_index", row, {"sort_index": row}))
            args = {"record": indices[0]} if len(indices) == 1 else {"records": list(indices)}
            event = self._event("X", name, row, args)
            event["ts"] = (began_ns - self._began_ns) / 1e3
            event["dur"] = (ended_ns - began_ns) / 1e3
            self._events.append(event)
            for index in indices:
                arrow = self._event(ARROWS.get(name, "t"), "record", row, {})
                self._events.append({**arrow, "cat": "record", "id": index, "ts": event["ts"], "bp": "e"})
            if len(self._events) >= GROUP:
                self._write()

    def _event(self, phase: str, name: str, row: int, args: dict[str, Any]) -> dict[str, Any]:
        return {"ph": phase, "name": name, "pid": self._pid, "tid": row, "args": args}

    def _write(self) -> None:
        text = ",\n".join(map(json.dumps, self._events))
        with wrapped_io(self._new.path):
            self._new.file.write((("\n" if self._is_first else ",\n") + text).encode("ascii"))
        self._is_first = False
        self._events.clear()

    def finish(self) -> None:
        """Ends the file and gives it its name."""
        with self._lock:
            if self._events:
                self._write()
            with wrapped_io(self._new.path):
                self._new.file.write(b"\n]}\n")
            self._new.finish()

    def discard(self) -> None:
        """Removes the file, unless it is finished."""
        self._new.discard()
