# SPDX-License-Identifier: Apache-2.0
"""Gates of `nndeploy bench`: a limit of latency, and one of how much slower a bundle may be than an earlier report.

Comes in: what `bench --json` tells, now and earlier. Goes out: nothing, or an error. Law: two reports are compared only
where they are of the same model, inputs, threads and processor; else it is refused before anything is measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nndeploy.bundle.json_fields import Fields
from nndeploy.ci_reports.command_report import Checked
from nndeploy.errors import BundleError, CheckError, DataError, UsageError
from nndeploy.files.strict_json import parse_json
from nndeploy.files.whole_files import read_regular
from nndeploy.options.described import described
from nndeploy.options.texts import growth_in, nanoseconds_in
from nndeploy.values.amounts import ms_text

SCHEMA = "nndeploy.bench.1"
MAX_BYTES = 1 << 28
COMPARED = {"model": "the model", "shapes": "the shape of the inputs", "threads": "--threads", "cpu": "the processor"}
"""Field of a report -> what it says, of those that must be the same."""
_SECTION = "Gates"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchGates:
    """What a bundle is held against: a time in nanoseconds, 0 for none; a slowdown as a part of what was."""

    max_p99_ns: int = described(
        0, "Fail if the 99th percentile of latency is above this.",
        section=_SECTION, flags=("--max-p99",), metavar="5ms", from_text=nanoseconds_in("--max-p99"),
    )  # fmt: skip
    against: str | None = described(
        None, "JSON report of an earlier bench to compare with, of the same model, inputs, threads and processor.",
        section=_SECTION, metavar="FILE.json", is_path=True,
    )  # fmt: skip
    max_slowdown: float | None = described(
        None, "Fail if the median latency grew by more than this since --against.",
        section=_SECTION, metavar="5%", from_text=growth_in("--max-slowdown"),
    )  # fmt: skip

    def __post_init__(self) -> None:
        if self.max_slowdown is not None and self.against is None:
            raise UsageError("--max-slowdown requires --against", hint="--against bench.json")
        if self.against is not None and self.max_slowdown is None:
            raise UsageError("--against requires --max-slowdown", hint="--max-slowdown 5%")

    def median_before(self, facts: Mapping[str, Any]) -> float | None:
        """Returns the median latency of the earlier report in milliseconds, None where none was named.

        `facts` are the fields of this bench that `COMPARED` names.

        Raises:
            MissingInputError: there is no such file.
            DataError: it is no report of a bench, or not to be compared with this one.
        """
        if self.against is None:
            return None
        try:
            text = read_regular(Path(self.against), MAX_BYTES)
            found = Fields(parse_json(text, MAX_BYTES, is_canonical=False), "", ignore_unknown=True)
            if found.take("schema") != SCHEMA:
                raise found.refuse("schema", repr(SCHEMA))
            before = {name: found.take(name) for name in COMPARED}
            median_ms = found.fields("latency_ms").number_from_zero("p50")
        except BundleError as err:
            hint = "nndeploy bench BUNDLE --json > bench.json writes one"
            raise DataError(f"is no report of `bench --json`: {err.what}", where=self.against, hint=hint) from err
        for name, what in COMPARED.items():
            if before[name] != facts[name]:
                told = f"not comparable: {what} was {_text(before[name])}, is {_text(facts[name])}"
                raise DataError(told, where=self.against, hint="measure the earlier bundle again, in the same way")
        return median_ms

    def judged(self, latency_ms: Mapping[str, float], median_before: float | None) -> list[Checked]:
        """Returns what each gate finds of what was measured, percentile -> milliseconds."""
        found = []
        if self.max_p99_ns:
            p99, most = latency_ms["p99"], self.max_p99_ns / 1e6
            found.append(Checked("--max-p99", p99 <= most, f"p99 is {ms_text(p99)}, the limit is {ms_text(most)}"))
        if median_before is not None and self.max_slowdown is not None:
            now, limit = latency_ms["p50"], f"{self.max_slowdown * 100:.4g}%"
            text = f"p50 was {ms_text(median_before)}, is {ms_text(now)}; {limit} more is the limit"
            found.append(Checked("--max-slowdown", now <= median_before * (1 + self.max_slowdown), text))
        return found


def raise_if_failed(where: str, judged: Sequence[Checked]) -> None:
    """Raises what gates found that failed.

    Raises:
        CheckError: one did.
    """
    if missed := [one.found for one in judged if not one.is_good]:
        raise CheckError("; ".join(missed), where=where)


def _text(value: object) -> str:
    if value is None:
        return "not given"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
