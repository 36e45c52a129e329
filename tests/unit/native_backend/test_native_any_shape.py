# SPDX-License-Identifier: Apache-2.0
"""Networks whose sizes are not fixed: one artifact is right at every shape, and refuses what is out of range."""

import json

import numpy as np
import onnx_ir as ir
import pytest
from native_models import FLOAT_LEVELS, Array, assert_all_right, assert_right, built, dynamic, opened, reals
from nndeploy_native.build import build
from nndeploy_native.plan import DOCUMENT_FILE, document_from_json
from nndeploy_native.support import supports

from nndeploy.errors import BuildRefusedError, BundleError, InputError, OtherSizesError
from nndeploy.plugin.interface import Artifact, BuildOptions
from nndeploy.target.target import host_target
from nndeploy.values.types import DimRange

Shapes = list[tuple[tuple[int, ...], ...]]
ANY = {"n": DimRange(1, 3, 1), "h": DimRange(1, 40, 40), "w": DimRange(1, 40, 40)}
WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 19, 23, 28, 29, 31, 37, 40)


NETWORKS = {
    "separable": ("""g (float[n,16,h,w] x) => (float[n,24,p,q] y) { a = Conv<group=16, pads=[1,1,1,1]>(x, d)
        b = Relu(a) y = Conv(b, p) }""", {"d": reals(16, 1, 3, 3), "p": reals(24, 16, 1, 1, seed=1)}),
    "stem": (
        """g (float[n,3,h,w] x) => (float[n,5,p,q] y) { a = Conv<strides=[2,2], pads=[1,1,1,1]>(x, s) b = Relu(a)
        c = Conv<group=16, pads=[1,1,1,1]>(b, d) e = Relu(c) f = Conv(e, p) y = Conv<pads=[1,1,1,1]>(f, u) }""",
        {
            "s": reals(16, 3, 3, 3), "d": reals(16, 1, 3, 3, seed=1), "p": 0.1 * reals(24, 16, 1, 1, seed=2),
            "u": 0.1 * reals(5, 24, 3, 3, seed=3),
        },
    ),
    "inverted residual": (
        """g (float[n,16,h,w] x) => (float[n,16,p,q] y) { a = Conv(x, e) b = Relu(a)
        c = Conv<group=40, pads=[1,1,1,1]>(b, d) f = HardSwish(c) k = Conv(f, p) y = Add(k, x) }""",
        {"e": reals(40, 16, 1, 1), "d": reals(40, 1, 3, 3, seed=1), "p": 0.1 * reals(16, 40, 1, 1, seed=2)},
    ),
    "halved and enlarged": (
        """g (float[n,16,h,w] x) => (float[n,16,p,q] y) { a = Conv<strides=[2,2], pads=[1,1,1,1]>(x, d)
        b = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(a, , s)
        y = Add(b, x) }""", {"d": reals(16, 16, 3, 3), "s": np.array([1, 1, 2, 2], np.float32)},
    ),
    "resized": (
        """g (float[n,18,h,w] x) => (float[n,18,p,q] y, float[n,18,r,s] z, float[n,18,7,9] k)
        <int64[2] sizes = {7,9}> { y = Resize<mode="linear">(x, , t) z = Resize<mode="nearest">(x, , t)
        k = Resize<mode="cubic", antialias=1, axes=[2,3]>(x, , , sizes) }""",
        {"t": np.array([1, 1, 1.5, 2], np.float32)},
    ),
    "volumes convolved": (
        """g (float[n,5,h,w,4] x) => (float[n,5,p,q,4] y, float[n,3,r,s,7] z) {
        a = Conv<pads=[1,1,1,1,1,1]>(x, w) b = Relu(a) c = Conv<pads=[2,0,0,0,0,0]>(b, v) d = Add(c, x)
        y = Conv(d, u) z = ConvTranspose<strides=[2,1,2], pads=[1,0,1,0,0,0]>(y, t) }""",
        {
            "w": reals(5, 5, 3, 3, 3), "v": 0.3 * reals(5, 5, 3, 1, 1, seed=1), "u": 0.3 * reals(5, 5, 1, 1, 1, seed=2),
            "t": 0.3 * reals(5, 3, 3, 2, 2, seed=3),
        },
    ),
    "moved": (
        """g (float[n,6,h,w] x) => (float[n,p,q,4] y, float[r,s] z) {
        a = Transpose<perm=[0,2,3,1]>(x) y = Slice(a, b, e, k) c = Pad(x, m) d = Flatten<axis=2>(c)
        z = Reshape(d, t) }""",
        {
            "b": np.array([1]), "e": np.array([5]), "k": np.array([3]), "m": np.array([0, 1, 2, 0, 0, 0, 1, 3]),
            "t": np.array([0, -1]),
        },
    ),
    "lstm": (
        """g (float[h,n,20] x) => (float[h,2,n,12] y, float[2,n,12] z, float[2,n,12] k) <int64[1] two = {2},
        int64[1] units = {12}> { s = Shape<start=1, end=2>(x) t = Concat<axis=0>(two, s, units)
        o = ConstantOfShape(t) y, z, k = LSTM<hidden_size=12, direction="bidirectional">(x, w, r, b, , o, o) }""",
        {"w": reals(2, 48, 20), "r": 0.3 * reals(2, 48, 12, seed=1), "b": reals(2, 96, seed=2)},
    ),
    "rows of pixels": (
        """g (float[n,20,w] x) => (float[n,9,p] y, float[n,20,q] m, float[n,9] z) { a = Conv<pads=[2,1]>(x, v)
        b = Add(a, c) t = Tanh(b) y = Conv<strides=[2], pads=[1,1]>(t, u) g = GlobalAveragePool(y) z = Flatten(g)
        m = AveragePool<kernel_shape=[3], pads=[1,1]>(x) }""",
        {"v": reals(17, 20, 4), "u": reals(9, 17, 3, seed=1), "c": reals(17, 1, seed=2)},
    ),
    "column without its width": (
        """g (float[n,20,h,1] x) => (float[n,18,p] y, float[n,18,1] z) <int64[1] last = {3}> { a = Conv(x, v)
        s = Squeeze(a, last) b = Add(s, c) t = Relu(b) y = Mul(t, b) z = GlobalAveragePool(t) }""",
        {"v": reals(18, 20, 1, 1), "c": reals(1, 18, 1, seed=2)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("is_open", [False, True], ids=["ranges", "open"])
@pytest.mark.parametrize("name", NETWORKS)
def test_network_at_any_shape(name: str, is_open: bool) -> None:
    ranges = dict(ANY)
    if name == "halved and enlarged":
        ranges = {**ANY, "h": DimRange(2, 40, 40, 2), "w": DimRange(2, 40, 40, 2)}
    if name == "moved":
        ranges = {**ANY, "h": DimRange(2, 40, 40), "w": DimRange(2, 40, 40)}
    text, constants = NETWORKS[name]
    said = {} if is_open else ranges
    model = dynamic(text, said, constants)
    artifact = built(model, said)
    shape = [dim if isinstance(dim, int) else dim.value for dim in model.graph.inputs[0].shape or ()]
    widths = [width for width in WIDTHS if ranges["w"].holds(width)]
    for number, width in enumerate(widths[:: 1 + 3 * is_open]):
        height = [size for size in reversed(WIDTHS) if ranges["h"].holds(size)][number]
        sizes = {"n": 1 + number % 3, "h": height, "w": width}
        x = reals(*(size if isinstance(size, int) else sizes[str(size)] for size in shape))
        level = FLOAT_LEVELS[(number + is_open) % len(FLOAT_LEVELS)]
        assert_right(model, artifact, {"x": x}, level, rtol=2e-5, atol=3e-5, threads=1 + number % 2)


@pytest.mark.parametrize(("name", "operators"), [
    ("separable", ["planar_separable"]), ("stem", ["stem", "convolution", "to_plain"]),
    ("inverted residual", ["to_blocked", "inverted_residual", "to_plain"]),
])  # fmt: skip
def test_sizes_that_are_not_fixed_are_fused_as_well(name: str, operators: list[str]) -> None:
    text, constants = NETWORKS[name]
    document = document_from_json(built(dynamic(text, ANY, constants), ANY).files[DOCUMENT_FILE])
    assert [step["kernel"] for step in document.steps] == operators


SMALL = "g (float[n,8,h,w] x) => (float[n,8,p,q] y) { y = Conv<pads=[1,1,1,1]>(x, w) }"


@pytest.fixture(scope="module")
def small() -> tuple[ir.Model, Artifact]:
    model = dynamic(SMALL, ANY, {"w": reals(8, 8, 3, 3)})
    return model, built(model, ANY)


def test_threads_and_shapes_in_turn_give_the_same(small: tuple[ir.Model, Artifact]) -> None:
    model, artifact = small
    session = opened(artifact, threads=2)
    for sizes in ((1, 3, 5), (3, 40, 40), (1, 1, 1), (2, 17, 4), (1, 3, 5)):
        x = reals(sizes[0], 8, *sizes[1:])
        assert_all_right(model, session.run({"x": x}), {"x": x})


@pytest.mark.parametrize(("shape", "message"), [
    ((4, 8, 5, 5), "axis 0 has size 4, kernels are for 1..3"),
    ((1, 8, 41, 5), "axis 2 has size 41, kernels are for 1..40"),
    ((1, 7, 5, 5), r"expected \(1, 8, 5, 5\), got \(1, 7, 5, 5\)"), ((8, 5, 5), "expected 4 axes"),
    ((1, 8, 0, 5), "axis 2 has size 0"),
])  # fmt: skip
def test_other_shapes_are_refused(shape: tuple[int, ...], message: str, small: tuple[ir.Model, Artifact]) -> None:
    with pytest.raises(InputError, match=message):
        opened(small[1]).run({"x": np.zeros(shape, np.float32)})


ROWS, EVEN = {"w": reals(8, 8, 3, 3)}, {**ANY, "w": DimRange(8, 40, 40, 8)}
FEW, PARTS = {"n": DimRange(4, 9, 4)}, {
    "one": np.array([1]), "four": np.array([4]), "a": np.array([1]), "b": np.array([2]), "last": np.array([-1]),
    "far": np.array([2**31 - 1]), "two": np.int64(2),
}  # fmt: skip
SUM = "g (float[n,h] a, float[n,w] b) => (float[n,p] y) { y = Add(a, b) }"
OF_PARTS, OF_FEW = "g (float[1,n,5] x) => (float[p,q", [((1, count, 5),) for count in (4, 7, 9)]
AT_SHAPES = {
    "steps of a range": (SMALL, EVEN, ROWS, [((1, 8, 5, 24),)], [((1, 8, 5, 20),)],
                         r"axis 3 has size 20, kernels are for 8\.\.40 in steps of 8"),
    "sizes that must be equal": ("g (float[n,h] a, float[n,h] b) => (float[n,h] y) { y = Add(a, b) }", ANY, {},
                                 [((2, 7), (2, 7))], [((2, 7), (2, 1))], r"'b': expected \(2, 7\), got \(2, 1\)"),
    "sizes that may be one": (SUM, {}, {}, [((2, 5), (2, 5)), ((2, 1), (2, 7)), ((2, 7), (2, 1))], [((2, 3), (2, 4))],
                              r"do not take 'a' of \(2, 3\), 'b' of \(2, 4\): .*broadcast"),
    "as many rows of a table as there are steps": ("""g (float[n,s,8] x) => (float[n,s,8] y) <int64[1] zero = {0},
        int64[1] one = {1}> { all = Shape(x) s = Slice(all, one, two) w = Slice(table, zero, s, one, one)
        y = Add(x, w) }""", {}, {"table": reals(1, 16, 8, seed=1), "two": np.array([2])},
        [((2, steps, 8),) for steps in (1, 5, 16)], [], ""),
    "a few rows of an open axis": (f"{OF_PARTS}] y) {{ t = Slice(x, one, four, a, one) y = Gather<axis=1>(t, two) }}",
                                   FEW, PARTS, OF_FEW, [], ""),
    "the last row of an open axis, at no fixed place": (
        f"{OF_PARTS}] y) {{ t = Slice(x, last, far, a, one) y = Gather<axis=2>(t, two) }}", FEW, PARTS, OF_FEW, [], ""),
    "the last row, sliced and joined": (f"""{OF_PARTS},r] y) {{ t = Slice(x, last, far, a, one)
        s = Slice(t, one, four, b, one) y = Concat<axis=2>(s, s) }}""", FEW, PARTS, OF_FEW, [], ""),
    "sizes that an exporter chooses by a sign": ("""g (float[n,s] mask) => (float[n,p,q,r] y) <int64[1] zero = {0},
        int64[1] one = {1}, int64[1] two = {2}> { all = Shape(mask) n = Slice(all, zero, one)
        s = Slice(all, one, two) sizes = Concat<axis=0>(n, minus, s, s)
        ones = ConstantOfShape<value=int64[1] {1}>(four) signs = Mul(ones, minus) is_kept = Equal(sizes, signs)
        target = Where(is_kept, ones, sizes) wide = Unsqueeze(mask, axes) y = Expand(wide, target) }""", {},
        {"minus": np.array([-1]), "four": np.array([4]), "axes": np.array([1, 2])}, [((2, 5),)], [], ""),
    "channels that a convolution tells": (SMALL.replace("n,8,h,w", "n,c,h,w"), {}, {"w": reals(8, 3, 3, 3)},
                                          [((2, 3, 7, 9),)], [((2, 4, 7, 9),)], r"do not take 'x' of \(2, 4, 7, 9\)"),
    "arms that meet where their sizes are equal": ("""g (float[n,8,h,w] x) => (float[n,16,p,q] y) {
        a = Relu(x) d = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a) u = Resize<mode="nearest">(d, , s)
        c = Concat<axis=1>(x, u) y = Sigmoid(c) }""", {}, {"s": np.array([1, 1, 2, 2], np.float32)},
        [((1, 8, 4, 6),), ((2, 8, 34, 2),)], [((1, 8, 5, 6),)], r"do not take 'x' of \(1, 8, 5, 6\)"),
    "joined to what has no elements": (
        "g (float[n,p,8] past, float[n,s,8] x) => (float[n,t,8] y) { r = Relu(x) y = Concat<axis=1>(past, r) }", {}, {},
        [((2, past, 8), (2, new, 8)) for past, new in ((0, 3), (2, 1), (3, 0), (0, 0))], [], ""),
    "a step that needs elements": ("g (float[n,h] x) => (int64[n] y) { y = ArgMax<axis=1, keepdims=0>(x) }", {}, {},
                                   [((2, 3),)], [((2, 0),)], "has no elements"),
    "an axis that is tiled once": ("""g (float[1,h] x, float[n,3] z) => (float[p,q] y) <int64[1] zero = {0},
        int64[1] one = {1}> { s = Shape(z) b = Gather(s, zero) r = Concat<axis=0>(b, one) t = Tile(x, r)
        y = Neg(t) }""", {}, {}, [((1, 1), (1, 3)), ((1, 5), (3, 3)), ((1, 17), (2, 3))], [], ""),
}  # fmt: skip


@pytest.mark.parametrize(("text", "ranges", "constants", "right", "wrong", "why"), AT_SHAPES.values(), ids=AT_SHAPES)
def test_shapes_are_right_or_refused_by_the_call(
    text: str, ranges: dict[str, DimRange], constants: dict[str, Array], right: Shapes, wrong: Shapes, why: str
) -> None:
    model = dynamic(text, ranges, constants)
    assert ranges or all(answer.ok for answer in supports(model, host_target(), BuildOptions()))
    artifact = built(model, ranges)
    session, names = opened(artifact), [value.name or "" for value in model.graph.inputs]
    for shapes in right:
        given = {name: reals(*shape, seed=i) for i, (name, shape) in enumerate(zip(names, shapes, strict=True))}
        assert_all_right(model, session.run(given), given)
        for level in FLOAT_LEVELS:
            assert_right(model, artifact, given, level, rtol=2e-5, atol=3e-5)
    for shapes in wrong:
        with pytest.raises(OtherSizesError if not ranges else InputError, match=why):
            session.run({name: reals(*shape) for name, shape in zip(names, shapes, strict=True)})


def test_a_size_that_the_inputs_do_not_give_is_refused() -> None:
    model = dynamic("g (float[n,h] x) => (float[n,h] y) { y = Relu(x) }", ANY)
    model.graph.inputs[0].shape = ir.Shape(["n", "({h} + 1)//(2)"])
    for value in (*model.graph.outputs, *(node.outputs[0] for node in model.graph)):
        value.shape = ir.Shape(["n", "h"])
    with pytest.raises(BuildRefusedError):
        build(model, ANY)


@pytest.mark.parametrize("change", [
    {"symbols": [{}]}, {"symbols": [{"number": 1, "axis": 0, "offset": 0, "factor": 1, "low": 1, "high": 3}]},
    {"symbols": [{"number": 0, "axis": 9, "offset": 0, "factor": 1, "low": 1, "high": 3}]},
    {"symbols": [{"number": 0, "axis": 0, "offset": 0, "factor": 0, "low": 1, "high": 3}]},
    {"symbols": [{"number": 0, "axis": 0, "offset": 0, "factor": 1, "low": 3, "high": 1}]},
    {"symbols": [{"number": "0", "axis": 0, "offset": 0, "factor": 1, "low": 1, "high": 3}]},
])  # fmt: skip
def test_malformed_symbols_are_refused(change: dict[str, object], small: tuple[ir.Model, Artifact]) -> None:
    data = json.loads(small[1].files[DOCUMENT_FILE]) | change
    with pytest.raises(BundleError, match=r"a malformed plan\.json"):
        document_from_json(json.dumps(data).encode())


def test_memory_follows_the_shapes() -> None:
    text = """g (float[n,16,h,w] x) => (float[n,16,p,q] y) { a = Conv<pads=[1,1,1,1]>(x, d) b = Sigmoid(a)
        c = Conv<pads=[1,1,1,1]>(b, d) e = Sigmoid(c) y = Conv<pads=[1,1,1,1]>(e, d) }"""
    session = opened(built(dynamic(text, ANY, {"d": reals(16, 16, 3, 3)}), ANY))
    arenas = [session._tables.table_for(((1, 16, size, size),)).arena_bytes for size in (1, 10, 40)]
    assert arenas[0] < arenas[1] < arenas[2]
