# SPDX-License-Identifier: Apache-2.0
"""The backend `tensorrt` keeps the promises of the interface: building anywhere, running where a GPU is."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import onnx_ir as ir
import pytest
from nndeploy_tensorrt.library import RTX, is_installed
from nndeploy_tensorrt.plugin import Plugin

from nndeploy.cuda import DeviceArray
from nndeploy.plugin.interface import Artifact, BuildOptions, OpenOptions, Session, Support
from nndeploy.target import Target, target_from_toml
from nndeploy.testing import BackendConformance
from nndeploy.testing.conformance import check_artifact, is_one_line
from nndeploy.testing.models import CASES, Case
from nndeploy.value_types import Value

RTX4090 = Path(__file__).resolve().parents[2] / "configs" / "targets" / "rtx4090.toml"


class OnHost:
    """A session whose outputs are brought to the host, as the core does at the border."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.close = session.close

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        found = self._session.run(inputs)
        return {name: value.numpy() if isinstance(value, DeviceArray) else value for name, value in found.items()}


class TestTensorRt(BackendConformance):
    backend = Plugin()

    def _open(self, artifact: Artifact, options: OpenOptions | None = None) -> Session:
        asked = options or OpenOptions()
        return OnHost(super()._open(artifact, replace(asked, device="cuda:0") if asked.device == "cpu" else asked))

    @pytest.mark.skip("a GPU's session runs on the GPU, whatever the number of threads")
    def test_one_thread_is_one_thread(self) -> None:
        """Not asked of this backend."""

    @pytest.mark.skip("the suite's fresh process opens sessions on the CPU and keeps outputs as arrays of the host")
    def test_runs_in_a_fresh_process_without_onnx(self) -> None:
        """Not asked of this backend; tests/unit/tensorrt checks what its run half imports."""


@pytest.fixture(scope="module")
def box() -> Target:
    if not is_installed(RTX.flavour):
        pytest.skip(f"{RTX.title} is not installed: {RTX.hint}")
    return target_from_toml(RTX4090)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_answers_for_each_node_without_a_gpu_and_changes_nothing(case: Case, box: Target) -> None:
    model = case.model()
    before = ir.to_proto(model).SerializeToString(deterministic=True)
    answers = Plugin().supports(model, box, BuildOptions())
    assert len(answers) == len(model.graph)
    assert all(isinstance(answer, Support) and (answer.ok or is_one_line(answer.reason)) for answer in answers)
    assert ir.to_proto(model).SerializeToString(deterministic=True) == before


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_taken_builds_without_a_gpu_and_again_to_the_same_bytes(
    case: Case, box: Target, tmp_path: Path
) -> None:
    if not all(answer.ok for answer in Plugin().supports(case.model(), box, BuildOptions())):
        return
    artifacts = []
    for attempt in ("first", "second"):
        (tmp_path / attempt).mkdir()
        artifacts.append(Plugin().build(case.model(), box, BuildOptions(), tmp_path / attempt))
    check_artifact(artifacts[0])
    assert artifacts[0] == artifacts[1] or not artifacts[0].deterministic


def test_most_of_the_suite_is_taken(box: Target) -> None:
    taken = [case.name for case in CASES if all(a.ok for a in Plugin().supports(case.model(), box, BuildOptions()))]
    assert len(taken) >= len(CASES) // 3, taken
