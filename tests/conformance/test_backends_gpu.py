# SPDX-License-Identifier: Apache-2.0
"""The backends for GPUs keep the promises of the interface: building anywhere, running where a GPU is."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import onnx_ir as ir
import pytest
from nndeploy_cudnn import build as cudnn_build
from nndeploy_cudnn import support as cudnn_support
from nndeploy_cudnn.planner import Planner
from nndeploy_cudnn.plugin import Plugin as Cudnn
from nndeploy_tensorrt.plugin import Plugin as TensorRt
from nndeploy_triton.plugin import Plugin as Triton

from nndeploy.cuda import cuda_unavailable
from nndeploy.plugin.interface import Backend, BuildOptions, Support
from nndeploy.target.target import Gpu, target_from_toml
from nndeploy.testing import CASES, Case, GpuConformance
from nndeploy.testing.conformance import check_artifact, is_one_line

BOX = target_from_toml(Path(__file__).resolve().parents[2] / "configs" / "targets" / "rtx4090.toml")


if WHY_NOT := cuda_unavailable():

    def test_sessions_keep_the_promises_on_a_gpu() -> None:
        pytest.skip(WHY_NOT)

else:

    class TestTensorRt(GpuConformance):
        backend = TensorRt()

    class TestCudnn(GpuConformance):
        backend = Cudnn()

    class TestTriton(GpuConformance):
        backend = Triton()


USES = ("asked", "first", "second")
LEAST_TAKEN = {"tensorrt": 1 / 3, "cudnn": 1 / 5, "triton": 1 / 3}
"""The share of the suite's small models that a backend takes whole; many are of integers, strings, sequences."""


class Planners:
    """The children of cuDNN that answer for all cases: each takes half a second to start.

    There is one for each GPU and each of `USES`: what two of them made is compared.
    """

    def __init__(self) -> None:
        self.use = USES[0]
        self._planners: dict[tuple[Gpu, str], Planner] = {}

    @contextmanager
    def shared(self, gpu: Gpu) -> Iterator[Planner]:
        if (gpu, self.use) not in self._planners:
            self._planners[gpu, self.use] = Planner(gpu)
        yield self._planners[gpu, self.use]

    def close(self) -> None:
        for planner in self._planners.values():
            planner.close()


@pytest.fixture(scope="module")
def planners() -> Iterator[Planners]:
    found = Planners()
    yield found
    found.close()


@pytest.fixture(params=[TensorRt, Cudnn, Triton], ids=lambda plugin: plugin.name)
def plugin(request: pytest.FixtureRequest, planners: Planners, monkeypatch: pytest.MonkeyPatch) -> Backend:
    """A backend."""
    planners.use = USES[0]
    for module in (cudnn_support, cudnn_build):
        monkeypatch.setattr(module, "planner_for", planners.shared)
    found: Backend = request.param()
    probe = found.probe(BOX)
    if not probe.can_build:
        pytest.skip(f"{probe.reason}: {probe.hint}")
    return found


def test_answers_for_each_node_without_a_gpu_changes_nothing_and_takes_much(plugin: Backend) -> None:
    taken = []
    for case in CASES:
        model = case.model()
        before = ir.to_proto(model).SerializeToString(deterministic=True)
        answers = plugin.supports(model, BOX, BuildOptions())
        assert len(answers) == len(model.graph), case.name
        assert all(isinstance(one, Support) and (one.ok or is_one_line(one.reason)) for one in answers), case.name
        assert ir.to_proto(model).SerializeToString(deterministic=True) == before, case.name
        taken += [case.name] * all(answer.ok for answer in answers)
    assert len(taken) >= len(CASES) * LEAST_TAKEN[plugin.name], taken


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_taken_builds_without_a_gpu_and_again_to_the_same_bytes(
    case: Case, plugin: Backend, planners: Planners, tmp_path: Path
) -> None:
    if not all(answer.ok for answer in plugin.supports(case.model(), BOX, BuildOptions())):
        return
    artifacts = []
    for attempt in USES[1:]:
        planners.use = attempt
        (tmp_path / attempt).mkdir()
        artifacts.append(plugin.build(case.model(), BOX, BuildOptions(), tmp_path / attempt))
    check_artifact(artifacts[0])
    assert artifacts[0] == artifacts[1] or not artifacts[0].deterministic


def test_a_target_without_a_gpu_is_refused_with_the_reason(plugin: Backend) -> None:
    probe = plugin.probe(replace(BOX, gpus=()))
    assert not probe.can_build
    assert is_one_line(probe.reason)
    case = CASES[0].model()
    assert not any(answer.ok for answer in plugin.supports(case, replace(BOX, gpus=()), BuildOptions()))
