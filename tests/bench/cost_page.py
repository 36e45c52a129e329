# SPDX-License-Identifier: Apache-2.0
"""Predictions against measurements as a table: who is ranked right, and who lies near."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

NOISE = 0.10
"""Engines that differ by less than this were not ranked by the measurement either."""
NEAR = 0.20
RANKED_GOAL, NEAR_GOAL = 0.95, 0.80


@dataclass(frozen=True)
class Row:
    """A model: predicted and measured seconds by engine."""

    name: str
    predicted: Mapping[str, float]
    measured: Mapping[str, float]

    def pairs(self) -> list[bool]:
        """Returns, for each pair of engines that differ by more than the noise, whether it was ranked right."""
        return [
            (self.predicted[a] < self.predicted[b]) == (self.measured[a] < self.measured[b])
            for a, b in combinations(self.measured, 2)
            if max(self.measured[a], self.measured[b]) > (1 + NOISE) * min(self.measured[a], self.measured[b])
        ]

    def ratios(self) -> dict[str, float]:
        """Returns the predicted over the measured seconds by engine."""
        return {name: self.predicted[name] / seconds for name, seconds in self.measured.items()}

    @property
    def line(self) -> str:
        """The model in one line, for a terminal."""
        found = (f"{name} {self.measured[name] * 1e3:.3g} x{ratio:.2f}" for name, ratio in self.ratios().items())
        return f"{self.name:28} {'  '.join(found)}"


def summary(rows: Sequence[Row]) -> list[str]:
    """Returns the shares as lines."""
    right = [one for row in rows for one in row.pairs()]
    ratios = [one for row in rows for one in row.ratios().values()]
    if not ratios:
        return ["nothing was measured"]
    lines = [
        f"{sum(right)} of {len(right)} pairs of engines are ranked right ({sum(right) / max(1, len(right)):.0%};"
        f" goal {RANKED_GOAL:.0%})",
        f"{_near(ratios)} of {len(ratios)} predictions lie within {NEAR:.0%} ({_near(ratios) / len(ratios):.0%};"
        f" goal {NEAR_GOAL:.0%})",
    ]
    for engine in sorted({name for row in rows for name in row.measured}):
        found = [row.ratios()[engine] for row in rows if engine in row.measured]
        lines.append(
            f"{engine}: {len(found)} models, {_near(found) / len(found):.0%} within {NEAR:.0%},"
            f" predicted / measured {statistics.median(found):.2f} in the middle"
        )
    return lines


def _near(ratios: Sequence[float]) -> int:
    return sum(1 - NEAR <= ratio <= 1 + NEAR for ratio in ratios)


def page(rows: Sequence[Row], trees: Sequence[str]) -> str:
    """Returns the page behind its header; the models were measured on `trees`."""
    lines = [
        "# The cost table against whole models", "",
        "What is predicted from the cost table (single operators, by `make bench-costs`, and factors of whole",
        "networks, by `ARGS=--fit`) against what was measured: each whole model on each engine alone, one thread,",
        "seconds of the process on a core in interleaved rounds, outputs compared. No model is predicted by factors",
        "that were fitted to it or to its family; `nndeploy compile` has those of all. Pairs of engines that differ by",
        "less than"
        f" {NOISE:.0%} are not ranked."
        f" Measured on {', '.join(trees)}, predicted by the table of the tree above.", "",
        *(f"* {line}" for line in summary(rows)), "",
        "Milliseconds measured, and predicted / measured in brackets; `-`: the engine does not take it whole, or its",
        "outputs are others.", "",
        "| model | native | onnxruntime | openvino | ranked right |", "| --- | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for row in rows:
        cells = [_cell(row, name) for name in ("native", "onnxruntime", "openvino")]
        pairs = row.pairs()
        lines.append(f"| {row.name} | {' | '.join(cells)} | {sum(pairs)} of {len(pairs)} |")
    return "\n".join(lines) + "\n"


def _cell(row: Row, engine: str) -> str:
    if engine not in row.measured:
        return "-"
    return f"{row.measured[engine] * 1e3:.3g} ({row.ratios()[engine]:.2f})"
