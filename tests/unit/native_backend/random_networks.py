# SPDX-License-Identifier: Apache-2.0
"""Random networks with what they are made for: an instruction set, caches of five processors, buffers, threads."""

import random

import numpy as np
import onnx_ir as ir
from native_models import Array
from network_graphs import Drawn
from network_programs import Network, Set
from network_reference import outputs_in_float64
from nndeploy_native.steps.step import Machine

from nndeploy.passes import optimise
from nndeploy.values.types import DimRange

L2_BYTES = {
    "Raspberry Pi 5, Cortex-A76": 512 << 10, "Zen 4": 1 << 20, "Sapphire Rapids": 2 << 20, "Skylake client": 256 << 10,
    "not known": 0,
}  # fmt: skip
BUFFERS = (0, 0, 0, 1, 1000, 8 << 10, 64 << 10, 256 << 10, 1 << 20)
SYMBOLS, IMAGES = ("n", "", "h", "w"), ("n", "", "", "")
RANGES = {"n": DimRange(1, 3, 1), "h": DimRange(24, 64, 32), "w": DimRange(24, 80, 40)}
SHAPES = {SYMBOLS: ((1, 24, 80), (2, 37, 24), (1, 64, 41)), IMAGES: ((1, 24, 24), (3, 24, 24))}


def network_of(seed: int, chosen: Set) -> Network:
    """Returns the network of a seed, every fifth with sizes in ranges, or the number of images alone."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    machine = Machine(
        chosen.isa, dice.choice(list(L2_BYTES.values())), dice.choice(BUFFERS), dice.choice((0, 1, 2)),
        fuses=dice.random() > 0.05,
    )  # fmt: skip
    is_dynamic = seed % 5 == 4
    drawn = Drawn(seed, keeps_sizes=is_dynamic).grown(dice.randint(1, 6))
    while not drawn.nodes:
        drawn.grown(2)
    symbols = IMAGES if dice.random() < 0.3 else SYMBOLS
    proto = drawn.model(symbols if is_dynamic else ())
    model = ir.from_proto(proto)
    given = [{one.name: drawn.inputs[one.name] for one in proto.graph.input}]
    if is_dynamic:
        optimise(model, RANGES)
        given = [_of_sizes(given[0], sizes) for sizes in SHAPES[symbols]]
    names = [one.name for one in proto.graph.output]
    samples = []
    for inputs in given:
        values = outputs_in_float64(proto, inputs)
        samples.append((inputs, {name: values[name] for name in names}))
    tolerance = 2e-4 if chosen.isa.precision == "fp32" else 0.2
    ranges = RANGES if is_dynamic else {}
    caches = f"L2 {machine.l2_bytes}, buffer {machine.buffer_bytes}"
    name = f"seed {seed}, {chosen.isa.name}, {caches}, {machine.threads} threads"
    return Network(name, model, machine, tuple(samples), ranges, tolerance)


def _of_sizes(inputs: dict[str, Array], sizes: tuple[int, int, int]) -> dict[str, Array]:
    numbers = np.random.default_rng(sum(sizes))
    n, h, w = sizes
    return {name: numbers.standard_normal((n, one.shape[1], h, w)).astype(np.float32) for name, one in inputs.items()}
