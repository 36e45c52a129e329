# SPDX-License-Identifier: Apache-2.0
"""What came of one job of a batch: its status, the bundle, what was measured of it, or why there is none.

Comes in: how a build ended and the report of its compile. Goes out: a row of the journal and of `batch.json`, and what
every report tells. Law: `outcome_from_json(outcome_to_json(outcome)) == outcome` where its texts are Unicode.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nndeploy.bundle.json_fields import Fields
from nndeploy.bundle.report import Report
from nndeploy.errors import BundleError, DataError
from nndeploy.farm.job import Job

GOOD = ("ok", "hit")
"""There is a bundle: it was built, or it was in the cache."""
REFUSED = ("failed", "unsupported")
"""The model or the options are at fault (exit codes 65, 66, 77 and such), or a gate or a comparison is (1)."""
BROKEN = ("crash", "timeout", "memory", "infra")
"""It ended by a signal or a bug (70), by its time or memory limit (124), or because a machine failed (69, 74, 75)."""
NOT_RUN = ("cancelled", "skipped")
"""Nothing is known of it."""
STATUSES = (*GOOD, *REFUSED, *BROKEN, *NOT_RUN)

MAX_LOG_LINES = 20
MAX_SIGNAL = 64

_REASONS = {
    "failed": "the compile refused it",
    "unsupported": "a gate or a comparison failed",
    "crash": "a signal ended it",
    "timeout": "its time limit passed",
    "memory": "its memory limit was reached",
    "infra": "the machine that built it failed",
    "cancelled": "it was cancelled",
    "skipped": "it was left out",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a job ended; `job` is its id, unique in a batch, `variant` "" where there is one alone.

    `exit_code` is negative where a signal ended it. `seconds` are those of the build, or of the look-up of a hit;
    `final` says that it is not tried again. `key` is that of the cache, `miss` the parts of it that differ from the
    nearest entry. `output` is the bundle's path, relative to the fleet file's folder where it is below it. `size` is
    the bundle's in bytes, 0 where there is none; a job that was skipped may have one. `error` is what
    `nndeploy.errors.told_error` gives, `repeat` a shell command that repeats the job. `backends` maps each to its share
    of compute, 0..1, on the target; `idle_gpu` says why nothing runs on its GPU, "" where something does or it has
    none. `latency_ms` is the median of the placement that was chosen, `max_error` the largest difference from the
    original in a comparison of the whole; None where nothing was measured or compared. `cpu` names the processor that
    measured.
    """

    job: str
    model: str
    target: str
    variant: str
    status: str
    exit_code: int = 0
    seconds: float = 0.0
    tries: int = 1
    final: bool = True
    key: str = ""
    miss: tuple[str, ...] = ()
    output: str = ""
    sha256: str = ""
    size: int = 0
    error: Mapping[str, Any] | None = None
    log_tail: tuple[str, ...] = ()
    log: str = ""
    repeat: str = ""
    peak_mb: float = 0.0
    worker: str = ""
    cpu: str = ""
    backends: Mapping[str, float] = field(default_factory=dict)
    latency_ms: float | None = None
    max_error: float | None = None
    warnings: tuple[str, ...] = ()
    idle_gpu: str = ""

    @property
    def is_good(self) -> bool:
        """Whether there is a bundle."""
        return self.status in GOOD

    @property
    def has_other_bundle(self) -> bool:
        """Whether it was left out, and there is a bundle that an earlier batch built."""
        return self.status == "skipped" and self.size > 0

    @property
    def is_failure(self) -> bool:
        """Whether it was tried and there is no bundle."""
        return self.status in REFUSED or self.status in BROKEN

    @property
    def name(self) -> str:
        """The model and its variant, which several targets may have."""
        return f"{self.model}/{self.variant}" if self.variant else self.model

    @property
    def reason(self) -> str:
        """Why there is no bundle, with the place; "" where there is one."""
        if self.error is None:
            return _REASONS.get(self.status, "") + ("; its bundle is there" if self.has_other_bundle else "")
        message, where = self.error["message"], self.error["where"]
        return f"{where}: {message}" if where else str(message)


def fields_of(job: Job) -> dict[str, Any]:
    """Returns what an outcome says of its job, whatever came of it."""
    return {"job": job.id, "model": job.model, "target": job.target, "variant": job.variant, "output": job.output}


def outcome_of(fields: Mapping[str, Any], report: Report) -> Outcome:
    """Returns the outcome with these fields, and what the report of a compile says for the others."""
    return Outcome(**{**_from_report(report), **fields})


def _from_report(report: Report) -> dict[str, Any]:
    chosen = next((candidate for candidate in report.candidates if candidate.chosen), None)
    errors = [
        check.max_abs
        for check in report.checks
        if check.scope == "whole" and check.max_abs is not None and math.isfinite(check.max_abs)
    ]
    return {
        "size": report.bundle_bytes,
        "backends": {name: min(1.0, share) for name, share in next(iter(report.shares().values())).items()},
        "latency_ms": chosen.median_ms if chosen is not None else None,
        "max_error": max(errors, default=None),
        "warnings": report.all_warnings(),
        "idle_gpu": next((chain.idle_gpu for chain in report.target_chains if chain.idle_gpu), ""),
    }


_NAMES = tuple(part.name for part in dataclasses.fields(Outcome))


def outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    """Returns an outcome as plain data; what is no Unicode in a text, as names of files may be, is escaped."""
    return {name: _plain(getattr(outcome, name)) for name in _NAMES}


_NO_TEXTS = (int, float, bool, type(None))


def _plain(value: Any) -> Any:
    if type(value) in _NO_TEXTS:
        return value
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return value


def outcome_from_json(data: object, where: str = "") -> Outcome:
    """Returns the outcome that plain data describe; `where` names them in messages.

    Raises:
        DataError: a field is missing, unknown or of another type, or the status is none of `STATUSES`.
    """
    try:
        return _outcome(Fields(data, where, ignore_unknown=False))
    except BundleError as err:
        raise DataError(err.what, where=err.where, hint=err.hint) from err


def _outcome(fields: Fields) -> Outcome:
    found = Outcome(
        job=fields.name("job"),
        model=fields.name("model"),
        target=fields.name("target"),
        variant=fields.text("variant"),
        status=fields.choice("status", STATUSES),
        exit_code=fields.integer("exit_code", least=-MAX_SIGNAL, most=255),
        seconds=fields.number_from_zero("seconds"),
        tries=fields.integer("tries"),
        final=fields.boolean("final"),
        key=_digest(fields, "key"),
        miss=_texts(fields, "miss"),
        output=fields.text("output"),
        sha256=_digest(fields, "sha256"),
        size=fields.integer("size"),
        error=None if fields.is_null("error") else _error(fields.fields("error")),
        log_tail=_texts(fields, "log_tail", MAX_LOG_LINES),
        log=fields.text("log"),
        repeat=fields.text("repeat"),
        peak_mb=fields.number_from_zero("peak_mb"),
        worker=fields.text("worker"),
        cpu=fields.text("cpu"),
        backends=_shares(fields),
        latency_ms=_measured(fields, "latency_ms"),
        max_error=_measured(fields, "max_error"),
        warnings=_texts(fields, "warnings"),
        idle_gpu=fields.text("idle_gpu") if fields.has("idle_gpu") else "",  # 0.2.0 wrote none
    )
    fields.end()
    return found


def _digest(fields: Fields, key: str) -> str:
    return fields.sha256(key) if fields.take(key) != "" else ""


def _measured(fields: Fields, key: str) -> float | None:
    return None if fields.is_null(key) else fields.number_from_zero(key)


def _texts(fields: Fields, key: str, most: int | None = None) -> tuple[str, ...]:
    value = fields.items(key)
    if not all(isinstance(item, str) for item in value):
        raise fields.refuse(key, "a list of texts")
    if most is not None and len(value) > most:
        raise fields.refuse(key, f"at most {most} lines")
    return tuple(value)


def _error(fields: Fields) -> dict[str, Any]:
    error = {
        "code": fields.name("code"),
        "exit_code": fields.integer("exit_code", 1, 255),
        **{key: fields.text(key) for key in ("message", "where", "hint")},
    }
    fields.end()
    return error


def _shares(fields: Fields) -> dict[str, float]:
    shares = fields.fields("backends")
    found = {name: shares.number_from_zero(name) for name in shares.plain()}
    if any(share > 1 + 1e-9 for share in found.values()):
        raise fields.refuse("backends", "shares from 0 to 1")
    return found
