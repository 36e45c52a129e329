# SPDX-License-Identifier: Apache-2.0
"""A request for inference in the form that both protocols share, and the status that each gives an error.

Comes in: what json_form or message_form read. Goes out: values for a program, and who wants what of the outputs.
Law: a parameter that is not understood is refused, never passed over.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nndeploy.errors import (
    BundleError,
    BusyError,
    DataError,
    DeadlineError,
    InputError,
    MissingInputError,
    NndeployError,
    PolicyError,
    UnavailableError,
    UsageError,
    did_you_mean,
)
from nndeploy.values.types import Value

TIMEOUT = "timeout"
"""Parameter of a request: how many microseconds it may take."""
MAX_TIMEOUT_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class InferRequest:
    """Inputs by name, and what is to be given back; `outputs` empty means all of them.

    `timeout_ns` is how long the client waits, 0 where it did not say.
    """

    inputs: Mapping[str, Value]
    id: str = ""
    outputs: tuple[str, ...] = ()
    timeout_ns: int = 0


def checked_parameters(given: Mapping[str, object], known: Mapping[str, type], label: str) -> dict[str, object]:
    """Returns parameters of which each is known and of its type.

    Raises:
        InputError: one is not.
    """
    for name, value in given.items():
        if name not in known:
            raise InputError(f"{label} has the unknown parameter {name!r:.80}", hint=did_you_mean(name, known))
        if type(value) is not known[name]:
            raise InputError(f"the parameter {name!r} of {label} must be {known[name].__name__}, is {value!r:.40}")
    return dict(given)


def timeout_ns_of(parameters: Mapping[str, object]) -> int:
    """Returns the time limit that the parameters of a request set, 0 where they set none.

    Raises:
        InputError: it is no time.
    """
    timeout = parameters.get(TIMEOUT, 0)
    assert isinstance(timeout, int)
    if not 0 <= timeout <= MAX_TIMEOUT_US:
        raise InputError(f"the parameter 'timeout' is {timeout}", hint=f"microseconds, up to {MAX_TIMEOUT_US}")
    return timeout * 1000


def each_once(names: Sequence[str], label: str) -> tuple[str, ...]:
    """Returns the names.

    Raises:
        InputError: one occurs twice.
    """
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{label} {twice!r:.80} occurs twice")
    return tuple(names)


def wanted(outputs: Mapping[str, Value], names: Sequence[str]) -> dict[str, Value]:
    """Returns those outputs that were asked for, in that order; all that are present where none was.

    Raises:
        InputError: there is none of that name.
    """
    for name in names:
        if name not in outputs:
            raise InputError(f"no output is called {name!r:.80}", hint=did_you_mean(name, outputs))
    chosen = names or tuple(outputs)
    return {name: outputs[name] for name in chosen if outputs[name] is not None}


@dataclass(frozen=True, slots=True)
class Answer:
    """The outputs of a request, by name, and the version of the model that gave them."""

    outputs: Mapping[str, Value]
    version: str


class RefusedError(NndeployError):
    """A request that a protocol has a status of its own for: that of HTTP, and the name of gRPC's code."""

    code = "refused"

    def __init__(self, status: int, grpc_code: str, what: str, *, hint: str = "") -> None:
        super().__init__(what, hint=hint)
        self.status = (status, grpc_code)


STATUSES: tuple[tuple[type[NndeployError], int, str], ...] = (
    (BusyError, 429, "RESOURCE_EXHAUSTED"),
    (DeadlineError, 504, "DEADLINE_EXCEEDED"),
    (MissingInputError, 404, "NOT_FOUND"),
    (UnavailableError, 503, "UNAVAILABLE"),
    (PolicyError, 403, "PERMISSION_DENIED"),
    (BundleError, 500, "INTERNAL"),
    (DataError, 400, "INVALID_ARGUMENT"),
    (UsageError, 400, "INVALID_ARGUMENT"),
)
"""Kind of error -> status of HTTP and name of gRPC's code; the first that fits."""
INTERNAL = (500, "INTERNAL")


def status_of(error: BaseException) -> tuple[int, str]:
    """Returns the status of HTTP and the name of gRPC's code for an error."""
    if isinstance(error, RefusedError):
        return error.status
    found = (line[1:] for line in STATUSES if isinstance(error, line[0]))
    return next(found, INTERNAL)


def told(error: BaseException) -> str:
    """Returns what a client is told of an error; of a bug, only that it was one."""
    return str(error) if isinstance(error, NndeployError) else "internal server error; see the server's log"


Say = Callable[[str], None]
"""Tells the operator one line."""
