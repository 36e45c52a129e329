# SPDX-License-Identifier: Apache-2.0
"""The library of delays, built once: as it is, and on a clock of ours."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from c_library import zig_missing
from nndeploy_kernels.build import build_pace
from virtual_clock import VirtualPace

from nndeploy.pacing.run import own_time
from nndeploy.pacing.run import pacer as pacers
from nndeploy.pacing.run.library import PaceLibrary
from nndeploy.target.target import host_target


@pytest.fixture(scope="session")
def pace_library() -> PaceLibrary:
    if reason := zig_missing():
        pytest.skip(reason)
    return PaceLibrary(build_pace(host_target().arch))


@pytest.fixture(scope="session")
def built_virtual_pace(tmp_path_factory: pytest.TempPathFactory) -> VirtualPace:
    if reason := zig_missing():
        pytest.skip(reason)
    return VirtualPace(Path(tmp_path_factory.mktemp("virtual")))


@pytest.fixture
def virtual_pace(built_virtual_pace: VirtualPace, monkeypatch: pytest.MonkeyPatch) -> VirtualPace:
    """The library on a clock of ours; the kernel's counts of work and of waits for cores are those of that clock."""
    pace = built_virtual_pace
    pace.start_anew()
    monkeypatch.setattr(own_time, "time", SimpleNamespace(process_time_ns=lambda: pace.used))
    monkeypatch.setattr(own_time, "process_run_delay_ns", lambda: pace.waited)
    monkeypatch.setattr(pacers, "thread_run_delay_ns", lambda: pace.waited)
    return pace
