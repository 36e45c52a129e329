# SPDX-License-Identifier: Apache-2.0
"""What `backends` says of a plugin is what its probe says: the hint as it is, and whom it builds for here."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from nndeploy.cli.commands.backends import BUILDS_FOR_OTHERS
from nndeploy.cli.main import run_command
from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import Probe
from nndeploy.target.target import Target

ABSENT = Probe(False, False, "1", reason="no driver", absent_hardware="NVIDIA GPU")
BUILDS = Probe(True, False, "1", reason="no driver", absent_hardware="NVIDIA GPU")
MISSING = Probe(False, False, reason="no library", hint="get it")

Listed = Callable[..., dict[str, Any]]


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Listed:
    """Returns a function: a probe and more arguments -> what `backends` says of a plugin that answers so."""

    def listed(probe: Callable[[Target], Probe], *arguments: str, device_kind: str = "cuda") -> dict[str, Any]:
        plugin = SimpleNamespace(tier=1, device_kind=device_kind, probe=probe)
        monkeypatch.setattr("nndeploy.plugin.registry.backend", lambda name: plugin)
        monkeypatch.setattr("nndeploy.plugin.registry.backend_names", lambda: ["one"])
        assert run_command(["backends", *arguments]) == 0
        text = capsys.readouterr().out
        assert run_command(["backends", "--json", *arguments]) == 0
        (row,) = json.loads(capsys.readouterr().out)["backends"]
        return {**row, "text": text.splitlines()[2]}

    return listed


def test_hint_of_the_probe_is_printed_as_it_is(listed: Listed) -> None:
    row = listed(lambda _target: MISSING)
    assert (row["hint"], row["why_not"], row["absent_hardware"], row["builds_for"]) == ("get it", "no library", "", [])
    assert row["text"].endswith("no library; get it")


def test_absent_hardware_is_not_applicable_and_has_no_cure(listed: Listed) -> None:
    row = listed(lambda _target: ABSENT)
    assert (row["can_build"], row["can_run"], row["hint"], row["builds_for"]) == (False, False, "", [])
    assert (row["reason"], row["absent_hardware"]) == (ABSENT.reason, "NVIDIA GPU")
    assert row["text"].endswith(ABSENT.why_not)


def test_backend_that_builds_for_other_boxes_says_so(listed: Listed) -> None:
    row = listed(lambda target: BUILDS if target.name in ("t4", "raspberry-pi-5") else ABSENT)
    assert row["builds_for"] == ["t4"]  # the other has no GPU
    assert not row["can_build"]
    assert row["text"].endswith(f"{ABSENT.why_not}; {BUILDS_FOR_OTHERS}")


def test_box_that_is_built_for_is_no_other_box(listed: Listed) -> None:
    row = listed(lambda target: BUILDS if target.gpus else ABSENT, "--target", "t4")
    assert (row["can_build"], row["can_run"]) == (True, False)
    assert "t4" in row["builds_for"]
    assert row["text"].endswith(f"  {BUILDS.reason}")


def test_plugin_that_fails_for_a_known_box_is_listed(listed: Listed) -> None:
    def fails(target: Target) -> Probe:
        if target.is_host:
            return ABSENT
        raise UnavailableError("no answer", hint="ask again")

    row = listed(fails)
    assert (row["can_build"], row["reason"], row["hint"]) == (False, "no answer", "ask again")
