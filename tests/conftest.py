# SPDX-License-Identifier: Apache-2.0
"""What all tests share: no telemetry, the real models where they are, the command as a user calls it."""

import atexit
import contextlib
import ctypes
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before anything imports ONNX Runtime
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # its handlers write to the standard error of every child
_CONFIG = tempfile.TemporaryDirectory(prefix="nndeploy-config-")
atexit.register(_CONFIG.cleanup)
os.environ["XDG_CONFIG_HOME"] = _CONFIG.name  # keys and trust of the tests, not of who runs them
os.environ["XDG_CACHE_HOME"] = str(Path(_CONFIG.name, "cache"))  # what this machine compiled, likewise
os.environ["NNDEPLOY_CACHE_DIR"] = ""  # every test compiles what it looks at
os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(Path(__file__).resolve().parents[1] / "build" / "zig"))
sys.dont_write_bytecode = False  # else the asserts of all tests are rewritten in each run, which takes half a minute
for _name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):  # what tests print is no annotation of the job that runs them
    os.environ.pop(_name, None)

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job; children must get Ctrl-C
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup's; children must end with their terminal

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = REPOSITORY.parent / "shared" / "models"

pytest_plugins = ["serial_tests"]

hypothesis.settings.register_profile("tests", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("tests")  # the same examples in every run, however slow the machine is

PR_SET_TIMERSLACK, USUAL_SLACK_NS = 29, 50_000  # prctl(2), and what Linux gives a process

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_collection_finish() -> None:
    """Leaves what the collection made out of every later garbage collection, which takes a second otherwise."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _usual_timers() -> Iterator[None]:
    """Gives a thread that was paced its usual timers back: with exact ones, threads that wait for the GIL spin."""
    yield
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, USUAL_SLACK_NS, 0, 0, 0)


@pytest.fixture(scope="session", autouse=True)
def _no_heartbeat() -> None:
    """Keeps commands that a busy machine makes slow from saying that they still run, among what a test reads."""
    from nndeploy.cli.views import progress

    progress.TOLD_SECONDS = 3600.0


@pytest.fixture(scope="session", autouse=True)
def _warm_compiles() -> Iterator[None]:
    """Forks the compiles of `run_command` from a process that has imported what they need, as those of a batch are."""
    from nndeploy.compiler.cached_compile import ALONE
    from nndeploy.compiler.compile_server import compile_server

    with contextlib.closing(compile_server()) as server:
        object.__setattr__(ALONE, "start", server.start_child)
        yield


@pytest.fixture(scope="session", autouse=True)
def _warm_evaluations() -> Iterator[None]:
    """Keeps the child in which `InProcessWorkers` evaluate with a time limit from one test to the next."""
    from nndeploy.jobs import tasks
    from nndeploy.jobs.workers import ChildWorkers, InProcessWorkers

    def evaluate(
        name: str, model: bytes, samples: Any, options: Any, seconds_limit: float | None = None
    ) -> list[dict[str, Any]]:
        ask = tasks.evaluate if seconds_limit is None else partial(workers.evaluate, seconds_limit=seconds_limit)
        return ask(name, model, samples, options)

    with contextlib.closing(ChildWorkers(1, 600.0)) as workers, pytest.MonkeyPatch.context() as patch:
        patch.setattr(InProcessWorkers, "evaluate", staticmethod(evaluate))
        yield


@pytest.fixture
def nndeploy_command(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Returns a function that runs `nndeploy` with arguments and gives what came of it."""
    from nndeploy.cli.main import run_command

    def run(*arguments: object, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        capfd.readouterr()
        with monkeypatch.context() as patch:
            if cwd is not None:
                patch.chdir(cwd)
            code = run_command([*map(str, arguments)])
        return subprocess.CompletedProcess(arguments, code, *capfd.readouterr())

    return run


@pytest.fixture
def nndeploy_process() -> Command:
    """Returns a function that does it in a process of its own."""

    def run(*arguments: object, **options: Any) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "nndeploy", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)

    return run


@pytest.fixture(scope="session")
def models_folder() -> Path:
    """Returns the folder of real models; skips where it is absent."""
    if not (MODELS / "index.json").exists():
        pytest.skip(f"the real models are not here ({MODELS.name}/ beside the repository)")
    return MODELS


@pytest.fixture(scope="session")
def real_models(models_folder: Path) -> dict[str, dict[str, Any]]:
    """Returns what index.json says of each real model, by name."""
    return {model["name"]: model for model in json.loads((models_folder / "index.json").read_text())["models"]}


@pytest.fixture(scope="session")
def real_sample(models_folder: Path, real_models: dict[str, dict[str, Any]]) -> Callable[[str], tuple[Any, Any]]:
    """Returns a function: name of a real model -> (inputs, ONNX Runtime's outputs), each by tensor name."""

    def sample(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        keys = real_models[name]["sample_keys"]
        with np.load(models_folder / "samples" / f"{name}.npz", allow_pickle=False) as arrays:
            inputs = {keys[k]: arrays[k] for k in arrays.files if k.startswith("in") and k in keys}
            outputs = {keys[k]: arrays[k] for k in arrays.files if k.startswith("out") and k in keys}
        return inputs, outputs

    return sample
