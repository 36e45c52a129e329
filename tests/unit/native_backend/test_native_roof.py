# SPDX-License-Identifier: Apache-2.0
"""What the processor does at most is measured, and fused steps are timed against the same steps apart."""

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from native_models import Array, built, model_of, reals
from nndeploy_native import fused_and_apart
from nndeploy_native.plan_session import PlanSession
from nndeploy_native.probe import probe
from nndeploy_native.roof import LEAST_BYTES, measured_roof
from nndeploy_native.session import open_session
from nndeploy_native.step_choices import StepChoice

from nndeploy.plugin.interface import FusedSession, OpenOptions
from nndeploy.target.target import host_target

TEXT = """g (float[1,48,64,64] x) => (float[n,o,p,q] y) {
  d = Conv<group=48, pads=[1,1,1,1]>(x, w) b = Relu(d) p = Conv(b, v) y = Conv<pads=[1,1,1,1]>(p, o) }"""
SHAPES = {"w": (48, 1, 3, 3), "v": (32, 48, 1, 1), "o": (16, 32, 3, 3)}
INPUT = (1, 48, 64, 64)


@pytest.fixture
def session() -> Iterator[PlanSession]:
    if not (found := probe(host_target())).can_run:
        pytest.skip(found.reason)
    artifact = built(model_of(TEXT, {name: reals(*shape, seed=1) for name, shape in SHAPES.items()}))
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    with closing(open_session(files, artifact.metadata, OpenOptions(threads=1))) as opened:
        assert isinstance(opened, PlanSession)
        yield opened


def output(session: PlanSession) -> Array:
    found = session.run({"x": reals(*INPUT)})["y"]
    assert isinstance(found, np.ndarray)
    return found


@pytest.mark.parametrize("threads", [1, 2])
def test_rates_fall_with_the_bytes_that_are_read(threads: int) -> None:
    roof = measured_roof(threads, 3 * LEAST_BYTES)
    assert roof.threads == threads
    assert list(roof.bytes_per_s) == [LEAST_BYTES, 2 * LEAST_BYTES, 4 * LEAST_BYTES]
    rates = list(roof.bytes_per_s.values())
    assert rates == sorted(rates, reverse=True)
    assert min(roof.float32_per_s, roof.int8_per_s, *rates) > 0


def test_a_thread_alone_multiplies_bytes_no_slower_than_floats() -> None:
    roof = measured_roof(1, LEAST_BYTES)  # by processor time, which others hardly disturb
    assert roof.int8_per_s > roof.float32_per_s / 2 > 1e8  # any machine since 2005


def test_every_second_call_does_the_fused_steps_apart(session: PlanSession, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[StepChoice, ...]] = []
    next_choices = fused_and_apart._Turns.next_choices
    monkeypatch.setattr(
        fused_and_apart._Turns, "next_choices", lambda self: told.append(next_choices(self)) or told[-1]
    )
    assert isinstance(session, FusedSession)
    assert session.has_fused_steps
    kernels = [step["kernel"] for step in session.steps_here({})]
    fused = kernels.index("planar_separable")
    before = output(session)
    session.begin_apart()
    for _ in range(6):
        assert np.abs(output(session) - before).max() <= 1e-5 * np.abs(before).max()  # sums may round otherwise
    times = session.end_apart()
    assert [choices[fused].buffer_bytes > 1 << 30 for choices in told] == [False, True] * 3
    assert len(times) == len(kernels)
    for kernel, one in zip(kernels, times, strict=True):
        assert (one is not None) == (kernel == kernels[fused])
        assert one is None or min(one) > 0
    assert output(session).tobytes() == before.tobytes()
    assert len(told) == 6  # and no more once it has ended


def test_too_few_calls_tell_nothing(session: PlanSession) -> None:
    session.begin_apart()
    output(session)
    assert set(session.end_apart()) == {None}
