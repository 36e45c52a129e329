# SPDX-License-Identifier: Apache-2.0
"""Resizing of the kernel library against ONNX's evaluator in float64: every mode, odd sizes, sizes of the call."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from kernel_library import RefusedError, assert_close, every_level, plan_of, run_plan
from nndeploy_native.steps.movement import Convert
from nndeploy_native.steps.resize import KEPT, Resize, ResizeAxis, ResizedAxis
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Array, Layout, Tensor
from onnx.reference import ReferenceEvaluator

from nndeploy.backend_kit.kernels.resize_tables import Mode
from nndeploy.values.size import symbol

COORDINATES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
)  # fmt: skip
LINEAR = Mode("linear", "half_pixel", "round_prefer_floor", -0.75, False, False)
MODES = {
    "floor": Mode("nearest", "", "floor", -0.75, False, False),
    "ceil": Mode("nearest", "", "ceil", -0.75, False, False),
    "prefer floor": Mode("nearest", "", "round_prefer_floor", -0.75, False, False),
    "prefer ceil": Mode("nearest", "", "round_prefer_ceil", -0.75, False, False),
    "linear": LINEAR,
    "linear inside": replace(LINEAR, excludes_outside=True),
    "linear smooth": replace(LINEAR, antialias=True),
    "cubic": replace(LINEAR, kind="cubic"),
    "cubic inside": replace(LINEAR, kind="cubic", cubic=-0.5, excludes_outside=True),
    "cubic smooth": replace(LINEAR, kind="cubic", antialias=True),
}


def resized(x: Array, mode: Mode, axis: int, rule: ResizedAxis, out_size: int) -> Array:
    """Returns what ONNX's evaluator makes of an axis."""
    by_scale, others = rule.scale > 0, np.arange(x.ndim) != axis
    inputs = ["x", "roi", "scales"] if by_scale else ["x", "roi", "", "sizes"]
    attributes = {
        "mode": mode.kind, "coordinate_transformation_mode": mode.coordinates, "nearest_mode": mode.nearest,
        "cubic_coeff_a": mode.cubic, "exclude_outside": int(mode.excludes_outside), "antialias": int(mode.antialias),
        "extrapolation_value": mode.beyond,
    }  # fmt: skip
    node = onnx.helper.make_node("Resize", inputs, ["y"], **attributes)
    crop = np.concatenate([np.where(others, 0.0, rule.begin), np.where(others, 1.0, rule.end)])
    values: dict[str, Array] = {"x": x.astype(np.float64), "roi": crop}
    sizes = np.where(others, 1.0, rule.scale).astype(np.float32) if by_scale else np.where(others, x.shape, out_size)
    values[inputs[-1]] = sizes
    found: Array = ReferenceEvaluator(node).run(None, values)[0]
    return found


def _rule(rng: np.random.Generator, mode: Mode, size: int) -> tuple[ResizedAxis, int]:
    """Returns how an axis is resized, and to how many places: by a scale, or by the sizes."""
    begin, end = sorted(rng.uniform(-0.2, 1.2, 2)) if mode.coordinates == "tf_crop_and_resize" else (0.0, 1.0)
    if rng.random() < 0.5:
        scale = float(np.float32(rng.choice([0.6, 1.3, 2.0, 2.7])))
        if int(size * scale) > 1:
            return ResizedAxis(scale, begin, end), int(size * scale)
    out_size = int(rng.integers(2, 3 * size + 2))
    out_size += size % 2 and out_size % 2  # a whole middle is rounded: the evaluator is one place off there
    return ResizedAxis(0.0, begin, end), out_size


@every_level
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("name", MODES)
def test_every_way_to_resize_is_that_of_onnx(level: str, name: str, coordinates: str) -> None:
    rng = np.random.default_rng(len(name) + 10 * len(coordinates))
    mode = replace(MODES[name], coordinates=coordinates, beyond=3.5)
    for number in range(3):
        depth = (1, 3)[number % 2]
        shape = (1 + number % 2, int(rng.integers(1, 37)), depth * int(rng.integers(2, 9)), int(rng.integers(2, 20)))
        x = rng.integers(-9, 9, shape).astype(np.float32)
        volume = x.reshape(*shape[:2], depth, -1, shape[3])
        rows, height = _rule(rng, mode, shape[2] // depth)
        columns, width = _rule(rng, mode, shape[3])
        wanted = resized(resized(volume, mode, 3, rows, height), mode, 4, columns, width)
        wanted = wanted.reshape(*shape[:2], depth * height, width)
        image = Tensor("out", wanted.shape, Layout.BLOCKED)
        step = Resize(image, Tensor("in", shape, Layout.BLOCKED), mode, rows, columns, depth)
        given, plain = Tensor("x", shape), Tensor("y", wanted.shape)
        steps = [Convert(step.x, given), step, Convert(plain, image)]
        (found,) = run_plan(level, plan_of(steps, [given], [plain]), [x], threads=1 + number % 2)
        assert_close(found, wanted, level)
        axis = int(rng.integers(0, 4))
        rule, size = _rule(rng, mode, shape[axis]) if shape[axis] > 1 else (ResizedAxis(), 3)
        wanted = resized(x, mode, axis, rule, size)
        along = ResizeAxis(Tensor("y", wanted.shape), given, axis, mode, rule)
        (found,) = run_plan(level, plan_of([along], [given], [along.output]), [x], threads=1 + number % 2)
        assert_close(found, wanted, "" if name in ("floor", "ceil") else level)


@every_level
def test_sizes_that_come_with_the_call(level: str) -> None:
    height, width = symbol("h", 1), symbol("w", 1)
    given, plain = Tensor("x", (2, 19, height, width)), Tensor("y", (2, 19, 2 * height, 13))
    image = Tensor("out", plain.shape, Layout.BLOCKED)
    step = Resize(image, replace(given, name="in", layout=Layout.BLOCKED), LINEAR, ResizedAxis(2.0), ResizedAxis())
    plan = plan_of([Convert(step.x, given), step, Convert(plain, image)], [given], [plain])
    rng = np.random.default_rng(13)
    for sizes in ((1, 1), (1, 5), (7, 13), (13, 3), (2, 31)):
        x = rng.standard_normal((2, 19, *sizes)).astype(np.float32)
        (found,) = run_plan(level, plan, [x], symbols=sizes)
        wanted = resized(resized(x, LINEAR, 2, ResizedAxis(2.0), 2 * sizes[0]), LINEAR, 3, ResizedAxis(), 13)
        assert_close(found, wanted, level)


@every_level
@pytest.mark.parametrize("times", [(2, 2), (1, 3), (3, 1), (2, 4)])
def test_every_pixel_is_repeated(level: str, times: tuple[int, int]) -> None:
    rng = np.random.default_rng(12)
    mode = replace(MODES["floor"], coordinates="asymmetric")
    for number, shape in enumerate(((1, 5, 1, 1), (2, 17, 3, 5), (1, 33, 6, 7))):
        x = rng.integers(-9, 9, shape).astype(np.float32)
        out = Tensor("out", (*shape[:2], shape[2] * times[0], shape[3] * times[1]), Layout.BLOCKED)
        step = Resize(out, Tensor("in", shape, Layout.BLOCKED), mode, ResizedAxis(times[0]), ResizedAxis())
        given, plain = Tensor("x", shape), Tensor("y", out.shape)
        plan = plan_of([Convert(step.x, given), step, Convert(plain, out)], [given], [plain])
        (found,) = run_plan(level, plan, [x], threads=1 + number % 2)
        np.testing.assert_array_equal(found, x.repeat(times[0], 2).repeat(times[1], 3))


@every_level
def test_a_weight_of_zero_takes_nothing_from_an_infinity(level: str) -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)
    x[0, 1] = [[np.inf, 1], [-np.inf, 2]]
    corners = replace(LINEAR, coordinates="align_corners")
    given, plain = Tensor("x", x.shape), Tensor("y", (1, 3, 3, 3))
    for axis in (2, 3):
        out = replace(plain, shape=(*x.shape[:axis], 3, *x.shape[axis + 1 :]))
        plan = plan_of([ResizeAxis(out, given, axis, corners, ResizedAxis())], [given], [out])
        (found,) = run_plan(level, plan, [x])
        np.testing.assert_array_equal(np.take(found, [0, 2], axis), x)
    image = replace(plain, name="out", layout=Layout.BLOCKED)
    step = Resize(image, replace(given, name="in", layout=Layout.BLOCKED), corners, ResizedAxis(), ResizedAxis())
    (found,) = run_plan(level, plan_of([Convert(step.x, given), step, Convert(plain, image)], [given], [plain]), [x])
    np.testing.assert_array_equal(found[:, :, ::2, ::2], x)


@every_level
def test_what_does_not_fit_is_refused(level: str) -> None:
    x = np.zeros((1, 3, 4, 6), np.float32)
    given, image = Tensor("x", x.shape), Tensor("in", x.shape, Layout.BLOCKED)
    smooth = replace(LINEAR, antialias=True)
    rule = ResizedAxis()

    def to(*shape: int) -> Tensor:
        return Tensor("y", shape, Layout.BLOCKED)

    blocked: list[NativeStep] = [
        Resize(to(1, 4, 4, 6), image, LINEAR, rule, rule),
        Resize(to(2, 3, 4, 6), image, LINEAR, rule, rule),
        Resize(to(1, 3, 8, 6), image, LINEAR, rule, rule, 3),
        Resize(to(1, 3, 9, 6), image, LINEAR, rule, rule, 2),
        Resize(to(1, 3, 8, 6), image, LINEAR, rule, rule, 0),
        Resize(to(1, 3, 8, 6), image, smooth, ResizedAxis(0.001), rule),  # far more taps than places
        Resize(to(1, 3, 8, 6), image, LINEAR, ResizedAxis(float("nan")), rule),
        Resize(to(1, 3, 8, 6), image, replace(LINEAR, cubic=float("inf")), rule, rule),
        Resize(to(1, 3, 8, 6), image, LINEAR, rule, ResizedAxis(-1.0)),
        Resize(Tensor("y", (1, 3, 8, 6)), image, LINEAR, rule, rule),
    ]
    plain: list[NativeStep] = [
        ResizeAxis(Tensor("y", (1, 3, 5, 7)), given, 2, LINEAR, rule),
        ResizeAxis(Tensor("y", (1, 3, 4, 6, 1)), given, 2, LINEAR, rule),
        ResizeAxis(Tensor("y", (1, 3, 4, 6)), given, 4, LINEAR, rule),
        ResizeAxis(Tensor("y", (1, 3, 4, 2**30)), given, 3, LINEAR, rule),
        ResizeAxis(to(1, 3, 5, 6), given, 2, LINEAR, KEPT),
    ]
    for step in (*blocked, *plain):
        steps = [Convert(image, given), step] if step in blocked else [step]
        if step.output.is_blocked:
            steps.append(Convert(Tensor("z", step.output.shape), step.output))
        with pytest.raises(RefusedError):
            run_plan(level, plan_of(steps, [given], [steps[-1].output]), [x])
