# SPDX-License-Identifier: Apache-2.0
"""Every C template against NumPy in float64 on odd shapes; a few of them under the undefined-behaviour sanitizer.

Inputs lie between margins of NaN (an element read outside them shows in the result) and outputs between margins of a
known pattern (an element written outside them shows in the margin).
"""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from nndeploy_native.kernels.compiler import HINT, compiler_command
from nndeploy_native.kernels.instance import SIGNATURE, Instance, cpu_features
from nndeploy_native.kernels.inverted_residual import (
    InvertedResidual,
    InvertedWindow,
    choose_inverted_window,
    inverted_buffer_bytes,
    inverted_text,
    num_inverted_windows,
)
from nndeploy_native.kernels.isa import AVX2, AVX512, ISAS, NEON, Isa
from nndeploy_native.kernels.packing import (
    Floats,
    blocked_from_planar,
    pack_channels,
    pack_convolution,
    pack_depthwise,
    pack_pointwise,
    panels,
    planar_from_blocked,
)
from nndeploy_native.kernels.separable import (
    RELU6,
    Activation,
    Axis,
    Separable,
    Window,
    choose_window,
    num_windows,
    separable_text,
)

TOLERANCE = 2e-6  # of the largest value; sums of up to 200 float32 products
SANITIZE = ("-fsanitize=undefined", "-fno-sanitize-recover=all")
MARGIN = 1024  # floats before and after each array
ACTIVATIONS = (
    Activation(), Activation("RELU"), RELU6, Activation("LEAKY_RELU", 0.1), Activation("PRELU"),
    Activation("HARD_SIGMOID", 0.2, 0.5), Activation("HARD_SWISH", 1 / 6, 0.5), Activation("SIGMOID"),
    Activation("SILU"), Activation("TANH"),
)  # fmt: skip


@pytest.fixture(params=(AVX512, AVX2), ids=lambda isa: isa.name)
def isa(request: pytest.FixtureRequest) -> Isa:
    chosen: Isa = request.param
    if find_spec("ziglang") is None:
        pytest.skip(f"ziglang is not installed ({HINT})")
    if {"avx512": "avx512f", "avx2": "avx2"}[chosen.name] not in cpu_features():
        pytest.skip(f"this processor has no {chosen.name}")
    return chosen


Reference = npt.NDArray[np.float64]


def activate(act: Activation, x: Reference, slopes: Floats) -> Reference:
    slope = slopes.astype(np.float64)[None, :, None, None]
    hard = np.clip(act.a * x + act.b, 0, 1)
    table: dict[str, Callable[[], Reference]] = {
        "NONE": lambda: x, "RELU": lambda: np.maximum(x, 0), "CLIP": lambda: np.clip(x, act.a, act.b),
        "LEAKY_RELU": lambda: np.where(x < 0, act.a * x, x), "PRELU": lambda: np.where(x < 0, slope * x, x),
        "HARD_SIGMOID": lambda: hard, "HARD_SWISH": lambda: x * hard, "SIGMOID": lambda: 1 / (1 + np.exp(-x)),
        "SILU": lambda: x / (1 + np.exp(-x)), "TANH": lambda: np.tanh(x),
    }  # fmt: skip
    return table[act.kind]()


def convolve(x: Reference, weights: Floats, bias: Floats, y: Axis, across: Axis, groups: int = 1) -> Reference:
    """Convolution in float64, (N, C, H, W) and (O, C / groups, kh, kw)."""
    n, channels = x.shape[:2]
    outputs, of_group = weights.shape[:2]
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (y.begin, y.end), (across.begin, across.end)))
    result = np.zeros((n, outputs, y.out_size, across.out_size)) + bias.astype(np.float64)[None, :, None, None]
    grouped = weights.astype(np.float64).reshape(groups, outputs // groups, of_group, y.kernel, across.kernel)
    for ky in range(y.kernel):
        for kx in range(across.kernel):
            top, left = ky * y.dilation, kx * across.dilation
            part = padded[
                :, :, top : top + (y.out_size - 1) * y.stride + 1 : y.stride,
                left : left + (across.out_size - 1) * across.stride + 1 : across.stride,
            ].reshape(n, groups, channels // groups, y.out_size, across.out_size)  # fmt: skip
            result += np.einsum("goc,ngchw->ngohw", grouped[..., ky, kx], part).reshape(result.shape)
    return result


def guarded(x: Floats, fill: float = float("nan")) -> Floats:
    """Returns a copy of `x` at a cache line, MARGIN floats of `fill` before and after it."""
    raw = np.full(x.size + 2 * MARGIN + 16, fill, np.float32)
    begin = MARGIN + (-raw.ctypes.data // 4) % 16
    inner: Floats = raw[begin : begin + x.size].reshape(x.shape)
    inner[...] = x
    return inner


def margins_hold(inner: Floats, fill: float) -> bool:
    raw = inner.base
    while raw is not None and raw.base is not None:
        raw = raw.base
    assert isinstance(raw, np.ndarray)
    return int((raw == np.float32(fill)).sum()) >= 2 * MARGIN + 16


def check(got: Floats, want: Reference) -> None:
    assert np.isfinite(got).all()
    assert np.abs(got - want).max() <= TOLERANCE * max(1.0, np.abs(want).max())


def normal(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def run_step(
    isa: Isa, text: str, folder: Path, data: Sequence[Floats | None], out_shape: tuple[int, ...], units: int,
    buffer_floats: int = 0, parts: int = 1, extra: tuple[str, ...] = ()
) -> Floats:  # fmt: skip
    """Runs the step in `parts` calls, as threads would share it, and returns its blocked output."""
    step = Instance(text, isa, folder, extra)
    inputs = [None if x is None else guarded(x) for x in data]
    out, buffer = guarded(np.zeros(out_shape, np.float32), 77.0), guarded(np.zeros(buffer_floats, np.float32), 77.0)
    bounds = [units * part // parts for part in range(parts + 1)]
    for first, last in pairwise(bounds):
        step.run(inputs, out, buffer, first, last)
    assert margins_hold(out, 77.0)
    assert margins_hold(buffer, 77.0)
    return out


SEPARABLES = {
    "plain": (Separable(1, 32, 64, Axis(28), Axis(28)), None),
    "odd channels": (Separable(1, 19, 37, Axis(13), Axis(17)), None),
    "few channels": (Separable(2, 3, 5, Axis(9), Axis(11)), None),
    "stride 2, 24 outputs": (Separable(1, 24, 24, Axis(15, 3, 2), Axis(33, 3, 2)), None),
    "three vectors": (Separable(1, 16, 48, Axis(10), Axis(10)), None),
    "kernel 5": (Separable(1, 20, 33, Axis(14, 5, 1, 1, 2, 2), Axis(31, 5, 2, 1, 2, 2)), None),
    "kernel 7": (Separable(1, 17, 16, Axis(12, 7, 1, 1, 3, 3), Axis(40, 7, 1, 1, 3, 3)), None),
    "dilation": (Separable(1, 16, 32, Axis(20, 3, 1, 2, 2, 2), Axis(40, 3, 1, 3, 3, 3)), None),
    "padding wider than a tile": (Separable(1, 16, 16, Axis(8, 3, 1, 9, 9, 9), Axis(20, 3, 1, 20, 20, 20)), None),
    "uneven padding": (Separable(1, 32, 32, Axis(7, 3, 2, 1, 0, 1), Axis(30, 3, 2, 1, 0, 1)), None),
    "no padding": (Separable(1, 32, 32, Axis(9, 3, 1, 1, 0, 0), Axis(9, 3, 1, 1, 0, 0)), None),
    "one pixel": (Separable(1, 32, 32, Axis(1), Axis(1)), None),
    "residual": (Separable(2, 32, 32, Axis(14), Axis(14), RELU6, Activation(), True), None),
    "row by row": (Separable(1, 32, 32, Axis(11), Axis(18)), Window(2, 18, 32)),
    "columns": (Separable(2, 32, 40, Axis(5), Axis(45)), Window(1, 13, 32)),
    "columns of several rows": (Separable(1, 16, 32, Axis(7, 3, 2), Axis(45, 3, 2)), Window(2, 10, 16)),
    "channels in parts": (Separable(1, 70, 40, Axis(6), Axis(29), RELU6, RELU6), Window(1, 14, 16)),
    "channels in parts, residual": (
        Separable(1, 70, 40, Axis(6), Axis(29), RELU6, Activation("RELU"), True), Window(2, 29, 32)),
}  # fmt: skip


def separable_case(
    s: Separable, window: Window | None, isa: Isa, folder: Path, parts: int = 1, extra: tuple[str, ...] = ()
) -> None:
    window = window or choose_window(s, isa, 1 << 18)
    x, db, pb = normal(0, s.images, s.channels, s.y.size, s.x.size), normal(1, s.channels), normal(2, s.out_channels)
    dw, pw = normal(3, s.channels, 1, s.y.kernel, s.x.kernel), normal(4, s.out_channels, s.channels, 1, 1)
    ds, ps = normal(5, s.channels), normal(6, s.out_channels)
    shape = (s.images, s.out_channels, s.y.out_size, s.x.out_size)
    residual = normal(7, *shape)
    first = activate(s.first, convolve(x.astype(np.float64), dw, db, s.y, s.x, s.channels), ds)
    sums = np.einsum("oc,nchw->nohw", pw[:, :, 0, 0].astype(np.float64), first) + pb[None, :, None, None]
    want = activate(s.second, sums + residual if s.residual else sums, ps)
    data = [
        blocked_from_planar(x, isa), pack_depthwise(dw, isa), pack_channels(db, isa), pack_channels(ds, isa),
        pack_pointwise(pw[:, :, 0, 0], isa), pack_channels(pb, isa), pack_channels(ps, isa),
        blocked_from_planar(residual, isa) if s.residual else None,
    ]  # fmt: skip
    blocked = (s.images, isa.blocks(s.out_channels), s.y.out_size, s.x.out_size, isa.lanes)
    out = run_step(
        isa, separable_text(s, window, isa), folder, data, blocked, num_windows(s, window),
        window.buffer_bytes(isa) // 4, parts, extra
    )  # fmt: skip
    check(planar_from_blocked(out, s.out_channels), want)


@pytest.mark.parametrize("name", SEPARABLES)
def test_separable_equals_float64(name: str, isa: Isa, tmp_path: Path) -> None:
    separable_case(*SEPARABLES[name], isa, tmp_path)


@pytest.mark.parametrize("window", [None, Window(2, 30, 48), Window(1, 11, 48)], ids=["all", "rows", "columns"])
def test_prefetch_and_streaming_change_nothing(
    window: Window | None, isa: Isa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nndeploy_native.kernels.separable.SECOND_CACHE_BYTES", 0)
    monkeypatch.setattr("nndeploy_native.kernels.separable.STREAM_FROM_BYTES", 0)
    s = Separable(2, 48, 40, Axis(13, 3, 2), Axis(60, 3, 2))
    text = separable_text(s, choose_window(s, isa, 1 << 18), isa)
    for field in ("stream", "prefetch_weights", "prefetch_input"):
        assert f".{field} = 1" in text
    separable_case(s, window, isa, tmp_path)


def test_windows_may_be_shared_in_any_way(isa: Isa, tmp_path: Path) -> None:
    separable_case(Separable(2, 32, 32, Axis(11), Axis(18)), Window(2, 18, 32), isa, tmp_path, parts=5)


@pytest.mark.slow  # the sanitizer makes ziglang take ten seconds for each
@pytest.mark.parametrize("name", ["uneven padding", "channels in parts, residual", "padding wider than a tile"])
def test_separable_under_the_sanitizer(name: str, isa: Isa, tmp_path: Path) -> None:
    separable_case(*SEPARABLES[name], isa, tmp_path, extra=SANITIZE)


@pytest.mark.parametrize("act", ACTIVATIONS, ids=lambda act: act.kind)
def test_activation_of_both_parts(act: Activation, isa: Isa, tmp_path: Path) -> None:
    separable_case(Separable(1, 18, 20, Axis(5), Axis(6), act, act), None, isa, tmp_path)


def test_nan_stays_nan(isa: Isa, tmp_path: Path) -> None:
    s = Separable(1, 16, 16, Axis(4), Axis(4))
    window = choose_window(s, isa, 1 << 18)
    x = np.full((1, isa.blocks(16), 4, 4, isa.lanes), np.nan, np.float32)
    dw, pw, zeros = normal(1, 16, 1, 3, 3), normal(2, 16, 16), np.zeros(16, np.float32)
    data = [x, pack_depthwise(dw, isa), zeros, None, pack_pointwise(pw, isa), zeros, None, None]
    step = Instance(separable_text(s, window, isa), isa, tmp_path)
    out, buffer = guarded(np.zeros_like(x)), guarded(np.zeros(window.buffer_bytes(isa) // 4, np.float32))
    step.run([None if v is None else guarded(v) for v in data], out, buffer, 0, 1)
    assert np.isnan(out).all()


INVERTED = {
    "whole image": (InvertedResidual(16, Separable(1, 96, 24, Axis(14), Axis(14)), RELU6), None),
    "whole image, groups, residual": (
        InvertedResidual(24, Separable(2, 150, 24, Axis(9), Axis(11), RELU6, Activation(), True), RELU6),
        InvertedWindow(9, 2)),
    "ring": (InvertedResidual(20, Separable(2, 70, 24, Axis(13), Axis(17)), RELU6), InvertedWindow(4, 9)),
    "ring, stride 2": (
        InvertedResidual(16, Separable(1, 96, 40, Axis(23, 3, 2), Axis(19, 3, 2)), RELU6), InvertedWindow(3, 9)),
    "ring, kernel 5, dilation": (
        InvertedResidual(16, Separable(1, 48, 32, Axis(17, 5, 1, 2, 4, 4), Axis(20, 5, 1, 1, 2, 2)), RELU6),
        InvertedWindow(2, 9)),
    "ring in groups": (InvertedResidual(16, Separable(1, 130, 16, Axis(12), Axis(12)), RELU6), InvertedWindow(5, 1)),
    "one row": (InvertedResidual(8, Separable(1, 40, 8, Axis(6), Axis(7)), Activation("HARD_SWISH", 1 / 6, 0.5)),
                InvertedWindow(1, 9)),
}  # fmt: skip


@pytest.mark.parametrize("name", INVERTED)
def test_inverted_residual_equals_float64(name: str, isa: Isa, tmp_path: Path) -> None:
    s, window = INVERTED[name]
    r = s.rest
    window = window or choose_inverted_window(s, isa, 1 << 18)
    x = normal(0, r.images, s.in_channels, r.y.size, r.x.size)
    ew = normal(1, r.channels, s.in_channels, 1, 1) / np.float32(np.sqrt(s.in_channels))
    dw = normal(2, r.channels, 1, r.y.kernel, r.x.kernel) / np.float32(r.y.kernel)
    pw = normal(3, r.out_channels, r.channels, 1, 1) / np.float32(np.sqrt(r.channels))
    eb, db, pb = normal(4, r.channels), normal(5, r.channels), normal(6, r.out_channels)
    residual = normal(7, r.images, r.out_channels, r.y.out_size, r.x.out_size)
    zeros = np.zeros(r.channels, np.float32)
    hidden = activate(s.expand, np.einsum("oc,nchw->nohw", ew[:, :, 0, 0].astype(np.float64), x)
                      + eb[None, :, None, None], zeros)  # fmt: skip
    first = activate(r.first, convolve(hidden, dw, db, r.y, r.x, r.channels), zeros)
    sums = np.einsum("oc,nchw->nohw", pw[:, :, 0, 0].astype(np.float64), first) + pb[None, :, None, None]
    want = activate(r.second, sums + residual if r.residual else sums, zeros)
    data = [
        blocked_from_planar(x, isa), pack_pointwise(ew[:, :, 0, 0], isa), pack_channels(eb, isa), None,
        pack_depthwise(dw, isa), pack_channels(db, isa), None, pack_pointwise(pw[:, :, 0, 0], isa),
        pack_channels(pb, isa), None, blocked_from_planar(residual, isa) if r.residual else None,
    ]  # fmt: skip
    shape = (r.images, isa.blocks(r.out_channels), r.y.out_size, r.x.out_size, isa.lanes)
    floats, units = inverted_buffer_bytes(s, window, isa) // 4, num_inverted_windows(s, window)
    for parts in (1, 3):
        out = run_step(isa, inverted_text(s, window), tmp_path, data, shape, units, floats, parts)
        check(planar_from_blocked(out, r.out_channels), want)


POINTWISES = ((1, 16, 32, 14, 14), (2, 35, 17, 29, 13), (1, 64, 1, 3, 3), (1, 5, 112, 50, 27), (1, 100, 80, 1, 1))


@pytest.mark.parametrize(("images", "channels", "outputs", "pixels", "window"), POINTWISES)
def test_pointwise_equals_float64(
    images: int, channels: int, outputs: int, pixels: int, window: int, isa: Isa, tmp_path: Path
) -> None:
    x, weights, bias = normal(0, images, channels, 1, pixels), normal(1, outputs, channels), normal(2, outputs)
    want = np.maximum(np.einsum("oc,nchw->nohw", weights.astype(np.float64), x) + bias[None, :, None, None], 0)
    text = f"""#include "pointwise.h"
    {SIGNATURE} {{
      const struct nnd_pointwise step = {{.in_channels = {channels}, .out_channels = {outputs},
        .panel_channels = {channels}, .in_plane = {pixels * isa.lanes}, .out_plane = {pixels * isa.lanes},
        .activation = {{NND_RELU, 0, 0}}, .stream = 1}};
      (void)buffer;
      nnd_pointwise_run(step, (struct nnd_pointwise_data){{data[0], data[1], data[2], 0, 0, out}}, {pixels}, {window},
                        first, last);
    }}"""
    data = [blocked_from_planar(x, isa), pack_pointwise(weights, isa), pack_channels(bias, isa)]
    shape = (images, isa.blocks(outputs), 1, pixels, isa.lanes)
    out = run_step(isa, text, tmp_path, data, shape, images * -(-pixels // window))
    check(planar_from_blocked(out, outputs), want)


CONVOLUTIONS = {
    "first": (True, 3, 32, Axis(33, 3, 2), Axis(65, 3, 2)),
    "first, kernel 7": (True, 3, 20, Axis(20, 7, 2, 1, 3, 3), Axis(23, 7, 2, 1, 3, 3)),
    "blocked, odd channels": (False, 19, 70, Axis(9), Axis(31)),
    "blocked, stride 2": (False, 32, 16, Axis(12, 3, 2), Axis(12, 3, 2)),
    "one row of 20": (False, 16, 16, Axis(1, 1, 1, 1, 0, 0), Axis(20, 5, 1, 2, 4, 4)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution_equals_float64(name: str, isa: Isa, tmp_path: Path) -> None:
    planar, channels, outputs, y, across = CONVOLUTIONS[name]
    x, bias = normal(0, 2, channels, y.size, across.size), normal(2, outputs)
    weights = normal(1, outputs, channels, y.kernel, across.kernel)
    residual = normal(3, 2, outputs, y.out_size, across.out_size)
    want = np.maximum(convolve(x.astype(np.float64), weights, bias, y, across) + residual, 0)
    text = f"""#include "convolution.h"
    {SIGNATURE} {{
      const struct nnd_convolution step = {{{y.initializer()}, {across.initializer()}, {channels}, {outputs}, 2,
        {{NND_RELU, 0, 0}}, {int(planar)}, 1, 0}};
      (void)buffer;
      nnd_convolution_run(step, (struct nnd_pointwise_data){{data[0], data[1], data[2], 0, data[3], out}}, first, last);
    }}"""
    data = [x if planar else blocked_from_planar(x, isa), pack_convolution(weights, isa), pack_channels(bias, isa),
            blocked_from_planar(residual, isa)]  # fmt: skip
    shape = (2, isa.blocks(outputs), y.out_size, across.out_size, isa.lanes)
    out = run_step(isa, text, tmp_path, data, shape, 2 * y.out_size, parts=3)
    check(planar_from_blocked(out, outputs), want)


@pytest.mark.parametrize(("channels", "pixels"), [(32, 64), (19, 37), (3, 5), (16, 16), (33, 100)])
def test_layouts_go_round(channels: int, pixels: int, isa: Isa, tmp_path: Path) -> None:
    x = normal(0, 2, channels, 1, pixels)
    text = f"""#include "layout.h"
    {SIGNATURE} {{
      (void)buffer;
      nnd_FORM({channels}, {pixels}, data[0], out, first, last);
    }}"""
    units = 2 * isa.blocks(channels)
    shape = (2, isa.blocks(channels), 1, pixels, isa.lanes)
    blocked = run_step(isa, text.replace("FORM", "blocked_from_planar"), tmp_path, [x], shape, units, parts=2)
    np.testing.assert_array_equal(blocked, blocked_from_planar(x, isa))
    back = tmp_path / "back"
    back.mkdir()
    planar = run_step(isa, text.replace("FORM", "planar_from_blocked"), back, [blocked], x.shape, units, parts=2)
    np.testing.assert_array_equal(planar, x)


@pytest.mark.parametrize("kernel", [1, 3, 5, 7])
def test_depthwise_equals_float64(kernel: int, isa: Isa, tmp_path: Path) -> None:
    pad = kernel // 2
    y, across = Axis(9, kernel, 1, 1, pad, pad), Axis(47, kernel, 2, 1, pad, pad)
    x, weights, bias = normal(0, 2, 21, 9, 47), normal(1, 21, 1, kernel, kernel), normal(2, 21)
    text = f"""#include "depthwise.h"
    {SIGNATURE} {{
      const struct nnd_depthwise step = {{{y.initializer()}, {across.initializer()}, {{NND_NONE, 0, 0}}, 0}};
      (void)buffer;
      nnd_depthwise_run(step, (struct nnd_depthwise_data){{data[0], data[1], data[2], 0, out}}, 21, first, last);
    }}"""
    data = [blocked_from_planar(x, isa), pack_depthwise(weights, isa), pack_channels(bias, isa)]
    shape = (2, isa.blocks(21), y.out_size, across.out_size, isa.lanes)
    out = run_step(isa, text, tmp_path, data, shape, 2 * isa.blocks(21), parts=3)
    check(planar_from_blocked(out, 21), convolve(x.astype(np.float64), weights, bias, y, across, 21))


@pytest.mark.parametrize("outputs", [1, 16, 17, 33, 48, 64, 65, 100])
@pytest.mark.parametrize("any_isa", ISAS, ids=lambda isa: isa.name)
def test_panels_cover_each_block_once(outputs: int, any_isa: Isa) -> None:
    assert sum(panels(outputs, any_isa)) == any_isa.blocks(outputs)
    assert max(panels(outputs, any_isa)) <= 4


@pytest.mark.parametrize("any_isa", ISAS, ids=lambda isa: isa.name)
def test_numbers_of_the_isa_are_those_of_the_header(any_isa: Isa, tmp_path: Path) -> None:
    if find_spec("ziglang") is None:
        pytest.skip(f"ziglang is not installed ({HINT})")
    source = tmp_path / "numbers.c"
    source.write_text(f"""#include "vector.h"
    _Static_assert(NND_LANES == {any_isa.lanes} && NND_PANEL == {any_isa.panel}, "vectors");
    _Static_assert(NND_ACCUMULATORS == {any_isa.accumulators}, "tile");""")
    subprocess.run(compiler_command(any_isa, source, tmp_path / "numbers.so"), check=True)


@pytest.mark.parametrize("capacity", [16, 512, 4096, 1 << 15, 1 << 18, 1 << 24])
@pytest.mark.parametrize("any_isa", ISAS, ids=lambda isa: isa.name)
def test_window_fits_the_buffer(capacity: int, any_isa: Isa) -> None:
    for s, _ in SEPARABLES.values():
        for channels in (s.channels, 500):
            window = choose_window(replace(s, channels=channels), any_isa, capacity)
            assert window.buffer_bytes(any_isa) <= max(capacity, any_isa.lanes * 4)
            assert window.channels == channels or window.channels % any_isa.lanes == 0


@pytest.mark.parametrize("any_isa", [AVX512, NEON], ids=lambda isa: isa.name)
def test_inner_loops_do_not_spill(any_isa: Isa, tmp_path: Path) -> None:
    if find_spec("ziglang") is None:
        pytest.skip(f"ziglang is not installed ({HINT})")
    s = Separable(1, 32, 64, Axis(112), Axis(112))
    source, assembly = tmp_path / "step.c", tmp_path / "step.s"
    source.write_text(separable_text(s, choose_window(s, any_isa, 1 << 18), any_isa))
    command = [part for part in compiler_command(any_isa, source, assembly) if part not in ("-shared", "-Werror")]
    subprocess.run([*command, "-S"], check=True, capture_output=True)
    stack = ("(%rsp", "(%rbp") if any_isa is AVX512 else ("[sp", "[x29")
    register, multiply = ("%zmm", "vfmadd") if any_isa is AVX512 else ("q", "fmla")
    busy = [loop for loop in inner_loops(assembly.read_text()) if sum(multiply in line for line in loop) >= 20]
    assert busy
    for loop in busy:
        assert not [line for line in loop if register in line and any(place in line for place in stack)]


def inner_loops(assembly: str) -> list[list[str]]:
    """Returns the lines of each loop without a label inside: from a label to the branch back to it."""
    loops, label, inner = [], "", list[str]()
    for line in assembly.splitlines():
        if line.startswith(".LBB"):
            label, inner = line.split(":")[0], []
        inner.append(line)
        if label and line.split()[-1:] == [label]:
            loops.append(inner)
    return loops


@pytest.mark.parametrize("any_isa", ISAS, ids=lambda isa: isa.name)
@pytest.mark.parametrize("header", ["inverted_residual", "convolution", "layout", "threads", "separable"])
def test_every_header_compiles_alone(header: str, any_isa: Isa, tmp_path: Path) -> None:
    if find_spec("ziglang") is None:
        pytest.skip(f"ziglang is not installed ({HINT})")
    source = tmp_path / "alone.c"
    source.write_text(f'#include "{header}.h"\n')
    subprocess.run([*compiler_command(any_isa, source, tmp_path / "alone.so"), "-pthread"], check=True)
