# SPDX-License-Identifier: Apache-2.0
"""Convolutions and LSTMs against NumPy in float64 on random shapes, for each level and number of threads."""

import numpy as np
import pytest
from kernel_library import every_level, plan_of, run_plan
from native_cases import KINDS, Case, Draw
from native_models import Array
from nndeploy_native.steps.movement import Convert
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Tensor

COUNT = 12
SEED = 1


@every_level
@pytest.mark.parametrize("kind", KINDS)
def test_kernel_equals_float64_however_many_threads_share_it(kind: str, level: str) -> None:
    precision = "bf16" if level.endswith("bf16") else "fp32"
    draw = Draw(precision, SEED)
    for turn in range(COUNT):
        case = KINDS[kind](draw, turn)
        for threads in (1, 2, 3):
            found = _run(case, level, threads)
            rounding = 1e-5 if kind == "many channels" else 5e-6  # sums share the rounding of their neighbours
            most = (2e-2 if precision == "bf16" else rounding) * max(1.0, float(np.abs(case.wanted).max()))
            np.testing.assert_allclose(found, case.wanted, rtol=0, atol=most, err_msg=f"{case.name}, {threads} threads")


def _run(case: Case, level: str, threads: int) -> Array:
    """Returns what a step gives, in the order of ONNX."""
    read = list(dict.fromkeys(case.step.inputs))
    plain = [Tensor(f"plain {one.name}", one.shape) if one.is_blocked else one for one in read]
    steps: list[NativeStep] = [Convert(a, b) for a, b in zip(read, plain, strict=True) if a != b]
    made = case.step.output
    output = Tensor("plain output", made.shape) if made.is_blocked else made
    steps += [case.step, *([Convert(output, made)] if output != made else [])]
    given = [np.ascontiguousarray(case.values[one.name]) for one in read]
    plan = plan_of(steps, plain, [output])
    sizes = {"l2_bytes": case.l2_bytes, "buffer_bytes": case.buffer_bytes}
    return run_plan(level, plan, given, threads=threads, **sizes)[0]
