# SPDX-License-Identifier: Apache-2.0
"""What a batch did, a row a line, so that the next call goes on where this one ended.

    {"row": "plan", "digest": <digest>, "jobs": 5}
    {"row": "started", "job": <id>, "number": 1}
    {"row": "finished", "outcome": {...}, "output": [size, time of change, inode]}

Comes in: rows. Goes out: what is known of each job. Laws: a row is on the disk before anybody is told of it; a last
line that was cut off counts for nothing, and none is left where a disk was full; one call at a time writes.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nndeploy.errors import BusyError, CannotCreateError, DataError, InputOutputError, MissingInputError
from nndeploy.farm.outcome import Outcome, outcome_from_json, outcome_to_json
from nndeploy.files.whole_files import let_go, make_folders, read_regular, wrapped_io

NAME = "journal.jsonl"
_ANEW = "--fresh begins a new one"


class Journal:
    """The journal in a folder, open for one call."""

    def __init__(self, folder: Path, *, is_fresh: bool = False, is_read: bool = False) -> None:
        """Opens or makes it; with `is_fresh` what it says is forgotten, with `is_read` nothing is written.

        Raises:
            CannotCreateError: it cannot be made.
            BusyError: another call of the same batch is at work.
            DataError: it is no journal.
        """
        self.path = folder / NAME
        self._finished: dict[str, tuple[Outcome, list[int] | None]] = {}
        self._file, self._size = -1, 0
        if is_read:
            with contextlib.suppress(MissingInputError):
                self._read(read_regular(self.path))
            return
        try:
            make_folders(folder)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        except OSError as err:
            raise CannotCreateError(f"the journal cannot be made: {err.strerror}", where=str(self.path)) from err
        try:
            self._begin(is_fresh)
        except BaseException:
            let_go(self._file)
            raise

    def _begin(self, is_fresh: bool) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            raise BusyError("another call of this batch is at work", where=str(self.path)) from err
        except OSError:
            pass  # a file system without locks
        with wrapped_io(self.path):
            if is_fresh:
                os.ftruncate(self._file, 0)
            with os.fdopen(os.dup(self._file), "rb") as file:
                file.seek(0)
                data = file.read()
            self._size = data.rfind(b"\n") + 1
            os.ftruncate(self._file, self._size)  # a call was killed while it wrote
        self._read(data)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            let_go(self._file)

    def known(self, job: str, key: str) -> Outcome | None:
        """Returns the last final outcome of a job, if it was of this key."""
        outcome, _ = self._finished.get(job, (None, None))
        return outcome if outcome is not None and outcome.key == key else None

    def is_untouched(self, job: str, output: str | Path) -> bool:
        """Returns whether the output of a job is the file that it wrote."""
        _, facts = self._finished.get(job, (None, None))
        return facts is not None and facts == facts_of(output)

    def write(self, row: str, **fields: Any) -> None:
        """Adds a row, on the disk.

        Raises:
            InputOutputError: it cannot be written.
        """
        line = json.dumps({"row": row, **fields}, ensure_ascii=True).encode() + b"\n"
        begin = self._size
        try:
            while line:
                done = os.write(self._file, line)
                self._size, line = self._size + done, line[done:]
            if row == "finished":
                os.fdatasync(self._file)
        except OSError as err:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, begin)
                self._size = begin
            raise InputOutputError(f"the journal cannot be written: {err.strerror}", where=str(self.path)) from err

    def finished(self, outcome: Outcome, output: str | Path) -> None:
        """Adds what came of a job."""
        facts = facts_of(output) if outcome.is_good else None
        self.write("finished", outcome=outcome_to_json(outcome), output=facts)
        if outcome.final:
            self._finished[outcome.job] = (outcome, facts)

    def _read(self, data: bytes) -> None:
        for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), 1):
            where = f"{self.path}:{number}"
            try:
                row = json.loads(line)
            except ValueError as err:
                raise DataError("is no line of a journal", where=where, hint=_ANEW) from err
            if not isinstance(row, Mapping) or "row" not in row:
                raise DataError("is no row of a journal", where=where, hint=_ANEW)
            if row["row"] == "finished":
                outcome = outcome_from_json(row.get("outcome"), where)
                facts = row.get("output")
                if outcome.final:
                    self._finished[outcome.job] = (outcome, facts if isinstance(facts, list) else None)


def facts_of(path: str | Path) -> list[int] | None:
    """Returns what the system says of a file, by which it is known again; None where it is not there."""
    try:
        found = os.stat(path)  # noqa: PTH116 - of ten thousand, where a Path takes as long as the system
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns, found.st_ino]
