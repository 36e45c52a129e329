# SPDX-License-Identifier: Apache-2.0
"""What a backend for GPUs answers: what it lacks comes with its own hint, a GPU that is absent with none."""

import pytest

from nndeploy.backend_kit import gpu_probe as probing
from nndeploy.backend_kit.gpu_probe import HARDWARE, NOTHING, Lack, gpu_probe
from nndeploy.cuda.facts import NoCuda
from nndeploy.plugin.interface import Probe
from nndeploy.target.target import Gpu, Target

ADA = Target("box", "x86_64", gpus=(Gpu("Ada", "8.9"),))
PLAIN = Target("plain", "x86_64")
HOST = Target("host", "x86_64", is_host=True)
NO_GPU = NoCuda("no driver", lacks_gpu=True)
NO_PACKAGE = NoCuda("no bindings", "get bindings")
MISSING = Lack("no library", "get it")


def probed(
    monkeypatch: pytest.MonkeyPatch, why: NoCuda | None, target: Target, build: Lack = NOTHING, run: Lack = NOTHING
) -> Probe:
    monkeypatch.setattr(probing, "why_no_cuda", lambda: why)
    return gpu_probe(target, "1", build, run)


@pytest.mark.parametrize(("why", "target", "build", "run", "told"), [
    (None, ADA, NOTHING, NOTHING, (True, True, "", "")), (None, ADA, MISSING, MISSING, (False, False, "get it", "")),
    (None, ADA, MISSING, NOTHING, (False, True, "get it", "")),
    (None, ADA, NOTHING, MISSING, (True, False, "get it", "")),
    (None, PLAIN, NOTHING, NOTHING, (False, False, "", HARDWARE)),
    (NO_GPU, ADA, NOTHING, NOTHING, (True, False, "", HARDWARE)),
    (NO_GPU, ADA, MISSING, MISSING, (False, False, "get it", "")),
    (NO_GPU, HOST, NOTHING, NOTHING, (False, False, "", HARDWARE)),
    (NO_GPU, HOST, MISSING, MISSING, (False, False, "", HARDWARE)),
    (NO_PACKAGE, ADA, NOTHING, NOTHING, (True, False, "get bindings", "")),
    (NO_PACKAGE, HOST, NOTHING, NOTHING, (False, False, "get bindings", "")),
    (NO_PACKAGE, PLAIN, NOTHING, NOTHING, (False, False, "", HARDWARE)),
])  # fmt: skip
def test_answer_and_hint_follow_from_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, why: NoCuda | None, target: Target, build: Lack, run: Lack,
    told: tuple[bool | str, ...],
) -> None:  # fmt: skip
    probe = probed(monkeypatch, why, target, build, run)
    assert (probe.can_build, probe.can_run, probe.hint, probe.absent_hardware) == told
    assert bool(probe.reason) == (not (probe.can_build and probe.can_run))
    assert probe.version == "1"


def test_absent_hardware_makes_a_backend_not_applicable_unless_it_can_build(monkeypatch: pytest.MonkeyPatch) -> None:
    here, elsewhere = (probed(monkeypatch, NO_GPU, target) for target in (HOST, ADA))
    assert here.why_not == "not applicable: no NVIDIA GPU"
    assert elsewhere.why_not == elsewhere.reason == NO_GPU.reason
    assert probed(monkeypatch, None, ADA, MISSING).why_not == MISSING.reason
