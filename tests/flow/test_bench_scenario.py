# SPDX-License-Identifier: Apache-2.0
"""`bench --scenario`: real LoadGen over small bundles; the verdict, the exit codes, and that nothing is left behind."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests_flow_bundles import write_double

from nndeploy.cli.main import run_command

NEEDS_LOADGEN = "MLPerf's LoadGen is not installed (extra `loadgen`)"
LOGS = ["mlperf_log_accuracy.json", "mlperf_log_detail.txt", "mlperf_log_summary.txt", "mlperf_log_trace.json"]
SHORT = ("--duration", "0.2", "--threads", "1")


@pytest.fixture
def bundle(here):
    pytest.importorskip("mlperf_loadgen", reason=NEEDS_LOADGEN)
    return write_double(here / "m.nnd")


def call(capsys, *arguments):
    """Returns (exit code, stdout, stderr)."""
    code = run_command([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


@pytest.mark.parametrize(("scenario", "options", "figures"), [
    ("single-stream", (), {"queries_per_second", "queries", "p50_ms", "p99_ms"}),
    ("multi-stream", ("--samples-per-query", 4), {"queries", "p50_ms", "p99_ms"}),
    ("offline", ("--target-qps", 2000), {"samples_per_second", "samples"}),
    ("server", ("--target-qps", 2500), {"completed_per_second", "scheduled_per_second", "queries_too_late"}),
])  # fmt: skip
def test_each_scenario_gives_loadgen_s_verdict(scenario, options, figures, bundle, capsys) -> None:
    code, out, err = call(capsys, "bench", "m.nnd", "--scenario", scenario, *SHORT, *options, "--json", "-o", "logs")
    report = json.loads(out)
    assert (report["scenario"], report["mode"], report["log_folder"]) == (scenario, "performance", "logs")
    assert figures <= set(report["figures"])
    assert all(value >= 0 for value in report["figures"].values())
    assert report["inputs"] == "1 golden input"
    assert f"{scenario} for at least 0.2 s" in err
    assert (code, report["valid"]) in ((0, True), (1, False))  # a busy machine may be too slow, and then it says so
    assert bool(report["reason"]) == (not report["valid"])
    assert names("logs") == LOGS
    assert ("Result is : VALID" in (bundle.parent / "logs" / LOGS[2]).read_text()) == report["valid"]


def test_a_result_that_is_not_valid_ends_with_one_and_loadgen_s_reason(bundle, capsys) -> None:
    options = ("--target-qps", "3000", "--target-latency-ms", "0.0001")
    code, out, err = call(capsys, "bench", "m.nnd", "--scenario", "server", *SHORT, *options, "--json")
    assert (code, json.loads(out)["valid"]) == (1, False)
    line = err.splitlines()[-1]
    assert line.startswith("nndeploy: error[check-failed]: m.nnd: LoadGen calls the result INVALID: Reduce target QPS")


@pytest.mark.parametrize(("options", "message"), [
    (("--accuracy",), "--accuracy"),
    (("--batch", "2"), "--batch"),
    (("-o", "logs"), "--output"),
    (("--scenario", "offline", "--iterations", "3"), "--iterations"),
    (("--scenario", "offline", "--percentile", "90"), "--percentile"),
    (("--scenario", "single-stream", "--inflight", "2"), "--inflight"),
    (("--scenario", "multi-stream", "--target-qps", "2"), "--target-qps"),
    (("--scenario", "server", "--samples-per-query", "2"), "--samples-per-query"),
    (("--scenario", "server", "--accuracy", "--target-qps", "2"), "--target-qps"),
    (("--scenario", "nowhere"), "'nowhere' is not one of"),
    (("--scenario", "server", "--target-qps", "0"), "Invalid value for '--target-qps'"),
])  # fmt: skip
def test_options_that_would_be_ignored_are_refused(options, message, here, capsys) -> None:
    write_double(here / "m.nnd")
    code, out, err = call(capsys, "bench", "m.nnd", *options)
    assert (code, out) == (2, "")
    assert err.startswith("nndeploy: error[usage]: ")
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_missing_package_names_the_extra(here, capsys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "mlperf_loadgen", None)
    write_double(here / "m.nnd")
    code, _, err = call(capsys, "bench", "m.nnd", "--scenario", "offline")
    assert code == 69
    assert "pip install --no-index --find-links FOLDER 'nndeploy-toolchain[loadgen]'" in err
    assert len(err.splitlines()) == 1


def test_an_input_that_does_not_fit_ends_with_its_own_code(bundle, here, capsys) -> None:
    (here / "in").mkdir()
    for i in range(4):
        np.savez(here / "in" / f"{i}.npz", image=np.ones((9 if i == 3 else 1, 3), np.float32))
    for scenario in ("single-stream", "offline"):
        code, out, err = call(capsys, "bench", "m.nnd", "--scenario", scenario, "-i", "in", *SHORT, "-o", "logs")
        assert (code, out) == (65, "")
        assert "error[bad-input]: in/3.npz: input 'image': axis 0 (N) is 9" in err.splitlines()[-1]
        assert names("logs") == []
    assert call(capsys, "bench", "m.nnd", "--scenario", "offline", "-i", "nowhere.npz")[0] == 66
    assert call(capsys, "bench", "m.nnd", "--scenario", "offline", "-o", "/proc/nowhere")[0] == 73


def test_what_is_wrong_with_a_sample_names_the_file_and_the_line(bundle, here, capsys) -> None:
    lines = ['{"image": [[1, 2, 3]]}'] * 5
    lines[3] = '{"image": [[1, 2, 3, 4]]}'
    (here / "x.jsonl").write_text("\n".join(lines))
    (here / "y.jsonl").write_text('{"image": [[1, 2, 3]]}\n{"imag": 1}\n')
    for options in (["--scenario", "offline", *SHORT], ["--scenario", "single-stream", *SHORT], ["--iterations", "9"]):
        code, _, err = call(capsys, "bench", "m.nnd", *options, "-i", "x.jsonl")
        assert (code, "error[bad-input]: x.jsonl, line 4: input 'image'" in err.splitlines()[-1]) == (65, True)
        code, _, err = call(capsys, "bench", "m.nnd", *options, "-i", "y.jsonl")
        assert (code, "error[bad-input]: y.jsonl, line 2: no input is named 'imag'" in err) == (65, True)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_soon_and_leaves_nothing(number, code, bundle, here) -> None:
    command = [sys.executable, "-m", "nndeploy", "bench", "m.nnd", "--scenario", "server", "--duration", "600"]
    command += ["--target-qps", "50", "--threads", "1", "-o", "logs"]
    with subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert "for at least 600 s" in process.stderr.readline()
        time.sleep(0.5)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (code, "")
    assert "Traceback" not in err
    assert names("logs") == []
