# SPDX-License-Identifier: Apache-2.0
"""What an answer of a registry means that is no success: one error with its exit code.

What the registry says of it is untrusted text: short, and on one line.
"""

import json
from typing import Any

from nndeploy.errors import (
    BusyError,
    MissingInputError,
    NndeployError,
    PolicyError,
    UnavailableError,
    one_line,
)

MAX_TOLD_BYTES = 64 << 10
MAX_TOLD = 160
LOG_IN = "docker login, or --username with --password-stdin"
PASSING = frozenset((408, 429, 500, 502, 503, 504))
"""Statuses after which the same request may succeed."""


def failure(status: int, told: str, what: str, where: str, who: str = "the registry") -> NndeployError:
    """Returns the error for a status; `what` is what was asked of `who`, `told` what that says of it."""
    says = f": {told}" if told else ""
    match status:
        case 401:
            return PolicyError(f"{who} refuses the credentials for {what}{says}", where=where, hint=LOG_IN)
        case 403:
            return PolicyError(f"{who} does not allow {what}{says}", where=where)
        case 404:
            return MissingInputError(f"{who} has no {what}{says}", where=where)
        case 429:
            return BusyError(f"{who} received too many requests{says}", where=where, hint="try again later")
        case _:
            return UnavailableError(f"{who} answers {status} to {what}{says}", where=where)


def told_by(body: bytes) -> str:
    """Returns what the body of an answer says in the form of registries, "" where it says nothing in it."""
    try:
        found: Any = json.loads(body)["errors"][0]["message"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return one_line(found)[:MAX_TOLD] if isinstance(found, str) else ""
