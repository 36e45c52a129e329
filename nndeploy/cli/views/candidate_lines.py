# SPDX-License-Identifier: Apache-2.0
"""The placements that a compile thought of, as lines for a person: what was measured, what was predicted, who won."""

from collections.abc import Sequence

from nndeploy.bundle.report import Candidate, Report


def candidate_lines(report: Report) -> list[str]:
    """Returns a line for each candidate, after one that says at which shapes they were measured, if at several."""
    several = len(report.measured_shapes) > 1
    head = [f"measured at {shapes_line(report.measured_shapes)}; geometric mean, then each:"] if several else []
    return head + [
        f"{'*' if candidate.chosen else ' '} {candidate.name:<28}{_milliseconds(candidate)}"
        + "".join(f"{ms:10.3f}" for ms in candidate.shape_ms if several)
        for candidate in report.candidates
    ]


def shapes_line(shapes: Sequence[str]) -> str:
    """Returns the different ones of several shapes in a line."""
    return ", ".join(dict.fromkeys(shapes))


def _milliseconds(candidate: Candidate) -> str:
    measured = "not measured" if candidate.median_ms is None else f"{candidate.median_ms:9.3f} ms"
    return f"{measured:>12}, {candidate.predicted_ms:9.3f} ms predicted"
