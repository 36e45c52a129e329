# SPDX-License-Identifier: Apache-2.0
"""All stages over a pretended GPU: host memory, and Triton's interpreter for the kernels. The speed is not real."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("triton") is None or importlib.util.find_spec("onnxruntime") is None,
        reason="triton or onnxruntime is not installed",
    ),
]

ROOT = Path(__file__).resolve().parents[3]
PRETENDED = Path(__file__).with_name("pretended_gpu")


def environment() -> dict[str, str]:
    paths = [PRETENDED, ROOT / "tests" / "gpu", ROOT, ROOT / "backends"]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "ORT_DISABLE_TELEMETRY": "1"}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The rows of some items of every stage."""
    command = [sys.executable, str(PRETENDED / "run_stages.py"), str(tmp_path_factory.mktemp("stages"))]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line.removeprefix("row ")) for line in done.stdout.splitlines() if line.startswith("row ")]


def of(rows: list[dict[str, Any]], stage: str, backend: str = "") -> list[dict[str, Any]]:
    return [row for row in rows if row["stage"] == stage and backend in ("", row["backend"])]


def test_nothing_is_wrong(rows: list[dict[str, Any]]) -> None:
    assert [row for row in rows if row["status"] not in ("ok", "refused", "not run")] == []


def test_the_probe_names_the_gpu_and_its_peaks(rows: list[dict[str, Any]]) -> None:
    gpu = next(row for row in of(rows, "probe") if row["item"] == "cuda:0")
    assert gpu["facts"]["name"] == "Pretended H200"
    assert gpu["facts"]["peak GB/s"] == 4917


def test_the_driver_s_checks_pass(rows: list[dict[str, Any]]) -> None:
    passed = {row["item"] for row in of(rows, "cuda") if row["status"] == "ok"}
    assert {"round trips", "large arrays", "staging", "graph", "kernel in PTX", "kernel by Triton"} <= passed


def test_conformance_and_operators_are_right_or_refused_with_a_reason(rows: list[dict[str, Any]]) -> None:
    found = {row["item"]: row for row in (*of(rows, "conformance"), *of(rows, "operators"))}
    assert found["two_inputs"]["status"] == found["test_takes_something"]["status"] == "ok"
    assert found["loop_with_scan_output"]["status"] == "refused"
    assert "Loop" in found["loop_with_scan_output"]["reason"]
    assert 0 <= found["pointwise/float32"]["max_abs"] < 1e-4
    assert found["largest/float32"]["status"] == found["(all)"]["status"] == "refused"
    assert found["largest/float32"]["reason"].startswith("TopK: ")


def test_kernels_are_compared_timed_and_put_beside_the_floor(rows: list[dict[str, Any]]) -> None:
    calls, graphs = of(rows, "kernels", "triton"), of(rows, "kernels", "triton graph")
    assert len(calls) == len(graphs) == 2
    for row in (*calls, *graphs):
        assert row["max_abs"] < 1e-4
        assert row["ms"] > row["facts"]["floor ms"] > 0
        assert row["facts"]["in"] == "L2"
    assert {row["reason"] for row in of(rows, "kernels", "torch")} <= {"torch is not installed", "torch sees no GPU"}
    (copy,) = of(rows, "kernels", "cuda")
    assert copy["facts"]["GB/s"] > 0


def test_a_network_is_compiled_loaded_compared_and_timed(rows: list[dict[str, Any]]) -> None:
    (network,) = of(rows, "networks", "triton")
    assert (network["item"], network["status"]) == ("real/tiny", "ok")
    assert network["facts"]["compute"].startswith("triton ")
    speed = {row["backend"]: row for row in of(rows, "speed")}
    assert speed["triton"]["peer"] == "onnxruntime CPU"
    assert speed["triton"]["ratio"] == pytest.approx(speed["onnxruntime CPU"]["ms"] / speed["triton"]["ms"])


def test_a_bundle_runs_its_goldens(rows: list[dict[str, Any]]) -> None:
    (bundle,) = of(rows, "bundle")
    assert (bundle["item"], bundle["status"]) == ("real-tiny.triton.nnd", "ok")
    assert "triton" in bundle["facts"]["submodels"]
    assert bundle["max_abs"] < 1e-4


def test_the_command_prints_one_table_and_writes_json_and_the_target(tmp_path: Path) -> None:
    script = ROOT / "tests" / "gpu" / "gpu_check.py"
    command = [
        sys.executable, str(script), "--only", "probe,operators", "--tiers", "triton", "--match", "gather/|expand/",
        "--json", str(tmp_path / "rows.json"), "--target-out", str(tmp_path / "box.toml"), "--total", "200",
    ]  # fmt: skip
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("model or operator") == 1
    assert "2 of them" in done.stdout
    assert "gather/float32, expand/float32" in done.stdout
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert {row["item"] for row in rows if row["stage"] == "operators"} == {"gather/float32", "expand/float32"}
    assert 'compute_capability = "9.0"' in (tmp_path / "box.toml").read_text()
