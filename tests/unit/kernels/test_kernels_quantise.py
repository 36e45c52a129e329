# SPDX-License-Identifier: Apache-2.0
"""Floats become the bytes that a division gives, to the last one; planes become channels side by side."""

import numpy as np
import pytest
from kernel_library import RefusedError, every_level, plan_of, run_plan
from nndeploy_native.steps.bytes import Quantise
from nndeploy_native.tensors import Array, Tensor


def _run(level: str, x: Array, step: Quantise, threads: int = 1) -> Array:
    return run_plan(level, plan_of([step], [step.x], [step.output]), [x], threads=threads)[0]


def _step(shape: tuple[int, int, int], scale: float, zero: int, element: str = "uint8") -> Quantise:
    outer, channels, inner = shape
    output = Tensor("y", (outer, inner, channels), element=element)
    return Quantise(output, Tensor("x", shape), scale, zero, outer, channels, inner)


@every_level
@pytest.mark.parametrize("threads", [1, 2])
def test_bytes_are_those_of_a_division(level: str, threads: int) -> None:
    """Many numbers lie on or beside the middle between two bytes, some are none."""
    rng = np.random.default_rng(3)
    for channels in (1, 2, 3, 4):
        for inner in (1, 17, 64, 1031):
            for element, zero in (("uint8", 0), ("uint8", 127), ("int8", -128), ("int8", 5)):
                scale = np.float32(rng.uniform(0.001, 2.0))
                shape = (2, channels, inner)
                x = (rng.integers(-600, 600, shape) * np.float32(0.5) * scale).astype(np.float32)
                x = np.nextafter(x, rng.choice([-np.inf, np.inf, 0], shape).astype(np.float32))
                odd = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-40, -0.0], np.float32)
                x = np.where(rng.random(shape) < 0.1, rng.choice(odd, shape), x).astype(np.float32)
                found = _run(level, x, _step(shape, float(scale), zero, element), threads)
                limits = np.iinfo(element)
                with np.errstate(all="ignore"):
                    wanted = np.clip(np.rint(x / scale) + np.float32(zero), limits.min, limits.max)
                wanted = np.where(np.isnan(x), limits.min, wanted).transpose(0, 2, 1)
                np.testing.assert_array_equal(found, wanted)


@every_level
def test_the_largest_and_smallest_scales(level: str) -> None:
    for scale in (2.0**-60, 2.0**60):
        x = (np.arange(-20, 300, dtype=np.float32) * np.float32(scale)).reshape(1, 1, -1)
        found = _run(level, x, _step((1, 1, 320), scale, 3))
        np.testing.assert_array_equal(found[0, :, 0], np.clip(np.arange(-17, 303), 0, 255))


@every_level
def test_what_does_not_fit_is_refused(level: str) -> None:
    x = np.zeros((2, 3, 5), np.float32)
    good = _step((2, 3, 5), 0.5, 3)
    _run(level, x, good)
    output, given = good.output, good.x
    wrong = (
        _step((2, 3, 5), 2.0**-61, 3), _step((2, 3, 5), -0.5, 3), _step((2, 3, 5), float("nan"), 3),
        Quantise(output, given, 0.5, 256, 2, 3, 5), Quantise(output, given, 0.5, 3, 1, 3, 5),
        Quantise(output, given, 0.5, 3, 2, 5, 3), Quantise(output, given, 0.5, 3, 2, 3, 4),
        Quantise(output, given, 0.5, 3, 2, 0, 5), Quantise(output, given, 0.5, 3, 30, 1, 0),
        Quantise(Tensor("y", (2, 5, 3)), given, 0.5, 3, 2, 3, 5),
        Quantise(Tensor("y", (2, 5, 2), element="uint8"), given, 0.5, 3, 2, 3, 5),
        Quantise(output, Tensor("x", (2, 3, 5), element="int32"), 0.5, 3, 2, 3, 5),
    )  # fmt: skip
    for step in wrong:
        with pytest.raises(RefusedError):
            _run(level, x.astype({"fp32": "f4", "int32": "i4"}[step.x.element]), step)
