# SPDX-License-Identifier: Apache-2.0
"""`GpuConformance`: the suite for a backend whose sessions run on a GPU."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from nndeploy.cuda import DeviceArray
from nndeploy.plugin.interface import Artifact, OpenOptions, Session
from nndeploy.target.target import Target
from nndeploy.testing.conformance import BackendConformance
from nndeploy.values.types import Value


class OnHost:
    """A session whose outputs are brought to the host, as the core does at the border."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.close = session.close

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the outputs as arrays of the host."""
        found = self._session.run(inputs)
        return {name: value.numpy() if isinstance(value, DeviceArray) else value for name, value in found.items()}


class GpuConformance(BackendConformance):
    """Derive from it as from `BackendConformance`; what that asks to run on the CPU runs on the first GPU."""

    def _open(self, artifact: Artifact, options: OpenOptions | None = None) -> Session:
        asked = options or OpenOptions()
        return OnHost(super()._open(artifact, replace(asked, device="cuda:0") if asked.device == "cpu" else asked))

    @pytest.mark.skip("a GPU's session runs on the GPU, whatever the number of threads")
    def test_one_thread_is_one_thread(self, target: Target, tmp_path: Path) -> None:
        """Not asked of these backends."""

    @pytest.mark.skip("the suite's fresh process opens sessions on the CPU and keeps outputs as arrays of the host")
    def test_runs_in_a_fresh_process_without_onnx(self, target: Target, tmp_path: Path) -> None:
        """Not asked of these backends; what their run half imports is for their unit tests."""
