# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements, from ONNX text to numbers, at fixed sizes and at sizes in ranges, against ONNX."""

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx_ir as ir
import pytest
from native_models import Array, built, dynamic, each_float_level, model_of, run
from network_reference import GatherElements, Pad
from nndeploy_native.lowering.table import refusal_of
from onnx.reference import ReferenceEvaluator

from nndeploy.values.types import DimRange

RANGES = {"n": DimRange(1, 3, 1), "h": DimRange(1, 40, 40), "w": DimRange(1, 40, 40)}
SIZES = ({"n": 2, "h": 16, "w": 33}, {"n": 3, "h": 33, "w": 7}, {"n": 1, "h": 1, "w": 1})

Make = Callable[[Sequence[int]], Array]


def below(*sizes: int, element: str = "int64", least: int | None = None) -> Make:
    """Returns what makes places of an axis, or tuples of places along axes."""

    def made(shape: Sequence[int]) -> Array:
        lows = -np.array(sizes) if least is None else least
        return np.random.default_rng(sum(shape)).integers(lows, sizes, tuple(shape)).astype(element)

    return made


def check(text: str, level: str, constants: Mapping[str, Array] | None = None, **numbers: Make) -> None:
    """Compares a model whose inputs are of sizes n, h and w with ONNX: at sizes in range, and fixed at each of them."""
    model = dynamic(text, RANGES, constants)
    artifact = built(model, RANGES)
    for number, sizes in enumerate(SIZES):
        given = {value.name or "": _array(value, sizes, numbers) for value in model.graph.inputs}
        _compare(model, run(artifact, given, level, threads=1 + number % 2), given)
        fixed = dynamic(_with_sizes(text, sizes), {}, constants)
        _compare(fixed, run(built(fixed), given, level, threads=2 - number % 2), given)


def _array(value: ir.Value, sizes: Mapping[str, int], numbers: Mapping[str, Make]) -> Array:
    shape = [dim if isinstance(dim, int) else sizes[str(dim.value)] for dim in value.shape or ()]
    if value.name in numbers:
        return numbers[value.name](shape)
    assert value.dtype is not None
    return np.random.default_rng(sum(shape)).integers(-99, 99, shape).astype(value.dtype.numpy())


def _with_sizes(text: str, sizes: Mapping[str, int]) -> str:
    """Returns the text with the sizes of its inputs as numbers."""
    inputs, rest = text.split("=>", 1)
    return re.sub(r"(?<=[\[,])(n|h|w)(?=[\],])", lambda found: str(sizes[found[1]]), inputs) + "=>" + rest


def _compare(model: ir.Model, found: Mapping[str, Array], inputs: Mapping[str, Array]) -> None:
    wanted = ReferenceEvaluator(ir.to_proto(model), new_ops=[GatherElements, Pad]).run(None, dict(inputs))
    for value, expected in zip(model.graph.outputs, wanted, strict=True):
        what = f"{value.name} at {[array.shape for array in inputs.values()]}"
        np.testing.assert_array_equal(found[value.name or ""], expected, err_msg=what)


@each_float_level
@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("g (float[n,h,7] x, int64[w] i) => (float[p,q,r] y) { y = Gather<axis=2>(x, i) }", below(7)),
        ("g (float[n,7,w] x, int32[h] i) => (float[p,q,r] y) { y = Gather<axis=1>(x, i) }", below(7, element="int32")),
        ("g (int64[7,w] x, int64[n,h] i) => (int64[p,q,r] y) { y = Gather(x, i) }", below(7)),
        (
            """g (float[n,7,w] x) => (float[p,q,r,s] y) <int64[2,2] i = {0, -1, 3, 6}> {
            t = Transpose<perm=[0,2,1]>(x) y = Gather<axis=2>(t, i) }""",
            None,
        ),
        (
            """g (float[n,h,5] x) => (float[p,q] y, float[p,q] z, float[p,q,r] a, float[p,q,r] b, float[p,q,r] c)
            <int64 k = {-1}, int64 m = {2}, int64[2] s = {4, 1}, int64[3] t = {-3, -2, -1}, int64[2] u = {1, -1}> {
            y = Gather<axis=1>(x, k) z = Gather<axis=2>(x, m) a = Gather<axis=-1>(x, s) d = Gather<axis=2>(x, t)
            b = Neg(d) c = Gather<axis=2>(x, u) }""",
            None,
        ),
        ("g (float[n,7,w] x, int64[n,h,w] i) => (float[p,q,r] y) { y = GatherElements<axis=1>(x, i) }", below(7)),
        ("g (bool[n,h,7] x, int64[n,h,w] i) => (bool[p,q,r] y) { y = GatherElements<axis=-1>(x, i) }", below(7)),
        (
            """g (float[7,3] x) => (float[p,q] y) <int64[2,3] i = {0, -1, 3, 6, 1, 1}> {
            y = GatherElements<axis=0>(x, i) }""",
            None,
        ),
        ("g (float[7,5,w] x, int64[n,h,2] i) => (float[p,q,r] y) { y = GatherND(x, i) }", below(7, 5)),
        ("g (float[n,7,5,w] x, int64[n,h,2] i) => (float[p,q,r] y) { y = GatherND<batch_dims=1>(x, i) }", below(7, 5)),
        (
            """g (float[2,3,5] x) => (float[p,q,r] y) <int64[2,2,1] i = {0, -1, 2, 1}> {
            y = GatherND<batch_dims=1>(x, i) }""",
            None,
        ),
    ],
)
def test_numbers_pick(level: str, text: str, numbers: Make | None) -> None:
    check(text, level, **({"i": numbers} if numbers else {}))


@each_float_level
@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (
            """g (float[n,40,w] x, int64[n,h,w] i, float[n,h,w] u) => (float[p,q,r] y) {
            y = ScatterElements<axis=1, reduction="add">(x, i, u) }""",
            below(40),
        ),
        (
            """g (float[n,h,40] x, int64[n,h,w] i, float[n,h,w] u) => (float[p,q,r] y) {
            y = ScatterElements<axis=-1, reduction="max">(x, i, u) }""",
            below(40),
        ),
        ("g (int32[40,w] x, int64[h,1] i, int32[h,w] u) => (int32[p,q] y) { y = ScatterND(x, i, u) }", below(40)),
        (
            """g (float[4,5,w] x, int64[n,h,2] i, float[n,h,w] u) => (float[p,q,r] y) {
            y = ScatterND<reduction="mul">(x, i, u) }""",
            below(4, 5),
        ),
    ],
)
def test_updates_are_put_where_numbers_say(level: str, text: str, numbers: Make) -> None:
    check(
        text,
        level,
        i=numbers,
        u=lambda shape: (
            np.random.default_rng(1).integers(-1, 2, shape).astype(np.float32)
            if "float[" in text.split("i,")[1]
            else np.arange(np.prod(shape)).reshape(shape).astype(np.int32)
        ),
    )


MOVED = {
    "tile": ("g (float[n,7,w] x) => (float[p,q,r] y) <int64[3] t = {2, 1, 3}> { y = Tile(x, t) }", {}),
    "tile of a transposed": (
        """g (int64[n,h,2] x) => (int64[p,q,r] y) <int64[3] t = {1, 3, 2}> { a = Transpose<perm=[0,2,1]>(x)
        y = Tile(a, t) }""",
        {},
    ),
    "depth to space": (
        """g (float[n,12,h,w] x) => (float[p,q,r,s] y, float[p,q,r,s] z) { y = DepthToSpace<blocksize=2>(x)
        z = DepthToSpace<blocksize=2, mode="CRD">(x) }""",
        {},
    ),
    "depth to space of a transposed": (
        """g (float[n,h,w,18] x) => (float[p,q,r,s] y) { a = Transpose<perm=[0,3,1,2]>(x)
        y = DepthToSpace<blocksize=3>(a) }""",
        {},
    ),
    "split in parts that are alike but the last": (
        "g (float[n,7,w] x) => (float[p,q,r] y, float[p,q,r] z) { y, a, z = Split<axis=1, num_outputs=3>(x) }",
        {},
    ),
    "split, a part left out": (
        """g (uint8[n,7,w] x) => (uint8[p,q,r] y, uint8[p,q,r] z) <int64[3] t = {2, 4, 1}> {
        y, "", z = Split<axis=-2>(x, t) }""",
        {},
    ),
    "sliced backwards": (
        """g (float[n,h,9] x) => (float[p,q,r] y, float[p,q,r] z) <int64[2] b = {-1, 7}, int64[2] e = {-1000000, 1},
        int64[2] a = {1, 2}, int64[2] s = {-1, -2}, int64[1] first = {-1}, int64[1] end = {-9223372036854775807},
        int64[1] axis = {2}, int64[1] back = {-3}> { y = Slice(x, b, e, a, s) z = Slice(x, first, end, axis, back) }""",
        {},
    ),
    "many joined": (
        f"""g (float[n,3,w] x, float[n,1,w] u) => (float[p,q,r] y) {{ y = Concat<axis=1>(
        {", ".join("xu"[i % 3 == 1] for i in range(37))}) }}""",
        {},
    ),
    "many channels joined": (
        f"""g (float[n,5,h,w] x, float[n,3,h,w] u) => (float[p,q,r,s] y) {{ a = Conv<group=5>(x, v)
        b = Conv<group=3>(u, t) {" ".join(f"c{i} = Slice({'ab'[i % 2]}, k0, k{1 + i % 3}, k1)" for i in range(20))}
        {" ".join(f"d{i} = Relu(c{i})" for i in range(20))}
        y = Concat<axis=1>({", ".join(f"d{i}" for i in range(20))}) }}""",
        {
            "v": np.ones((5, 1, 1, 1), np.float32), "t": np.ones((3, 1, 1, 1), np.float32),
            **{f"k{i}": np.array([i]) for i in range(4)},
        },
    ),
    "sliced at places that are data": (
        """g (float[n,h,9] x, int64[1] m) => (float[n,h,4] y, float[n,h,2] z) <int64[1] axis = {2}, int64[1] four = {4},
        int64[1] back = {-2}> { e = Add(m, four) y = Slice(x, m, e, axis) z = Slice(x, e, m, axis, back) }""",
        {},
    ),
    "halves": (
        """g (float[n,h,w] x) => (float[n,h,p] y, float[n,h,1] z) <int64[1] two = {2}, int64[1] zero = {0},
        int64[1] one = {1}> { a = Shape<start=2, end=3>(x) c = Add(a, one) b = Div(c, two) y = Slice(x, zero, b, two)
        u = Sub(b, one) z = Slice(x, u, b, two) }""",
        {},
    ),
    "padded to a multiple": (
        """g (float[n,3,h,w] x) => (float[n,3,p,q] y, float[n,3,r,s] z) <int64[1] eight = {8}, int64[2] zeros = {0, 0},
        int64[2] axes = {2, 3}, int64[1] three = {3}> { a = Shape<start=2, end=3>(x) b = Shape<start=3, end=4>(x)
        c = Sub(eight, a) d = Mod(c, eight) e = Sub(eight, b) f = Mod(e, eight) g = Concat<axis=0>(zeros, d, f)
        y = Pad<mode="edge">(x, g, , axes) h = Concat<axis=0>(d, three, three, f) z = Pad(x, h, , axes) }""",
        {},
    ),
    "cropped and padded": (
        """g (float[16,9,5] x) => (float[p,q,r] y, float[p,q,r] z) <int64[3] s = {7, 12, 5}, int64[2] t = {4, 8}> {
        y = CenterCropPad(x, s) z = CenterCropPad<axes=[1,2]>(x, t) }""",
        {},
    ),
    "a diagonal": (
        """g (float[h,w] x) => (float[h,w] y, int64[h,w] z, bool[h,w] a) { y = EyeLike(x) z = EyeLike<dtype=7, k=-2>(x)
        a = EyeLike<dtype=9, k=3>(x) }""",
        {},
    ),
    "triangles": (
        """g (float[n,h,w] x) => (float[p,q,r] y, float[p,q,r] z, float[p,q,r] a) <int64 k = {-3}, int64 m = {5}> {
        y = Trilu(x) z = Trilu<upper=0>(x, k) a = Trilu(x, m) }""",
        {},
    ),
    "triangle of a diagonal that is data": (
        "g (bool[h,w] x, int64 i) => (bool[p,q] y, bool[p,q] z) { y = Trilu<upper=0>(x, i) z = Trilu(x, i) }",
        {},
    ),
    "sequences backwards": (
        """g (float[16,n,3] x, int64[n] k) => (float[p,q,r] y) {
        y = ReverseSequence<batch_axis=1, time_axis=0>(x, k) }""",
        {},
    ),
    "batches of sequences backwards": (
        "g (int32[n,16] x, int64[n] k) => (int32[p,q] y) { y = ReverseSequence<batch_axis=0, time_axis=1>(x, k) }",
        {},
    ),
    "one hot": (
        """g (int64[n,w] i, int32[h] j) => (float[p,q,r] y, int32[p,q,r] z, int64[p,q] a)
        <int64 d = {7}, float[2] v = {-1, 2.5}, int32[2] u = {0, 1}, int64[2] t = {3, 4}> { y = OneHot(i, d, v)
        z = OneHot<axis=1>(i, d, u) a = OneHot<axis=0>(j, d, t) }""",
        {},
    ),
}  # fmt: skip


@each_float_level
@pytest.mark.parametrize("name", MOVED)
def test_elements_are_moved(level: str, name: str) -> None:
    text, constants = MOVED[name]
    check(text, level, constants, i=below(9), j=below(7, element="int32"), k=below(17, least=0), m=below(5, least=0))


PADS = {
    "a number that is not zero": (
        """g (float[n,h,w] x) => (float[p,q,r] y) <int64[6] t = {1, 0, 2, 0, 3, 1}, float v = {2.5}> {
        y = Pad(x, t, v) }""",
        {},
    ),
    "a number that is data": (
        "g (int64[n,h] x, int64 v) => (int64[p,q] y) <int64[4] t = {1, 0, 2, 3}> { y = Pad(x, t, v) }",
        {},
    ),
    "some axes": (
        """g (float[n,h,w] x) => (float[p,q,r] y) <int64[4] t = {1, 2, 3, 0}, int64[2] a = {-1, 1}> {
        y = Pad<mode="edge">(x, t, , a) }""",
        {},
    ),
    "elements taken away": (
        """g (float[n,5,w] x) => (float[p,q,r] y, float[p,q,r] z) <int64[6] t = {1, -2, 1, 0, 3, 0},
        int64[6] m = {0, 1, 0, 0, -3, 1}> { y = Pad(x, t) z = Pad(x, m) }""",
        {},
    ),
    "a transposed value": (
        """g (float[n,7,w] x) => (float[p,q,r] y, float[p,q,r] z, float[p,q,r] a) <int64[6] t = {2, 0, 3, 1, 0, 1}> {
        b = Transpose<perm=[1,2,0]>(x) y = Pad<mode="reflect">(b, t) z = Pad<mode="wrap">(b, t) a = Pad(b, t) }""",
        {},
    ),
    "bools": (
        """g (bool[n,7] x) => (bool[p,q] y, bool[p,q] z) <int64[4] t = {2, 0, 1, 3}, bool v = {1}> { y = Pad(x, t, v)
        z = Pad<mode="edge">(x, t) }""",
        {},
    ),
    "images in blocks": (
        """g (float[n,18,h,w] x) => (float[p,q,r,s] y, float[p,q,r,s] z, float[p,q,r,s] a) <float v = {3},
        int64[8] t = {0, 0, 2, 1, 0, 0, 0, 4}, int64[8] m = {0, 0, 0, 1, 0, 0, 3, 1}> { b = Conv<group=18>(x, u)
        y = Pad(b, t, v) z = Pad<mode="edge">(b, t) c = Pad(b, m) a = Relu(c) }""",
        {"u": np.ones((18, 1, 1, 1), np.float32)},
    ),
    "images in blocks, around them": (
        """g (float[n,18,9,8] x) => (float[p,q,r,s] y, float[p,q,r,s] z, float[p,q,r,s] a)
        <int64[8] t = {0, 0, 2, 1, 0, 0, 0, 4}, int64[8] m = {0, 0, -2, 3, 0, 0, 3, -1}> { b = Conv<group=18>(x, u)
        y = Pad<mode="reflect">(b, t) z = Pad<mode="wrap">(b, t) a = Pad(b, m) }""",
        {"u": np.ones((18, 1, 1, 1), np.float32)},
    ),
    "images in blocks, more channels": (
        """g (float[n,5,h,w] x) => (float[p,q,r,s] y, float[p,q,r,s] z) <float v = {3},
        int64[8] t = {0, 2, 0, 1, 0, 1, 2, 0}> { b = Conv<group=5>(x, u) y = Pad(b, t) z = Pad(b, t, v) }""",
        {"u": np.ones((5, 1, 1, 1), np.float32)},
    ),
}  # fmt: skip


@each_float_level
@pytest.mark.parametrize("name", PADS)
def test_elements_are_padded(level: str, name: str) -> None:
    text, constants = PADS[name]
    check(text, level, constants, v=lambda shape: np.full(shape, -7))


@each_float_level
def test_pixels_stand_behind_their_channel(level: str) -> None:
    """Mode CRD, which ONNX has from opset 28 on."""
    text = 'g (float[n,3,h,w] x) => (float[n,12,p,q] y) { y = SpaceToDepth<blocksize=2, mode="CRD">(x) }'
    ranges = {"n": DimRange(1, 3, 1), "h": DimRange(2, 40, 8, 2), "w": DimRange(2, 40, 8, 2)}
    x = np.arange(2 * 3 * 6 * 10, dtype=np.float32).reshape(2, 3, 6, 10)
    wanted = x.reshape(2, 3, 3, 2, 5, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 12, 3, 5)
    for shape in ((2, 12, 3, 5), ("n", 12, "({h})//(2)", "({w})//(2)")):
        model = model_of(_with_sizes(text, {"n": 2, "h": 6, "w": 10}) if shape == wanted.shape else text)
        model.graph.outputs[0].shape = ir.Shape(shape)
        np.testing.assert_array_equal(run(built(model, ranges), {"x": x}, level)["y"], wanted)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("g (float[3,4] x) => (float[3] y) <int64 i = {4}> { y = Gather<axis=1>(x, i) }", "an index that is no place"),
        ("g (float[3,4] x, int64[2] a) => (float[2,2] y) <int64[2] s = {0, 0}> { y = Slice(x, s, a, a) }", "axes"),
        (
            'g (bool[3] x, int64[3] i, bool[3] u) => (bool[3] y) { y = ScatterElements<reduction="max">(x, i, u) }',
            "a reduction of bools",
        ),
    ],
)
def test_what_is_not_moved_is_refused_with_the_reason(text: str, why: str) -> None:
    model = model_of(text)
    assert why in refusal_of(next(iter(model.graph)), model, {})
