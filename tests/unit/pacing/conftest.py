# SPDX-License-Identifier: Apache-2.0
"""The library of delays, built once: as it is, and on a clock of ours."""

from pathlib import Path

import pytest
from c_library import zig_missing
from nndeploy_kernels.build import build_pace
from virtual_clock import VirtualPace

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
def virtual_pace(built_virtual_pace: VirtualPace) -> VirtualPace:
    built_virtual_pace.start_anew()
    return built_virtual_pace
