# SPDX-License-Identifier: Apache-2.0
"""A Python call keeps its process whatever a library does: each runs in children that the calls share."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from compile_with import compile_with
from plugin_distribution import write_distribution

import nndeploy
from nndeploy.jobs.workers import InProcessWorkers

CRASHING = """
import os, signal
from nndeploy_onnxruntime.plugin import Plugin as Good

class Plugin(Good):
    tier = 1

    def supports(self, model, target, options):
        if any(node.op_type == "Sin" for node in model.graph):
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().supports(model, target, options)

    def build(self, submodel, target, options, workdir):
        if any(node.op_type == "Cos" for node in submodel.graph):
            os.kill(os.getpid(), signal.SIGABRT)
        return super().build(submodel, target, options, workdir)


Plugin.name = "crashing"
"""

COMPILES = """
import json, multiprocessing, os, sys
import numpy as np, onnx.parser, nndeploy
from nndeploy.jobs.shared_workers import shared_workers

def compiled(operator):
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = %s(x) }' % operator
    model = onnx.parser.parse_model(text)
    report = nndeploy.compile_model(model, sys.argv[1], nndeploy.CompileOptions(
        backends=("crashing", "reference"), keep_fallback=False, objective="priority"))
    with nndeploy.load_bundle(sys.argv[1]) as program:
        y = program.run({"x": np.array([0.5, 1], np.float32)})["y"].tolist()
    children = [child._process.pid for _, child in shared_workers()._idle if child._process]
    return {"who": [s.backend for s in report.submodels], "dropped": report.dropped, "y": y, "children": children}

answers = {name: compiled(name) for name in ("Exp", "Neg", "Sin", "Cos", "Tan")}

def in_a_fork():
    assert not shared_workers()._idle, "a forked process took its parent's children"
    assert compiled("Exp")["y"]

forked = multiprocessing.get_context("fork").Process(target=in_a_fork)
forked.start()
forked.join()
assert forked.exitcode == 0
answers["Again"] = compiled("Exp")
print(json.dumps({"answers": answers, "pid": os.getpid()}))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a script found that compiles five models, of which two crash a backend, and once more in a fork."""
    site = tmp_path_factory.mktemp("site")
    write_distribution(site, "crashing_plugin", CRASHING, "nndeploy.backends", "crashing:Plugin")
    temporary = tmp_path_factory.mktemp("temporary")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", COMPILES, str(site / "m.nnd")],
        env={**os.environ, "PYTHONPATH": str(site), "TMPDIR": str(temporary)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return {**json.loads(done.stdout), "left": [path.name for path in temporary.iterdir()]}


def test_what_does_not_crash_is_built_by_the_first_backend(said) -> None:
    assert [said["answers"][name]["who"] for name in ("Exp", "Neg", "Tan", "Again")] == [["crashing"]] * 4


def test_a_crash_while_it_is_asked_moves_the_nodes_on(said) -> None:
    sin = said["answers"]["Sin"]
    assert sin["who"] == ["reference"]
    assert sin["y"] == pytest.approx([0.4794, 0.8415], abs=1e-4)


def test_a_crash_while_it_builds_moves_the_nodes_on_with_the_reason(said) -> None:
    cos = said["answers"]["Cos"]
    assert cos["who"] == ["reference"]
    assert len(cos["dropped"]) == 1
    assert "SIGABRT" in cos["dropped"][0]
    assert cos["y"] == pytest.approx([0.8776, 0.5403], abs=1e-4)


def test_children_are_kept_from_call_to_call_and_replaced_after_a_crash(said) -> None:
    answers = said["answers"]
    assert len(answers["Exp"]["children"]) == 1
    assert answers["Neg"]["children"] == answers["Exp"]["children"]
    assert answers["Tan"]["children"] != answers["Exp"]["children"]
    assert answers["Again"]["children"] == answers["Tan"]["children"]


def test_nothing_outlives_the_process(said) -> None:
    children = {pid for answer in said["answers"].values() for pid in answer["children"]}
    assert [pid for pid in children if _is_running(pid)] == []
    assert said["left"] == []


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state not in ("Z", "X") and "nndeploy.jobs" in Path(f"/proc/{pid}/cmdline").read_text()


@pytest.mark.parametrize("workers", [None, InProcessWorkers()], ids=["child", "here"])
def test_a_scalar_of_truth_is_an_input_like_any_other(workers, tmp_path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (bool x) => (float y) { y = Cast<to = 1>(x) }'
    )
    report = compile_with(model, tmp_path / "m.nnd", backends=("onnxruntime",), workers=workers)
    assert all(check.ok and not check.note for check in report.checks)
    with nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        assert program.run({"x": np.array(True)})["y"] == 1
