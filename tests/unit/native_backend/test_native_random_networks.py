# SPDX-License-Identifier: Apache-2.0
"""Random networks of all operators, each array in memory of its own, against float64; also `make fuzz-native-networks`.

One set of instructions a test: its widths are compiled for what this machine has.
"""

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest
from fuzz_native_networks import planned_networks, wrong_networks
from native_models import HEADER, Array, needs_zig, reals
from network_programs import Network, Planned, Set, sets
from network_reference import outputs_in_float64
from nndeploy_native.steps.step import Machine

from nndeploy.passes import optimise
from nndeploy.values.types import DimRange

COUNT = 40
EACH_SET = pytest.mark.parametrize("chosen", sets(), ids=lambda one: one.isa.name)
PAIR = "d = Conv<group={c}, pads=[1,1,1,1]>({x}, w) {y} = Conv(d, v)"


@pytest.mark.slow
@EACH_SET
def test_random_networks_touch_their_own_memory_and_are_right(chosen: Set, tmp_path: Path) -> None:
    needs_zig()
    first = 10_000 * (1 + sets().index(chosen))
    planned = list(planned_networks(range(first, first + COUNT), chosen))
    assert len(planned) > COUNT * 0.9
    assert list(wrong_networks(planned, chosen, tmp_path)) == []


@EACH_SET
def test_pairs_of_blocks_and_planes_stay_in_their_scratch(chosen: Set, tmp_path: Path) -> None:
    """Blocks to planes; planes of one channel with a residual, a narrow buffer, a long row, in ranges."""
    needs_zig()
    networks = [
        _network(
            chosen, f"(float[1,32,{size},{size}] x) => (float[1,24,{size},{size}] y) {{ a = Conv(x, u) "
            f"{PAIR.format(c=32, x='a', y='y')} }}",
            {"u": (32, 32, 1, 1), "w": (32, 1, 3, 3), "v": (24, 32, 1, 1)}, Machine(chosen.isa, 2 << 20, buffer, 1),
        )
        for size, buffer in ((16, 0), (16, 64 << 10), (5, 64 << 10), (33, 1 << 20))
    ]  # fmt: skip
    one = {"w": (1, 1, 3, 3), "v": (1, 1, 1, 1)}
    narrow = "(float[1,1,32,40] x) => (float[1,1,32,40] y) {{ {} y = Add(x, p) }}".format(
        PAIR.format(c=1, x="x", y="p")
    )
    long = "(float[1,1,1,70000] x) => (float[1,1,1,70000] y) {{ {} }}".format(PAIR.format(c=1, x="x", y="y"))
    networks += [
        _network(chosen, text, one, Machine(chosen.isa, 2 << 20, buffer, 1))
        for text, buffer in ((narrow, 0), (narrow, 1000), (long, 0), (long, 1000))
    ]
    ranged = "(float[n,1,h,w] x) => (float[n,1,h,w] y) {{ {} }}".format(PAIR.format(c=1, x="x", y="y"))
    ranges = {"n": DimRange(1, 2, 1), "h": DimRange(1, 40, 20), "w": DimRange(1, 40, 20)}
    networks.append(_network(chosen, ranged, one, Machine(chosen.isa, 2 << 20), ranges))
    planned = [Planned(number, network) for number, network in enumerate(networks)]
    assert [one.kernels[-1] for one in planned[:4]] == ["planar_separable"] * 4
    assert list(wrong_networks(planned, chosen, tmp_path)) == []


@pytest.mark.parametrize("chosen", sets()[:1], ids=lambda one: one.isa.name)
def test_a_tensor_that_is_read_again_is_not_fused_away(chosen: Set, tmp_path: Path) -> None:
    """The first convolution's result, that of an expansion and that of a depthwise one are residuals later."""
    needs_zig()
    stem = """(float[1,3,20,20] x) => (float[1,16,10,10] y) {
        e = Conv<strides=[2,2], pads=[1,1,1,1]>(x, u) a = HardSwish(e)
        d = Conv<group=16, pads=[1,1,1,1]>(a, w) r = Relu(d) p = Conv(r, v) y = Add(p, a) }"""
    wide = """(float[1,8,9,9] x) => (float[1,16,9,9] y) { a = Conv(x, u) d = Conv<group=16, pads=[1,1,1,1]>(a, w)
        p = Conv(d, v) y = Add(a, p) }"""
    pair = """(float[1,16,9,9] x) => (float[1,16,9,9] y) { d = Conv<group=16, pads=[1,1,1,1]>(x, w) p = Conv(d, v)
        y = Add(d, p) }"""
    shapes = {"w": (16, 1, 3, 3), "v": (16, 16, 1, 1)}
    networks = [
        _network(chosen, stem, {"u": (16, 3, 3, 3), **shapes}, Machine(chosen.isa)),
        _network(chosen, wide, {"u": (16, 8, 1, 1), **shapes}, Machine(chosen.isa)),
        _network(chosen, pair, shapes, Machine(chosen.isa)),
    ]
    planned = [Planned(number, network) for number, network in enumerate(networks)]
    assert planned[0].kernels[:2] == ["first_convolution", "separable"]
    assert list(wrong_networks(planned, chosen, tmp_path)) == []


def test_the_driver_sees_what_lies_outside(tmp_path: Path) -> None:
    """A step that is given too little scratch, and one whose output is larger than planned, end with their names."""
    needs_zig()
    chosen = sets()[0]
    text = "(float[1,32,16,16] x) => (float[1,24,16,16] y) {{ a = Conv(x, u) {} }}".format(
        PAIR.format(c=32, x="a", y="y")
    )
    shapes = {"u": (32, 32, 1, 1), "w": (32, 1, 3, 3), "v": (24, 32, 1, 1)}
    planned = Planned(0, _network(chosen, text, shapes, Machine(chosen.isa)))
    planned._scratch[-1] -= 64
    (first, *_) = wrong_networks([planned], chosen, tmp_path)
    assert f"scratch of step {len(planned.calls) - 1}" in first


def _network(
    chosen: Set,
    text: str,
    shapes: dict[str, tuple[int, ...]],
    machine: Machine,
    ranges: dict[str, DimRange] | None = None,
) -> Network:
    """Returns a network of ONNX text with seeded weights and inputs; with ranges at both ends."""
    proto = onnx.parser.parse_model(f"{HEADER} g {text}")
    for number, (name, shape) in enumerate(shapes.items()):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(reals(*shape, seed=number), name))
    model = ir.from_proto(onnx.shape_inference.infer_shapes(proto, data_prop=True))
    if ranges:
        optimise(model, ranges)
    samples = []
    for end in ("min", "max") if ranges else ("",):
        sizes = [
            one.dim_value or getattr(ranges[one.dim_param], end)
            for one in proto.graph.input[0].type.tensor_type.shape.dim
        ]
        inputs: dict[str, Array] = {"x": reals(*sizes, seed=9)}
        samples.append((inputs, {"y": np.asarray(outputs_in_float64(proto, inputs)["y"])}))
    tolerance = 2e-4 if chosen.isa.precision == "fp32" else 0.2
    return Network(text, model, machine, tuple(samples), ranges or {}, tolerance)
