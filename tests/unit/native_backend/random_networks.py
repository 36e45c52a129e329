# SPDX-License-Identifier: Apache-2.0
"""Random networks with the buffer that their windows are made for, and what they give in float64."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np
import onnx_ir as ir
from choice_networks import with_choice
from native_models import Array, run
from network_graphs import Drawn, short
from nndeploy_native.build import build
from oracle.in_float64 import outputs_in_float64

from nndeploy.passes import optimise
from nndeploy.plugin.interface import Artifact
from nndeploy.values.types import DimRange

BUFFERS = (0, 0, 0, 1, 1000, 8 << 10, 64 << 10, 256 << 10, 1 << 20)
L2_BYTES = (0, 2 << 10, 16 << 10, 128 << 10)
SYMBOLS, IMAGES = ("n", "", "h", "w"), ("n", "", "", "")
RANGES = {"n": DimRange(1, 3, 1), "h": DimRange(24, 64, 32), "w": DimRange(24, 80, 40)}
SHAPES = {SYMBOLS: ((1, 24, 80), (2, 37, 24), (1, 64, 41)), IMAGES: ((1, 24, 24), (3, 24, 24))}


@dataclass(frozen=True, eq=False)
class Network:
    """A model, and for each set of inputs the outputs in float64.

    `buffer_bytes` are 0 where they follow from L2, `l2_bytes` are 0 for those of a usual processor.
    """

    name: str
    model: ir.Model
    ranges: Mapping[str, DimRange]
    buffer_bytes: int
    samples: tuple[tuple[Mapping[str, Array], Mapping[str, Array]], ...]
    l2_bytes: int = 0

    @cached_property
    def artifact(self) -> Artifact:
        """What the rules make of it; raises BuildRefusedError where they refuse it."""
        return build(self.model, self.ranges)


@lru_cache(64)
def network_of(seed: int) -> Network:
    """Returns the network of a seed, every fifth with sizes in ranges, or the number of images alone."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    buffer_bytes, is_dynamic = dice.choice(BUFFERS), seed % 5 == 4
    drawn = Drawn(seed, keeps_sizes=is_dynamic).grown(dice.randint(1, 6))
    while not drawn.nodes:
        drawn.grown(2)
    symbols = IMAGES if dice.random() < 0.3 else SYMBOLS
    proto = drawn.model(symbols if is_dynamic else ())
    chosen = with_choice(proto, dice) if seed % 4 == 3 else None
    model = ir.from_proto(proto if chosen is None else chosen.model)
    given = [{one.name: drawn.inputs[one.name] for one in proto.graph.input}]
    if is_dynamic:
        given = [_of_sizes(given[0], sizes) for sizes in SHAPES[symbols]]
    if is_dynamic or chosen is not None:
        optimise(model, RANGES if is_dynamic else {})
    samples: list[tuple[Mapping[str, Array], Mapping[str, Array]]] = []
    for inputs in given:
        if chosen is None:
            values = outputs_in_float64(proto, inputs)
            samples.append((inputs, {one.name: values[one.name] for one in proto.graph.output}))
        else:
            samples += [(chosen.inputs(inputs, truth), chosen.wanted(inputs, truth)) for truth in (True, False, True)]
    l2_bytes = L2_BYTES[seed // 2 % len(L2_BYTES)]
    name = f"seed {seed}, buffer {buffer_bytes}, second cache {l2_bytes}"
    return Network(name, model, RANGES if is_dynamic else {}, buffer_bytes, tuple(samples), l2_bytes)


def wrong_numbers(network: Network, level: str) -> list[str]:
    """Returns what is wrong with a network on a level, in a line each: alone, and shared by two threads.

    Once they share every step, once those that are worth it; and once with weights that an earlier opening packed.

    Raises:
        BuildRefusedError: the rules refuse it.
    """
    wrong: list[str] = []
    taken = partial(run, network.artifact, level=level, buffer_bytes=network.buffer_bytes, l2_bytes=network.l2_bytes)
    for inputs, wanted in network.samples:
        alone = taken(inputs)
        shared, large = (taken(inputs, threads=2, shares_all=shares_all) for shares_all in (True, False))
        packed = taken(inputs, was_packed=True)
        shapes = {name: array.shape for name, array in inputs.items()}
        ways = {"one thread": alone, "two threads": shared, "two for large steps": large, "packed before": packed}
        for said, found in ways.items():
            wrong += [f"{network.name}, {level}, {said}, {shapes}: {one}" for one in _differences(found, wanted, level)]
    return wrong


def _differences(found: Mapping[str, Array], wanted: Mapping[str, Array], level: str) -> list[str]:
    tolerance = 0.1 if "bf16" in level else 2e-4
    wrong = []
    for name, want in wanted.items():
        if found[name].shape != want.shape:
            wrong.append(f"{name}: shape {found[name].shape} instead of {want.shape}")
            continue
        wide = want.astype(np.float64)
        scale = max(1.0, float(np.abs(wide).max(initial=0.0)))
        difference = float(np.abs(found[name] - wide).max(initial=0.0))
        if not difference <= tolerance * scale:
            wrong.append(f"{name}: {difference} apart, of {scale}")
    return wrong


def _of_sizes(inputs: Mapping[str, Array], sizes: tuple[int, int, int]) -> dict[str, Array]:
    numbers = np.random.default_rng(sum(sizes))
    n, h, w = sizes
    shapes = {name: (n, one.shape[1], h, w) for name, one in inputs.items()}
    return {name: short(numbers.standard_normal(shape).astype(np.float32)) for name, shape in shapes.items()}
