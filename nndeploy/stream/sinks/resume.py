# SPDX-License-Identifier: Apache-2.0
"""`run --resume`: a run that was killed goes on after its last durable output, and ends with the same files.

The protocol, for outputs that grow record by record (a file of JSON lines or csv, a folder of npz or images), and for
statistics, whose sums are small:

1. Beside the output stands a journal, `out.jsonl.resume` or `out/.nndeploy-resume`, locked while a run uses it. Its
   first line is the fingerprint of the run: inputs (paths, sizes, times of change), bundles, pipeline, settings. A run
   with another fingerprint is refused and changes nothing.
2. Records are written in order. About once a second, and when the run is stopped, the output is forced to the disk and
   then a line is added to the journal, and forced there too: so many records are done, so many bytes are theirs, these
   are their sums. Each line of the journal ends with its checksum; a torn last line counts as not written. A journal
   that became long is replaced by one of the first and the last line, whole or not at all.
3. A run that goes on believes the last whole line: it cuts the output back to what is said there, removes temporary
   files of the run before it, and begins with the next record. What was written after that line is written again.
4. At the end a last line says `done`, then the output gets its name, then the journal is removed. A run that finds
   `done` does nothing but that.

A file grows as `out.jsonl.part`; one in a folder gets its name when it is whole. So whatever moment a kill or a loss of
power hits, either the journal is not there (nothing is done, or all is), or it says what of the output is durable.
A failed write or fsync ends the run, and is never taken for done.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nndeploy.errors import BusyError, CannotCreateError, DataError, InputOutputError
from nndeploy.files.whole_files import let_go, no_folder, open_growing, sync_folder, wrapped_io
from nndeploy.stream.items import Outcome
from nndeploy.stream.sinks.resumable import Resumable
from nndeploy.stream.sinks.sinks import Sink

VERSION = 1
_HEAD = b'{"journal": '
"""How a journal begins."""
CHECKPOINT_SECONDS = 1.0
FOLDER_JOURNAL = ".nndeploy-resume"
FILE_SUFFIX = ".resume"
MAX_JOURNAL_BYTES = 1 << 30
LONG_JOURNAL_BYTES = 16 << 20

State = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run had come: its records, of which so many failed or held NaN."""

    num_records: int = 0
    num_failed: int = 0
    num_non_finite: int = 0


def journal_path(output: Path, *, is_file: bool) -> Path:
    """Returns where the journal of an output stands."""
    return output.with_name(output.name + FILE_SUFFIX) if is_file else output / FOLDER_JOURNAL


def digest(data: object) -> str:
    """Returns a digest of plain data."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode("ascii")).hexdigest()


def digest_of_files(paths: Sequence[Path]) -> str:
    """Returns a digest of the names, sizes and times of change of files; one that is gone counts as that."""
    found = hashlib.sha256()
    for path in paths:
        try:
            status = path.stat()
            facts = (str(path), status.st_size, status.st_mtime_ns)
        except OSError as err:
            facts = (str(path), -1, err.errno or 0)
        found.update(json.dumps(facts).encode("ascii"))
    return found.hexdigest()


class Journal:
    """The journal of one output; opened and locked by one run at a time."""

    def __init__(self, path: Path, fingerprint: Mapping[str, str]) -> None:
        """Opens or begins the journal.

        Raises:
            DataError: it belongs to a run with another fingerprint.
            BusyError: another run uses it.
            CannotCreateError: it cannot be made.
        """
        self.path = path
        self.is_done = self.is_new = False
        self.progress = Progress()
        self.states: list[State] = []
        self._header = _text_of({"journal": VERSION, "fingerprint": dict(fingerprint)})
        self._next_path = path.with_name(path.name + ".next")
        self._descriptor = _locked(path)
        try:
            if self._next_path.exists():  # a run was killed while it replaced its journal
                with wrapped_io(path):
                    self._next_path.unlink()
            lines = self._lines()
            self.is_new = not lines
            if self.is_new:
                if path.name == FOLDER_JOURNAL:  # the folder may be new too
                    with wrapped_io(path):
                        sync_folder(path.parent.parent)
                self._append(self._header)
                with wrapped_io(path):
                    sync_folder(path.parent)
                return
            self._check(lines[0], fingerprint)
            self._take(lines[-1])
        except BaseException:
            self.close()
            raise

    def _lines(self) -> list[dict[str, Any]]:
        """Returns the first and the last whole line; cuts a torn one off."""
        with wrapped_io(self.path):
            size = os.fstat(self._descriptor).st_size
            data = os.pread(self._descriptor, min(size, MAX_JOURNAL_BYTES), 0)
            found: list[dict[str, Any]] = []
            end = 0
            for line in data.splitlines(keepends=True):
                parsed = _parsed(line)
                if parsed is None:
                    break
                end += len(line)
                found = [found[0] if found else parsed, parsed]
            if not found and not _HEAD.startswith(data.strip(b"\0")[: len(_HEAD)]):  # zeros are a power that was lost
                raise DataError("is no journal", where=str(self.path), hint="name another output, or remove it")
            os.ftruncate(self._descriptor, end)
        return found

    def _check(self, header: Mapping[str, Any], fingerprint: Mapping[str, str]) -> None:
        before = header.get("fingerprint")
        if header.get("journal") != VERSION or not isinstance(before, dict):
            raise DataError("is no journal of this version", where=str(self.path), hint="remove it to start again")
        if other := [name for name in fingerprint if before.get(name) != fingerprint[name]]:
            raise DataError(
                f"the interrupted run had other {' and '.join(other)}",
                where=str(self.path), hint="run the same command as before, or remove this file to start over",
            )  # fmt: skip

    def _take(self, line: Mapping[str, Any]) -> None:
        if "records" in line:
            self.progress = Progress(line["records"], line["failed"], line["non_finite"])
            self.states = line["sinks"]
            self.is_done = bool(line.get("done"))

    def write(self, progress: Progress, states: Sequence[State], *, is_done: bool = False) -> None:
        """Adds a line, and forces it to the disk."""
        line = {
            "records": progress.num_records,
            "failed": progress.num_failed,
            "non_finite": progress.num_non_finite,
            "sinks": [dict(state) for state in states],
        }
        text = _text_of(line | ({"done": True} if is_done else {}))
        if os.fstat(self._descriptor).st_size < LONG_JOURNAL_BYTES:
            self._append(text)
        else:
            self._replace_by(self._header + text)

    def _append(self, text: bytes) -> None:
        with wrapped_io(self.path):
            end = os.fstat(self._descriptor).st_size
            if os.pwrite(self._descriptor, text, end) != len(text):
                raise InputOutputError("writing failed: the disk is full", where=str(self.path))
            os.fsync(self._descriptor)

    def _replace_by(self, text: bytes) -> None:
        """Puts another journal in place of this one; it is locked before it has the name."""
        before, self._descriptor = self._descriptor, _locked(self._next_path)
        try:
            self._append(text)
            with wrapped_io(self.path):
                self._next_path.replace(self.path)
                sync_folder(self.path.parent)
        finally:
            let_go(before)

    def remove(self) -> None:
        """Removes the journal: the output is finished."""
        with wrapped_io(self.path):
            self.path.unlink()
            sync_folder(self.path.parent)
        self.close()

    def give_up(self) -> None:
        """Lets go of the journal before anything was done; one that just began goes."""
        if self.is_new:
            self.remove()
        self.close()

    def close(self) -> None:
        """Lets go of the journal, which stays for the next run."""
        if self._descriptor >= 0:
            let_go(self._descriptor)
            self._descriptor = -1


def _text_of(line: Mapping[str, Any]) -> bytes:
    text = json.dumps(line).encode("ascii")
    return text + f" {zlib.crc32(text):08x}\n".encode("ascii")


def _parsed(line: bytes) -> dict[str, Any] | None:
    text, _, checksum = line.rstrip(b"\n").rpartition(b" ")
    if not line.endswith(b"\n") or checksum != f"{zlib.crc32(text):08x}".encode("ascii"):
        return None
    found = json.loads(text)
    return found if isinstance(found, dict) else None


def _locked(path: Path) -> int:
    while True:
        try:
            if path.name == FOLDER_JOURNAL:
                path.parent.mkdir(exist_ok=True)
            descriptor = open_growing(path)
        except FileNotFoundError as err:
            raise no_folder(path.parent if path.name == FOLDER_JOURNAL else path) from err
        except OSError as err:
            raise CannotCreateError(f"cannot be created: {err.strerror}", where=str(path)) from err
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as err:
            let_go(descriptor)
            raise BusyError("another run is writing this output", where=str(path)) from err
        if os.fstat(descriptor).st_nlink:
            return descriptor
        let_go(descriptor)  # the run before removed it between our two calls


class ResumedSink:
    """Writes into a sink whose outputs are resumable, and into the journal how far they are durable."""

    def __init__(self, journal: Journal, outputs: Sequence[Resumable], sink: Sink) -> None:
        """`sink` writes all of `outputs`, which are cut back to what the journal says.

        Raises:
            DataError: an output is not what the journal says.
        """
        self._journal = journal
        self._outputs = tuple(outputs)
        self._sink = sink
        self._progress = journal.progress
        self._is_sound = True
        self._next = time.monotonic() + CHECKPOINT_SECONDS
        if journal.is_done:
            return
        for one, state in zip(self._outputs, journal.states or [{}] * len(self._outputs), strict=True):
            one.resume(state)

    def write(self, outcome: Outcome) -> None:
        """Writes an outcome, and now and then makes all so far durable."""
        self._is_sound = False  # until it is written whole
        self._sink.write(outcome)
        self._is_sound = True
        before = self._progress
        self._progress = Progress(
            outcome.index + 1,
            before.num_failed + outcome.is_failed,
            before.num_non_finite + bool(outcome.non_finite),
        )
        if time.monotonic() >= self._next:
            self._checkpoint()
            self._next = time.monotonic() + CHECKPOINT_SECONDS

    def _checkpoint(self, *, is_done: bool = False) -> None:
        self._is_sound = False  # a failure is never tried again
        self._journal.write(self._progress, [one.checkpoint() for one in self._outputs], is_done=is_done)
        self._is_sound = True

    def finish(self) -> None:
        """Gives the output its name, and removes the journal."""
        if self._journal.is_done:
            for one, state in zip(self._outputs, self._journal.states, strict=True):
                one.finish_again(state)
        else:
            self._checkpoint(is_done=True)
            self._is_sound = False  # nothing may follow `done`
            self._sink.finish()
        self._journal.remove()

    def discard(self) -> None:
        """Leaves output and journal for the next run."""
        try:
            if self._is_sound and self._progress != self._journal.progress:
                self._checkpoint()
        finally:
            with contextlib.suppress(Exception):  # what counts is on the disk already
                self._sink.discard()
            self._journal.close()
