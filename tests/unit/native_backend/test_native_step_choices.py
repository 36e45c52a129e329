# SPDX-License-Identifier: Apache-2.0
"""Choices of how steps are done: whatever they are, the bits of a network are those of the rules, in its own memory."""

import random
from collections.abc import Iterator
from contextlib import closing
from functools import partial

import numpy as np
import pytest
from kernel_library import every_level
from native_models import Array, built, model_of, opened, reals, run
from nndeploy_native.plan_session import PlanSession
from nndeploy_native.step_choices import MAX_CHOICE_BYTES, MAX_CHUNKS, StepChoice, choice_from_data, choice_to_data
from random_networks import Network, network_of

from nndeploy.errors import BuildRefusedError

COUNT = 24
SIZES = (*(1 << power for power in range(0, 25, 2)), MAX_CHOICE_BYTES)


def drawn_choices(dice: random.Random, num_steps: int) -> list[StepChoice]:
    """Returns a choice for each step, of any numbers."""
    return [
        StepChoice(
            dice.choice((0, *SIZES)), dice.choice((0, *SIZES)), dice.choice((0, 1, 3, MAX_CHUNKS)), dice.randrange(3),
            dice.randrange(3), way=dice.randrange(3),
        )
        for _ in range(num_steps)
    ]  # fmt: skip


def other_bits(network: Network, level: str, times: int = 3) -> Iterator[str]:
    """Yields what choices change of a network, in a line each, alone and with two threads."""
    for inputs, _ in network.samples:
        for threads in (1, 2):
            how = {"threads": threads, "buffer_bytes": network.buffer_bytes, "l2_bytes": network.l2_bytes}
            by_rule = run(network.artifact, inputs, level, **how)
            for number in range(times):
                dice = random.Random(number)  # noqa: S311 - no secret
                chosen = run(network.artifact, inputs, level, **how, choices=partial(drawn_choices, dice))
                for name in _differing(by_rule, chosen):
                    yield f"{network.name}, {level}, {threads} threads, choices {number}: {name}"


def _differing(one: dict[str, Array], other: dict[str, Array]) -> list[str]:
    return [name for name, array in one.items() if array.tobytes() != other[name].tobytes()]


@every_level
def test_no_choice_changes_a_bit_of_random_networks(level: str) -> None:
    changed: list[str] = []
    for seed in range(COUNT):
        try:
            changed += other_bits(network_of(seed), level)
        except BuildRefusedError:
            continue
    assert changed == []


LAYERS = {
    "pair of blocks": "a = Conv(x, u) d = Conv<group=48, pads=[1,1,1,1]>(a, w) p = Conv(d, v) y = Relu(p)",
    "pair of planes": "d = Conv<group=16, pads=[1,1,1,1]>(x, w16) y = Conv(d, v16)",
    "inverted residual": "a = Conv(x, u) b = Relu(a) d = Conv<group=48, pads=[1,1,1,1]>(b, w) y = Conv(d, v)",
    "pointwise": "a = Conv(x, u) y = Conv(a, v)",
    "dense": "a = Conv(x, u) y = Conv<pads=[1,1,1,1]>(a, z)",
}
WEIGHTS = {
    "u": (48, 16, 1, 1), "w": (48, 1, 3, 3), "v": (33, 48, 1, 1), "w16": (16, 1, 3, 3), "v16": (40, 16, 1, 1),
    "z": (40, 48, 3, 3),
}  # fmt: skip


@every_level
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("size", [(61, 47), (7, 9), (1, 700)], ids=str)
def test_every_window_of_a_layer_gives_the_same_bits(level: str, name: str, size: tuple[int, int]) -> None:
    body = LAYERS[name]
    used = {key: reals(*shape, seed=3) for key, shape in WEIGHTS.items() if f"{key})" in body}
    model = model_of(f"g (float[1,16,{size[0]},{size[1]}] x) => (float[n,o,p,q] y) {{ {body} }}", used)
    artifact, inputs = built(model), {"x": reals(1, 16, *size)}
    by_rule = run(artifact, inputs, level)["y"].tobytes()
    for field in ("cache_bytes", "buffer_bytes"):
        for num_bytes in SIZES:
            one = StepChoice()._replace(**{field: num_bytes})
            found = run(artifact, inputs, level, choices=lambda steps, one=one: [one] * steps)["y"]
            assert found.tobytes() == by_rule, (field, num_bytes)


@pytest.mark.parametrize(("rows", "inner", "columns"), [(1, 700, 90), (5, 3000, 64), (64, 2500, 300), (200, 64, 17)])
@every_level
def test_every_block_of_a_product_gives_the_same_bits(level: str, rows: int, inner: int, columns: int) -> None:
    model = model_of(
        f"g (float[{rows},{inner}] x, float[{inner},{columns}] b) => (float[n,m] y, float[n,m] z) "
        "{ y = MatMul(x, c) z = MatMul(x, b) }",
        {"c": reals(inner, columns, seed=2)},
    )
    artifact, inputs = built(model), {"x": reals(rows, inner), "b": reals(inner, columns, seed=1)}
    by_rule = run(artifact, inputs, level)
    for num_bytes in SIZES:
        one = StepChoice(cache_bytes=num_bytes)
        found = run(artifact, inputs, level, choices=lambda steps, one=one: [one] * steps)
        assert _differing(by_rule, found) == [], num_bytes


def test_choices_reach_the_steps() -> None:
    """A choice is no idle word: windows of a smaller buffer are smaller."""
    body = LAYERS["pair of blocks"]
    used = {key: reals(*shape, seed=3) for key, shape in WEIGHTS.items() if f"{key})" in body}
    artifact = built(model_of(f"g (float[1,16,64,64] x) => (float[n,o,p,q] y) {{ {body} }}", used))
    windows = []
    with closing(opened(artifact)) as session:
        assert isinstance(session, PlanSession)
        for buffer_bytes in (1 << 14, 1 << 22):
            shapes, num_steps = ((1, 16, 64, 64),), len(session.steps_here({}))
            session.take_choices(shapes, [StepChoice(buffer_bytes=buffer_bytes)] * num_steps)
            windows += [step["window"] for step in session.steps_here({"x": shapes[0]}) if "window" in step]
    assert len(set(windows)) == 2


def test_only_a_choice_that_may_round_changes_the_bits_of_a_pair() -> None:
    used = {key: reals(*shape, seed=3) for key, shape in WEIGHTS.items() if f"{key})" in LAYERS["pair of blocks"]}
    model = model_of(f"g (float[1,16,61,47] x) => (float[n,o,p,q] y) {{ {LAYERS['pair of blocks']} }}", used)
    artifact, inputs = built(model), {"x": reals(1, 16, 61, 47)}
    by_rule = run(artifact, inputs, "x86-64-v3")["y"]
    one = StepChoice(buffer_bytes=MAX_CHOICE_BYTES, rounding=1)
    apart = run(artifact, inputs, "x86-64-v3", choices=lambda steps: [one] * steps)["y"]
    assert np.abs(apart - by_rule).max() <= 1e-5 * np.abs(by_rule).max()
    with pytest.raises(ValueError, match="rounding"):  # no file may say so
        choice_from_data({"rounding": 1})


@pytest.mark.parametrize("data", [
    {}, {"cache_bytes": 1}, {"way": 2},
    {"buffer_bytes": MAX_CHOICE_BYTES, "chunks": 64, "sharing": 2, "stores": 1},
])  # fmt: skip
def test_a_choice_is_what_its_data_says(data: dict[str, int]) -> None:
    assert choice_to_data(choice_from_data(data)) == data


@pytest.mark.parametrize("data", [
    None, [], {"cache_bytes": 0}, {"cache_bytes": -1}, {"cache_bytes": True}, {"cache_bytes": 1.5},
    {"cache_bytes": "1"}, {"cache_bytes": MAX_CHOICE_BYTES + 1}, {"chunks": 65}, {"sharing": 3}, {"stores": 3},
    {"way": 3}, {"window": 1},
])  # fmt: skip
def test_what_is_no_choice_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match="choice"):
        choice_from_data(data)
