# SPDX-License-Identifier: Apache-2.0
"""`run --resume`: whatever moment a kill hits, calling it again gives the files of a run that was never killed."""

import json
import random
import signal
import subprocess
import time

import numpy as np
import pytest
from resumed_runs import COMMAND, SEVERAL, content, lines
from tests_flow_bundles import write_double

from nndeploy.cli.main import run_command
from nndeploy.errors import InputOutputError
from nndeploy.stream.sinks import resume

NUM_KILLS = 2


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_double(tmp_path / "m.nnd")
    return tmp_path


def run(*arguments) -> int:
    return run_command(["run", "m.nnd", *map(str, arguments)])


def killed(arguments, seconds) -> bool:
    """Returns whether a run was still going on when it was killed after so many seconds."""
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    assert process.returncode == 1
    return False


@pytest.mark.parametrize(
    ("output", "count", "pipeline"), [("y.jsonl", 3_000, []), ("y", 500, ["--pipeline", "p.toml"])]
)
def test_kills_at_random_moments_cost_nothing_and_double_nothing(here, output, count, pipeline) -> None:
    """Each run is killed somewhere between its start and a while after its first checkpoint."""
    (here / "x.jsonl").write_text(lines(count, bad={7, count - 1}))
    (here / "p.toml").write_text(SEVERAL)
    dice = random.Random(20261120)  # noqa: S311 - no secret
    arguments = [*pipeline, "--input", "x.jsonl", "--output", output, "--resume"]
    num_killed = sum(killed(arguments, 0.4 + 0.5 * dice.random()) for _ in range(NUM_KILLS))
    assert num_killed  # it takes seconds in all; `make bench-soak ARGS=kills` does it by thousands
    while killed(arguments, 60):
        pass
    assert run(*pipeline, "--input", "x.jsonl", "--output", f"want-{output}") == 1
    if output == "y":
        assert content(here / "y") == content(here / "want-y")
    else:
        assert (here / "y.jsonl").read_bytes() == (here / "want-y.jsonl").read_bytes()
    assert {path.name for path in here.iterdir()} == {"m.nnd", "p.toml", "x.jsonl", output, f"want-{output}"}


def fails_at(patch, index):
    """Lets the sink fail at a record, as a full disk would, and checkpoints every one before it."""
    real = resume.ResumedSink.write

    def write(self, outcome):
        if outcome.index == index:
            raise InputOutputError("full")
        real(self, outcome)

    patch.setattr(resume, "CHECKPOINT_SECONDS", 0.0)
    patch.setattr(resume.ResumedSink, "write", write)


def interrupted(here, monkeypatch, output, at):
    """Runs until the sink fails at record `at`; every record has been checkpointed."""
    with monkeypatch.context() as patch:
        fails_at(patch, at)
        assert run("--input", "x.jsonl", "--output", output, "--resume") == 74


def test_goes_on_after_what_is_durable(here, monkeypatch, capsys) -> None:
    (here / "x.jsonl").write_text(lines(10, bad={2}))
    interrupted(here, monkeypatch, "y.jsonl", 6)
    for _ in range(2):  # a second kill finds what the first one left torn
        with (here / "y.jsonl.part").open("ab") as file:
            file.write(b'{"torn' * 1000)
        with (here / "y.jsonl.resume").open("ab") as file:
            file.write(b'{"records": 9, "torn')
        interrupted(here, monkeypatch, "y.jsonl", 6)
    assert not (here / "y.jsonl").exists()
    interrupted(here, monkeypatch, "y.jsonl", 8)
    with (here / "y.jsonl.part").open("ab") as file:
        file.write(b'{"torn' * 1000)
    capsys.readouterr()
    assert run("--input", "x.jsonl", "--output", "y.jsonl", "--resume") == 1
    error = capsys.readouterr().err
    assert "8 items of an earlier run" in error
    assert error.endswith("1 of 10 items failed\n")
    records = [json.loads(line) for line in (here / "y.jsonl").read_text().splitlines()]
    assert [record["index"] for record in records] == list(range(10))
    assert sorted(path.name for path in here.iterdir()) == ["m.nnd", "x.jsonl", "y.jsonl"]


@pytest.mark.parametrize(("change", "arguments", "what"), [
    (lambda here: (here / "x.jsonl").write_text(lines(11)), [], "inputs"),
    (lambda here: write_double(here / "m.nnd", golden=3.0), [], "bundles"),
    (lambda here: None, ["--nan", "reject"], "settings"),
])  # fmt: skip
def test_another_run_is_refused_and_changes_nothing(here, monkeypatch, capsys, change, arguments, what) -> None:
    (here / "x.jsonl").write_text(lines(10))
    interrupted(here, monkeypatch, "y.jsonl", 5)
    change(here)
    before = content(here)
    capsys.readouterr()
    assert run("--input", "x.jsonl", "--output", "y.jsonl", "--resume", *arguments) == 65
    assert f"y.jsonl.resume: the interrupted run had other {what} (hint: " in capsys.readouterr().err
    assert content(here) == before


@pytest.mark.parametrize(("arguments", "message"), [
    (["--input", "-", "--output", "y.jsonl"], "needs one source of files, which can be read again"),
    (["--input", "x.jsonl", "--output", "-"], "needs an output of many records that stays"),
    (["--input", "x.jsonl"], "needs an output of many records that stays"),
    (["--input", "x.jsonl", "--output", "y.npz"], "needs an output of many records that stays"),
    (["--input", "x.jsonl", "--output", "y.jsonl", "--unordered"], "exclude each other"),
])  # fmt: skip
def test_what_cannot_be_resumed_says_so_and_leaves_nothing(here, capsys, arguments, message) -> None:
    (here / "x.jsonl").write_text(lines(4))
    assert run(*arguments, "--resume") == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in here.iterdir()) == ["m.nnd", "x.jsonl"]


def test_a_stopped_run_goes_on_where_it_stopped(here) -> None:
    (here / "in").mkdir()
    for i in range(700):
        np.save(here / "in" / f"{i}.npy", np.full((1, 3), i, np.float32))
    command = [*COMMAND, "--input", "in", "--output", "out", "--resume"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not (here / "out" / "000050_50.npz").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 143, error
    assert "stopped before the end" in error
    again = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "of an earlier run" in again.stderr
    assert len(list((here / "out").iterdir())) == 700
    assert np.load("out/000699_699.npz")["y"].tolist() == [[1398, 1398, 1398]]
