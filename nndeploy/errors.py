# SPDX-License-Identifier: Apache-2.0
"""Every exception that nndeploy raises on purpose, each with its exit code.

A message has three parts, one line each at most: what is wrong (with the name and both values), where
(file, node, stage) and a hint (what to do). Nobody catches an error to print it except `nndeploy.cli.main`.
A refusal that is part of normal work (a backend that does not take a node) is a value with a reason, not an
exception.

Source: exit codes follow sysexits.h where it has one; 124 is timeout(1)'s, 128+n a signal's.
"""

import difflib
import errno
import os
import signal
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


class NndeployError(Exception):
    """Root of all errors; `str(error)` is one line: what, where and hint.

    `what` says what is wrong, `where` names the file, node or stage, `hint` says what to do.
    """

    exit_code = 70
    code = "internal"

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        if self.hint:
            text += f" (hint: {self.hint})"
        return one_line(text)

    def within(self, where: str) -> "NndeployError":
        """Returns the same error with `where` put before what it already names; a layer adds its context once."""
        self.where = f"{where}: {self.where}" if self.where else where
        return self

    def about(self, origin: str) -> "NndeployError":
        """Returns the same error, `within` what it came up with unless it names that already."""
        return self if origin in self.where else self.within(origin)


class UsageError(NndeployError):
    """The command line or a call was put together wrongly."""

    exit_code = 2
    code = "usage"


class DataError(NndeployError):
    """A model, bundle, input or configuration file is malformed or does not fit."""

    exit_code = 65
    code = "bad-data"


class ModelError(DataError):
    """A model is malformed, or holds something that nothing here can run."""

    code = "bad-model"


class CrashedError(ModelError):
    """A library crashed on a model; `signal` is the number of what ended it, 0 where it ended by itself."""

    code = "crashed"
    signal = 0


class BundleError(DataError):
    """A bundle is malformed, damaged or of a newer format."""

    code = "bad-bundle"


class InputError(DataError):
    """A value handed to a program has the wrong name, dtype, rank or size, or holds an index that is out of range."""

    code = "bad-input"


class NotTakenError(DataError):
    """No pipeline of a level takes a record: what became of it, and nobody's fault."""

    code = "not-taken"


class OtherVariantError(InputError):
    """A session does not compute with these values; the next variant of its submodel may."""


class OtherSizesError(OtherVariantError):
    """A session was not built for these sizes."""


class CheckError(NndeployError):
    """A gate or a comparison failed although everything ran; `report` is what was found until then, if anything."""

    exit_code = 1
    code = "check-failed"
    report: Any = None


class MissingInputError(NndeployError):
    """A file that should be read does not exist."""

    exit_code = 66
    code = "no-input"


class UnavailableError(NndeployError):
    """A backend, a device or a library is not usable here."""

    exit_code = 69
    code = "unavailable"


class CannotCreateError(NndeployError):
    """An output cannot be created."""

    exit_code = 73
    code = "cannot-create"


class InputOutputError(NndeployError):
    """Reading or writing failed half way."""

    exit_code = 74
    code = "io"


class BusyError(NndeployError):
    """Somebody else is at it; the same call may work later."""

    exit_code = 75
    code = "busy"


class PolicyError(NndeployError):
    """Refused by policy: an operator, path or signature that is not allowed."""

    exit_code = 77
    code = "policy"


class DeadlineError(NndeployError):
    """A time limit passed."""

    exit_code = 124
    code = "time-limit"


class MemoryLimitError(DeadlineError):
    """A limit of memory was reached."""

    code = "memory-limit"


class BuildRefusedError(Exception):
    """A library would not build or run a submodel; `str(error)` is the reason, one line."""


ERRORS_BY_CODE: dict[str, type[NndeployError]] = {
    error.code: error
    for error in (
        NndeployError, UsageError, DataError, ModelError, CrashedError, BundleError, InputError, CheckError,
        MissingInputError, UnavailableError, CannotCreateError, InputOutputError, BusyError, PolicyError, DeadlineError,
        MemoryLimitError,
    )
}  # fmt: skip


_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def lacks_space(error: BaseException | None) -> bool:
    """Returns whether an error is, or comes of, a disk that is full; libraries say so in the system's words."""
    for one in _chain(error):
        if isinstance(one, OSError) and one.errno in _NO_SPACE:
            return True
        if not isinstance(one, NndeployError) and tells_of_full_disk(str(one)):
            return True
    return False


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yields an error and what it comes of, each once: who raises one while it is handled makes a circle."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


_FULL_DISK = "no space is left on the disk"


def tells_of_full_disk(text: str) -> bool:
    """Returns whether a message, ours or of the system's words, is of a disk that is full."""
    return any(words in text for words in (_FULL_DISK, *map(os.strerror, _NO_SPACE)))


def full_disk() -> InputOutputError:
    """Returns the error that says so."""
    return InputOutputError(_FULL_DISK, hint="free some space; TMPDIR is the directory of temporary files")


def lacks_files(error: BaseException | None) -> bool:
    """Returns whether an error is, or comes of, too many open files, and so says nothing of the file it names."""
    return any(isinstance(one, OSError) and one.errno in (errno.EMFILE, errno.ENFILE) for one in _chain(error))


def shortage_of_files(error: BaseException | None) -> InputOutputError | None:
    """Returns what to say where an error is, or comes of, an open file or space on a disk that could not be had."""
    if lacks_space(error):
        return full_disk()
    if lacks_files(error):
        return InputOutputError("too many files are open", hint="raise the limit: ulimit -n, LimitNOFILE=")
    return None


def shortage(error: BaseException | None) -> InputOutputError | None:
    """Returns what to say where an error is, or comes of, memory, a thread, an open file or space on a disk.

    None of these is a bug of whoever asked, and the same call may work with a higher limit.
    """
    if any(isinstance(one, MemoryError) or _is_refused_memory(one) for one in _chain(error)):
        return InputOutputError("out of memory", hint="fewer --threads, or a higher limit")
    return shortage_of_files(error)


def _is_refused_memory(error: BaseException) -> bool:
    """Returns whether Python, or the loader of a library, says in other words that there is no memory."""
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    return any(text in str(error) for text in _NO_MEMORY.get(type(error), ()))


_NO_MEMORY: dict[type[BaseException], tuple[str, ...]] = {
    RuntimeError: ("can't start new thread", "can't allocate"),
    ImportError: ("failed to map segment", "cannot allocate memory", "Cannot allocate memory"),
    OSError: ("failed to map segment", "cannot allocate memory"),
}


def error_to_json(error: NndeployError) -> dict[str, str]:
    """Returns an error as plain data."""
    return {"code": error.code, "what": error.what, "where": error.where, "hint": error.hint}


def error_from_json(data: Mapping[str, str]) -> NndeployError:
    """Returns the error that `data` describes."""
    kind = ERRORS_BY_CODE.get(data["code"], NndeployError)
    return kind(data["what"], where=data["where"], hint=data["hint"])


def told_error(error: NndeployError) -> dict[str, Any]:
    """Returns an error as answers and reports tell it to others."""
    return {
        "code": error.code,
        "exit_code": error.exit_code,
        "message": error.what,
        "where": error.where,
        "hint": error.hint,
    }


def one_line(text: str) -> str:
    """Returns `text` on one line, control characters escaped, so that a hostile name cannot drive a terminal."""
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line)


def describe_exit(returncode: int) -> str:
    """Returns how a process ended: "crashed (SIGSEGV)" or "ended with status 3"."""
    if returncode < 0:
        return f"crashed ({signal.Signals(-returncode).name})"
    return f"ended with status {returncode}"


SAME_WORD = 0.7
"""How alike two names are, 0 to 1, of which one may be a slip for the other."""

LEAST_BEGINNING = 3
"""How many letters of a name say which one is meant, where only one begins with them."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns that of `known` which `name` may be a slip for, or the one of which one begins the other, else ""."""
    folded, typed = {known_name.casefold(): known_name for known_name in known}, name.casefold()
    near = difflib.get_close_matches(typed, folded, n=1, cutoff=SAME_WORD)
    if not near:
        near = [one for one in folded if sorted(one) == sorted(typed) or _begins(one, typed) or _begins(typed, one)]
    return folded[near[0]] if len(near) == 1 else ""


def _begins(name: str, typed: str) -> bool:
    return len(typed) >= LEAST_BEGINNING and name.startswith(typed)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns a hint that names the nearest of `known`, or lists them all when none is near."""
    names = list(known)
    if near := nearest(name, names):
        return f"did you mean {near!r}?"
    return "known: " + ", ".join(repr(n) for n in names[:12]) + (", ..." if len(names) > 12 else "") if names else ""
