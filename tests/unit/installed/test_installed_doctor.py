# SPDX-License-Identifier: Apache-2.0
"""What `doctor` finds of a backend is what its probe says; what mends it is the probe's hint, or nothing."""

import platform
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from nndeploy.cli.commands.wheelhouse import wheelhouse
from nndeploy.errors import UnavailableError
from nndeploy.installed import doctor
from nndeploy.installed.bundle_store import store_at
from nndeploy.installed.doctor import LACKS, OK, WRONG, Finding, findings
from nndeploy.plugin.interface import Probe
from nndeploy.plugin.registry import backend, backend_names
from nndeploy.target.target import Target, host_target
from nndeploy.version import install_command

Command = Callable[..., "subprocess.CompletedProcess[str]"]
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


@pytest.mark.parametrize(("answer", "state", "mend", "absent"), [
    (Probe(True, True, "1"), OK, "", ""),
    (Probe(False, False, reason="no library", hint="get it"), LACKS, "get it", ""),
    (Probe(False, False, reason="too old"), LACKS, "", ""),
    (ABSENT, LACKS, "", "NVIDIA GPU"),
    (UnavailableError("cannot be loaded", hint="mend it"), LACKS, "mend it", ""),
    (UnavailableError("cannot be loaded"), LACKS, "", ""),
    (ZeroDivisionError("oops"), WRONG, "", ""),
])  # fmt: skip
def test_cure_is_the_hint_of_the_probe(answer, state, mend, absent, monkeypatch) -> None:
    finding = found(answer, monkeypatch)
    assert (finding.state, finding.mend, finding.absent_hardware) == (state, mend, absent)


def test_every_backend_here_is_told_with_its_own_hint() -> None:
    told = {one.what: one for one in findings(store_at(None))}
    for name in backend_names():
        probe, finding = backend(name).probe(host_target()), told[f"backend {name}"]
        assert finding.state == (OK if probe.can_run else LACKS)
        assert finding.mend == ("" if probe.can_run else probe.hint)


def test_hardware_that_is_absent_is_a_row_and_no_library_is_named_for_it(monkeypatch, nndeploy_command) -> None:
    found(ABSENT, monkeypatch)
    monkeypatch.setattr(doctor, "backend_names", lambda: ["one", "two"])
    done = nndeploy_command("doctor")
    assert done.returncode == 0
    assert "backend" not in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("NVIDIA GPU")]
    assert line.split()[2] == "-"
    assert "pip" not in done.stdout


def test_what_fills_the_folder_that_pip_installs_from_is_told(monkeypatch, nndeploy_command) -> None:
    found(Probe(False, False, reason="no library", hint=install_command("cpu")), monkeypatch)
    told = nndeploy_command("doctor").stdout
    assert install_command("cpu") in told
    (words,) = re.findall(r"nndeploy (wheelhouse .* -o FOLDER)", told)
    with wheelhouse.make_context("wheelhouse", words.split()[1:]) as context:  # which refuses what is no call of it
        assert (context.params["box"], str(context.params["output"])) == (platform.machine(), "FOLDER")
