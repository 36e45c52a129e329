# SPDX-License-Identifier: Apache-2.0
"""Gates between two batches: what got slower, larger, less exact or worse placed, and what no longer builds.

Comes in: a batch and the one before it, as `batch.json` told it. Goes out: findings, each with both values. A figure
that not both of them have, or that another kind of processor measured, is not judged, and one finding for all jobs with
the same reason says so. Law: a limit that was asked for is judged, or it is said why not.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nndeploy.farm.outcome import NOT_RUN, Outcome
from nndeploy.farm.reports.batch import NOT_JUDGED, Batch, Finding, finding_of
from nndeploy.options.described import described
from nndeploy.options.texts import assignments_in, factor_in, growth_in, share_in
from nndeploy.values.amounts import counted, ms_text, size_text

_SECTION = "Gates"
_ROUNDING = 1e-9
PART = "this batch is a part of its plan"
"""Why jobs are not judged that a batch was asked to leave out: no fault of anybody."""


def _shares(option: str, example: str) -> Callable[[Sequence[str]], dict[str, float]]:
    pairs = assignments_in(option, "BACKEND=SHARE", example)
    return lambda texts: {name: share_in(option)(share) for name, share in pairs(texts)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """What a batch is held against; a limit that is None is not judged.

    A slowdown and a growth of size are parts of what was, 0.05 for 5%; the growth of an error is a factor; shares are
    of compute, 0..1.
    """

    max_slowdown: float | None = described(
        None, "Fail if a bundle's latency grew by more than this since the batch of --against.",
        section=_SECTION, metavar="5%", from_text=growth_in("--max-slowdown"),
    )  # fmt: skip
    max_error_growth: float | None = described(
        None, "Fail if the largest difference from the original model grew by more than this factor.",
        section=_SECTION, metavar="2x", from_text=factor_in("--max-error-growth"),
    )  # fmt: skip
    max_size_growth: float | None = described(
        None, "Fail if a bundle's size grew by more than this.",
        section=_SECTION, metavar="10%", from_text=growth_in("--max-size-growth"),
    )  # fmt: skip
    min_share: Mapping[str, float] = described(
        dict, "Fail if a backend takes less than this share of a bundle's compute; needs no --against (repeatable).",
        section=_SECTION, metavar="BACKEND=90%", from_texts=_shares("--min-share", "native=90%"),
    )  # fmt: skip
    max_share_drop: Mapping[str, float] = described(
        dict, "Fail if a backend's share of a bundle's compute fell by more than this (repeatable).",
        section=_SECTION, metavar="BACKEND=5%", from_texts=_shares("--max-share-drop", "native=5%"),
    )  # fmt: skip
    strict_targets: bool | None = described(
        None, "Fail if nothing of a model runs on the GPU of a target that has one; needs no --against. Default: fail.",
        section=_SECTION, flags=("--strict-targets/--no-strict-targets",),
    )  # fmt: skip
    strict_gates: bool = described(
        False, "Fail if a gate could not be evaluated: no earlier batch, no measurement, or a different processor.",
        section=_SECTION,
    )  # fmt: skip

    @property
    def of_one_batch(self) -> "Gates":
        """The gates that need no earlier batch, alone."""
        return Gates(min_share=self.min_share, strict_targets=self.strict_targets)

    @property
    def comparing(self) -> list[str]:
        """The limits that compare with an earlier batch."""
        names = ("max_slowdown", "max_error_growth", "max_size_growth", "max_share_drop")
        return [name for name in names if getattr(self, name) not in (None, {})]


def judged(batch: Batch, before: Batch | None, gates: Gates, *, is_part: bool = False) -> Batch:
    """Returns the batch with what the gates find: failures in the order of the jobs, then what could not be judged.

    Without a batch before, `min_share` and `strict_targets` alone are judged. `is_part` says that this batch was asked
    to leave jobs out, by a filter or as a shard: those are not missed.
    """
    return dataclasses.replace(batch, findings=_findings(batch, before, gates, is_part))


def _findings(now: Batch, before: Batch | None, gates: Gates, is_part: bool) -> tuple[Finding, ...]:
    unjudged = _Unjudged(is_failure=gates.strict_gates)
    found = [finding for one in now.outcomes for finding in _too_small_shares(one, gates.min_share, unjudged)]
    if gates.strict_targets is not False:
        found += [finding_of(one, "idle-gpu", one.idle_gpu) for one in now.outcomes if one.is_good and one.idle_gpu]
    old = {one.job: one for one in before.outcomes} if before is not None else {}
    if gates.comparing and not any(one.job in old for one in now.outcomes):
        for one in now.outcomes:
            unjudged.add(one, "no earlier batch was named" if before is None else "the earlier batch has none of them")
    if before is None:
        return (*found, *unjudged.findings())
    for one in now.outcomes:
        if one.job in old:
            found += _compared(one, old[one.job], gates, unjudged)
    gone = old.keys() - {one.job for one in now.outcomes}
    for one in before.outcomes:
        if one.job in gone and one.is_good:
            if is_part:
                unjudged.add(one, PART)
            else:
                text = f"was {one.status}, and is no longer in the plan"
                found.append(finding_of(one, "vanished", text, before=one.status))
    return (*found, *unjudged.findings())


def _too_small_shares(one: Outcome, least: Mapping[str, float], unjudged: "_Unjudged") -> Iterator[Finding]:
    if least and one.is_good and not one.backends:
        unjudged.add(one, "the shares of backends are not known")
    for backend, limit in least.items() if one.is_good and one.backends else ():
        share = one.backends.get(backend, 0.0)
        if share < limit - _ROUNDING:
            text = f"{backend} takes {share:.1%} of the compute, less than {limit:.1%}"
            yield finding_of(one, "min-share", text, now=share, limit=limit)


def _compared(now: Outcome, before: Outcome, gates: Gates, unjudged: "_Unjudged") -> Iterator[Finding]:
    if not before.is_good:
        return
    if now.status in NOT_RUN:
        unjudged.add(now, f"now {now.status}")
    elif not now.is_good:
        text = f"was {before.status}, now {now.status}: {now.reason}"
        yield finding_of(now, "fails-now", text, before=before.status, now=now.status)
    else:
        yield from _slower(now, before, gates.max_slowdown, unjudged)
        yield from _less_exact(now, before, gates.max_error_growth, unjudged)
        yield from _larger(now, before, gates.max_size_growth, unjudged)
        yield from _dropped(now, before, gates.max_share_drop, unjudged)


def _slower(now: Outcome, before: Outcome, limit: float | None, unjudged: "_Unjudged") -> Iterator[Finding]:
    if limit is None:
        return
    if before.latency_ms is None or now.latency_ms is None:
        unjudged.add(now, f"latency was {_known_of(before.latency_ms, now.latency_ms, 'measured')}")
    elif reason := _measured_elsewhere(now, before):
        unjudged.add(now, reason)
    elif now.latency_ms > before.latency_ms * (1 + limit):
        text = _grown("latency", ms_text(before.latency_ms), ms_text(now.latency_ms), f"{limit * 100:.4g}%")
        yield finding_of(now, "slowdown", text, before=before.latency_ms, now=now.latency_ms, limit=limit)


def _measured_elsewhere(now: Outcome, before: Outcome) -> str:
    """Returns why two latencies cannot be compared, or ""; a processor's name tells more than a worker's."""
    kinds = (before.cpu, now.cpu) if before.cpu and now.cpu else (before.worker, now.worker)
    if not all(kinds):
        return "it is not known which processors measured latency"
    return "" if kinds[0] == kinds[1] else f"latency was measured on {kinds[0]} before, on {kinds[1]} now"


def _less_exact(now: Outcome, before: Outcome, limit: float | None, unjudged: "_Unjudged") -> Iterator[Finding]:
    if limit is None:
        return
    if before.max_error is None or now.max_error is None:
        how = _known_of(before.max_error, now.max_error, "compared with the original")
        unjudged.add(now, f"outputs were {how}")
    elif now.max_error > before.max_error * limit:
        figures = f"{before.max_error:.3g}", f"{now.max_error:.3g}"
        text = _grown("the largest error", *figures, f"a factor of {limit:.4g}")
        yield finding_of(now, "error-growth", text, before=before.max_error, now=now.max_error, limit=limit)


def _larger(now: Outcome, before: Outcome, limit: float | None, unjudged: "_Unjudged") -> Iterator[Finding]:
    if limit is None:
        return
    if not (before.size and now.size):
        unjudged.add(now, "the size of a bundle is not known")
    elif now.size > before.size * (1 + limit):
        text = (
            f"the bundle grew from {size_text(before.size)} to {size_text(now.size)}, by more than {limit * 100:.4g}%"
        )
        yield finding_of(now, "size-growth", text, before=before.size, now=now.size, limit=limit)


def _dropped(now: Outcome, before: Outcome, limits: Mapping[str, float], unjudged: "_Unjudged") -> Iterator[Finding]:
    if not limits:
        return
    if not (before.backends and now.backends):
        how = _known_of(before.backends or None, now.backends or None, "known")
        unjudged.add(now, f"the shares of backends are {how}")
        return
    for backend, limit in limits.items():
        share, left = before.backends.get(backend, 0.0), now.backends.get(backend, 0.0)
        if share - left > limit + _ROUNDING:
            text = f"{backend}'s share of the compute fell from {share:.1%} to {left:.1%}, by more than {limit:.1%}"
            yield finding_of(now, "share-drop", text, before=share, now=left, limit=limit)


def _grown(what: str, before: str, now: str, limit: str) -> str:
    return f"{what} grew from {before} to {now}, by more than {limit}"


def _known_of(before: object, now: object, done: str) -> str:
    """Returns of which of two batches something is known: not of both."""
    if before is None:
        return f"{done} now, and not before" if now is not None else f"{done} neither before nor now"
    return f"{done} before, and not now"


class _Unjudged:
    """Collects what could not be judged by its reason, so that ten thousand jobs with one reason are one line."""

    def __init__(self, *, is_failure: bool) -> None:
        self._is_failure = is_failure
        self._by_reason: dict[str, list[Outcome]] = {}

    def add(self, one: Outcome, reason: str) -> None:
        self._by_reason.setdefault(reason, []).append(one)

    def findings(self) -> Iterator[Finding]:
        for reason, jobs in self._by_reason.items():
            gate = "strict-gates" if self._is_failure and reason != PART else NOT_JUDGED
            yield finding_of(jobs[0], gate, f"{counted(len(jobs), 'job')} not judged: {reason}")
