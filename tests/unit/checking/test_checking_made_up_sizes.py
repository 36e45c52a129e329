# SPDX-License-Identifier: Apache-2.0
"""Made-up inputs fit the model: sizes and integers follow from weights, operators and names, and ONNX Runtime runs.

Each graph stands for a kind of network: what it needs must be found at once, without a hint from a refusal.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from nndeploy.bundle.manifest import NamedType
from nndeploy.checking.likely_sizes import computed_size, kind_of
from nndeploy.checking.made_up_sizes import choices
from nndeploy.checking.open_sizes import open_sizes
from nndeploy.checking.other_sizes import other_sizes
from nndeploy.checking.samples import MadeUpSample, generated_samples
from nndeploy.checking.size_hints import suggested
from nndeploy.checking.usual_ranges import usual_ranges
from nndeploy.errors import BuildRefusedError
from nndeploy.frontend.load import LoadedModel, load_model
from nndeploy.jobs.tasks import evaluate
from nndeploy.plugin.interface import BuildOptions
from nndeploy.values.types import TensorType


def with_weights(text: str) -> LoadedModel:
    """Returns a model whose floats of fixed sizes are weights, but for one that is called size."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1]> g {text}')
    random = np.random.default_rng(0)
    for value in list(model.graph.input):
        dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if all(dims) and value.name != "size" and value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            array = random.standard_normal(dims).astype(np.float32)
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
            model.graph.input.remove(value)
    return load_model(model, extra_domains=frozenset({"com.microsoft"}))


def without_names(text: str) -> str:
    """Returns a graph whose inputs have no names for their sizes, as TensorFlow's have none."""
    inputs, arrow, rest = text.partition("=>")
    return re.sub(
        r"\b(float|int64)(\[[^]]*\])", lambda found: found[1] + re.sub(r"[a-zA-Z]\w*", "?", found[2]), inputs
    ) + (arrow + rest)


def tries(loaded: LoadedModel, most: int = 30) -> tuple[MadeUpSample, int]:
    """Returns the first made-up input that ONNX Runtime takes, and how many it took."""
    attempts = generated_samples(loaded.model, loaded.inputs, {}, 0)
    sample, model = next(attempts), loaded.original.SerializeToString()
    for number in range(1, most):
        try:
            evaluate("onnxruntime", model, [sample], BuildOptions())
        except BuildRefusedError as err:
            sample = attempts.send(str(err))
        else:
            return sample, number
    raise AssertionError("none runs")


PATCHES = (
    "patches = Conv<strides=[{step},{step}]>(x, w) target = Constant<value_ints=[0,8,-1]>()"
    " flat = Reshape(patches, target) rows = Transpose<perm=[0,2,1]>(flat)"
)
KINDS = {
    "patches of 14, a class": (
        "(float[N,C,H,W] x, float[8,3,14,14] w, float[1,1,8] first, float[1,26,8] where) => (float[N,M,8] y) {"
        + PATCHES.format(step=14)
        + "all = Concat<axis=1>(first, rows) y = Add(all, where) }",
        {"x": (1, 3, 70, 70)},
    ),
    "patches of 16 over no square": (
        "(float[N,C,H,W] x, float[8,3,16,16] w, float[1,40,8] where) => (float[N,M,8] y) {"
        + PATCHES.format(step=16)
        + "y = Add(rows, where) }",
        {"x": (1, 3, 80, 128)},
    ),
    "patches that overlap": (
        "(float[N,1,T,F] x, float[8,1,16,16] w, float[1,36,8] where) => (float[N,M,8] y) {"
        + PATCHES.format(step=10)
        + "y = Add(rows, where) }",
        {},
    ),
    "windows of 7": (
        "(float[N,3,H,W] x, float[8,3,4,4] w) => (float[A,8,B,7,D,7] y) { p = Conv<strides=[4,4]>(x, w)"
        " target = Constant<value_ints=[-1,8,8,7,8,7]>() y = Reshape(p, target) }",
        {"x": (1, 3, 224, 224)},
    ),
    "windows of 8, of a picture whose size is only in the number of windows": (
        "(float[N,3,H,W] x, float[8,3,4,4] w) => (float[A,8,B,8,D,8] y) { p = Conv<strides=[4,4]>(x, w)"
        " target = Constant<value_ints=[-1,8,3,8,3,8]>() y = Reshape(p, target) }",
        {"x": (1, 3, 96, 96)},
    ),
    "fully convolutional, channels last": (
        "(float[N,W,H,3] x, float[4,3,3,3] w, float[4,4,3,3] v) => (float[N,4,A,B] y) {"
        " t = Transpose<perm=[0,3,2,1]>(x) c = Conv(t, w)"
        " p = MaxPool<kernel_shape=[2,2], strides=[2,2], ceil_mode=1>(c) d = Conv(p, v) y = Conv(d, v) }",
        {},
    ),
    "a net for pictures of 48": (
        "(float[N,C,H,W] x, float[4,3,3,3] w, float[1764,5] v) => (float[N,5] y) {"
        " c = Conv<strides=[2,2]>(x, w) p = Relu(c) target = Constant<value_ints=[-1,1764]>()"
        " f = Reshape(p, target) y = Gemm(f, v) }",
        {},
    ),
    "a reader of lines: fixed height, a recurrence along the width": (
        "(float[N,1,H,W] x, float[4,1,3,3] w, float[1,16,40] q, float[1,16,4] r) => (float[A,1,B,4] y) {"
        " c = Conv<pads=[1,1,1,1]>(x, w) p = MaxPool<kernel_shape=[6,2], strides=[6,2]>(c)"
        " t = Transpose<perm=[3,0,1,2]>(p) target = Constant<value_ints=[0,0,-1]>() f = Reshape(t, target)"
        " y, h, s = LSTM<hidden_size=4>(f, q, r) }",
        {"x": (1, 1, 64, 224)},
    ),
    "frames gathered from a second of sound": (
        "(float[B,T] x) => (float[B,2,3] y) <int64[2,3] places = {0,1,2,15997,15998,15999}>"
        " { y = Gather<axis=1>(x, places) }",
        {"x": (1, 16000)},
    ),
    "places by GatherND": (
        "(float[T,F] x) => (float[2] y) <int64[2,2] places = {0,79,2999,0}> { y = GatherND(x, places) }",
        {},
    ),
    "a spectrum of frames of 400": (
        "(float[B,T,1] x) => (float[B,A,201,2] y) <int64 step = {160}, int64 length = {400}>"
        " { y = STFT(x, step, , length) }",
        {},
    ),
    "layers over raw sound": (
        "(float[B,T] x, float[4,1,10] w, float[4,4,3] v) => (float[B,4,A] y) <int64[1] one = {1}> {"
        " u = Unsqueeze(x, one) a = Conv<strides=[5]>(u, w) b = Conv<strides=[2]>(a, v) c = Conv<strides=[2]>(b, v)"
        " d = Conv<strides=[2]>(c, v) y = Conv<strides=[2]>(d, v) }",
        {},
    ),
    "a spectrogram of 30 seconds, positions behind a stride of 2": (
        "(float[B,M,T] x, float[4,80,3] w, float[1500,4] where) => (float[B,A,4] y) {"
        " c = Conv<strides=[2], pads=[1,1]>(x, w) t = Transpose<perm=[0,2,1]>(c) y = Add(t, where) }",
        {"x": (1, 80, 3000)},
    ),
    "letters flattened": (
        "(int64[B,S] x, float[70,8] e, float[8,8,7] w, float[2688,4] v) => (float[B,4] y) { g = Gather(e, x)"
        " t = Transpose<perm=[0,2,1]>(g) c = Conv(t, w) p = MaxPool<kernel_shape=[3], strides=[3]>(c)"
        " f = Flatten(p) y = Gemm(f, v) }",
        {"x": (1, 1016)},
    ),
    "positions counted, 40 of them, two tables": (
        "(int64[B,S] ids, int64[B2,S2] types, float[9,4] e, float[2,4] t, float[40,4] p) => (float[B,S,4] y)"
        " <int64 zero = {0}, int64 one = {1}> { a = Gather(e, ids) b = Gather(t, types) s = Shape(ids)"
        " n = Gather(s, one) r = Range(zero, n, one) c = Gather(p, r) d = Add(a, b) y = Add(d, c) }",
        {"ids": (1, 16), "types": (1, 16)},
    ),
    "a cache in front": (
        "(int64[B,S] ids, int64[B,M] attention_mask, float[B,2,P,4] past_key, float[9,8] e) =>"
        " (float[B,2,A,M2] y, float[B,2,A2,4] present) { x = Gather(e, ids)"
        " target = Constant<value_ints=[0,0,2,4]>() r = Reshape(x, target) k = Transpose<perm=[0,2,1,3]>(r)"
        " present = Concat<axis=2>(past_key, k) pt = Transpose<perm=[0,1,3,2]>(present)"
        " s = MatMul(k, pt) axes = Constant<value_ints=[1,2]>() m = Unsqueeze(attention_mask, axes)"
        " f = Cast<to=1>(m) y = Add(s, f) }",
        {"past_key": (1, 2, 16, 4)},
    ),
    "a cache in ONNX Runtime's attention, a mask of all positions": (
        "(int64[B,seq] ids, int64[B,total_length] attention_mask, float[B,2,past_length,8] past_key,"
        " float[B,2,past_length,8] past_value, float[9,64] e) => (float[B,seq,32] y, float[B,2,A,8] k,"
        " float[B,2,A,8] v) <int64 one = {1}, int32 i1 = {1}> { x = Gather(e, ids) c = Cast<to=6>(attention_mask)"
        " ones = Constant<value_ints=[1]>() n = ReduceSum<keepdims=0>(c, ones) m = Sub(n, i1)"
        " s = Shape(attention_mask) t = Gather(s, one) u = Cast<to=6>(t)"
        " y, k, v = com.microsoft.GroupQueryAttention<num_heads=4, kv_num_heads=2>"
        "(x, , , past_key, past_value, m, u) }",
        {"past_key": (1, 2, 16, 8)},
    ),
    "a shape that is an input": (
        "(float[12] x, int64[2] shape) => (float[A,B] y) { y = Reshape(x, shape) }",
        {"shape": (2,)},
    ),
    "the size of a picture in floats": (
        "(float[N,3,H,W] x, float[2] size, float[4,3,1,1] w) => (float[N,4,A,B] y) { c = Conv(x, w)"
        " s = Cast<to=7>(size) t = Shape<end=2>(c) a = Concat<axis=0>(t, s) y = Resize(c, , , a) }",
        {"size": (2,)},
    ),
    "how many, and how often": (
        "(float[5,7] x, int64[1] k, int64[2] times) => (float[A,B] y)"
        " { t, i = TopK(x, k) y = Tile(t, times) }",
        {"k": (1,)},
    ),
    "two pictures that are compared": (
        "(float[N,3,H,W] a, float[M,3,K,L] b, float[4,3,3,3] w) => (float[N,4,A,B] y)"
        " { c = Conv(a, w) d = Conv(b, w) y = Sub(c, d) }",
        {},
    ),
    "states of a recurrence": (
        "(float[T,B,F] x, float[D,C,G] h, float[1,16,40] w, float[1,16,4] r) => (float[T,1,B,4] y)"
        " { y, s, t = LSTM<hidden_size=4>(x, w, r, , , h, h) }",
        {"x": (1, 64, 40), "h": (1, 64, 4)},
    ),
    "a batch that is baked in": (
        "(float[N,F] x) => (float[4,5,8] y) { target = Constant<value_ints=[4,5,8]>() y = Reshape(x, target) }",
        {},
    ),
    "neighbours": (
        "(float[N,F] x) => (float[N,20] y, int64[N,20] i) <int64[1] k = {20}> { y, i = TopK(x, k) }",
        {},
    ),
    "blocks of 2 inside blocks of 3": (
        "(float[N,C,H,W] x, float[4,36,3,3] w) => (float[N,4,A,B] y)"
        " { a = SpaceToDepth<blocksize=2>(x) b = SpaceToDepth<blocksize=3>(a) y = Conv(b, w) }",
        {},
    ),
    "a clip of frames": (
        "(float[N,3,F,H,W] x, float[4,3,3,3,3] w) => (float[N,4,A,B,D] y) { y = Conv<strides=[2,2,2]>(x, w) }",
        {},
    ),
    "trees over rows": (
        "(float[N,F] x, float[30] offsets) => (float[N,30] y) { y = Add(x, offsets) }",
        {"x": (1, 30)},
    ),
    "an Einsum": (
        "(float[N,S,D] x, float[12,2,4] w) => (float[N,S,2,4] y) { y = Einsum<equation=\"nsd,dhk->nshk\">(x, w) }",
        {"x": (1, 64, 12)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
@pytest.mark.parametrize(("text", "shapes"), KINDS.values(), ids=KINDS)
def test_the_first_choice_of_sizes_runs(text: str, shapes: dict[str, tuple[int, ...]], named: bool) -> None:
    sample, number = tries(with_weights(text if named else without_names(text)))
    assert number == 1
    assert shapes == {name: value.shape for name, value in sample.items() if name in shapes}


OF_ONE = "a cache in ONNX Runtime's attention, a mask of all positions"
"""It takes one row alone where there is a past, which nothing of the model says."""


@pytest.mark.parametrize("end", ["min", "max"])
@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, (text, _) in KINDS.items() if name != OF_ONE])
def test_it_runs_at_both_ends_of_its_usual_ranges(text: str, end: str) -> None:
    loaded = with_weights(text)
    unknown, (sample, _) = open_sizes(loaded.model), tries(loaded)
    ranges = usual_ranges(loaded.model, {}, [sample], max_elements=1 << 16)
    sizes = {name: getattr(limits, end) for name, limits in ranges.items() if name in unknown.kinds}
    at_end = next(iter(generated_samples(loaded.model, loaded.inputs, sizes, 1, unknown)))
    evaluate("onnxruntime", loaded.original.SerializeToString(), [at_end], BuildOptions())


@pytest.mark.parametrize(("text", "rank"), [
    ("(float[N,3,H,W] x, float[4,3,3,3] w) => (float[N,4,A,B] y) { y = Conv(x, w) }", 4),
    ("(float[N,H,W,3] x) => (float[N,3,H,W] y) { s = Mul(x, x) y = Transpose<perm=[0,3,1,2]>(s) }", 4),
    ("(float[T,B,8] x, float[1,16,8] w, float[1,16,4] r) => (float[T,1,B,4] y)"
     " { y, h, s = LSTM<hidden_size=4>(x, w, r) }",
     3),
    ("(float[N,8] x, float[8,3] w) => (float[N,3] y) { y = Gemm(x, w) }", 2),
    ("(int64[N,S] x, float[8,3] w) => (float[N,S,3] y) { y = Gather(w, x) }", 2),
])  # fmt: skip
def test_an_input_of_unknown_rank_gets_the_one_that_its_readers_want(text: str, rank: int) -> None:
    known = with_weights(text)
    (value,), (named,) = known.model.graph.inputs, known.inputs
    value.shape = None
    known.original.graph.input[0].type.tensor_type.ClearField("shape")
    assert isinstance(named.type, TensorType)
    loaded = replace(known, inputs=(NamedType(named.name, TensorType(named.type.dtype, None)),))
    sample, number = tries(loaded)
    assert (sample["x"].ndim, number) == (rank, 1)


LIMITS = {
    "through a Cast": ("i = Cast<to=6>(ids) r = Gather(t, i)", 7),
    "through a Reshape, with an offset": (
        "s = Constant<value_ints=[-1]>() f = Reshape(ids, s) o = Constant<value_int=2>() i = Add(f, o)"
        " r = Gather(t, i)",
        5,
    ),
    "along another axis": ("r = Gather<axis=1>(t, ids)", 4), "by element": ("r = GatherElements(t, ids)", 7),
    "in several axes": ("r = GatherND(t, ids)", 4),
    "in a branch": (
        "c = Constant<value_int=1>() b = Cast<to=9>(c)"
        " r = If<then_branch = a () => (float[K] p) { p = Gather(t, ids) },"
        " else_branch = d () => (float[L] q) { q = Identity(t) }>(b)",
        7,
    ),
    "in a loop": (
        "n = Constant<value_int=2>() k, r = Loop<body = a (int64 i, bool go, int64[2,2] v) =>"
        " (bool go2, int64[2,2] w, float[K,L,M] p) { go2 = Identity(go) w = Identity(v) p = Gather(t, v) }>(n, , ids)",
        7,
    ),
    "rows of another input": ("v = Relu(x) r = Gather(v, ids)", 64), "axes": ("r = ReduceMax(t, ids)", 2),
}  # fmt: skip


@pytest.mark.parametrize(("nodes", "limit"), LIMITS.values(), ids=LIMITS)
def test_integers_choose_what_is_there(nodes: str, limit: int) -> None:
    loaded = with_weights(
        f"(int64[2,2] ids, float[7,4] t, float[N,4] x) => (float y) {{ {nodes} y = ReduceSum<keepdims=0>(r) }}"
    )
    unknown = open_sizes(loaded.model)
    sizes = next(choices(unknown, {}))
    assert unknown.limit("ids", sizes) == limit
    ids = next(generated_samples(loaded.model, loaded.inputs, {}, 0))["ids"]
    assert ids.min() >= 0
    assert ids.max() < limit


@pytest.mark.parametrize(("text", "size"), [
    ("N", None), ("input.1", None), ("a + b", 5), ("2*a", 4), ("(b + 1) // a", 2), ("b / 2", 1), ("a +", None),
    ("total_length", 12),
])  # fmt: skip
def test_a_name_that_computes_a_size(text: str, size: int | None) -> None:
    sizes = {"a": 2, "b": 3, "past_length": 5, "new_seq": 7}
    assert computed_size(text, sizes, sizes.__getitem__) == size


@pytest.mark.parametrize(("dims", "axis", "num_window_axes", "kind"), [
    (("N", "num_channels", "H", "W"), 1, 0, "channels"), ((2, None, 128), 1, 0, "batch"),
    (("batch_size", "sequence_length"), 1, 0, "length"), ((None, 3, None, None), 2, 0, "image"),
    ((None, None, None, 3), 1, 0, "image"), ((None, None, None, 3), 2, 2, "image"), (("N", 1, "samples"), 2, 0, "wave"),
    ((None, None), 1, 1, "wave"), ((None, 1, None), 2, 1, "wave"), ((None, 80, None), 2, 1, "length"),
    ((None, 3, None, None, None), 2, 3, "frames"),
])  # fmt: skip
def test_what_an_axis_probably_is(dims: tuple[Any, ...], axis: int, num_window_axes: int, kind: str) -> None:
    assert kind_of(dims[axis], axis, dims, num_window_axes) == kind


@pytest.mark.parametrize(("reason", "wanted"), [
    ("Attempting to broadcast an axis by a dimension other than 1. 224 by 96", {"H": 96, "W": 224}),
    ("Pad reflect: pre-pad (160) exceeds maximum allowed (63) for axis 1.", {"T": 322}),
    ("indices element out of data bounds, idx=63 must be within the inclusive range [-16,15]", {"T": 16}),
    ("index: 1 Got: 64 Expected: 80", {"T": 80}),
    ("Input channels C is not equal to kernel channels * group. C: 3 kernel channels: 4 group: 1", {"C": 4}),
    ("Input W must have shape {1,16,7}. Actual:{1,16,64}", {"T": 7}),
    ("cannot be reshaped to the requested shape. Input shape:{1,56,56}, requested shape:{1,28,28}", {"H": 112}),
])  # fmt: skip
def test_a_refusal_says_which_size_it_wants(reason: str, wanted: dict[str, int]) -> None:
    sizes = {"N": 1, "C": 3, "H": 224, "W": 224, "T": 64}
    kinds = {"N": "batch", "C": "channels", "H": "image", "W": "image", "T": "length"}
    assert any(wanted.items() <= found.items() for found in suggested(sizes, kinds, reason))
    assert not list(suggested(sizes, kinds, "another reason"))


def test_sizes_around_keep_what_the_model_needs() -> None:
    """Lengths become a fourth and four times as long, pictures half and twice as high; batches and caches stay."""
    text = (
        "(float[N,3,H,W] x, float[M,K,L,P] past, float[4,3,3,3] w, float[N2,length] z) => (float[N,4,A,B] y)"
        " { c = Conv(x, w) s = ReduceSum(z) t = ReduceSum(past) u = Add(c, s) y = Add(u, t) }"
    )
    unknown = open_sizes(with_weights(text).model)
    sizes = next(choices(unknown, {}))
    smaller, larger = other_sizes(unknown, sizes)
    assert [(found["length"], found["H"], found["W"]) for found in (smaller, larger)] == [
        (16, 128, 128),
        (256, 448, 448),
    ]
    assert all(found["N"] == 1 and found["P"] == sizes["P"] for found in (smaller, larger))
    fixed = open_sizes(with_weights(KINDS["patches of 14, a class"][0]).model)
    assert other_sizes(fixed, next(choices(fixed, {}))) == []


def test_a_costly_choice_waits_for_cheap_ones() -> None:
    unknown = open_sizes(with_weights("(float[N,3,H,W] x) => (float[N,3,H,W] y) { y = Relu(x) }").model)
    found = [sizes["H"] for sizes in choices(unknown, {}, lambda sizes: sizes["H"] / 20)]
    assert found.index(64) < found.index(224) < found.index(640)


@pytest.mark.parametrize("name", ["silero_vad_v2_mini", "silero_vad_v5", "ppocr_rec_en_mobile_v2", "nnsplit_en"])
def test_a_real_network_gets_an_input_that_runs(models_folder: Path, name: str) -> None:
    assert tries(load_model(models_folder / f"{name}.onnx"))[1] < 4
