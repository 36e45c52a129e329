# SPDX-License-Identifier: Apache-2.0
"""What `backends` says of a plugin is what its probe says: the hint as it is, and whom it builds for here.

What `targets` lists is the same from the other side: who builds for each here.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from nndeploy.cli.main import run_command
from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import Probe
from nndeploy.target.known_targets import known_targets
from nndeploy.target.target import Target

ABSENT = Probe(False, False, "1", reason="no driver", absent_hardware="NVIDIA GPU")
BUILDS = Probe(True, False, "1", reason="no driver", absent_hardware="NVIDIA GPU")
MISSING = Probe(False, False, reason="no library", hint="get it")

Listed = Callable[..., dict[str, Any]]
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Listed:
    """Returns a function: a probe and more arguments -> what `backends` says of a plugin that answers so.

    `cells` are those of the table: what it builds for, and whether it runs here.
    """

    def listed(probe: Callable[[Target], Probe], *arguments: str, device_kind: str = "cuda") -> dict[str, Any]:
        plugin = SimpleNamespace(tier=1, device_kind=device_kind, probe=probe)
        monkeypatch.setattr("nndeploy.plugin.registry.backend", lambda name: plugin)
        monkeypatch.setattr("nndeploy.plugin.registry.backend_names", lambda: ["one"])
        assert run_command(["backends", *arguments]) == 0
        text = capsys.readouterr().out
        assert run_command(["backends", "--json", *arguments]) == 0
        (row,) = json.loads(capsys.readouterr().out)["backends"]
        return {**row, "cells": re.split("  +", text.splitlines()[2])[3:]}

    return listed


def test_hint_of_the_probe_is_printed_as_it_is(listed: Listed) -> None:
    row = listed(lambda _target: MISSING)
    assert (row["hint"], row["why_not"], row["absent_hardware"], row["builds_for"]) == ("get it", "no library", "", [])
    assert row["cells"] == ["no (no library; get it)", "no"]


def test_absent_hardware_is_not_applicable_and_has_no_cure(listed: Listed) -> None:
    row = listed(lambda _target: ABSENT)
    assert (row["can_build"], row["can_run"], row["hint"], row["builds_for"]) == (False, False, "", [])
    assert (row["reason"], row["absent_hardware"]) == (ABSENT.reason, "NVIDIA GPU")
    assert row["cells"] == ["no (no NVIDIA GPU)", "no"]


def test_backend_that_builds_for_other_boxes_says_so(listed: Listed) -> None:
    row = listed(lambda target: BUILDS if target.name in ("t4", "raspberry-pi-5") else ABSENT)
    assert row["builds_for"] == ["t4"]  # the other has no GPU
    assert not row["can_build"]
    assert row["cells"] == ["t4", "no (no NVIDIA GPU)"]


@pytest.mark.parametrize(
    ("kind", "told"), [("cpu", "this machine, all targets"), ("cuda", "this machine, all targets with a GPU")]
)
def test_backend_that_builds_for_many_says_which_without_listing_them(listed: Listed, kind: str, told: str) -> None:
    row = listed(lambda _target: Probe(True, False, "1"), device_kind=kind)
    assert row["cells"] == [told, "no"]
    assert len(row["builds_for"]) > 1


def test_box_that_is_built_for_is_no_other_box(listed: Listed) -> None:
    row = listed(lambda target: BUILDS if target.gpus else ABSENT, "--target", "t4")
    assert (row["can_build"], row["can_run"]) == (True, False)
    assert "t4" in row["builds_for"]
    assert row["cells"] == ["yes", "no (no NVIDIA GPU)"]


def test_plugin_that_fails_for_a_known_box_is_listed(listed: Listed) -> None:
    def fails(target: Target) -> Probe:
        if target.is_host:
            return ABSENT
        raise UnavailableError("no answer", hint="ask again")

    row = listed(fails)
    assert (row["can_build"], row["reason"], row["hint"]) == (False, "no answer", "ask again")


@pytest.mark.parametrize("is_terminal", [False, True])
def test_targets_are_a_table_of_a_row_each_that_fits_80_columns(nndeploy_command, monkeypatch, is_terminal) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    lines = nndeploy_command("targets").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    begins = [line.split()[0] for line in lines if line.split()]
    for row in json.loads(nndeploy_command("targets", "--json").stdout)["targets"]:
        (line,) = [line for line, begin in zip(filter(str.strip, lines), begins, strict=True) if begin == row["name"]]
        assert row["level"] in line.split()[1:]
        for gpu in row["gpus"]:
            assert f"sm_{gpu['compute_capability'].replace('.', '')}" in line
        text = line + next(line for line in lines if line.startswith("every target is built here by"))
        for name in row["built_here_by"]:
            assert name in text
    assert {*known_targets()} <= {*begins}
