# SPDX-License-Identifier: Apache-2.0
"""The conformance stage asks for every promise of the suite, and on a machine without pytest the stand-in serves it."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from gpucheck.stage_conformance import PLAIN

from nndeploy.testing import BackendConformance, GpuConformance

GPU = Path(__file__).resolve().parents[2] / "gpu"
CODE = """
import importlib.util, json, sys
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "pytest" else real(name, *rest)
sys.path.insert(0, sys.argv[1])
from gpucheck import stage_conformance as stage
from gpucheck.options import Options
import pytest
assert "__file__" not in vars(pytest), "the real one"
options = Options(tiers=("triton",))
for name in ("test_says_who_it_is", "test_unknown_operator_is_refused", "test_transforms_have_names", "softmax"):
    for row in stage.run(f"triton: {name}", options):
        print(json.dumps([row.item, row.status, row.reason]))
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
def test_the_suite_runs_on_the_stand_in() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(GPU)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    *checks, softmax = map(json.loads, done.stdout.splitlines())
    assert checks == [
        ["test_says_who_it_is", "ok", ""],
        ["test_unknown_operator_is_refused", "ok", ""],
        ["test_transforms_have_names", "ok", ""],
    ]
    assert softmax[1] == "refused"
    assert softmax[2] == "the target has no NVIDIA GPU" or "not fixed" in softmax[2]


def test_every_promise_of_the_suite_is_asked_or_skipped() -> None:
    of_a_case = {"test_answers_for_each_node_and_changes_nothing", "test_what_it_takes_it_gets_right"}
    skipped = {name for name in vars(GpuConformance) if name.startswith("test_")}
    assert {*PLAIN, *of_a_case, *skipped} == {name for name in dir(BackendConformance) if name.startswith("test_")}
