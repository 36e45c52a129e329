# SPDX-License-Identifier: Apache-2.0
"""What `doctor` finds of a backend is what its probe says; what mends it is the probe's hint, or nothing."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from nndeploy.cli.main import run_command
from nndeploy.errors import UnavailableError
from nndeploy.installed import doctor
from nndeploy.installed.bundle_store import store_at
from nndeploy.installed.doctor import LACKS, OK, WRONG, Finding, findings
from nndeploy.plugin.interface import Probe
from nndeploy.plugin.registry import backend, backend_names
from nndeploy.target.target import Target, host_target

ABSENT = Probe(False, False, reason="no driver", absent_hardware="NVIDIA GPU")


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNDEPLOY_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def found(answer: Probe | Exception, monkeypatch: pytest.MonkeyPatch) -> Finding:
    """Returns what is found of a backend whose probe answers so."""

    def probe(_target: Target) -> Probe:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(doctor, "backend_names", lambda: ["one"])
    monkeypatch.setattr(doctor, "backend", lambda name: SimpleNamespace(probe=probe))
    return next(one for one in findings(store_at(None)) if one.what == "backend one")


@pytest.mark.parametrize(
    ("answer", "state", "mend", "absent"),
    [
        (Probe(True, True, "1"), OK, "", ""),
        (Probe(False, False, reason="no library", hint="get it"), LACKS, "get it", ""),
        (Probe(False, False, reason="too old"), LACKS, "", ""),
        (ABSENT, LACKS, "", "NVIDIA GPU"),
        (UnavailableError("cannot be loaded", hint="mend it"), LACKS, "mend it", ""),
        (UnavailableError("cannot be loaded"), LACKS, "", ""),
        (ZeroDivisionError("oops"), WRONG, "", ""),
    ],
)
def test_cure_is_the_hint_of_the_probe(
    answer: Probe | Exception, state: str, mend: str, absent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = found(answer, monkeypatch)
    assert (finding.state, finding.mend, finding.absent_hardware) == (state, mend, absent)


def test_every_backend_here_is_told_with_its_own_hint() -> None:
    told = {one.what: one for one in findings(store_at(None))}
    for name in backend_names():
        probe, finding = backend(name).probe(host_target()), told[f"backend {name}"]
        assert finding.state == (OK if probe.can_run else LACKS)
        assert finding.mend == ("" if probe.can_run else probe.hint)


def test_absent_hardware_stands_in_the_table_as_not_applicable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    finding = found(ABSENT, monkeypatch)
    assert run_command(["doctor"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(finding.what)]
    assert line.split() == [*finding.what.split(), "-", *ABSENT.why_not.split()]
