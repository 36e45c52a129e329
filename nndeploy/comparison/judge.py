# SPDX-License-Identifier: Apache-2.0
"""One sample's outputs against the reference: the tolerance first, and where that fails the limits of right engines.

    tolerance ok, and floats point the same way (cosine) ──► right
    else limits known: distances within them, or results the same as sets ──► right
    else ──► wrong

What the limits of right engines admit although it points elsewhere is right, but never without a word (`is_weak`).

This is the one rule of `compile`'s checks and of `verify` on another box, which knows the limits from the bundle;
`runtime/command/compare.c` of the kernels has it for boxes without Python.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from nndeploy.bundle.manifest import Limits, Tolerance
from nndeploy.bundle.report import CheckReport
from nndeploy.comparison.compare import Comparison, compare_values, tolerance_for
from nndeploy.comparison.distance import distance, exceeded, is_within
from nndeploy.comparison.result_rows import rows_of, unmatched_share
from nndeploy.values.types import Value, ValueType

BY_TOLERANCE, BY_LIMITS, BY_ROWS = "tolerance", "limits", "rows"

MIN_COSINE = 0.99
"""Float outputs of right engines point the same way: networks in bfloat16 keep 0.9988 and more."""

NO_LIMITS: Mapping[str, Limits] = {}


def judge(
    got: Mapping[str, Value],
    want: Mapping[str, Value],
    types: Mapping[str, ValueType],
    tolerances: Mapping[str, Tolerance],
    limits: Callable[[], Mapping[str, Limits]] = lambda: NO_LIMITS,
) -> dict[str, Comparison]:
    """Returns how each output of `types` compares; `limits` are asked for only where a tolerance fails."""
    found = {
        name: compare_values(got.get(name), want.get(name), tolerance_for(kind, tolerances))
        for name, kind in types.items()
    }
    failed = [
        name
        for name, comparison in found.items()
        if not comparison.ok or (is_turned(comparison) and tolerance_for(types[name], tolerances).span)
    ]
    known = limits() if failed else NO_LIMITS
    shares = _shares_without_partner(got, want, known)
    for name in failed:
        if name in shares:
            found[name] = _by_rows(found[name], shares[name], known[name])
        elif name in known:
            found[name] = _by_limits(
                found[name], got[name], want[name], tolerance_for(types[name], tolerances), known[name]
            )
        else:
            found[name] = replace(found[name], ok=False, note=found[name].note or _cosine(found[name]))
    return found


def is_turned(comparison: Comparison | CheckReport) -> bool:
    """Returns whether two results point in directions that are clearly different."""
    return comparison.cosine is not None and comparison.cosine < MIN_COSINE


def is_weak(comparison: Comparison | CheckReport) -> bool:
    """Returns whether a result was found right that is not like the reference: little was checked by it."""
    return comparison.ok and comparison.rule != BY_ROWS and is_turned(comparison)


def row_groups(want: Mapping[str, Value], axes: Mapping[str, int]) -> list[list[str]]:
    """Returns the outputs that list results, those together that list equally many."""
    groups: dict[int, list[str]] = {}
    for name, axis in axes.items():
        value = want.get(name)
        if value is not None and getattr(value, "ndim", 0) > axis:
            groups.setdefault(value.shape[axis], []).append(name)
    return list(groups.values())


def share_without_partner(got: Mapping[str, Value], want: Mapping[str, Value], axes: Mapping[str, int]) -> float:
    """Returns the share of rows of these outputs, which list equally many results, that have no partner."""
    sides = [rows_of([side.get(name) for name in axes], list(axes.values())) for side in (got, want)]
    return 1.0 if sides[0] is None or sides[1] is None else unmatched_share(sides[0], sides[1])


def _shares_without_partner(
    got: Mapping[str, Value], want: Mapping[str, Value], known: Mapping[str, Limits]
) -> dict[str, float]:
    axes = {name: limits.rows_axis for name, limits in known.items() if limits.rows_axis is not None}
    shares = {}
    for group in row_groups(want, axes):
        share = share_without_partner(got, want, {name: axes[name] for name in group})
        shares.update(dict.fromkeys(group, share))
    return shares


def _cosine(comparison: Comparison) -> str:
    return f"cosine {comparison.cosine:.4f}" if is_turned(comparison) else ""


def _by_rows(by_tolerance: Comparison, share: float, limits: Limits) -> Comparison:
    note = f"compared as sets: {share:.1%} of the results have no partner, at most {limits.unmatched:.1%} may"
    return replace(by_tolerance, ok=share <= limits.unmatched, note=note, rule=BY_ROWS)


def _by_limits(by_tolerance: Comparison, got: Value, want: Value, tolerance: Tolerance, limits: Limits) -> Comparison:
    found = distance(got, want, tolerance)
    if found is None:
        return by_tolerance
    ok = is_within(found, limits)
    figures = f"rms {found.rms:.3g} of {limits.rms:.3g} allowed" if ok else exceeded(found, limits)
    near = "little was checked" if is_turned(by_tolerance) else "as near as right engines are to each other"
    note = f"{near}: {'; '.join(filter(None, (_cosine(by_tolerance), figures)))}" if ok else figures
    return replace(by_tolerance, ok=ok, note=by_tolerance.note or note, rule=BY_LIMITS)
