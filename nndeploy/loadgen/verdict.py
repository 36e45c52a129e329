# SPDX-License-Identifier: Apache-2.0
"""Reads LoadGen's detail log: is the result valid, why not, and its figures.

The log is lines `:::MLLOG {"key": ..., "value": ..., "metadata": {"is_error": ...}}`. What is not JSON in it (LoadGen
prints `nan` where it divides by zero) is left out, and a log without a verdict is an error.
"""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nndeploy.errors import InputOutputError
from nndeploy.loadgen.settings import Scenario

MARK = ":::MLLOG "
PERCENTILES = ("50.00", "90.00", "95.00", "97.00", "99.00", "99.90")

_RATES = {
    "result_samples_per_second": "samples_per_second",
    "result_qps_without_loadgen_overhead": "queries_per_second",
    "result_completed_samples_per_sec": "completed_per_second",
    "result_scheduled_samples_per_sec": "scheduled_per_second",
    "result_query_count": "queries",
    "result_overlatency_query_count": "queries_too_late",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What LoadGen says of a performance test.

    `reason` is LoadGen's own where the result is not valid, "" otherwise. `figures` are rates, counts and latencies
    with their unit in the name; `results` all that the log calls a result; `errors` and `warnings` its messages.
    """

    is_valid: bool
    reason: str
    version: str
    figures: dict[str, float]
    results: dict[str, Any]
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=())


def verdict_from_log(folder: Path, scenario: Scenario) -> Verdict:
    """Returns the verdict in a folder of logs.

    Raises:
        InputOutputError: the log cannot be read, or ends before its verdict.
    """
    entries = _entries(folder / "mlperf_log_detail.txt")
    values = {entry["key"]: entry["value"] for entry in entries}
    if values.get("result_validity") not in ("VALID", "INVALID"):
        raise InputOutputError("LoadGen's log ends before its verdict", where=str(folder))
    errors = _messages(entries, "is_error")
    is_valid = values["result_validity"] == "VALID"
    return Verdict(
        is_valid=is_valid,
        reason="" if is_valid else _reason(values, errors),
        version=_version(values),
        figures=_figures(values, scenario),
        results={key: value for key, value in values.items() if key.startswith(("result_", "early_stopping_"))},
        errors=errors,
        warnings=_messages(entries, "is_warning"),
    )


def version_from_log(folder: Path) -> str:
    """Returns the version of LoadGen that wrote the logs in a folder."""
    return _version({entry["key"]: entry["value"] for entry in _entries(folder / "mlperf_log_detail.txt")})


def _version(values: dict[str, Any]) -> str:
    return str(values.get("loadgen_version", "unknown")).partition(" ")[0]


def _entries(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as err:
        raise InputOutputError(f"LoadGen's log cannot be read: {err.strerror}", where=str(path)) from err
    made = [_entry(line.removeprefix(MARK)) for line in lines if line.startswith(MARK)]
    return [entry for entry in made if entry is not None]


def _entry(text: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(text)
    except ValueError:
        return None
    if not isinstance(entry, dict) or not {"key", "value"} <= set(entry):
        return None
    value = entry["value"]
    return None if isinstance(value, float) and not math.isfinite(value) else entry


def _messages(entries: list[dict[str, Any]], kind: str) -> tuple[str, ...]:
    return tuple(str(entry["value"]) for entry in entries if entry.get("metadata", {}).get(kind))


def _reason(values: dict[str, Any], errors: tuple[str, ...]) -> str:
    """Returns why a result is not valid, as LoadGen says it; it says nothing where early stopping alone failed."""
    parts = [str(values.get("result_invalid_reason", ""))]
    if not values.get("early_stopping_met", True):
        parts.append(str(values.get("early_stopping_result", "")).replace(" * ", " "))
    return " ".join(" ".join((*parts, *errors)).split()) or "LoadGen gives no reason"


def _figures(values: dict[str, Any], scenario: Scenario) -> dict[str, float]:
    figures = {name: values[key] for key, name in _RATES.items() if key in values}
    if scenario is Scenario.OFFLINE:  # one query holds them all
        figures.pop("queries", None)
        figures["samples"] = values.get("generated_samples_per_query", 0)
    kind = "per_query_latency" if scenario is Scenario.MULTI_STREAM else "latency"
    early = "early_stopping_latency_ss" if scenario is Scenario.SINGLE_STREAM else "early_stopping_latency_ms"
    if scenario.is_stream and values.get("early_stopping_met"):
        figures["early_stopping_latency_ms"] = values[early] / 1e6
    if scenario is not Scenario.OFFLINE:  # there every sample waits for the whole query
        for percentile in PERCENTILES:
            key = f"result_{percentile}_percentile_{kind}_ns"
            if key in values:
                figures[f"p{percentile.rstrip('0').rstrip('.')}_ms"] = values[key] / 1e6
    return figures
