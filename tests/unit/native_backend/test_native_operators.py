# SPDX-License-Identifier: Apache-2.0
"""Operators of light networks against numpy in float64, on odd sizes and every level that this machine runs."""

import json

import numpy as np
import onnx_ir as ir
import pytest
from kernel_library import every_level
from native_models import Array, built, convolved, each_float_level, model_of, reals, run, tolerance_of
from nndeploy_native.plan import DOCUMENT_FILE
from onnx.reference import ReferenceEvaluator


@each_float_level
@pytest.mark.parametrize(
    ("channels", "outputs", "kernel", "groups", "stride", "dilation"),
    [
        (3, 10, 3, 1, 2, 1),  # the first of a network: read in the order of ONNX
        (5, 37, 3, 1, 1, 2),
        (19, 19, 5, 19, 2, 1),
        (18, 18, 7, 18, 1, 1),
        (12, 20, 3, 4, 1, 1),
        (33, 50, 1, 1, 1, 1),
        (17, 9, 1, 1, 2, 1),
    ],
)
def test_convolution(
    level: str, channels: int, outputs: int, kernel: int, groups: int, stride: int, dilation: int
) -> None:
    x, bias = reals(2, channels, 9, 13), reals(outputs, seed=3)
    w = reals(outputs, channels // groups, kernel, kernel, seed=1)
    begin, end = dilation * (kernel // 2), kernel // 2
    wanted = convolved(x, w, bias, stride, (begin, begin, end, end), dilation, groups)
    shape = ",".join(map(str, wanted.shape))
    text = f"""g (float[2,{channels},9,13] x) => (float[{shape}] y) {{ y = Conv<group={groups},
        strides=[{stride},{stride}], dilations=[{dilation},{dilation}],
        pads=[{begin},{begin},{end},{end}]>(x, w, b) }}"""
    artifact = built(model_of(text, {"w": w, "b": bias}))
    np.testing.assert_allclose(run(artifact, {"x": x}, level)["y"], wanted, rtol=1e-5, atol=2e-5)


@every_level
@pytest.mark.parametrize(
    ("channels", "outputs", "sizes", "kernel", "pads"),
    [
        (8, 8, (5, 41), (3, 39), (1, 19, 1, 19)),  # four pixels across are one of 32 channels
        (33, 1, (9, 13), (3, 3), (1, 1, 1, 1)),  # rows and columns that are no whole sides
        (32, 2, (7, 6), (7, 3), (3, 0, 3, 2)),
        (40, 3, (29,), (7,), (3, 3)),
    ],
)
def test_few_channels_of_neighbouring_pixels_are_made_together(
    level: str, channels: int, outputs: int, sizes: tuple[int, ...], kernel: tuple[int, ...], pads: tuple[int, ...]
) -> None:
    x, w, bias = reals(2, channels, *sizes), reals(outputs, channels, *kernel, seed=1), reals(outputs, seed=2)
    rank = len(sizes)
    out = [size + pads[i] + pads[i + rank] - kernel[i] + 1 for i, size in enumerate(sizes)]
    given, made = (",".join(map(str, one)) for one in ((2, channels, *sizes), (2, outputs, *out)))
    text = f"""g (float[{given}] v) => (float[{made}] y) {{
        x = MaxPool<kernel_shape=[{",".join("1" * rank)}]>(v) c = Conv<pads=[{",".join(map(str, pads))}]>(x, w, b)
        y = Relu(c) }}"""
    model = model_of(text, {"w": w, "b": bias})
    (wanted,) = ReferenceEvaluator(ir.to_proto(model)).run(None, {"v": x})
    artifact, most = built(model), tolerance_of(level)
    (label,) = (step["what"] for step in json.loads(artifact.files[DOCUMENT_FILE])["steps"] if "->" in step["what"])
    assert int(label.split("->")[1]) > 8
    found = run(artifact, {"v": x}, level)["y"]
    np.testing.assert_allclose(found, wanted, rtol=most, atol=most * np.abs(wanted).max())


@every_level
@pytest.mark.parametrize(
    ("channels", "outputs", "height", "width", "kernel", "stride", "pads"),
    [
        (32, 80, 5, 5, 3, 1, (1, 1, 1, 1)),
        (16, 72, 9, 11, 3, 2, (0, 1, 1, 0)),  # half of the last vector
        (48, 97, 7, 9, 1, 2, (0, 0, 0, 0)),
        (16, 160, 23, 5, 5, 1, (2, 2, 2, 2)),  # more pixels than a window has
        (208, 70, 6, 4, 3, 1, (0, 2, 0, 2)),
        (16, 65, 3, 1, 2, 1, (1, 0, 0, 1)),
    ],
)
def test_rows_shorter_than_a_register_tile(
    level: str, channels: int, outputs: int, height: int, width: int, kernel: int, stride: int, pads: tuple[int, ...]
) -> None:
    """What pixels read is gathered, with zeros beside the image; a number of each channel and a residual at the end."""
    x, bias, slope = reals(2, channels, height, width), reals(outputs, seed=3), reals(outputs, 1, 1, seed=4)
    w = reals(outputs, channels, kernel, kernel, seed=1)
    sums = convolved(x, w, bias, stride, (pads[0], pads[1], pads[2], pads[3]), 1, 1)
    r = reals(*sums.shape, seed=5)
    shape = ",".join(map(str, sums.shape))
    text = f"""g (float[2,{channels},{height},{width}] x, float[{shape}] r) => (float[{shape}] y) {{
        c = Conv<strides=[{stride},{stride}], pads=[{",".join(map(str, pads))}]>(x, w, b)
        p = PRelu(c, s) y = Add(p, r) }}"""
    artifact = built(model_of(text, {"w": w, "b": bias, "s": slope}))
    alone, shared = (run(artifact, {"x": x, "r": r}, level, threads=threads)["y"] for threads in (1, 2))
    np.testing.assert_array_equal(alone, shared)
    wanted, most = np.where(sums < 0, slope * sums, sums) + r, tolerance_of(level)
    np.testing.assert_allclose(alone, wanted, rtol=most, atol=most * np.abs(wanted).max())


@each_float_level
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("width", "kernel", "stride", "dilation", "begin", "end"),
    [
        (11, 3, 1, 12, 12, 12),  # both outer columns lie beside the image for every pixel
        (12, 3, 1, 9, 9, 9),
        (5, 5, 1, 6, 24, 0),  # only the last column is met
        (5, 5, 1, 6, 0, 24),  # only the first one
        (7, 2, 1, 10, 13, 0),  # what is met begins inside, or nothing is
        (4, 3, 3, 5, 20, 1),
        (20, 3, 2, 7, 13, 2),
    ],
)
def test_dilations_wider_than_the_image(
    level: str, groups: int, width: int, kernel: int, stride: int, dilation: int, begin: int, end: int
) -> None:
    x, w = reals(2, 10, 4, width), reals(20, 10 // groups, 3, kernel, seed=1)
    out_width = (width + begin + end - (kernel - 1) * dilation - 1) // stride + 1
    model = model_of(
        f"""g (float[2,10,4,{width}] x) => (float[2,20,4,{out_width}] y) {{ y = Conv<group={groups},
        strides=[1,{stride}], dilations=[1,{dilation}], pads=[1,{begin},1,{end}]>(x, w) }}""",
        {"w": w},
    )
    (wanted,) = ReferenceEvaluator(ir.to_proto(model)).run(None, {"x": x})
    np.testing.assert_allclose(run(built(model), {"x": x}, level)["y"], wanted, rtol=1e-5, atol=2e-5)


@each_float_level
@pytest.mark.parametrize(
    ("channels", "height", "width", "kernel", "stride", "dilation", "pads"),
    [
        (3, 32, 48, 16, 16, 1, (0, 0, 0, 0)),  # the patches of a vision transformer
        (1, 1, 90, 20, 7, 1, (0, 5, 0, 9)),  # a spectrum of sound
        (3, 11, 41, 3, 4, 2, (1, 4, 2, 3)),
        (4, 9, 5, 2, 9, 1, (0, 3, 0, 0)),  # less than a stride wide
        (2, 13, 61, 5, 3, 1, (2, 2, 2, 2)),
    ],
)
def test_planes_at_strides_of_three_and_more(
    level: str, channels: int, height: int, width: int, kernel: int, stride: int, dilation: int, pads: tuple[int, ...]
) -> None:
    x = reals(2, channels, height, width)
    rows = min(kernel, height)
    w, bias = reals(37, channels, rows, kernel, seed=1), reals(37, seed=2)
    out = [
        (size + before + after - (taps - 1) * dilation - 1) // stride + 1
        for size, taps, before, after in ((height, rows, pads[0], pads[2]), (width, kernel, pads[1], pads[3]))
    ]
    model = model_of(
        f"""g (float[2,{channels},{height},{width}] x) => (float[2,37,{out[0]},{out[1]}] y) {{ y = Conv<
        strides=[{stride},{stride}], dilations=[{dilation},{dilation}],
        pads=[{",".join(map(str, pads))}]>(x, w, b) }}""",
        {"w": w, "b": bias},
    )
    (wanted,) = ReferenceEvaluator(ir.to_proto(model)).run(None, {"x": x})
    np.testing.assert_allclose(run(built(model), {"x": x}, level)["y"], wanted, rtol=1e-5, atol=5e-5)


@each_float_level
def test_groups_read_no_lane_behind_the_last_channel(level: str) -> None:
    """A reciprocal makes infinities of the zeros there, which a weight of zero would make NaNs."""
    x, w = reals(1, 35, 3, 4) + 9, reals(20, 7, 1, 1, seed=1)
    text = """g (float[1,35,3,4] x) => (float[1,20,3,4] y) { a = MaxPool<kernel_shape=[1,1]>(x) b = Reciprocal(a)
        c = MaxPool<kernel_shape=[1,1]>(b) y = Conv<group=5>(c, w) }"""
    found = run(built(model_of(text, {"w": w})), {"x": x}, level)["y"]
    np.testing.assert_allclose(found, convolved(1 / x, w, groups=5), rtol=1e-5, atol=1e-5)


@each_float_level
@pytest.mark.parametrize("pads", [(0, 0, 2, 3), (0, 1, 0, 1), (1, 1, 1, 0), (0, 0, 0, 1)])
def test_one_pixel_windows_over_zeros_beside_the_image(level: str, pads: tuple[int, int, int, int]) -> None:
    x, w = reals(2, 17, 4, 9), reals(24, 17, 1, 1, seed=1)
    wanted = convolved(x, w, pads=pads)
    text = f"""g (float[2,17,4,9] x) => (float[{",".join(map(str, wanted.shape))}] y) {{
        y = Conv<pads=[{",".join(map(str, pads))}]>(x, w) }}"""
    found = run(built(model_of(text, {"w": w})), {"x": x}, level)["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@every_level
@pytest.mark.parametrize(
    ("channels", "outputs", "width", "kernel", "stride", "pad", "dilation"),
    [
        (6, 5, 5, 3, 2, 1, 1),
        (20, 37, 31, 2, 2, 0, 1),
        (18, 3, 31, 2, 2, 0, 1),  # few channels: made as channels of a pixel, and moved
        (18, 1, 5, 3, 3, 0, 1),
        (9, 2, 7, 4, 2, 1, 1),  # the same where windows overlap
        (5, 1, 8, 16, 8, 0, 1),
        (9, 3, 6, 5, 3, 1, 1),
        (9, 3, 6, 3, 2, 1, 1),  # no whole strides
        (33, 18, 40, 4, 2, 1, 1),
        (3, 17, 30, 5, 3, 2, 2),
        (7, 9, 6, 2, 3, 0, 1),  # windows that leave pixels out
        (16, 16, 17, 3, 1, 1, 1),
    ],
)
def test_transposed_convolution(
    level: str,
    channels: int,
    outputs: int,
    width: int,
    kernel: int,
    stride: int,
    pad: int,
    dilation: int,
) -> None:
    x, w, b = reals(2, channels, 3, width), reals(channels, outputs, kernel, kernel, seed=1), reals(outputs, seed=2)
    reach = dilation * (kernel - 1) + 1
    wanted = np.zeros((2, outputs, 2 * stride + reach, (width - 1) * stride + reach))
    for ky in range(kernel):
        for kx in range(kernel):
            rows = slice(ky * dilation, ky * dilation + 2 * stride + 1, stride)
            columns = slice(kx * dilation, kx * dilation + (width - 1) * stride + 1, stride)
            tap = w[:, :, ky, kx].astype(np.float64)
            wanted[:, :, rows, columns] += np.einsum("nchw,co->nohw", x.astype(np.float64), tap)
    wanted = wanted[:, :, pad : wanted.shape[2] - pad, pad : wanted.shape[3] - pad] + b[None, :, None, None]
    text = f"""g (float[2,{channels},3,{width}] x) => (float[{",".join(map(str, wanted.shape))}] y) {{
        c = ConvTranspose<strides=[{stride},{stride}], pads=[{pad},{pad},{pad},{pad}],
        dilations=[{dilation},{dilation}]>(x, w, b) y = Relu(c) }}"""
    artifact = built(model_of(text, {"w": w, "b": b}))
    most = tolerance_of(level)
    found = run(artifact, {"x": x}, level)["y"]
    np.testing.assert_allclose(found, np.maximum(wanted, 0), rtol=most, atol=most * np.abs(wanted).max())
    assert "elementwise" not in artifact.log


@each_float_level
def test_channels_are_shuffled_split_and_joined_without_leaving_their_blocks(level: str) -> None:
    text = """g (float[1,20,4,5] x) => (float[1,30,4,5] y) <int64[5] apart = {1,2,10,4,5}, int64[4] again = {1,20,4,5},
        int64[2] sizes = {10,10}> { r = Conv<group=20>(x, w) a = Reshape(r, apart) t = Transpose<perm=[0,2,1,3,4]>(a)
        s = Reshape(t, again) l, h = Split<axis=1>(s, sizes) n = Relu(h) y = Concat<axis=1>(n, l, n) }"""
    x, w = reals(1, 20, 4, 5), np.ones((20, 1, 1, 1), np.float32)
    artifact = built(model_of(text, {"w": w}))
    shuffled = x.reshape(1, 2, 10, 4, 5).transpose(0, 2, 1, 3, 4).reshape(1, 20, 4, 5)
    low, high = shuffled[:, :10], np.maximum(shuffled[:, 10:], 0)
    np.testing.assert_array_equal(run(artifact, {"x": x}, level)["y"], np.concatenate([high, low, high], axis=1))
    assert "2 layout conversions" in artifact.log


@every_level
def test_channels_come_from_any_place_of_several_images(level: str) -> None:
    """Whole blocks, blocks at odd offsets, an interleaving of three; 70 pixels are more than one run."""
    text = """g (float[2,21,7,10] x, float[2,32,7,10] z) => (float[2,58,7,10] y) <int64[5] apart = {2,3,7,7,10},
        int64[4] again = {2,21,7,10}, int64[2] sizes = {16,5}> { r = Conv<group=21>(x, v) q = Conv<group=32>(z, w)
        a = Reshape(r, apart) t = Transpose<perm=[0,2,1,3,4]>(a) s = Reshape(t, again)
        l, h = Split<axis=1>(s, sizes) c = Concat<axis=1>(q, h, l) y = Concat<axis=1>(c, h) }"""
    rng = np.random.default_rng(0)
    x, z = (rng.integers(-99, 99, (2, channels, 7, 10)).astype(np.float32) for channels in (21, 32))
    constants = {"v": np.ones((21, 1, 1, 1), np.float32), "w": np.ones((32, 1, 1, 1), np.float32)}
    artifact = built(model_of(text, constants))
    shuffled = x.reshape(2, 3, 7, 7, 10).transpose(0, 2, 1, 3, 4).reshape(2, 21, 7, 10)
    low, high = shuffled[:, :16], shuffled[:, 16:]
    np.testing.assert_array_equal(
        run(artifact, {"x": x, "z": z}, level)["y"], np.concatenate([z, high, low, high], axis=1)
    )
    assert artifact.log.count("channel_parts") == 1


@each_float_level
def test_squeeze_and_excite(level: str) -> None:
    text = """g (float[2,20,4,5] x) => (float[2,20,4,5] y) { p = Conv<group=20>(x, w) g1 = GlobalAveragePool(p)
        c = Conv(g1, v) s = HardSigmoid(c) y = Mul(p, s) }"""
    x, w, v = reals(2, 20, 4, 5), reals(20, 1, 1, 1, seed=1), reals(20, 20, 1, 1, seed=2)
    artifact = built(model_of(text, {"w": w, "v": v}))
    p = convolved(x, w, groups=20)
    s = np.clip(convolved(p.mean((2, 3), keepdims=True), v) * 0.2 + 0.5, 0, 1)
    np.testing.assert_allclose(run(artifact, {"x": x}, level)["y"], p * s, rtol=1e-5, atol=1e-6)


@each_float_level
def test_head_of_a_classifier(level: str) -> None:
    text = """g (float[3,20,4,5] x) => (float[3,7] y) { r = Conv<group=20>(x, w) p = GlobalAveragePool(r)
        f = Flatten(p) z = Gemm<transB=1>(f, v, b) y = Softmax(z) }"""
    x, w, v, b = reals(3, 20, 4, 5), np.ones((20, 1, 1, 1), np.float32), reals(7, 20, seed=1), reals(7, seed=2)
    artifact = built(model_of(text, {"w": w, "v": v, "b": b}))
    z = x.astype(np.float64).mean((2, 3)) @ v.T.astype(np.float64) + b
    wanted = np.exp(z - z.max(1, keepdims=True))
    np.testing.assert_allclose(run(artifact, {"x": x}, level)["y"], wanted / wanted.sum(1, keepdims=True), rtol=2e-6)


@each_float_level
def test_padding_lanes_stay_zero_where_an_activation_of_zero_is_not(level: str) -> None:
    """Sigmoid(0) = 0.5 in a padding lane would be added up by the next pointwise convolution's block."""
    text = """g (float[1,5,3,3] x) => (float[1,5,3,3] y) { a = Conv(x, v) s = Exp(a) t = Add(s, s)
        y = Conv<group=5>(t, w) }"""
    x, v, w = reals(1, 5, 3, 3), reals(5, 5, 1, 1, seed=1), reals(5, 1, 1, 1, seed=2)
    found = run(built(model_of(text, {"v": v, "w": w})), {"x": x}, level)["y"]
    np.testing.assert_allclose(found, convolved(2 * np.exp(convolved(x, v)), w, groups=5), rtol=1e-5)


@every_level
@pytest.mark.parametrize(
    ("kind", "kernel", "stride", "pads", "dilation", "attributes"),
    [
        ("MaxPool", 3, 2, (1, 1, 1, 1), 1, ""),
        ("MaxPool", 5, 1, (2, 2, 2, 2), 1, ""),
        ("MaxPool", 3, 2, (0, 1, 2, 0), 2, ", dilations=[2,2]"),
        ("AveragePool", 3, 2, (1, 1, 1, 1), 1, ""),
        ("AveragePool", 3, 1, (0, 1, 2, 1), 1, ", count_include_pad=1"),
        ("AveragePool", 7, 1, (0, 0, 0, 0), 1, ""),  # rows wider than the sums that are kept apart
    ],
)
def test_pooling(
    level: str,
    kind: str,
    kernel: int,
    stride: int,
    pads: tuple[int, int, int, int],
    dilation: int,
    attributes: str,
) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (2, 19, 11, 9)).astype(np.float32)
    x[0, 3, 4:6, 4:6] = np.nan if kind == "MaxPool" else 1
    windows = _windows(x, kernel, stride, pads, dilation, 0.0 if "include" in attributes else np.nan)
    inside = _windows(np.zeros_like(x), kernel, stride, pads, dilation, np.nan)
    if kind == "MaxPool":
        wanted = np.where(np.isnan(inside), -np.inf, windows).max(axis=(-1, -2))
        assert np.isnan(wanted).any()
    else:
        wanted = np.nanmean(windows, axis=(-1, -2))
    text = f"""g (float[2,19,11,9] x) => (float[{",".join(map(str, wanted.shape))}] y) {{ c = Conv<group=19>(x, w)
        y = {kind}<kernel_shape=[{kernel},{kernel}], strides=[{stride},{stride}], pads=[{",".join(map(str, pads))}]
        {attributes}>(c) }}"""
    artifact = built(model_of(text, {"w": np.ones((19, 1, 1, 1), np.float32)}))
    most = tolerance_of(level)
    np.testing.assert_allclose(run(artifact, {"x": x}, level)["y"], wanted, rtol=most, atol=most)


def _windows(
    x: Array, kernel: int, stride: int, pads: tuple[int, int, int, int], dilation: int, outside: float
) -> Array:
    """Returns (N, C, H, W, kernel, kernel) of an image padded by (top, left, bottom, right)."""
    wide = np.pad(x.astype(np.float64), [(0, 0), (0, 0), pads[::2], pads[1::2]], constant_values=outside)
    reach = dilation * (kernel - 1) + 1
    return np.lib.stride_tricks.sliding_window_view(wide, (reach, reach), (2, 3))[
        :, :, ::stride, ::stride, ::dilation, ::dilation
    ]


@each_float_level
def test_rows_of_pixels(level: str) -> None:
    """Images (N, C, W), which ONNX's evaluator does not pool right."""
    text = """g (float[2,19,13] x) => (float[2,19,1] y, float[2,19,6] z) { a = Conv<group=19>(x, w) y = GlobalMaxPool(a)
        z = MaxPool<kernel_shape=[3], strides=[2]>(a) }"""
    x = reals(2, 19, 13)
    found = run(built(model_of(text, {"w": np.ones((19, 1, 1), np.float32)})), {"x": x}, level)
    np.testing.assert_array_equal(found["y"], x.max(2, keepdims=True))
    np.testing.assert_array_equal(found["z"], np.maximum.reduce([x[:, :, k : k + 11 : 2] for k in range(3)]))


@every_level
@pytest.mark.parametrize(
    ("channels", "outputs", "groups", "kernel", "stride", "width"),
    [
        (32, 64, 2, 3, 1, 31),  # groups of whole blocks
        (36, 36, 9, 3, 2, 31),  # several groups a block, the last of which is not full
        (40, 80, 40, 3, 1, 9),
        (35, 20, 5, 1, 1, 17),
        (24, 90, 3, 5, 1, 6),
    ],
)
def test_grouped_convolution_with_a_residual(
    level: str, channels: int, outputs: int, groups: int, kernel: int, stride: int, width: int
) -> None:
    x, b, pad = reals(2, channels, 5, width), reals(outputs, seed=3), kernel // 2
    w = reals(outputs, channels // groups, kernel, kernel, seed=1)
    wanted = convolved(x, w, b, stride, (pad, pad, pad, pad), 1, groups)
    added = reals(*wanted.shape, seed=4)
    shape = ",".join(map(str, wanted.shape))
    text = f"""g (float[2,{channels},5,{width}] x, float[{shape}] z) => (float[{shape}] y) {{
        r = Conv<group={outputs}>(z, one) c = Conv<group={groups}, strides=[{stride},{stride}],
        pads=[{pad},{pad},{pad},{pad}]>(x, w, b) a = Add(c, r) y = Relu(a) }}"""
    constants = {"w": w, "b": b, "one": np.ones((outputs, 1, 1, 1), np.float32)}
    found = run(built(model_of(text, constants)), {"x": x, "z": added}, level)["y"]
    most = tolerance_of(level)
    np.testing.assert_allclose(found, np.maximum(wanted + added, 0), rtol=most, atol=most * np.abs(wanted).max())


RESIZES = {
    "in turn": ((2, 19, 5, 7), (10, 21), 'mode="nearest", coordinate_transformation_mode="asymmetric"'),
    "nearest": ((2, 19, 5, 7), (8, 11), 'mode="nearest", nearest_mode="ceil"'),
    "linear": ((2, 19, 5, 7), (10, 14), 'mode="linear"'),
    "corners": ((2, 19, 5, 7), (13, 5), 'mode="linear", coordinate_transformation_mode="align_corners"'),
    "cubic": ((2, 19, 5, 7), (9, 9), 'mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1'),
    "smooth": ((2, 19, 9, 16), (4, 5), 'mode="cubic", antialias=1'),
    "rows": ((2, 19, 7), (13,), 'mode="linear"'),
    "volumes": ((2, 5, 3, 5, 7), (6, 4, 9), 'mode="linear"'),
    "depth": ((1, 5, 3, 5, 7), (6, 5, 7), 'mode="linear"'),
    "slices": ((1, 5, 3, 5, 7), (3, 8, 7), 'mode="cubic"'),
}


@every_level
@pytest.mark.parametrize("name", RESIZES)
def test_resize(level: str, name: str) -> None:
    """Against ONNX's own evaluator; the input comes in blocks, but that of volumes."""
    shape, sizes, attributes = RESIZES[name]
    x, text = reals(*shape), ",".join(map(str, (*shape[:2], *sizes)))
    before = "c = Conv<group=19>(x, w)" if len(shape) < 5 else "c = Abs(x)"
    model = model_of(
        f"""g (float[{",".join(map(str, shape))}] x) => (float[{text}] y) <int64[{len(shape)}] sizes = {{{text}}}>
        {{ {before} y = Resize<{attributes}>(c, , , sizes) }}""",
        {"w": np.ones((19, 1, *[1] * (len(shape) - 2)), np.float32)},
    )
    wanted = ReferenceEvaluator(ir.to_proto(model)).run(None, {"x": x})[0]
    most = tolerance_of(level)
    found = run(built(model), {"x": x}, level)["y"]
    np.testing.assert_allclose(found, wanted, rtol=most, atol=most)


@each_float_level
@pytest.mark.parametrize(
    ("shape", "axes", "attributes"),
    [
        ((4, 6), (7, 9), 'mode="linear"'),
        ((3, 2, 5, 4), (5, 3, 4, 9), 'mode="cubic"'),
        ((2, 3, 2, 5, 4, 3), (2, 3, 2, 3, 4, 5), 'mode="linear"'),
    ],
)
def test_resize_of_any_axis(level: str, shape: tuple[int, ...], axes: tuple[int, ...], attributes: str) -> None:
    x, sizes = reals(*shape), ",".join(map(str, axes))
    text = f"""g (float[{",".join(map(str, shape))}] x) => (float[{sizes}] y)
        <int64[{len(axes)}] sizes = {{{sizes}}}> {{ y = Resize<{attributes}>(x, , , sizes) }}"""
    model = model_of(text)
    wanted = ReferenceEvaluator(ir.to_proto(model)).run(None, {"x": x})[0]
    np.testing.assert_allclose(run(built(model), {"x": x}, level)["y"], wanted, rtol=1e-5, atol=1e-5)


@each_float_level
@pytest.mark.parametrize(("rows", "inner", "columns"), [(9, 5, 7), (4, 33, 50), (3, 2, 32), (6, 9, 17)])
def test_product_of_two_values(level: str, rows: int, inner: int, columns: int) -> None:
    text = f"""g (float[2,{rows},{inner}] a, float[2,{inner},{columns}] b) => (float[2,{rows},{columns}] y)
        {{ y = MatMul(a, b) }}"""
    a, b = reals(2, rows, inner), reals(2, inner, columns, seed=1)
    found = run(built(model_of(text)), {"a": a, "b": b}, level)["y"]
    np.testing.assert_allclose(found, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5)
