# SPDX-License-Identifier: Apache-2.0
"""What terms of the cost table come to within whole networks: factors, fitted to measured models.

    seconds(network) = sum over terms of (factor * seconds of the term) + seconds of crossings

Least squares of the logarithm of predicted over measured seconds, beyond `LIMIT` its absolute value (Huber, Annals of
Mathematical Statistics 35, 1964), so that a model that an engine computes in another way does not bend the rest; a
penalty on the logarithms of the factors leaves those at 1 that the models say little about.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

PENALTY = 0.1
LIMIT = 0.15
ITERATIONS = 100
MOST_STEP = 0.5
"""A logarithm changes by no more than this in an iteration."""

Floats = npt.NDArray[np.float64]


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
        """Returns the predicted seconds."""
        terms = self.terms[engine].items()
        return self.crossing[engine] + sum(factors.get(term, 1.0) * seconds for term, seconds in terms)


def factors(networks: Sequence[Network]) -> dict[str, dict[str, float]]:
    """Returns the factors of every engine by term."""
    engines = sorted({engine for one in networks for engine in one.measured})
    return {engine: _factors([one for one in networks if engine in one.measured], engine) for engine in engines}


def predicted_unseen(networks: Sequence[Network]) -> dict[str, dict[str, float]]:
    """Returns the predicted seconds by name and engine, each by the factors of all other families."""
    found = {}
    for family in {one.family for one in networks}:
        by_engine = factors([one for one in networks if one.family != family])
        for one in networks:
            if one.family == family:
                found[one.name] = {engine: one.seconds(engine, by_engine.get(engine, {})) for engine in one.measured}
    return found


def _factors(networks: Sequence[Network], engine: str) -> dict[str, float]:
    names = sorted({term for one in networks for term in one.terms[engine]})
    terms = np.array([[one.terms[engine].get(name, 0.0) for name in names] for one in networks])
    crossing = np.array([one.crossing[engine] for one in networks])
    measured = np.array([one.measured[engine] for one in networks])
    logarithms = np.zeros(len(names))
    for _ in range(ITERATIONS):
        logarithms += _step(logarithms, terms, crossing, measured)
    return {name: round(float(np.exp(one)), 3) for name, one in zip(names, logarithms, strict=True)}


def _step(logarithms: Floats, terms: Floats, crossing: Floats, measured: Floats) -> Floats:
    """Returns a step of Gauss and Newton."""
    parts = terms * np.exp(logarithms)
    predicted = parts.sum(axis=1) + crossing
    error = np.log(predicted / measured)
    weights = np.minimum(1.0, LIMIT / np.maximum(np.abs(error), 1e-12))
    slopes = parts / predicted[:, None]
    normal = slopes.T @ (weights[:, None] * slopes) + PENALTY * np.eye(len(logarithms))
    step = np.linalg.solve(normal, -(slopes.T @ (weights * error) + PENALTY * logarithms))
    return np.clip(step, -MOST_STEP, MOST_STEP)
