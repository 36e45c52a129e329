# SPDX-License-Identifier: Apache-2.0
"""Random networks of all operators, each array ending at a guard page, against float64; see fuzz_native_networks.py.

What is read or written behind an array ends the process; what nobody wrote is not a number, and shows in a result.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest
from kernel_library import every_level, scratch_bytes
from native_models import FLOAT_LEVELS, HEADER, Array, built, model_of, reals
from nndeploy_native.plan import DOCUMENT_FILE, PLAN_FILE, WEIGHTS_FILE, document_from_json
from oracle.in_float64 import outputs_in_float64
from random_networks import Network, network_of, wrong_numbers

from nndeploy.errors import BuildRefusedError
from nndeploy.passes import optimise
from nndeploy.values.types import DimRange

COUNT = 40
PAIR = "d = Conv<group={c}, pads=[1,1,1,1]>({x}, w) {y} = Conv(d, v)"


@every_level
@pytest.mark.parametrize("first", [0, COUNT // 2])
def test_random_networks_touch_their_own_memory_and_are_right(first: int, level: str) -> None:
    wrong, refused = [], 0
    for seed in range(first, first + COUNT // 2):
        try:
            wrong += wrong_numbers(network_of(seed), level)
        except BuildRefusedError:
            refused += 1
    assert wrong == []
    assert refused <= COUNT * 0.05


@every_level
def test_pairs_of_blocks_and_planes_stay_in_their_scratch(level: str) -> None:
    """Blocks to planes; planes of one channel with a residual, a narrow buffer, a long row, in ranges."""
    wide = {"u": (32, 32, 1, 1), "w": (32, 1, 3, 3), "v": (24, 32, 1, 1)}
    networks = [
        _network(
            f"(float[1,32,{size},{size}] x) => (float[1,24,{size},{size}] y) "
            f"{{ a = Conv(x, u) {PAIR.format(c=32, x='a', y='y')} }}",
            wide,
            buffer_bytes,
        )
        for size, buffer_bytes in ((16, 0), (16, 64 << 10), (5, 64 << 10), (33, 1 << 20))
    ]
    for network in networks:
        document = document_from_json(built(network.model).files[DOCUMENT_FILE])
        assert document.steps[-1]["kernel"] == "planar_separable"
    one = {"w": (1, 1, 3, 3), "v": (1, 1, 1, 1)}
    narrow = "(float[1,1,32,40] x) => (float[1,1,32,40] y) {{ {} y = Add(x, p) }}".format(
        PAIR.format(c=1, x="x", y="p")
    )
    long = "(float[1,1,1,70000] x) => (float[1,1,1,70000] y) {{ {} }}".format(PAIR.format(c=1, x="x", y="y"))
    networks += [_network(text, one, buffer_bytes) for text in (narrow, long) for buffer_bytes in (0, 1000)]
    ranged = "(float[n,1,h,w] x) => (float[n,1,h,w] y) {{ {} }}".format(PAIR.format(c=1, x="x", y="y"))
    ranges = {"n": DimRange(1, 2, 1), "h": DimRange(1, 40, 20), "w": DimRange(1, 40, 20)}
    networks.append(_network(ranged, one, 0, ranges))
    assert [wrong for network in networks for wrong in wrong_numbers(network, level)] == []


SIDES = {
    "planes to planes": "{pair}",
    "blocks to planes": "a = Conv(x, u) {pair}",
    "planes to blocks": "{pair} y = Conv<pads=[1,1,1,1]>(p, z)",
    "blocks to blocks": "a = Conv(x, u) {pair} y = Conv<pads=[1,1,1,1]>(p, z)",
}
WINDOWS = {
    "images": (20, "3, 3", "1, 1", "1, 1", (37, 41)),
    "images of few channels": (2, "3, 3", "1, 1", "1, 1", (19, 70)),
    "every second pixel": (20, "5, 5", "2, 2", "1, 1", (30, 45)),
    "every third pixel, taps far apart": (36, "3, 3", "3, 3", "4, 4", (22, 50)),
    "wide kernels": (17, "7, 2", "1, 1", "2, 1", (20, 23)),
    "a row": (20, "1, 33", "1, 1", "1, 2", (1, 700)),
    "a row of few channels": (3, "1, 5", "1, 2", "1, 1", (1, 2500)),
    "a row by squares": (33, "3, 3", "1, 1", "1, 1", (1, 600)),
}
"""Channels, kernel, strides, dilations, height and width."""


@every_level
@pytest.mark.parametrize("l2_bytes", [1 << 10, 8 << 10, 64 << 10, 0])
@pytest.mark.parametrize("sides", SIDES)
def test_pairs_are_right_whatever_the_second_cache_holds(level: str, l2_bytes: int, sides: str) -> None:
    """Windows of columns, of rows that stay, of all rows, from planes and from blocks, ahead of which is fetched."""
    networks = [replace(network, l2_bytes=l2_bytes) for network in pairs_between(SIDES[sides])]
    assert [wrong for network in networks for wrong in wrong_numbers(network, level)] == []


@cache
def pairs_between(sides: str) -> list[Network]:
    """Returns a network for each of `WINDOWS`."""
    networks = []
    for channels, kernel, strides, dilations, (height, width) in WINDOWS.values():
        taps = tuple(map(int, kernel.split(", ")))
        pads = ", ".join(str((k - 1) * int(d) // 2) for k, d in zip(taps * 2, dilations.split(", ") * 2, strict=True))
        pair = (
            f"d = Conv<group={channels}, pads=[{pads}], strides=[{strides}], dilations=[{dilations}]>"
            f"({'a' if 'u' in sides else 'x'}, w) r = Relu(d) {'p' if 'z' in sides else 'y'} = Conv(r, v)"
        )
        body = sides.format(pair=pair)
        text = f"(float[2,{channels},{height},{width}] x) => (float[n,o,p,q] y) {{ {body} }}"
        shapes = {"w": (channels, 1, *taps), "v": (24, channels, 1, 1)}
        shapes |= {"u": (channels, channels, 1, 1)} if "u" in sides else {}
        shapes |= {"z": (5, 24, 3, 3)} if "z" in sides else {}
        networks.append(_network(text, shapes))
    return networks


@every_level
@pytest.mark.parametrize("before", ["", "a = Conv(x, u) "], ids=["planes", "blocks"])
def test_the_memory_of_a_pair_does_not_grow_with_its_rows(level: str, before: str) -> None:
    """Rows are cut into columns: a thread's part of a row of any length takes a few times the second cache."""
    l2_bytes, scratch = 64 << 10, []
    weights = {"u": reals(64, 64, 1, 1), "w": reals(64, 1, 1, 5), "v": reals(64, 64, 1, 1)}
    for width in (20_000, 80_000):
        pair = f"d = Conv<group=64, pads=[0,2,0,2]>({'a' if before else 'x'}, w) y = Conv(d, v)"
        text = f"g (float[1,64,1,{width}] x) => (float[1,64,1,{width}] y) {{ {before}{pair} }}"
        used = weights if before else {name: one for name, one in weights.items() if name != "u"}
        files = built(model_of(text, used)).files
        scratch.append(scratch_bytes(level, (bytes(files[PLAN_FILE]), bytes(files[WEIGHTS_FILE])), [(1, 64, 1, width)],
                                     l2_bytes=l2_bytes))  # fmt: skip
    assert max(scratch) <= 5 * l2_bytes


@pytest.mark.parametrize(
    ("text", "shapes", "operators"),
    [("""(float[1,3,20,20] x) => (float[1,16,10,10] y) { e = Conv<strides=[2,2], pads=[1,1,1,1]>(x, u)
            a = HardSwish(e) d = Conv<group=16, pads=[1,1,1,1]>(a, w) r = Relu(d) p = Conv(r, v) y = Add(p, a) }""",
      {"u": (16, 3, 3, 3)}, ["convolution", "separable"]),
     ("""(float[1,8,9,9] x) => (float[1,16,9,9] y) { a = Conv(x, u) d = Conv<group=16, pads=[1,1,1,1]>(a, w)
            p = Conv(d, v) y = Add(a, p) }""", {"u": (16, 8, 1, 1)}, ["to_blocked", "convolution", "separable"]),
     ("""(float[1,16,9,9] x) => (float[1,16,9,9] y) { d = Conv<group=16, pads=[1,1,1,1]>(x, w) p = Conv(d, v)
            y = Add(d, p) }""", {}, ["to_blocked", "convolution", "convolution"])],
    ids=["stem", "inverted residual", "separable"],
)  # fmt: skip
def test_a_tensor_that_is_read_again_is_not_fused_away(
    text: str, shapes: dict[str, tuple[int, ...]], operators: list[str]
) -> None:
    """The first convolution's result, that of an expansion and that of a depthwise one are residuals later."""
    network = _network(text, {**shapes, "w": (16, 1, 3, 3), "v": (16, 16, 1, 1)})
    document = document_from_json(built(network.model).files[DOCUMENT_FILE])
    assert [step["kernel"] for step in document.steps] == [*operators, "to_plain"]
    assert wrong_numbers(network, FLOAT_LEVELS[-1]) == []


def _network(
    text: str, shapes: dict[str, tuple[int, ...]], buffer_bytes: int = 0, ranges: dict[str, DimRange] | None = None
) -> Network:
    """Returns a network of ONNX text with seeded weights and inputs; with ranges at both ends."""
    proto = onnx.parser.parse_model(f"{HEADER} g {text}")
    for number, (name, shape) in enumerate(shapes.items()):
        weights = reals(*shape, seed=number) / np.float32(np.sqrt(np.prod(shape[1:])))
        proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    model = ir.from_proto(onnx.shape_inference.infer_shapes(proto, data_prop=True))
    if ranges:
        optimise(model, ranges)
    samples = []
    for end in ("min", "max") if ranges else ("",):
        sizes = [
            one.dim_value or getattr(ranges and ranges[one.dim_param], end)
            for one in proto.graph.input[0].type.tensor_type.shape.dim
        ]
        inputs: dict[str, Array] = {"x": reals(*sizes, seed=9)}
        samples.append((inputs, {"y": np.asarray(outputs_in_float64(proto, inputs)["y"])}))
    return Network(text, model, ranges or {}, buffer_bytes, tuple(samples))
