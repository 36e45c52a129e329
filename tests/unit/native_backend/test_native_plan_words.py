# SPDX-License-Identifier: Apache-2.0
"""The table of words is whole, and what Python writes by it the library reads: neither less nor more."""

from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import pytest
from kernel_library import RefusedError, every_level, plan_of, run_plan
from nndeploy_native.plan_writer import PlanWriter
from nndeploy_native.steps.convolution import Windows
from nndeploy_native.steps.indexed import OneHot, Triangle
from nndeploy_native.steps.movement import PaddedCopy, View
from nndeploy_native.steps.pooling import PooledPlaces
from nndeploy_native.steps.reduction import AlongAxis
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Tensor

from nndeploy.errors import BuildRefusedError

X = Tensor("x", (3, 4, 5))
STEPS = [
    AlongAxis(Tensor("y", (3, 5), element="int64"), X, "arg_max", 3, 4, 5, {"is_last": False}),
    Triangle(Tensor("y", (3, 4, 5)), X, 1, is_upper=True),
    PaddedCopy(Tensor("y", (3, 6, 5)), View.of(X), (0, 1, 0)),
    PooledPlaces(Tensor("y", (3, 4, 2), element="int64"), X, Windows((2,), (2,), (1,), (0,), (0,)), False),
]


def _plan(step: NativeStep, cut: Sequence[int]) -> tuple[bytes, bytes]:
    """Returns the plan of a step whose words end before the last ones, or are followed by others."""
    add = PlanWriter.step

    def changed(writer: PlanWriter, operator: str, label: str, words: Sequence[int], **notes: str) -> None:
        add(writer, operator, label, [*words[: len(words) - sum(one < 0 for one in cut)], *(w for w in cut if w >= 0)])

    with patch.object(PlanWriter, "step", changed):
        return plan_of([step], [X], [step.output])


@every_level
@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_a_step_of_fewer_or_more_words_is_refused(level: str, step: NativeStep) -> None:
    x = [np.zeros((3, 4, 5), np.float32)]
    run_plan(level, _plan(step, ()), x)
    for cut in ((-1,), (-1, -1), (0,), (0, 0)):
        with pytest.raises(RefusedError):
            run_plan(level, _plan(step, cut), x)


@every_level
def test_a_step_does_not_read_what_it_writes(level: str) -> None:
    """Whatever stands first among its words."""
    y = Tensor("y", (3, 2))
    step = OneHot(y, Tensor("x", (3,), element="int64"), y, 1)
    with pytest.raises(RefusedError, match="not there yet"):
        run_plan(level, plan_of([step], [step.numbers], [y]), [np.zeros(3, np.int64)])


def test_a_choice_that_the_library_has_not_is_refused() -> None:
    step = PaddedCopy(Tensor("y", (3, 6, 5)), View.of(X), (0, 1, 0), mode="mirror")
    with pytest.raises(BuildRefusedError, match="mode 'mirror', where the kernel library has constant, edge"):
        plan_of([step], [X], [step.output])
