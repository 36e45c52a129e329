# SPDX-License-Identifier: Apache-2.0
"""A batch as Markdown, for the summary of a CI job: failures first, then what gates found, counts, models by targets.

Names and sizes are kept as `nndeploy.ci_reports.markdown` says.
"""

from nndeploy.ci_reports.markdown import LINE_BYTES, MAX_BYTES, Part, fenced, size_of, table_row
from nndeploy.farm.outcome import Outcome
from nndeploy.farm.reports.batch import Batch, Finding, grid_of
from nndeploy.files.markdown_code import markdown_code
from nndeploy.values.amounts import counted, ms_text


def markdown(batch: Batch, max_bytes: int = MAX_BYTES) -> bytes:
    """Returns the text of a batch, of at most `max_bytes` where there is room for its head."""
    head = [f"## {_title(batch)}", "", *_counts(batch), ""]
    left = max_bytes - size_of(head) - 3 * LINE_BYTES
    broken = Part("### What failed", (), "failure", batch.failures, _failure)
    findings = Part("### Gates and warnings", (), "finding", batch.told, _finding)
    table = _table(batch)
    # What failed may take half, gates half of the rest, and the table what is left of all.
    parts = []
    for part, share in ((broken, 0.5), (findings, 0.5), (table, 1.0)):
        lines = part.lines(int(left * share))
        left -= size_of(lines)
        parts.append(lines)
    failed, found, grid = parts
    return "\n".join([head[0], "", *failed, *found, *head[2:], *grid]).encode()


def _title(batch: Batch) -> str:
    failed, gates = len(batch.failures), len(batch.failed_gates)
    verdict = f"{failed:,} failed" if failed else "none failed"
    found = f", {counted(gates, 'failed gate')}" if gates else ""
    return f"Batch: {counted(len(batch.outcomes), 'job')}, {verdict}{found}"


def _counts(batch: Batch) -> list[str]:
    counts = {status: count for status, count in batch.counts.items() if count and status != "total"}
    told = ", ".join(f"{count:,} {status}" for status, count in counts.items()) or "no jobs"
    return [f"{told}; {batch.seconds:,.0f} s."]


def _failure(one: Outcome) -> str:
    error = f"error[{one.error['code']}]: " if one.error is not None else ""
    hint = f" (hint: {one.error['hint']})" if one.error is not None and one.error["hint"] else ""
    lines = [f"- **{one.status}** {markdown_code(one.job)}: {markdown_code(error + one.reason + hint)}"]
    if one.repeat:
        lines += ["", *(f"  {line}" for line in fenced(one.repeat)), ""]
    return "\n".join(lines)


def _finding(finding: Finding) -> str:
    return f"- **{finding.gate}** {markdown_code(finding.job)}: {markdown_code(finding.text)}"


def _table(batch: Batch) -> "Part[tuple[tuple[str, str], dict[str, Outcome]]]":
    targets = batch.targets

    def row(item: tuple[tuple[str, str], dict[str, Outcome]]) -> str:
        (model, variant), found = item
        name = f"{model}/{variant}" if variant else model
        return table_row([markdown_code(name), *(_cell(found.get(target)) for target in targets)])

    above = [table_row(["model", *map(markdown_code, targets)]), table_row(["---"] * (len(targets) + 1))]
    return Part("### Models by targets", above, "model", list(grid_of(batch.outcomes).items()), row)


def _cell(one: Outcome | None) -> str:
    if one is None:
        return ""
    if not one.is_good:
        status = f"**{one.status}**" if one.is_failure else one.status
        return f"{status}, has a bundle" if one.has_other_bundle else status
    return one.status if one.latency_ms is None else f"{one.status} {ms_text(one.latency_ms)}"
