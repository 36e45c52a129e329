# SPDX-License-Identifier: Apache-2.0
"""No rule lets a float result pass that points elsewhere: not the tolerance, and not limits without a word."""

import numpy as np
import pytest

from nndeploy.bundle.manifest import Limits
from nndeploy.checking.check import tolerances
from nndeploy.checking.spread import limits_of
from nndeploy.comparison.judge import is_weak, judge
from nndeploy.values.types import TensorType

DEFAULT = tolerances(None, None, quantised=False, has_limits=True)
TYPES = {"y": TensorType("float32", (64,))}
WANT = np.random.default_rng(0).standard_normal(64)
OTHER = np.random.default_rng(1).standard_normal(64)


def agrees(got: np.ndarray, want: np.ndarray, limits: Limits | None = None) -> bool:
    known = {"y": limits} if limits else {}
    one, other = {"y": got.astype(np.float32)}, {"y": want.astype(np.float32)}
    return judge(one, other, TYPES, DEFAULT, lambda: known)["y"].ok


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e-8, 1e-5, 1e-3, 1.0, 1e6])
def test_outputs_of_any_size_are_compared(scale: float) -> None:
    assert agrees(WANT * scale * (1 + 1e-5), WANT * scale)
    assert not agrees(OTHER * scale, WANT * scale)
    assert not agrees(np.zeros(64), WANT * scale)


def test_one_large_element_does_not_hide_the_others() -> None:
    want = np.full(4096, 0.01) * np.sign(np.random.default_rng(0).standard_normal(4096))
    want[0] = 1.0
    got = want.copy()
    got[1:] = 0.0099 * want[:0:-1]
    assert not agrees(got, want)


def test_denormal_numbers_may_be_flushed() -> None:
    assert agrees(np.zeros(64), np.full(64, 1e-40))


@pytest.mark.parametrize(("spread", "ok"), [(1e-6, False), (0.05, False), (0.2, True)])
def test_limits_let_a_result_point_elsewhere_only_where_right_engines_do(spread: float, ok: bool) -> None:
    want, witness = ({"y": value.astype(np.float32)} for value in (WANT, WANT + spread * OTHER))
    got = {"y": (WANT + 0.25 * OTHER[::-1]).astype(np.float32)}
    limits = limits_of(want, [witness], TYPES, DEFAULT, {}, quantised=False)
    found = judge(got, want, TYPES, DEFAULT, lambda: limits)["y"]
    assert (found.ok, is_weak(found)) == (ok, ok)
    assert found.cosine is not None
    assert found.cosine < 0.99
