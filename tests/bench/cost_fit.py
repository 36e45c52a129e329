# SPDX-License-Identifier: Apache-2.0
"""The cost table from measurements: rising curves of single operators, and factors of terms within whole networks.

    seconds(network) = sum over terms of (factor * seconds of the term) + seconds of crossings

Factors: least squares of the logarithm of predicted over measured seconds, beyond `LIMIT` its absolute value (Huber,
Annals of Mathematical Statistics 35, 1964), so that a model that an engine computes in another way does not bend the
rest; a penalty on the logarithms of the factors leaves those at 1 that the models say little about.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import figures
import numpy as np
import numpy.typing as npt
from cost_cases import FOLLOWED
from cost_measurements import Measurements

from nndeploy.partition import kinds
from nndeploy.partition.cost_table import FORMAT, Curve
from nndeploy.target.target import BYTES_PER_S

NEAR = 1.3
"""Points whose estimates differ by less than this factor become one."""
PENALTY, LIMIT, ITERATIONS, MOST_STEP = 0.1, 0.15, 100, 0.5
"""A logarithm of a factor changes by no more than `MOST_STEP` in an iteration."""
UNLIMITED = {
    "onnxruntime": frozenset(kinds.MEASURED_KINDS),
    "openvino": frozenset({kinds.ROW_PRODUCT, kinds.SMALL_PRODUCT, kinds.PRODUCT}),
}
"""Kinds by library that are computed with the widest instructions of the processor whatever is asked for."""
Points = list[tuple[float, float]]
Floats = npt.NDArray[np.float64]


# Single operators


def curve_of(points: Points) -> Points:
    """Returns the rising curve nearest to the points, in logarithms (pool adjacent violators)."""
    groups: list[Points] = []
    for x, y in sorted((math.log(x), math.log(y)) for x, y in points):
        if groups and x - groups[-1][0][0] < math.log(NEAR):
            groups[-1].append((x, y))
        else:
            groups.append([(x, y)])
    pools: list[list[float]] = []  # the values that share a mean
    for group in groups:
        pools.append([_mean([y for _, y in group])])
        while len(pools) > 1 and _mean(pools[-2]) > _mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    xs, ys = [_mean([x for x, _ in group]) for group in groups], [_mean(pool) for pool in pools for _ in pool]
    return [(_short(math.exp(x)), _short(math.exp(y))) for x, y in zip(xs, ys, strict=True)]


def table_of(found: Measurements, level: str) -> dict[str, Any]:
    backends = {}
    for engine, by_kind in found.points.items():
        curves = {kind: curve_of(points) for kind, points in by_kind.items()}
        backends[engine] = {
            "call": _short(found.call[engine]),
            "node": _short(found.node[engine]),
            "node_of_any_size": _short(found.node_of_any_size[engine]),
            "fused": {head: _part(curves, head, extra) for head, extra in found.fused.get(engine, {}).items()},
            "in_networks": {},
            "curves": curves,
        }
    told = {"format": FORMAT, "level": level, "machine": figures.machine_name(), "date": figures.today()}
    return {**told, "backends": backends}


def _part(curves: dict[str, Points], head: str, extra: float) -> float:
    """Returns which part of its own time an elementwise operator takes behind another: 0 to 1."""
    points = curves.get(kinds.ELEMENTWISE)
    if not points:
        return 1.0
    alone = Curve(tuple(points)).seconds(2 * 4 * math.prod(FOLLOWED[head]) / BYTES_PER_S)
    return round(min(1.0, max(0.0, extra / alone)), 3)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _short(value: float) -> float:
    return float(f"{value:.4g}")


# The file


def read_table(path: Path) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return table


def write_table(path: Path, table: dict[str, Any]) -> None:
    text = re.sub(r"\[\s+([\d.e+-]+),\s+([\d.e+-]+)\s+\]", r"[\1, \2]", json.dumps(table, indent=1))
    path.write_text(text + "\n", encoding="utf-8")


def with_ratios_of(widest: Path, lesser: Path) -> None:
    """Gives, in a lesser level's file, the libraries what could not be measured: the widest's by our own ratios."""
    wide, table = read_table(widest)["backends"], read_table(lesser)
    less = table["backends"]
    ours = {
        kind: (points, wide["native"]["curves"].get(kind, points)) for kind, points in less["native"]["curves"].items()
    }
    for backend in UNLIMITED.keys() & less.keys() & wide.keys():
        curves = less[backend]["curves"]
        for kind, points in wide[backend]["curves"].items():
            if kind in UNLIMITED[backend] or kind not in curves:
                ratio = _ratio(*ours[kind]) if kind in ours else 1.0
                curves[kind] = [(x, _short(y * ratio)) for x, y in points]
    write_table(lesser, table)


def _ratio(lesser: Points, wide: Points) -> float:
    return max(1.0, math.exp(_mean([math.log(a[1] / b[1]) for a, b in zip(lesser, wide, strict=False)])))


# Whole networks


@dataclass(frozen=True)
class Network:
    """A model: seconds by engine and term, those of its crossings, and what was measured."""

    name: str
    terms: Mapping[str, Mapping[str, float]]
    crossing: Mapping[str, float]
    measured: Mapping[str, float]

    @property
    def family(self) -> str:
        """What exports of one architecture have in common: the letters that their names begin with."""
        return re.split(r"[_\d]", self.name)[0]

    def seconds(self, engine: str, factors: Mapping[str, float]) -> float:
        terms = self.terms[engine].items()
        return self.crossing[engine] + sum(factors.get(term, 1.0) * seconds for term, seconds in terms)


def factors(networks: Sequence[Network]) -> dict[str, dict[str, float]]:
    engines = sorted({engine for one in networks for engine in one.measured})
    return {engine: _factors([one for one in networks if engine in one.measured], engine) for engine in engines}


def predicted_unseen(networks: Sequence[Network]) -> dict[str, dict[str, float]]:
    """Returns the predicted seconds by name and engine, each by the factors of all other families."""
    found = {}
    for family in {one.family for one in networks}:
        by_engine = factors([one for one in networks if one.family != family])
        for one in [one for one in networks if one.family == family]:
            found[one.name] = {engine: one.seconds(engine, by_engine.get(engine, {})) for engine in one.measured}
    return found


def _factors(networks: Sequence[Network], engine: str) -> dict[str, float]:
    names = sorted({term for one in networks for term in one.terms[engine]})
    terms = np.array([[one.terms[engine].get(name, 0.0) for name in names] for one in networks])
    crossing, measured = (np.array([values[engine] for values in all_values]) for all_values in (
        [one.crossing for one in networks], [one.measured for one in networks]))  # fmt: skip
    logarithms = np.zeros(len(names))
    for _ in range(ITERATIONS):
        logarithms += _step(logarithms, terms, crossing, measured)
    return {name: round(float(np.exp(one)), 3) for name, one in zip(names, logarithms, strict=True)}


def _step(logarithms: Floats, terms: Floats, crossing: Floats, measured: Floats) -> Floats:
    parts = terms * np.exp(logarithms)
    predicted = parts.sum(axis=1) + crossing
    error = np.log(predicted / measured)
    weights = np.minimum(1.0, LIMIT / np.maximum(np.abs(error), 1e-12))
    slopes = parts / predicted[:, None]
    normal = slopes.T @ (weights[:, None] * slopes) + PENALTY * np.eye(len(logarithms))
    step = np.linalg.solve(normal, -(slopes.T @ (weights * error) + PENALTY * logarithms))
    return np.clip(step, -MOST_STEP, MOST_STEP)
