# SPDX-License-Identifier: Apache-2.0
"""Submodels in processes of their own: the same results, and a crash, a hang or a theft costs one item."""

import contextlib
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from compile_with import compile_with
from plugin_distribution import write_distribution

import nndeploy
from nndeploy.errors import DataError, UnavailableError, UsageError
from nndeploy.jobs.workers import InProcessWorkers
from nndeploy.plugin import registry
from nndeploy.runtime.isolated_session import IsolatedSession
from nndeploy.runtime.program import Program
from nndeploy.sandbox.enter import missing

PLUGIN = r"""
import os, signal, stat, time
from dataclasses import replace
from pathlib import Path
from nndeploy_onnxruntime.plugin import Plugin as Installed

MARK = Path(@MARK@)


class Tricky:
    def __init__(self, session):
        self._session = session

    def run(self, inputs):
        match int(inputs["x"][0]):
            case 1:
                os.kill(os.getpid(), signal.SIGSEGV)
            case 2:
                time.sleep(60)
            case 3:
                MARK.write_text("x")
            case 4:
                os.kill(os.getpid(), signal.SIGSTOP)
            case 5:
                os._exit(0)
            case 6 if not seen():
                os.kill(os.getpid(), signal.SIGKILL)
            case 7 | 8 | 9 as number:
                said = {7: b'{"bytes": 123456789}\n', 8: b'{"bytes": "all"}\n', 9: b'{"bytes": 1'}[number]
                for descriptor in range(3, 20):
                    try:
                        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                            os.write(descriptor, said)
                    except OSError:
                        pass
                time.sleep(0 if number == 8 else 60)  # of 8 another answer may be there before it is read
        return self._session.run(inputs)

    def close(self):
        self._session.close()


def seen():
    '''Whether the folder of the worker, which outlives it, was seen by the worker before.'''
    mark = Path(os.environ["HOME"], "seen")
    was_there = mark.exists()
    mark.touch()
    return was_there


told = {name: value for name, value in vars(Installed).items() if name not in ("code_files", "__dict__", "__weakref__")}


class Plugin(type("Good", Installed.__bases__, told)):
    tier = 1

    def open(self, files, metadata, options):
        return Tricky(super().open(files, metadata, options))


Plugin.name = "tricky"
"""
"""It tells of nothing whether it is code, so all of it counts as code; what it does depends on the first input."""


def site_of(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    source = PLUGIN.replace("@MARK@", repr(str(tmp_path / "stolen")))
    write_distribution(site, "tricky_plugin", source, "nndeploy.backends", "tricky:Plugin")
    return site


@pytest.fixture(scope="module")
def tricky(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bundle for the backend that does what its input says, and the backend."""
    folder = tmp_path_factory.mktemp("tricky")
    site = site_of(folder)
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
    (folder / "m.onnx").write_bytes(onnx.parser.parse_model(text).SerializeToString())
    with installed(site):
        options = {"backends": ("tricky",), "keep_fallback": False, "samples": [{"x": np.zeros(2, np.float32)}]}
        compile_with(folder / "m.onnx", folder / "m.nnd", **options, workers=InProcessWorkers())
    return folder


@contextlib.contextmanager
def installed(site: Path) -> Iterator[None]:
    """Lets this process find the backend, and with it the workers, for as long as the block lasts."""
    point = metadata.EntryPoint("tricky", "tricky_plugin:Plugin", "nndeploy.backends")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        patch.setattr(registry.PLUGINS, "_all", {**registry.PLUGINS._all, "tricky": (point,)})
        registry.backend.cache_clear()
        yield
    registry.backend.cache_clear()


Run = Callable[..., tuple[int, list[dict[str, object]]]]


@pytest.fixture
def run(tricky: Path, tmp_path: Path, nndeploy_command: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Returns a function that runs items, each by its first number: (exit code, records)."""

    def run_items(first: list[int], *options: str) -> tuple[int, list[dict[str, object]]]:
        (tricky / "x.jsonl").write_text("".join(json.dumps({"x": [number, 20]}) + "\n" for number in first))
        done = nndeploy_command("run", "m.nnd", "-i", "x.jsonl", "-o", "-", *options, cwd=tricky)
        assert list(tmp_path.iterdir()) == [], done.stderr
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with installed(tricky / "site"):
        yield run_items


def told(records: list[dict[str, object]]) -> list[str]:
    return [str(record.get("error", "")) for record in records]


def test_a_crash_is_one_error_and_the_stream_goes_on(run) -> None:
    exit_code, records = run([0, 1, 21, 5, 22], "--isolate", "code")
    assert exit_code == 1
    assert len(records) == 5
    errors = told(records)
    assert [bool(error) for error in errors] == [False, True, False, True, False]
    assert "crashed (SIGSEGV), twice" in errors[1]
    assert "ended with status 0, twice" in errors[3]


def test_what_crashes_once_is_done_again(run) -> None:
    exit_code, records = run([6, 21], "--isolate", "code")
    assert (exit_code, told(records)) == (0, ["", ""])


@pytest.mark.parametrize("hang", [2, 4], ids=["sleeps", "is stopped"])
def test_a_hang_ends_when_its_time_is_over(run, hang) -> None:
    began = time.monotonic()
    exit_code, records = run([0, hang, 21], "--isolate", "all", "--item-timeout", "1")
    assert time.monotonic() - began < 20
    assert exit_code == 1
    errors = told(records)
    assert [bool(error) for error in errors] == [False, True, False]
    assert "no answer within 1 s" in errors[1]


def test_what_is_no_answer_ends_the_worker_and_is_no_result(run) -> None:
    exit_code, records = run([0, 7, 21, 8, 9, 22], "--isolate", "code", "--item-timeout", "1")
    assert exit_code == 1
    errors = told(records)
    assert [bool(error) for error in errors] == [False, True, False, True, True, False]
    assert "there are no 123456789 bytes of values" in errors[1]
    assert "sent an invalid response, twice" in errors[3]
    assert "no answer within 1 s" in errors[4]
    assert records[2]["outputs"] == {"y": [-21.0, -20.0]}


@pytest.mark.skipif(bool(missing()), reason=f"this kernel has no {missing()}")
def test_a_worker_writes_nothing(run, tricky) -> None:
    exit_code, records = run([3, 21], "--isolate", "code")
    assert exit_code == 1
    assert "Permission denied" in told(records)[0]
    assert not (tricky / "stolen").exists()
    assert run([3], "--isolate", "none")[0] == 0
    (tricky / "stolen").unlink()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of two submodels, with a shape that is open."""
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[N,8] x) => (float[N,8] y, float[N] z) { a = Relu(x) y = Softmax(a) z = ReduceSum<keepdims = 0>(y, one) }
    """
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1]), "one"))
    path = tmp_path_factory.mktemp("bundle") / "m.nnd"
    options = nndeploy.CompileOptions(
        backends=("onnxruntime", "reference"), pins=(("*Softmax*", "reference"),), objective="priority"
    )
    nndeploy.compile_model(model, path, options, workers=InProcessWorkers())
    return path


def isolated(path: Path, **options: object) -> Program:
    return nndeploy.load_bundle(path, nndeploy.LoadOptions(isolate="all", **options))


def test_the_results_are_the_same_and_the_callers_own(bundle) -> None:
    with nndeploy.load_bundle(bundle) as here, isolated(bundle) as there:
        assert all(isinstance(session, IsolatedSession) for session in there._opened.sessions)
        assert here.choices == there.choices
        for rows in (3, 1, 500, 0, 2):
            x = np.random.default_rng(rows).normal(size=(rows, 8)).astype(np.float32)
            want, got = here.run({"x": x}), there.run({"x": x})
            for name in want:
                np.testing.assert_array_equal(got[name], want[name])
                got[name][...] = 0  # it is the caller's


def test_submodels_without_code_stay_here_where_only_code_is_isolated(bundle) -> None:
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(isolate="code")) as program:
        assert not any(isinstance(session, IsolatedSession) for session in program._opened.sessions)


def test_a_new_worker_goes_on_where_the_bundle_was_removed_or_replaced(bundle, tmp_path) -> None:
    path, x = tmp_path / "m.nnd", {"x": np.ones((1, 8), np.float32)}
    path.write_bytes(bundle.read_bytes())
    with isolated(path) as program:
        session = program._opened.sessions[0]
        for change in (path.unlink, lambda: path.write_bytes(b"another")):
            change()
            os.kill(session._worker._process.pid, signal.SIGKILL)
            assert program.run(x)["z"] == pytest.approx(1)


def test_a_bundle_that_was_overwritten_is_not_taken_by_a_new_worker(bundle, tmp_path) -> None:
    path, other = tmp_path / "m.nnd", tmp_path / "other.nnd"
    path.write_bytes(bundle.read_bytes())
    with isolated(path) as program:
        session = program._opened.sessions[0]
        model = onnx.parser.parse_model(
            '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
        )
        compile_with(model, other, backends=("reference",), workers=InProcessWorkers())
        with path.open("r+b") as file:
            file.write(other.read_bytes())
            file.truncate()
        os.kill(session._worker._process.pid, signal.SIGKILL)
        with pytest.raises(DataError, match="overwritten after it was opened"):
            program.run({"x": np.ones((1, 8), np.float32)})


def test_nothing_is_left_when_it_is_closed(bundle) -> None:
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    program = isolated(bundle)
    workers = [session._worker._process.pid for session in program._opened.sessions]
    program.close()
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


def test_what_makes_no_sense_is_refused(bundle) -> None:
    with pytest.raises(UsageError, match="only an isolated submodel"):
        nndeploy.LoadOptions(item_timeout=1.0)
    with pytest.raises(UsageError, match="isolate is none or code or all"):
        nndeploy.LoadOptions(isolate="some")
    with pytest.raises(UnavailableError), isolated(bundle, device="cuda:7"):
        pass
