# SPDX-License-Identifier: Apache-2.0
"""Outcomes of jobs say the same as JSON, and nothing that is no outcome is taken for one."""

import json
import math
from typing import Any

import pytest
from batch_examples import ERROR, outcome

from nndeploy.bundle.report import Candidate, CheckReport, Report, SubmodelReport
from nndeploy.errors import DataError
from nndeploy.farm.outcome import STATUSES, Outcome, outcome_from_json, outcome_of, outcome_to_json


@pytest.mark.parametrize("status", STATUSES)
def test_an_outcome_survives_json(status: str) -> None:
    one = outcome("müller", status=status, warnings=("a", "b"), miss=("options",), key="ab" * 32, exit_code=-9)
    assert outcome_from_json(json.loads(json.dumps(outcome_to_json(one)))) == one


def test_a_path_that_is_no_unicode_is_escaped_and_can_be_read_again() -> None:
    data = outcome_to_json(outcome(output="dist/\udcff.nnd", backends={"\udcff": 1.0}, warnings=("\udcff",)))
    text = json.dumps(data, ensure_ascii=False).encode("utf-8")
    found = outcome_from_json(json.loads(text))
    assert (found.output, found.warnings) == ("dist/\\udcff.nnd", ("\\udcff",))
    assert found.backends == {"\\udcff": 1.0}


WRONG: dict[str, Any] = {
    "job": "", "model": None, "target": 1, "variant": None, "status": "fine", "exit_code": 256, "seconds": -1.0,
    "tries": 1.5, "final": 1, "key": "ab", "miss": "options", "output": None, "sha256": "CD" * 32, "size": -1,
    "error": {**ERROR, "more": ""}, "log_tail": ["line"] * 21, "log": [], "repeat": {}, "peak_mb": math.inf,
    "worker": None, "cpu": None, "backends": {"native": 1.5}, "latency_ms": "2", "max_error": -1e-9, "warnings": [1],
    "idle_gpu": None,
}  # fmt: skip


@pytest.mark.parametrize("field", WRONG)
def test_a_field_that_is_wrong_missing_or_unknown_is_refused_by_its_name(field: str) -> None:
    data = outcome_to_json(outcome())
    with pytest.raises(DataError, match=field):
        outcome_from_json(data | {field: WRONG[field]}, "jobs[3]")
    if field != "idle_gpu":  # which reports of 0.2.0 lack
        with pytest.raises(DataError, match=field):
            outcome_from_json({key: value for key, value in data.items() if key != field})
    with pytest.raises(DataError) as caught:
        outcome_from_json(data | {field + "s": 1}, "jobs[3]")
    assert field in caught.value.hint
    assert "jobs[3]" in caught.value.where


def test_every_field_has_a_wrong_value_above() -> None:
    assert WRONG.keys() == outcome_to_json(outcome()).keys()


@pytest.mark.parametrize("data", [None, [], "ok", 1])
def test_what_is_no_object_is_refused(data: object) -> None:
    with pytest.raises(DataError, match="expected an object"):
        outcome_from_json(data)


def check(scope: str, max_abs: float | None) -> CheckReport:
    return CheckReport(scope, "native", 0, "y", True, max_abs)


def report(**fields: Any) -> Report:
    submodels = (SubmodelReport("s0", "native", 3, 0.75, {}), SubmodelReport("s1", "onnxruntime", 1, 0.25, {}))
    backends = ("openvino", "native", "onnxruntime")
    return Report(model="m", objective="latency", backends=backends, nodes=(), submodels=submodels, **fields)


def test_the_report_of_a_compile_gives_shares_latency_error_size_and_warnings() -> None:
    candidates = (Candidate("slow", 9.0, False), Candidate("fast", 2.5, True))
    checks = (
        check("whole", 1e-6), check("whole", 3e-6), check("whole", math.inf), check("s0", 1.0), check("whole", None),
    )  # fmt: skip
    fields = {"job": "j", "model": "m", "target": "t", "variant": "", "status": "ok", "seconds": 4.0}
    found = outcome_of(
        fields, report(candidates=candidates, checks=checks, bundle_bytes=123, warnings=("slow samples",))
    )
    assert found == Outcome(
        job="j", model="m", target="t", variant="", status="ok", seconds=4.0, size=123,
        backends={"native": 0.75, "onnxruntime": 0.25}, latency_ms=2.5, max_error=3e-6, warnings=("slow samples",),
    )  # fmt: skip


def test_what_was_not_measured_or_compared_is_not_said_and_given_fields_win() -> None:
    fields = {"job": "j", "model": "m", "target": "t", "variant": "", "status": "ok", "size": 7}
    found = outcome_of(fields, report(bundle_bytes=123))
    assert (found.latency_ms, found.max_error, found.size) == (None, None, 7)


def test_a_reason_names_the_place_or_tells_the_status() -> None:
    assert outcome(status="failed").reason == "models/a.onnx: node 'Conv_3' has no weights"
    assert outcome(status="crash", error=None).reason == "a signal ended it"
    assert outcome().reason == ""


def test_a_share_that_rounding_made_more_than_all_is_all() -> None:
    submodels = (SubmodelReport("s0", "native", 1, 0.5000003, {}), SubmodelReport("s1", "native", 1, 0.5000003, {}))
    report = Report(backends=("native",), nodes=(), submodels=submodels, model="m", objective="latency", shapes=())
    found = outcome_of({"job": "m/host", "model": "m", "target": "host", "variant": "", "status": "ok"}, report)
    assert found.backends == {"native": 1.0}
    assert outcome_from_json(outcome_to_json(found)) == found
