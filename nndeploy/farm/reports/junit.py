# SPDX-License-Identifier: Apache-2.0
"""A batch as JUnit XML: a suite a target, a test case a job, and a suite of what gates found.

What broke is an error, what was refused a failure, what did not run is skipped.
"""

from collections.abc import Iterator

from nndeploy.ci_reports.junit import MAX_BYTES, Case, junit_xml
from nndeploy.farm.outcome import BROKEN, NOT_RUN, Outcome
from nndeploy.farm.reports.batch import Batch, Finding

GATE_SUITE = "regression gates"


def junit(batch: Batch, max_bytes: int = MAX_BYTES) -> bytes:
    """Returns the XML of a batch, of at most about `max_bytes`."""
    cases = (*map(_job, batch.outcomes), *map(_gate, batch.failed_gates))
    return junit_xml("nndeploy batch", cases, batch.seconds, batch.started, max_bytes)


def _job(one: Outcome) -> Case:
    case = Case(one.target, one.name, one.target, one.seconds, is_hit=one.status == "hit")
    case.output = "\n".join(f"warning: {line}" for line in one.warnings)
    if one.is_good:
        return case
    case.kind = "error" if one.status in BROKEN else "skipped" if one.status in NOT_RUN else "failure"
    case.type, case.message = one.status, one.reason
    case.details = "\n".join(_details(one))
    return case


def _details(one: Outcome) -> Iterator[str]:
    if one.error is not None:
        yield f"error[{one.error['code']}]: {one.reason}"
        yield from [f"hint: {one.error['hint']}"] if one.error["hint"] else []
    yield from [f"repeat: {one.repeat}"] if one.repeat else []
    yield from [f"log: {one.log}"] if one.log else []
    yield from one.log_tail


def _gate(finding: Finding) -> Case:
    name = "/".join(part for part in (finding.model, finding.variant) if part)
    return Case(GATE_SUITE, f"{name}: {finding.gate}", finding.target, 0.0, "failure", finding.gate, finding.text)
