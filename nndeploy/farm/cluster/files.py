# SPDX-License-Identifier: Apache-2.0
"""Files that travel between this machine and a worker, in pieces, and what was built there in its place here.

Laws: a file that is sent is read once, piece by piece, and no more of it is in memory; one that comes has its place
when all of it is there, its digest is the one that was said, and a bundle is whole. A bundle that holds code is signed
here, with this machine's key: who gives work to a farm trusts its workers, and its boxes need not know them.
"""

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from nndeploy.build_cache.entry import Blob
from nndeploy.bundle.reader import open_bundle
from nndeploy.compiler.outputs import BUNDLE, outputs_of
from nndeploy.errors import BusyError, InputOutputError
from nndeploy.farm.job import Job
from nndeploy.farm.outcome import Outcome
from nndeploy.files.handed_file import HandedFile
from nndeploy.files.pieces import ANY_SIZE, PIECE_BYTES, sha256_of
from nndeploy.files.whole_files import make_folders, open_regular, reading, wrapped_io
from nndeploy.trust.signing import sign_as_this_machine

Ask = Callable[[str, int, int], Awaitable[bytes]]
"""Returns the piece of a file, by digest and size, at an offset; an empty one where there is none."""


async def send_pieces(path: Path, blob: Blob, ask: Callable[[int, bytes], Awaitable[str]]) -> None:
    """Sends a file through `ask`, which takes an offset and a piece and returns what went wrong.

    Raises:
        BusyError: it changed since its digest was taken, or the worker cannot take it.
        NndeployError: it cannot be read.
    """
    with open_regular(path, ANY_SIZE) as file:
        offset, piece = 0, await _read(path, file)
        while True:
            if wrong := await ask(offset, piece):
                raise BusyError(wrong, where=str(path))
            offset += len(piece)
            if offset >= blob.size:
                return
            piece = await _read(path, file)
            if not piece:
                raise BusyError("it changed while it was sent", where=str(path), hint="run it again")


async def _read(path: Path, file: BinaryIO) -> bytes:
    with reading(path):
        return await asyncio.to_thread(file.read, PIECE_BYTES)


async def delivered(outcome: Outcome, job: Job, outputs: Mapping[str, tuple[str, int, bytes]], ask: Ask) -> Outcome:
    """Puts what a worker built in its place; returns the outcome with the digest and size of the bundle here.

    `outputs` is name -> digest, size and beginning of a file.

    Raises:
        InputOutputError: it cannot be written here.
        NndeployError: it did not come whole.
    """
    if not outcome.is_good:
        return outcome
    if BUNDLE not in outputs:
        raise BusyError("the worker no longer has the bundle that it built")
    steps, piece = _delivery(outcome, job, outputs), None
    try:
        while True:
            found = await asyncio.to_thread(_next, steps, piece)
            if isinstance(found, Outcome):
                return found
            piece = await ask(*found)
    finally:
        with suppress(ValueError):  # this was cancelled, and a thread is still at a step, with which it drops the rest
            steps.close()


_Wanted = tuple[str, int, int]
"""What `Ask` takes."""


def _next(steps: Generator[_Wanted, bytes | None, Outcome], piece: bytes | None) -> _Wanted | Outcome:
    try:
        return steps.send(piece)
    except StopIteration as end:
        found: Outcome = end.value
        return found


def _delivery(
    outcome: Outcome, job: Job, outputs: Mapping[str, tuple[str, int, bytes]]
) -> Generator[_Wanted, bytes | None, Outcome]:
    """Does what `delivered` does, and yields what it lacks, for which it is sent the piece."""
    with ExitStack() as held:
        files = {
            name: _place(held, path) for name, path in outputs_of(job.output, job.given).items() if name in outputs
        }
        for name, handed in files.items():
            with wrapped_io(handed.path), handed.path.open("xb") as file:
                yield from _written(file, *outputs[name])
                file.flush()
                os.fsync(file.fileno())
        return _in_place(outcome, files)


def _written(file: BinaryIO, sha256: str, size: int, begin: bytes) -> Generator[_Wanted, bytes | None, None]:
    """Writes a file of a worker, of which the beginning may be here.

    Raises:
        BusyError: the worker has it no more, or it is another one.
    """
    digest, offset = hashlib.sha256(), 0
    while offset < size:
        piece = begin if begin and not offset else (yield sha256, size, offset)
        if not piece or offset + len(piece) > size:
            raise BusyError("the worker no longer has what it built", hint="run it again")
        digest.update(piece)
        file.write(piece)
        offset += len(piece)
    if digest.hexdigest() != sha256:
        raise BusyError("a file from the worker does not match its digest", hint="run it again")


def _in_place(outcome: Outcome, files: Mapping[str, HandedFile]) -> Outcome:
    path = files[BUNDLE].own_path
    warning = _checked_and_signed(path)
    sha256, size = sha256_of(path), path.stat().st_size
    for name in sorted(files, reverse=True):  # decisions, then the bundle that was made by them
        files[name].deliver()
    warnings = (*outcome.warnings, warning) if warning else outcome.warnings
    return replace(outcome, sha256=sha256, size=size, warnings=warnings)


def _place(held: ExitStack, path: Path) -> HandedFile:
    try:
        make_folders(path.parent)
    except OSError as err:
        raise InputOutputError(f"its folder cannot be created: {err.strerror}", where=str(path)) from err
    return held.enter_context(HandedFile(path))


def _checked_and_signed(path: Path) -> str:
    """Checks every member of a bundle, and signs it where it holds code; returns what to warn of."""
    with open_bundle(path) as bundle:
        bundle.verify()
    return sign_as_this_machine(path)
