# SPDX-License-Identifier: Apache-2.0
"""Convolutions by Winograd's products: how far they may be from sums of float64, and where the other way is chosen."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from native_models import Array, built, dynamic, each_float_level, model_of, opened, reals, run
from nndeploy_native import session as session_module
from nndeploy_native.plan_session import PlanSession
from nndeploy_native.session import open_session
from nndeploy_native.step_choices import WAY_DIRECT, WAY_WINOGRAD, StepChoice
from nndeploy_native.tuned_tables import TunedTable, tables_to_data
from oracle.in_float64 import outputs_in_float64

from nndeploy.plugin.interface import Artifact, OpenOptions
from nndeploy.target.target import host_target

MOST = 2.5e-7
"""Errors as a part of the largest output and of the square root of the channels, at most: some twice those of a direct
sum. Interpolation at whole numbers is several times as far off."""
CASES = [
    ("whole tiles", (1, 64, 24, 24), 64, "pads=[1,1,1,1]"),
    ("parts of tiles, no padding", (2, 48, 19, 22), 40, "pads=[0,0,0,0]"),
    ("many channels", (1, 256, 14, 14), 128, "pads=[1,1,1,1]"),
    ("padding on two sides", (1, 96, 16, 17), 64, "pads=[1,0,0,1]"),
]


def artifact_of(shape: tuple[int, ...], channels: int, pads: str) -> tuple[ir.Model, Artifact]:
    sizes = ",".join(map(str, shape))
    text = f"g (float[{sizes}] x) => (float[n,o,p,q] y) {{ y = Conv<{pads}>(x, w) }}"
    model = model_of(text, {"w": reals(channels, shape[1], 3, 3, seed=1)})
    return model, built(model)


@pytest.mark.parametrize(("shape", "channels", "pads"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
@each_float_level
def test_errors_are_within_some_twice_those_of_a_direct_sum(
    level: str, shape: tuple[int, ...], channels: int, pads: str
) -> None:
    model, artifact = artifact_of(shape, channels, pads)
    x = reals(*shape, seed=2)
    wanted = outputs_in_float64(ir.to_proto(model), {"x": x})["y"]
    found = run(artifact, {"x": x}, level)["y"]
    assert np.abs(found - wanted).max() <= MOST * np.sqrt(shape[1]) * np.abs(wanted).max()


@pytest.mark.parametrize(("shape", "channels", "pads"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_these_are_done_so(shape: tuple[int, ...], channels: int, pads: str) -> None:
    _, artifact = artifact_of(shape, channels, pads)
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    session = open_session(files, artifact.metadata, OpenOptions(threads=1))
    assert "by Winograd" in str(session.steps_here({"x": shape}))
    session.close()


SMALL, LARGE = (1, 16, 6, 6), (1, 64, 24, 24)
"""Images for which the rule takes the direct sum, and for which it takes Winograd's products."""


def opened_with_cache(artifact: Artifact, folder: Path) -> PlanSession:
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    session = open_session(files, artifact.metadata, OpenOptions(threads=1, cache_dir=str(folder)))
    assert isinstance(session, PlanSession)
    return session


def is_winograd(session: PlanSession, shape: tuple[int, ...]) -> bool:
    return "by Winograd" in str(session.steps_here({"x": shape}))


def output(session: PlanSession, shape: tuple[int, ...]) -> Array:
    return np.asarray(session.run({"x": reals(*shape, seed=2)})["y"])


def choose(session: PlanSession, shape: tuple[int, ...], way: int) -> None:
    """Lets the session take and keep a way, as if it had been found for the machine."""
    steps = session.steps_here({"x": shape})
    choices = tuple(StepChoice(way=way * (step["kernel"] == "convolution")) for step in steps)
    table = TunedTable(session_module._box("fp32", host_target(), 0, 1), (shape,), choices, 2.0, 1.0)
    session.replay_tuning([tables_to_data(session._tuned_file.plan_sha256, [table])])


@pytest.mark.parametrize("shape", [SMALL, LARGE])
def test_both_ways_can_be_chosen_and_stay_chosen(shape: tuple[int, ...], tmp_path: Path) -> None:
    opened(artifact_of(shape, 48, "pads=[1,1,1,1]")[1]).close()  # skips where there is no library
    model, artifact = artifact_of(shape, 48, "pads=[1,1,1,1]")
    wanted = outputs_in_float64(ir.to_proto(model), {"x": reals(*shape, seed=2)})["y"]
    with closing(opened_with_cache(artifact, tmp_path)) as session:
        assert is_winograd(session, shape) == (shape == LARGE)
        by_rule = output(session, shape).tobytes()
        found: Mapping[int, bytes] = {}
        for way in (WAY_DIRECT, WAY_WINOGRAD):
            choose(session, shape, way)
            assert is_winograd(session, shape) == (way == WAY_WINOGRAD)
            y = output(session, shape)
            assert np.abs(y - wanted).max() <= MOST * np.sqrt(shape[1]) * np.abs(wanted).max()
            found = {**found, way: y.tobytes()}
            with closing(opened_with_cache(artifact, tmp_path)) as again:
                assert is_winograd(again, shape) == (way == WAY_WINOGRAD)
                assert output(again, shape).tobytes() == found[way]
    assert found[WAY_DIRECT] != found[WAY_WINOGRAD]
    assert by_rule == found[WAY_WINOGRAD if shape == LARGE else WAY_DIRECT]


def test_other_batches_go_by_the_rule_where_a_way_was_chosen_for_one(tmp_path: Path) -> None:
    text = "g (float[n,64,24,24] x) => (float[n,o,p,q] y) { y = Conv<pads=[1,1,1,1]>(x, w) }"
    artifact = built(dynamic(text, {}, {"w": reals(48, 64, 3, 3, seed=1)}))
    opened(artifact).close()
    with closing(opened_with_cache(artifact, tmp_path)) as session:
        choose(session, LARGE, WAY_DIRECT)
        by_rule = output(session, (2, *LARGE[1:])).tobytes()
    with closing(opened_with_cache(artifact, tmp_path)) as session:
        assert not is_winograd(session, LARGE)
        assert is_winograd(session, (2, *LARGE[1:]))
        assert output(session, (2, *LARGE[1:])).tobytes() == by_rule


def test_only_fast_tuning_tries_other_ways(tmp_path: Path) -> None:
    _, artifact = artifact_of(LARGE, 48, "pads=[1,1,1,1]")
    opened(artifact).close()
    with closing(opened_with_cache(artifact, tmp_path)) as session:
        direct = {False: 0, True: 0}
        for is_fast in direct:
            by_rule = output(session, LARGE).tobytes()
            (session.begin_fast_tuning if is_fast else session.begin_tuning)(1.0)
            for _ in range(200):
                direct[is_fast] += output(session, LARGE).tobytes() != by_rule
            session.end_tuning()
    assert direct[False] == 0
    assert direct[True] > 0


def test_tuning_to_the_bit_goes_back_to_the_rule(tmp_path: Path) -> None:
    _, artifact = artifact_of(LARGE, 48, "pads=[1,1,1,1]")
    opened(artifact).close()
    with closing(opened_with_cache(artifact, tmp_path)) as session:
        by_rule = output(session, LARGE).tobytes()
        choose(session, LARGE, WAY_DIRECT)
        assert output(session, LARGE).tobytes() != by_rule
        session.begin_tuning(0.2)
        for _ in range(400):
            assert output(session, LARGE).tobytes() == by_rule
            if session.is_tuned:
                break
        session.end_tuning()
        assert is_winograd(session, LARGE)
