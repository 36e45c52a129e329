# SPDX-License-Identifier: Apache-2.0
"""Random networks of all operators, each array ending at a guard page, against float64; see fuzz_native_networks.py.

What is read or written behind an array ends the process; what nobody wrote is not a number, and shows in a result.
"""

from functools import cache

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest
from kernel_library import every_level
from native_models import FLOAT_LEVELS, HEADER, Array, built, reals
from nndeploy_native.plan import DOCUMENT_FILE, document_from_json
from oracle.in_float64 import outputs_in_float64
from random_networks import Network, network_of, wrong_numbers

from nndeploy.errors import BuildRefusedError
from nndeploy.passes import optimise
from nndeploy.values.types import DimRange

COUNT = 40
drawn = cache(network_of)
PAIR = "d = Conv<group={c}, pads=[1,1,1,1]>({x}, w) {y} = Conv(d, v)"


@every_level
@pytest.mark.parametrize("first", [0, COUNT // 2])
def test_random_networks_touch_their_own_memory_and_are_right(first: int, level: str) -> None:
    wrong, refused = [], 0
    for seed in range(first, first + COUNT // 2):
        try:
            wrong += wrong_numbers(drawn(seed), level)
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
