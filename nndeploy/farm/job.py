# SPDX-License-Identifier: Apache-2.0
"""One job of a batch: a model, compiled with certain options into one bundle.

Made by `expand`; travels to workers as JSON. Law: `job_from_json(job_to_json(job)) == job`, and what is no job is
refused.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from nndeploy.compiler.options import CompileLimits, CompileOptions
from nndeploy.errors import DataError, did_you_mean
from nndeploy.options.described import described_fields

HOST = "host"
"""The target of a job that names no box: the machine on which it runs."""


@dataclass(frozen=True, slots=True)
class Job:
    """One build. Paths are absolute; `given` and `limits` are plain data.

    `id` is "model/target/variant", or "model/target" where the batch has no variants; no two jobs of a batch have the
    same. `given` is what was given of `CompileOptions`, as `options_from` takes it, but for known boxes, which are
    named (`job_options.given_here`); `limits` what was given of `CompileLimits`, as values. `needs` names what a worker
    must have, {} where any will do. `estimate` is in seconds, 0 where nothing is known.
    """

    id: str
    model: str
    target: str
    variant: str
    source: str
    given: Mapping[str, Any]
    limits: Mapping[str, Any]
    output: str
    needs: Mapping[str, str] = field(default_factory=dict)
    estimate: float = 0.0


def job_id(model: str, target: str, variant: str) -> str:
    """Returns the name of a job in its batch."""
    return "/".join(filter(None, (model, target, variant)))


def command_of(fleet_file: str, job: str, *more: str) -> tuple[str, ...]:
    """Returns the words of the command that does one job of a fleet file, by its id."""
    return ("nndeploy", "batch", fleet_file, f"--only={job}", *more)


def why_no_name(name: str) -> str:
    """Returns why a model, target or variant cannot be called so, or "": a name is a part of a path and of a line."""
    if name in ("", ".", ".."):
        return "is not a file name"
    if "/" in name:
        return "holds a slash"
    return "" if name.isprintable() else "holds a character that cannot be printed"


def limits_of(job: Job) -> CompileLimits:
    """Returns what a job may take."""
    return CompileLimits(**job.limits)


_FIELDS = tuple(field.name for field in fields(Job))
_OPTIONS = frozenset(described_fields(CompileOptions))
_LIMITS = frozenset(field.name for field in fields(CompileLimits))
_TEXTS = ("id", "model", "target", "variant", "source", "output")
_TABLES = ("given", "limits", "needs")


def job_to_json(job: Job) -> dict[str, Any]:
    """Returns a job as plain data; its tables are the job's own."""
    return {name: getattr(job, name) for name in _FIELDS}


def job_from_json(data: object) -> Job:
    """Returns the job that plain data say.

    Raises:
        DataError: a field is missing, unknown or of another type; a name is none, or a path not absolute.
    """
    if not isinstance(data, dict):
        raise DataError(f"a job must be a table, is {data!r:.60}", where="job")
    for key in data:
        if key not in _FIELDS:
            raise DataError(f"unknown field {key!r:.60}", where="job", hint=did_you_mean(str(key), _FIELDS))
    for key in _FIELDS:
        if key not in data:
            raise DataError(f"the field {key!r} is missing", where="job")
    for key in (*_TEXTS, *_TABLES):
        if not isinstance(data[key], str if key in _TEXTS else dict):
            raise DataError(f"{key} must be {'a text' if key in _TEXTS else 'a table'}", where="job")
    _check_names(data)
    for key, names in (("given", _OPTIONS), ("limits", _LIMITS)):
        for name in data[key]:
            if name not in names:
                raise DataError(f"unknown option {name!r:.60}", where="job", hint=did_you_mean(str(name), names))
    if not all(isinstance(text, str) for text in (*data["needs"], *data["needs"].values())):
        raise DataError("needs must be a table of texts", where="job")
    if type(data["estimate"]) not in (int, float) or not 0 <= data["estimate"] < math.inf:
        raise DataError("estimate must be a number of seconds", where="job")
    return Job(**{**data, "estimate": float(data["estimate"])})


def _check_names(data: Mapping[str, Any]) -> None:
    for key in ("model", "target", "variant"):
        reason = "" if key == "variant" and not data[key] else why_no_name(data[key])
        if reason:
            raise DataError(f"{key} {data[key]!r:.60} {reason}", where="job")
    if data["id"] != job_id(data["model"], data["target"], data["variant"]):
        raise DataError(f"id {data['id']!r:.60} is not made of model, target and variant", where="job")
    for key in ("source", "output"):
        if not Path(data[key]).is_absolute() or "\0" in data[key]:
            raise DataError(f"{key} must be an absolute path, is {data[key]!r:.60}", where="job")
