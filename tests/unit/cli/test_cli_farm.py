# SPDX-License-Identifier: Apache-2.0
"""`nndeploy farm` refuses what anybody could use, before it listens or connects, and says what is missing."""

import sys
from pathlib import Path

import pytest

from nndeploy.cli.main import run_command


def test_certificates_are_made_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["farm", "ca", str(tmp_path / "certs")]) == 0
    assert str(tmp_path / "certs" / "ca.pem") in capsys.readouterr().out.splitlines()
    assert run_command(["farm", "ca", str(tmp_path / "certs")]) == 73


@pytest.mark.parametrize(("arguments", "code"), [
    (["scheduler", "tls://127.0.0.1:0"], 2), (["scheduler", "tcp://0.0.0.0:0"], 77), (["scheduler", "127.0.0.1"], 2),
    (["scheduler", "tls://127.0.0.1:0", "--certificates", "none"], 66), (["worker", "tcp://farm.example:8786"], 77),
    (["worker", "file:none.json"], 66), (["worker", "tcp://127.0.0.1:1", "--has", "lab"], 2),
])  # fmt: skip
def test_what_is_not_safe_or_not_there_is_refused(arguments: list[str], code: int, tmp_path: Path) -> None:
    folder = ["--folder", str(tmp_path)] if arguments[0] == "worker" else []
    assert run_command(["farm", *arguments, *folder]) == code


def test_without_dask_one_line_says_what_brings_it(monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert run_command(["farm", "scheduler", "tcp://127.0.0.1:0"]) == 69
    assert "nndeploy-toolchain[farm]" in capsys.readouterr().err
