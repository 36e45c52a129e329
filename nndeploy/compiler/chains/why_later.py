# SPDX-License-Identifier: Apache-2.0
"""Why a backend that takes a node did not get it: a pin, a fusion, or the time of the placements that were compared."""

import fnmatch
from collections.abc import Sequence

from nndeploy.bundle.report import Candidate
from nndeploy.partition.placement import Placement

FUSED = "does not take all operators that this one is fused with"


def why_later(
    placement: Placement, node: str, backend: str, candidates: Sequence[Candidate], pins: Sequence[tuple[str, str]]
) -> str:
    """Returns why `backend`, which takes `node`, stands behind the one that has it; `pins` are the user's."""
    taker, order = placement.backend_of[node], list(placement.answers)
    if any(fnmatch.fnmatchcase(node, glob) for glob, _ in pins):
        return f"pinned to {taker}"
    is_first = backend in order and order.index(backend) < order.index(taker)  # an engine alone is asked by itself
    if is_first and node not in placement.pinned:  # a variation pins all nodes
        return FUSED
    return _slower(candidates, backend) or f"{taker} is asked first in the placement that was chosen"


def _slower(candidates: Sequence[Candidate], backend: str) -> str:
    """Returns by how much the best placement of a backend lost, "" where none was compared.

    Measured times are told where both were measured, else what was predicted of both.
    """
    chosen = next((one for one in candidates if one.chosen), None)
    others = [one for one in candidates if not one.chosen and _is_led_by(one, backend)]
    if chosen is None or not others:
        return ""
    measured = [one.median_ms for one in others if one.median_ms is not None]
    if chosen.median_ms is not None and measured:
        least, taken, how = min(measured), chosen.median_ms, "measured"
    else:
        least, taken, how = min(one.predicted_ms for one in others), chosen.predicted_ms, "predicted"
    return f"{'slower' if least > taken else 'no faster'}: {least:.3g} ms {how}, {chosen.name} {taken:.3g}"


def _is_led_by(candidate: Candidate, backend: str) -> bool:
    """Returns whether a candidate is the backend alone, or a split that asks it first."""
    return candidate.name.partition(",")[0] in (backend, f"{backend} first", f"{backend} alone")
