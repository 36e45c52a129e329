# SPDX-License-Identifier: Apache-2.0
"""Ways to quantise one model, tried: a recipe -> the quantised model -> its accuracy on the samples held out.

Law: float32 and every trial run on the same engine, as the file says, without optimisation.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from nndeploy.bundle.report import QuantisationTrial
from nndeploy.jobs.workers import Workers
from nndeploy.plugin.interface import BuildOptions, QuantiseRecipe, Ranges
from nndeploy.quantisation.accuracy import Accuracy, Outputs, worst_accuracy
from nndeploy.quantisation.held_out import SplitSamples
from nndeploy.quantisation.layers import Layer, with_followers

RANKING_SAMPLES = 2
"""Held-out samples that tell how much each layer costs; the order is the same with more."""
DIGITS = 4


@dataclass(frozen=True, slots=True)
class Method:
    """A way to quantise `layers`: a form of `QuantiseRecipe`, and where ranges come from, "" where none are needed."""

    form: str
    calibration: str
    layers: tuple[Layer, ...]
    ranges: Ranges = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the report calls it."""
        return f"{self.form} {self.calibration}".strip()

    def recipe(self, floats: Collection[str] = ()) -> QuantiseRecipe:
        """Returns the recipe that leaves the layers named in `floats` float, with what only follows them."""
        floats = with_followers(self.layers, floats)
        return QuantiseRecipe(self.form, tuple(x.name for x in self.layers if x.name not in floats), self.ranges)


@dataclass(frozen=True, slots=True)
class Bench:
    """Where trials are made: the model, as bytes, whose outputs `names` are measured, and what they are in float32."""

    workers: Workers
    quantiser: str
    options: BuildOptions
    model: bytes
    names: tuple[str, ...]
    samples: SplitSamples
    want: Outputs

    def accuracy(self, method: Method, floats: Collection[str] = (), num_samples: int | None = None) -> Accuracy:
        """Returns the accuracy with the layers of a method but `floats` quantised.

        Raises:
            BuildRefusedError: the library cannot quantise it so, or not run what it made.
        """
        quantised = self.workers.quantise(self.quantiser, self.model, method.recipe(floats))
        samples = self.samples.held_out[:num_samples]
        got = self.workers.evaluate(self.quantiser, quantised, samples, self.options)
        return worst_accuracy(got, self.want[:num_samples], self.names)

    def accuracy_alone(self, method: Method, layer: Layer) -> Accuracy:
        """Returns the accuracy where `layer` alone is quantised, on a few samples."""
        others = [other.name for other in method.layers if other is not layer]
        return self.accuracy(method, others, RANKING_SAMPLES)


def reported(method: Method, num_float: int, found: Accuracy) -> QuantisationTrial:
    """Returns a trial for the report, which was not chosen so far."""
    return QuantisationTrial(
        method.name, num_float, round(found.sqnr_db, 1), _rounded(found.max_abs), _rounded(found.mean_abs),
        found.output, False,
    )  # fmt: skip


def _rounded(figure: float) -> float:
    return float(f"{figure:.{DIGITS}g}")
