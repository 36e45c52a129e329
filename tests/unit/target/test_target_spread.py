# SPDX-License-Identifier: Apache-2.0
"""Steps over places: the least time within the limits, what is counted, and why nothing fits."""

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np
import pytest

from nndeploy.target.place_limits import PlaceLimit, places_in
from nndeploy.target.spread import CROSSING_BYTES_PER_S, GPU_SPEEDUP, NoRoom, SpreadStep, spread

MIB = 1 << 20


def line(*sizes_mib: int, needs: int = 4) -> tuple[list[SpreadStep], dict[str, int]]:
    """Steps in a line with weights of `needs` MiB each; between two of them a value of so many MiB."""
    steps = [
        SpreadStep(f"n{i}", (f"v{i}",), (f"v{i + 1}",), 0.0, {f"w{i}": needs * MIB}) for i in range(len(sizes_mib) + 1)
    ]
    sizes = [1, *sizes_mib, 1]
    return steps, {f"v{i}": size * MIB for i, size in enumerate(sizes)}


def placed(found: tuple[str, ...] | NoRoom) -> str:
    assert isinstance(found, tuple)
    return " ".join(found)


def test_what_fits_one_place_stays_there() -> None:
    steps, sizes = line(1, 1, 1)
    assert placed(spread(steps, sizes, ["v4"], places_in("cpu:0,cpu:1"))) == "cpu:0 cpu:0 cpu:0 cpu:0"


def test_a_chain_is_cut_where_least_crosses() -> None:
    steps, sizes = line(8, 2, 5, 8)
    found = spread(steps, sizes, ["v5"], places_in("cpu:0=12MiB,cpu:1=12MiB"))
    assert placed(found) == "cpu:0 cpu:0 cpu:1 cpu:1 cpu:1"


def test_of_equal_cuts_the_earlier_place_gets_most() -> None:
    steps, sizes = line(3, 3, 3)
    found = spread(steps, sizes, ["v4"], places_in("cpu:0=12MiB,cpu:1=12MiB"))
    assert placed(found) == "cpu:0 cpu:0 cpu:0 cpu:1"


def test_a_gpu_is_worth_its_crossings_only_where_it_computes_much() -> None:
    slow = SpreadStep("n", ("x",), ("y",), seconds=1.0)
    quick = SpreadStep("n", ("x",), ("y",), seconds=1e-9)
    sizes = {"x": MIB, "y": MIB}
    assert placed(spread([slow], sizes, ["y"], places_in("cuda:0,cpu"))) == "cuda:0"
    assert placed(spread([quick], sizes, ["y"], places_in("cuda:0,cpu"))) == "cpu"


def test_for_the_rate_places_take_equally_long() -> None:
    steps, sizes = [SpreadStep(f"n{i}", (f"v{i}",), (f"v{i + 1}",), 1.0) for i in range(8)], {}
    assert placed(spread(steps, sizes, ["v8"], places_in("cpu:0,cpu:1"))) == " ".join(["cpu:0"] * 8)
    found = placed(spread(steps, sizes, ["v8"], places_in("cpu:0,cpu:1"), for_rate=True))
    assert found == " ".join(["cpu:0"] * 4 + ["cpu:1"] * 4)


def test_for_the_rate_a_place_gets_nothing_that_would_take_it_longer_to_get() -> None:
    steps = [SpreadStep(f"n{i}", (f"v{i}",), (f"v{i + 1}",), 1e-6) for i in range(2)]
    found = spread(steps, {f"v{i}": 64 * MIB for i in range(3)}, ["v2"], places_in("cpu:0,cpu:1"), for_rate=True)
    assert placed(found) == "cpu:0 cpu:0"


def test_weights_of_several_steps_count_once_on_a_place() -> None:
    steps = [SpreadStep(f"n{i}", (f"v{i}",), (f"v{i + 1}",), weights={"w": 8 * MIB}) for i in range(4)]
    assert placed(spread(steps, {}, ["v4"], places_in("cpu:0=8MiB,cpu:1=8MiB"))) == "cpu:0 cpu:0 cpu:0 cpu:0"


def test_what_cannot_run_on_a_gpu_runs_on_the_cpu_among_its_steps_and_takes_nothing_of_its_memory() -> None:
    gpu = [SpreadStep(f"n{i}", (f"v{i}",), (f"v{i + 1}",), 1.0, {f"w{i}": 4 * MIB}) for i in range(3)]
    gpu[1] = SpreadStep("n1", ("v1",), ("v2",), 1.0, {"w1": 99 * MIB}, 99 * MIB, needs_cpu=True)
    assert placed(spread(gpu, {}, ["v3"], places_in("cuda:0=8MiB,cuda:1=8MiB"))) == "cuda:0 cpu cuda:0"


@pytest.mark.parametrize(("limits", "reason"), [
    ("cpu:0=3MiB,cpu:1=2MiB", "n0 needs 4.0 MiB, the largest place, cpu:0, has 3.0 MiB"),
    ("cpu:0=4MiB,cpu:1=9MiB",
     "the chain needs 16.0 MiB on one place, and does not fit the places from n3 on: cpu:0 has 4.0 MiB, "
     "cpu:1 has 9.0 MiB"),
])  # fmt: skip
def test_says_what_is_too_much(limits: str, reason: str) -> None:
    steps, sizes = line(1, 1, 1)
    assert spread(steps, sizes, ["v4"], places_in(limits)) == NoRoom(reason)


def test_a_step_that_needs_a_gpu_is_not_given_to_the_cpu() -> None:
    steps = [SpreadStep("n0", ("x",), ("y",), needs_gpu=True)]
    assert spread(steps, {}, ["y"], places_in("cpu:0,cpu:1")) == NoRoom("n0 needs a GPU, and none is among the places")


Cost = tuple[float, float]


def brute_force(
    steps: Sequence[SpreadStep], sizes: dict[str, int], outputs: Sequence[str], places: Sequence[PlaceLimit],
    for_rate: bool,
) -> Cost:  # fmt: skip
    """Returns the least cost of all splits, each counted as the definition says; infinity where none fits."""
    best = (np.inf, np.inf)
    for cuts in combinations_with_replacement(range(len(steps) + 1), len(places) - 1):
        ends = [0, *cuts, len(steps)]
        home = [k for k in range(len(places)) for _ in range(ends[k], ends[k + 1])]
        best = min(best, cost_of(steps, sizes, outputs, places, home, for_rate))
    return best


def cost_of(
    steps: Sequence[SpreadStep], sizes: dict[str, int], outputs: Sequence[str], places: Sequence[PlaceLimit],
    home: Sequence[int], for_rate: bool,
) -> Cost:  # fmt: skip
    """Returns the seconds of the slowest place, where the rate counts, and those of all together."""
    found = [0.0]
    maker = {name: i for i, step in enumerate(steps) for name in step.makes}
    for k, place in enumerate(places):
        mine = [i for i in range(len(steps)) if home[i] == k]
        weights = {name: size for i in mine for name, size in steps[i].weights.items()}
        needed = sum(weights.values()) + max((steps[i].peak_bytes for i in mine), default=0)
        if mine and place.limit_bytes is not None and needed > place.limit_bytes:
            return (np.inf, np.inf)
        seconds = sum(steps[i].seconds for i in mine) / (GPU_SPEEDUP if place.is_gpu else 1.0)
        read = {name for i in mine for name in steps[i].reads}
        crossed = sum(sizes[n] for n in read if n in maker and home[maker[n]] != k)
        if place.is_gpu:
            crossed += sum(sizes[n] for n in read if n not in maker)
            crossed += sum(sizes[n] for i in mine for n in steps[i].makes if n in outputs)
        found.append(seconds + crossed / CROSSING_BYTES_PER_S)
    return (max(found) if for_rate else 0.0, sum(found))


@pytest.mark.parametrize("for_rate", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_no_other_split_of_a_random_graph_is_faster(seed: int, for_rate: bool) -> None:
    """Values skip steps, are read several times, and weights are shared: the same as trying all splits."""
    random = np.random.default_rng(seed)
    steps: list[SpreadStep] = []
    made = ["x"]
    for i in range(7):
        reads = tuple(random.choice(made, size=min(len(made), 2), replace=False).tolist())
        weights = {f"w{random.integers(4)}": 1 for _ in range(2)}
        steps.append(SpreadStep(
            f"n{i}", reads, (f"v{i}",), float(random.integers(1, 9)) * 1e-9,
            {name: (int(name[1:]) + 1) * 10 for name in weights}, int(random.integers(0, 20)),
        ))  # fmt: skip
        made.append(f"v{i}")
    sizes = {name: int(random.integers(1, 30)) for name in made}
    places = [
        PlaceLimit(name, None if random.random() < 0.2 else int(random.integers(20, 90)))
        for name in ("cuda:0", "cpu:0", "cpu:1")
    ]
    found = spread(steps, sizes, [made[-1], "v2"], places, for_rate=for_rate)
    least = brute_force(steps, sizes, [made[-1], "v2"], places, for_rate)
    if isinstance(found, NoRoom):
        assert np.isinf(least[1])
        return
    home = [[place.name for place in places].index(name) for name in found]
    assert home == sorted(home), "places stand in their order"
    assert cost_of(steps, sizes, [made[-1], "v2"], places, home, for_rate) == pytest.approx(least, rel=1e-9)
