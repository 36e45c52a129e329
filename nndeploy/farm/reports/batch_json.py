# SPDX-License-Identifier: Apache-2.0
"""`batch.json`: the whole truth about a batch, a job a line, for programs and for the gates of the next batch.

`batch.schema.json` beside this file describes it. Law: `batch_from_json(batch_to_json(batch)) == batch` where its texts
are Unicode, and equal batches give equal bytes.
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from nndeploy.bundle.json_fields import Fields
from nndeploy.errors import BundleError, DataError
from nndeploy.farm.outcome import STATUSES, outcome_from_json, outcome_to_json
from nndeploy.farm.reports.batch import GATES, NOT_JUDGED, Batch, Finding
from nndeploy.files.strict_json import parse_json
from nndeploy.files.whole_files import read_regular

SCHEMA = "nndeploy.batch.1"
MAX_BYTES = 1 << 30
_TEXTS = ("gate", "job", "model", "target", "variant", "text")
_VALUES = ("before", "now", "limit")
_line = json.JSONEncoder(allow_nan=False)


def batch_to_data(batch: Batch) -> dict[str, Any]:
    """Returns a batch as plain data."""
    return {
        "schema": SCHEMA,
        "plan": batch.plan,
        "started": batch.started,
        "seconds": batch.seconds,
        "summary": batch.counts,
        "jobs": [outcome_to_json(one) for one in batch.outcomes],
        "gates": [finding_to_json(finding) for finding in batch.findings],
    }


def batch_to_json(batch: Batch) -> bytes:
    """Returns the text of a batch: ASCII, a job and a finding a line."""
    data = batch_to_data(batch)
    lines = [
        _rows(key, value) if isinstance(value, list) else f" {json.dumps(key)}: {_line.encode(value)}"
        for key, value in data.items()
    ]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode("ascii")


def _rows(key: str, rows: list[dict[str, Any]]) -> str:
    inner = "".join(f"{',' if i else ''}\n  {_line.encode(row)}" for i, row in enumerate(rows))
    return f' "{key}": [{inner}{chr(10) + " " if rows else ""}]'


def finding_to_json(finding: Finding) -> dict[str, Any]:
    """Returns a finding as plain data; what is no Unicode in a text is escaped."""
    texts = {key: getattr(finding, key).encode("utf-8", "backslashreplace").decode("utf-8") for key in _TEXTS}
    return {**texts, **{key: getattr(finding, key) for key in _VALUES}}


def read_batch(path: Path) -> Batch:
    """Returns the batch in a file.

    Raises:
        MissingInputError: there is no such file.
        DataError: it is no `batch.json` of this version, or malformed.
    """
    try:
        return batch_from_json(read_regular(path, MAX_BYTES))
    except DataError as err:
        raise err.about(str(path)) from err


def batch_from_json(text: bytes) -> Batch:
    """Returns the batch that a text says.

    Raises:
        DataError: it is of another version, or malformed, or its counts are not those of its jobs.
    """
    try:
        return _batch(Fields(parse_json(text, MAX_BYTES, is_canonical=False), "", ignore_unknown=False))
    except BundleError as err:
        raise DataError(err.what, where=err.where, hint=err.hint) from err


def _batch(fields: Fields) -> Batch:
    if fields.take("schema") != SCHEMA:
        raise fields.refuse("schema", repr(SCHEMA))
    summary, jobs = fields.fields("summary"), fields.items("jobs")
    counts = {status: summary.integer(status) for status in (*STATUSES, "total")}
    summary.end()
    batch = Batch(
        plan=fields.sha256("plan"),
        started=_time(fields),
        seconds=fields.number_from_zero("seconds"),
        outcomes=tuple(outcome_from_json(job, f"jobs[{i}]") for i, job in enumerate(jobs)),
        findings=tuple(_finding(one) for one in fields.list_of_fields("gates")),
    )
    fields.end()
    if counts != batch.counts:
        raise DataError("the counts are not those of the jobs", where="summary")
    if len({one.job for one in batch.outcomes}) < len(batch.outcomes):
        raise DataError("a job is there twice", where="jobs")
    return batch


def _time(fields: Fields) -> str:
    text = fields.text("started")
    try:
        is_exact = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        is_exact = False
    if not is_exact:
        raise fields.refuse("started", "a time with its zone")
    return text


def _finding(fields: Fields) -> Finding:
    found = Finding(
        gate=fields.choice("gate", (*GATES, NOT_JUDGED)),
        **{key: fields.name(key) for key in ("job", "model", "target")},
        **{key: fields.text(key) for key in ("variant", "text")},
        before=_value(fields, "before"),
        now=_value(fields, "now"),
        limit=None if fields.is_null("limit") else fields.number_from_zero("limit"),
    )
    fields.end()
    return found


def _value(fields: Fields, key: str) -> float | str | None:
    value = fields.take(key)
    return value if value is None or isinstance(value, str) else fields.number_from_zero(key)
