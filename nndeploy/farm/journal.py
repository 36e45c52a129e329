# SPDX-License-Identifier: Apache-2.0
"""What a batch did, a row a line, so that the next call goes on where this one ended.

    {"row": "plan", "digest": <digest>, "jobs": 5, "machine": {<parts of keys>}}
    {"row": "started", "job": <id>, "number": 1}
    {"row": "finished", "outcome": {...}, "output": [size, time of change, inode]}

    <folder>/journal.jsonl    of calls for the batch        jobs/<digest of an id>.jsonl    of calls for a job alone

Comes in: rows. Goes out: what is known of each job, whoever wrote it. Laws: a row is on the disk before anybody is told
of it; a last line that was cut off counts for nothing, and none is left where a disk was full; one call at a time
writes to a file, so that calls for different jobs do not wait for each other.
"""

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nndeploy.errors import BusyError, CannotCreateError, DataError, InputOutputError, MissingInputError
from nndeploy.farm.outcome import Outcome, outcome_from_json, outcome_to_json
from nndeploy.files.whole_files import let_go, make_folders, read_regular, wrapped_io

NAME, OF_JOBS = "journal.jsonl", "jobs"
_ANEW = "--fresh begins a new one"


@dataclass(frozen=True, slots=True)
class _Row:
    """What came of a job, what the system said of its output, and the parts of keys that were the machine's."""

    outcome: Outcome
    facts: list[int] | None
    machine: Mapping[str, str]


class Journal:
    """The journal in a folder, open for one call."""

    def __init__(self, folder: Path, *, job: str = "", is_fresh: bool = False, is_read: bool = False) -> None:
        """Opens or makes it; with `is_fresh` what it says is forgotten, with `is_read` nothing is written.

        A call for one `job` alone knows and writes only what calls of its own kind did.

        Raises:
            CannotCreateError: it cannot be made.
            BusyError: another call of the same batch is at work.
            DataError: it is no journal.
        """
        self.path = folder / OF_JOBS / f"{_digest(job)}.jsonl" if job else folder / NAME
        self._rows: dict[str, dict[str, _Row]] = {}
        self._machine: Mapping[str, str] = {}
        self._file, self._size = -1, 0
        if not is_read:
            self._open(is_fresh)
        elif not is_fresh:
            self._read_file(self.path)
        for path in () if job else sorted((folder / OF_JOBS).glob("*.jsonl")):
            if not is_fresh:
                self._read_file(path)
            elif not is_read:
                path.unlink(missing_ok=True)

    def _open(self, is_fresh: bool) -> None:
        try:
            make_folders(self.path.parent)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        except OSError as err:
            raise CannotCreateError(f"the journal cannot be created: {err.strerror}", where=str(self.path)) from err
        try:
            self._begin(is_fresh)
        except BaseException:
            let_go(self._file)
            raise

    def _begin(self, is_fresh: bool) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            raise BusyError("another call of this batch is running", where=str(self.path)) from err
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
        self._read(data, self.path)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            let_go(self._file)

    def known(self, job: str, key: str) -> Outcome | None:
        """Returns the last final outcome of a job, if it was of this key."""
        row = self._rows.get(job, {}).get(key)
        return row.outcome if row is not None else None

    def all_known(self, job: str) -> Iterator[tuple[Outcome, Mapping[str, str]]]:
        """Yields the final outcomes of a job, and of each the parts of its key that were those of the machine."""
        for row in self._rows.get(job, {}).values():
            yield row.outcome, row.machine

    def is_untouched(self, outcome: Outcome, output: str | Path) -> bool:
        """Returns whether the output of a job is the file that it wrote."""
        row = self._rows.get(outcome.job, {}).get(outcome.key)
        return row is not None and row.facts is not None and row.facts == facts_of(output)

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
            self._keep(_Row(outcome, facts, self._machine))

    def plan(self, digest: str, num_jobs: int, machine: Mapping[str, str]) -> None:
        """Says what a call is about to do, and on which machine, by its parts of keys."""
        self._machine = machine
        self.write("plan", digest=digest, jobs=num_jobs, machine=machine)

    def _keep(self, row: _Row) -> None:
        self._rows.setdefault(row.outcome.job, {})[row.outcome.key] = row

    def _read_file(self, path: Path) -> None:
        with contextlib.suppress(MissingInputError):
            self._read(read_regular(path), path)

    def _read(self, data: bytes, path: Path) -> None:
        machine: Mapping[str, str] = {}
        for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), 1):
            where = f"{path}:{number}"
            try:
                row = json.loads(line)
            except ValueError as err:
                raise DataError("is no line of a journal", where=where, hint=_ANEW) from err
            if not isinstance(row, Mapping) or "row" not in row:
                raise DataError("is no row of a journal", where=where, hint=_ANEW)
            if row["row"] == "plan":
                machine = _texts(row.get("machine"))
            if row["row"] == "finished":
                outcome = outcome_from_json(row.get("outcome"), where)
                facts = row.get("output")
                if outcome.final and not self._is_better_known(outcome, path):
                    self._keep(_Row(outcome, facts if isinstance(facts, list) else None, machine))

    def _is_better_known(self, outcome: Outcome, path: Path) -> bool:
        """Returns whether another file says of a job that failed that the same build worked."""
        known = self.known(outcome.job, outcome.key)
        return path != self.path and known is not None and known.is_good and not outcome.is_good


def _digest(job: str) -> str:
    return hashlib.sha256(job.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _texts(data: object) -> dict[str, str]:
    return {str(name): str(text) for name, text in data.items()} if isinstance(data, Mapping) else {}


def facts_of(path: str | Path) -> list[int] | None:
    """Returns what the system says of a file, by which it is known again; None where it is not there."""
    try:
        found = os.stat(path)  # noqa: PTH116 - of ten thousand, where a Path takes as long as the system
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns, found.st_ino]
