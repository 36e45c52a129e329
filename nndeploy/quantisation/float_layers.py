# SPDX-License-Identifier: Apache-2.0
"""Which layers go back to float: the fewest of the worst with which the outputs are accurate enough.

    each layer quantised alone -> ranked by what it costs -> bisection over how many of the worst are float

Law: the answer was measured; nothing is answered where no product would be left quantised.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from nndeploy.bundle.report import QuantisationTrial
from nndeploy.errors import BuildRefusedError
from nndeploy.quantisation.accuracy import MIN_DB
from nndeploy.quantisation.layers import Layer
from nndeploy.quantisation.trials import Bench, Method, reported


@dataclass(frozen=True, slots=True)
class FloatLayers:
    """The layers that stay float; what the model has with each layer alone quantised, in dB; what was tried.

    `floats` is None where no number of float layers but all is enough.
    """

    floats: tuple[str, ...] | None
    alone_db: Mapping[str, float]
    trials: tuple[QuantisationTrial, ...]


def float_layers(
    bench: Bench, ranking: Bench, method: Method, least_db: float, progress: Callable[[str], None]
) -> FloatLayers:
    """Returns the fewest of the worst layers that must stay float for an accuracy of `least_db`.

    It is for a method that is not accurate enough with all layers quantised; what each layer costs is measured at the
    outputs of `ranking`.
    """
    alone = _costs(ranking, method, progress)
    ranked = sorted(method.layers, key=lambda layer: alone[layer.name])
    most = max(i for i, layer in enumerate(ranked) if layer.is_product)  # with more no product is left
    trials: list[QuantisationTrial] = []

    def is_enough(count: int) -> bool:
        progress(f"{count} of {len(ranked)} layers float")
        found = bench.accuracy(method, [layer.name for layer in ranked[:count]])
        trials.append(reported(method, count, found))
        return found.sqnr_db >= least_db

    count = _least(is_enough, most)
    floats = None if count is None else tuple(layer.name for layer in ranked[:count])
    return FloatLayers(floats, alone, tuple(trials))


def _least(is_enough: Callable[[int], bool], most: int) -> int | None:
    """Returns the least count from 1 to `most` that is enough, by bisection; None where `most` is not."""
    if most < 1 or not is_enough(most):
        return None
    too_few, enough = 0, most
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if is_enough(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def _costs(bench: Bench, method: Method, progress: Callable[[str], None]) -> dict[str, float]:
    count = len(method.layers)

    def alone(numbered: tuple[int, Layer]) -> float:
        progress(f"layer {numbered[0] + 1} of {count} alone")
        try:
            return bench.accuracy_alone(method, numbered[1]).sqnr_db
        except BuildRefusedError:
            return MIN_DB

    with ThreadPoolExecutor(bench.workers.num_parallel) as pool:
        found = list(pool.map(alone, enumerate(method.layers)))
    return {layer.name: round(db, 1) for layer, db in zip(method.layers, found, strict=True)}
