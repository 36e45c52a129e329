# SPDX-License-Identifier: Apache-2.0
"""The command as a process: what is on which stream, and what it does when a stream or a reader is gone."""

import contextlib
import fcntl
import json
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import numpy as np
import onnx.parser
import pytest
from tests_flow_bundles import write_double

RELU = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[3] y) { y = Relu(x) }'
COMMAND = [sys.executable, "-m", "nndeploy"]
FULL_PIPE = 60_000
"""Bytes; a pipe takes 65,536."""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_double(tmp_path / "m.nnd")
    np.savez("x.npz", image=np.ones((1, 3), np.float32))
    return tmp_path


def done(command, **options):
    return subprocess.run(command, **({"capture_output": True, "text": True, "timeout": 60} | options))


def nndeploy(*arguments, **options):
    return done([*COMMAND, *arguments], **options)


def through_shell(script):
    return done(["bash", "-c", script.replace("NND", " ".join(COMMAND))])


def told(code) -> tuple[str, str]:
    """Returns what Python code that calls the command writes to its two streams."""
    ended = done([sys.executable, "-c", "import sys; from nndeploy.cli.main import run_command;" + code], check=True)
    return ended.stdout, ended.stderr


def test_starts_at_once_and_loads_nothing_heavy(here) -> None:
    heavy = ("numpy", "rich", "onnx", "onnx_ir", "onnxruntime", "openvino")
    out, _ = told(f"run_command(['--version']); print(*sorted(m for m in {heavy} if m in sys.modules))")
    assert out.split("\n")[0].startswith("nndeploy ")
    assert out.split("\n")[1] == ""
    began = time.perf_counter()
    nndeploy("--version")
    assert time.perf_counter() - began < 1.5  # 0.04 s measured alone; CI machines are shared


def test_a_run_never_loads_onnx_nor_away_from_a_terminal_what_draws_on_one(here) -> None:
    unwanted = {"onnx", "onnx_ir", "onnxscript", "google", "PIL", "rich"}
    assert told(
        "assert run_command(['run', 'm.nnd', '--input', 'x.npz', '--output', 'y.npz']) == 0;"
        f"print(*sorted({{m.split('.')[0] for m in sys.modules}} & {unwanted!r}))"
    )[0] == "\n"  # fmt: skip


def test_noise_of_native_libraries_never_reaches_stdout(here) -> None:
    assert told(
        "import os; from nndeploy.cli import main; from nndeploy.cli.standard_streams import take_over; take_over();"
        "os.write(1, b'native noise\\n'); print('ours'); sys.stdout.flush()"
    ) == ("ours\n", "native noise\n")


@pytest.mark.parametrize("arguments", ["--version", "run m.nnd -i x.npz"])
@pytest.mark.parametrize("where", [">/dev/full", ">&-"])
def test_output_that_cannot_be_written_is_an_io_error(here, arguments, where) -> None:
    done = through_shell(f"NND {arguments} {where}")
    assert done.returncode == 74
    assert "error[io]: standard output cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("command", "where", "code"), [
    ("run m.nnd -i x.npz -i bad.jsonl -o out/", "2>&-", 1),
    ("compile relu.onnx -o out/relu.nnd --backends reference --objective priority", "2>/dev/full", 0),
])  # fmt: skip
def test_a_standard_error_that_cannot_be_written_changes_nothing(here, command, where, code) -> None:
    (here / "out").mkdir()
    (here / "relu.onnx").write_bytes(onnx.parser.parse_model(RELU).SerializeToString())
    (here / "bad.jsonl").write_text('{"image": [["NaN", 2, 3]]}\nbad\n')
    assert through_shell(f"NND {command} {where}").returncode == code
    assert list((here / "out").iterdir())


def test_closed_streams_never_become_an_output_file(here) -> None:
    done = through_shell("NND run m.nnd -i x.npz -o y.npz 0<&- 1>&- 2>&-; echo $?")
    assert done.stdout == "0\n"
    assert np.load("y.npz")["y"].tolist() == [[2, 2, 2]]


def test_a_reader_that_has_enough_ends_the_run_quietly(here) -> None:
    lines = """yes '{"image": [[1, 2, 3]]}' | head -200000"""
    done = through_shell(lines + " | NND run m.nnd -i - -o - 2>err | head -1; echo ${PIPESTATUS[2]}")
    assert done.stdout.splitlines()[1] == "141"
    assert "Traceback" not in (here / "err").read_text()
    assert "error" not in (here / "err").read_text()


def unfinished(here) -> set[str]:
    return {path.name for path in here.iterdir() if path.suffix == ".tmp"}


def begun(here, output="y.jsonl") -> "subprocess.Popen[str]":
    """Starts a run that has written a record to its output and waits for the next."""
    others = unfinished(here)
    process = subprocess.Popen(
        [*COMMAND, "run", "m.nnd", "-i", "-", "-o", output],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    process.stdin.write('{"image": [[1, 2, 3]]}\n')
    process.stdin.flush()
    deadline = time.monotonic() + 30
    while unfinished(here) == others and time.monotonic() < deadline:
        time.sleep(0.02)
    return process


@pytest.mark.parametrize(
    ("number", "code", "twice"), [(signal.SIGTERM, 143, False), (signal.SIGINT, 130, True), (signal.SIGHUP, 129, False)]
)
def test_a_signal_ends_the_run_and_leaves_nothing_half_written(here, number, code, twice) -> None:
    process = begun(here)
    for _ in range(1 + twice):
        process.send_signal(number)
    _, error = process.communicate(timeout=30)
    assert process.returncode in (code, *([-number] if twice else []))  # the second may come when all is over
    assert "Traceback" not in error or twice
    assert sorted(path.name for path in here.iterdir()) == ["m.nnd", "x.npz"]


def test_what_a_killed_run_left_is_gone_with_the_next_and_that_of_a_living_one_stays(here) -> None:
    killed, living = begun(here, "killed.jsonl"), begun(here, "y.jsonl")
    assert len(unfinished(here)) == 2
    killed.kill()
    killed.communicate()
    nndeploy("run", "m.nnd", "-i", "x.npz", "-o", "y.npz")
    assert len(unfinished(here)) == 1
    living.communicate(timeout=30)
    assert living.returncode == 0
    assert sorted(path.name for path in here.iterdir()) == ["m.nnd", "x.npz", "y.jsonl", "y.npz"]


def feed_all(pipe) -> None:
    with contextlib.suppress(BrokenPipeError):
        pipe.write(b'{"image": [[1, 2, 3]]}\n' * 50_000)


def filled(pipe, within: float) -> bool:
    """Whether what is in a pipe becomes as much as it takes and stays so: whoever writes there waits."""
    deadline, before, since = time.monotonic() + within, 0, time.monotonic()
    while time.monotonic() < deadline:
        waiting = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, struct.pack("i", 0)))[0]
        if waiting != before:
            before, since = waiting, time.monotonic()
        elif waiting > FULL_PIPE and time.monotonic() - since > 0.3:
            return True
        time.sleep(0.05)
    return False


def test_a_second_signal_ends_at_once_what_the_first_could_not(here) -> None:
    """Nobody reads standard output, so what is on its way cannot end."""
    with subprocess.Popen(
        [*COMMAND, "run", "m.nnd", "-i", "-", "-o", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        feed = threading.Thread(target=lambda: feed_all(process.stdin), daemon=True)
        feed.start()
        try:
            assert filled(process.stdout, within=60)
            process.send_signal(signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.3)
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 143
        finally:
            process.kill()
            feed.join(10)
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()


def test_results_are_on_stdout_and_everything_else_on_stderr(here) -> None:
    lines = '{"image": [[1, 2, 3]]}\n' * 3
    done = nndeploy("run", "m.nnd", "--input", "-", "--output", "-", input=lines)
    assert done.returncode == 0
    assert [json.loads(line)["index"] for line in done.stdout.splitlines()] == [0, 1, 2]
    assert "3 items" in done.stderr


def test_a_silent_producer_is_waited_for_without_work(here) -> None:
    process = subprocess.Popen(
        [*COMMAND, "run", "m.nnd", "-i", "-", "-o", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    process.stdin.write('{"image": [[1, 2, 3]]}\n')
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["index"] == 0  # it comes out before the next goes in
    process.stdin.close()
    assert process.wait(timeout=30) == 0
    process.stdout.close()
    process.stderr.close()


@pytest.mark.parametrize(
    ("given", "code", "said"), [("<&-", 66, "standard input is closed"), ("</dev/null", 0, "0 items")]
)
def test_a_closed_stdin_is_missing_input_and_an_empty_one_gives_nothing(here, given, code, said) -> None:
    done = through_shell(f"NND run m.nnd -i - -o - {given}")
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
