# SPDX-License-Identifier: Apache-2.0
"""Sessions: threads share the steps of a network and rest between runs; callers, forks and outputs keep apart."""

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import nndeploy_native.native_memory as native_memory
import numpy as np
import pytest
from native_models import Array, assert_all_right, built, model_of, opened, reals
from nndeploy_native.session import NativeSession

from nndeploy.errors import UsageError
from nndeploy.plugin.interface import Artifact

TEXT = """g (float[1,20,9,11] x) => (float[1,20,9,11] y) {
    a = Conv<group=20, pads=[1,1,1,1]>(x, w) b = Sigmoid(a) c = GlobalAveragePool(b) d = Conv(c, v) e = Mul(b, d)
    f = Conv<pads=[1,1,1,1]>(e, u) g1 = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(f) y = Add(g1, x) }"""
WEIGHTS = {"w": reals(20, 1, 3, 3, seed=1), "v": reals(20, 20, 1, 1, seed=2), "u": reals(20, 20, 3, 3, seed=3)}
MODEL = model_of(TEXT, WEIGHTS)
FORKED = """
import json, os, signal, sys
from pathlib import Path
import numpy as np
from nndeploy_native.session import open_session
from nndeploy.plugin.interface import OpenOptions
folder = Path(sys.argv[1])
files = {path.name: memoryview(path.read_bytes()) for path in (folder / "files").iterdir()}
session = open_session(files, json.loads((folder / "metadata.json").read_text()), OpenOptions(threads=3))
x = np.load(folder / "x.npy")
before = session.run({"x": x})["y"]
child = os.fork()
if child == 0:
    signal.alarm(60)  # instead of waiting for ever for threads that it does not have
    same = all(np.array_equal(session.run({"x": x})["y"], before) for _ in range(3))
    threads = len(os.listdir("/proc/self/task"))
    session.close()
    os._exit(0 if same and threads == 3 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert np.array_equal(session.run({"x": x})["y"], before)
session.close()
"""


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    """Returns a network whose steps each need all of the one before."""
    return built(MODEL)


@pytest.fixture
def session(artifact: Artifact) -> Iterator[NativeSession]:
    session = opened(artifact, 3)
    yield session
    session.close()


def _x(seed: int = 0) -> Array:
    return reals(1, 20, 9, 11, seed=seed)


def _assert_right(x: Array, y: Array) -> None:
    assert_all_right(MODEL, {"y": y}, {"x": x}, rtol=1e-5, atol=1e-4)


def _threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def test_every_number_of_threads_gives_the_same_bytes(artifact: Artifact) -> None:
    x = _x()
    alone = opened(artifact).run({"x": x})["y"]
    _assert_right(x, alone)
    for threads in (2, 3, 5):
        session = opened(artifact, threads)
        for _ in range(50):
            assert np.array_equal(session.run({"x": x})["y"], alone)
        session.close()


def test_takes_no_processor_time_between_runs(session: NativeSession) -> None:
    session.run({"x": _x()})
    time.sleep(0.01)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.1


def test_threads_begin_with_the_first_run_and_end_with_the_session(artifact: Artifact) -> None:
    before = _threads()
    session = opened(artifact, 4)
    assert _threads() == before
    session.run({"x": _x()})
    assert _threads() == before + 3
    session.close()
    session.close()
    assert _threads() == before


def test_a_forked_child_computes_with_threads_of_its_own(artifact: Artifact, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for name, data in artifact.files.items():
        (tmp_path / "files" / name).write_bytes(data)
    (tmp_path / "metadata.json").write_text(json.dumps(artifact.metadata))
    np.save(tmp_path / "x.npy", _x())
    command = [sys.executable, "-c", FORKED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr


def test_outputs_that_somebody_holds_are_not_written_again(session: NativeSession) -> None:
    inputs = [_x(seed) for seed in range(8)]
    kept = [session.run({"x": x})["y"] for x in inputs[:3]]
    kept += [session.run({"x": x})["y"][0, 3:5].T for x in inputs[3:6]]  # nothing but a view of a view lives on
    for x in inputs:
        session.run({"x": x})
    for x, y in zip(inputs[:3], kept, strict=False):
        _assert_right(x, y)
    for x, y in zip(inputs[3:6], kept[3:], strict=True):
        np.testing.assert_array_equal(y, session.run({"x": x})["y"][0, 3:5].T)


def test_memory_of_an_output_that_nobody_holds_is_used_again(session: NativeSession) -> None:
    places, others = set(), []
    for _ in range(20):
        y = session.run({"x": _x()})["y"]
        places.add(y.ctypes.data)
        size = y.nbytes + 64
        del y
        others.append(np.zeros(size, np.uint8))  # would take the memory if it were free
    assert len(places) == 1


@pytest.mark.parametrize("num_bytes", [0, 100, 1 << 20, (5 << 20) + 4])
def test_memory_is_zeros_that_begin_at_a_cache_line(num_bytes: int) -> None:
    made = native_memory.aligned_zeros(num_bytes)
    assert made.size == num_bytes
    assert not made.any()
    assert native_memory.address_of(made) % native_memory.ALIGNMENT == 0


@pytest.mark.parametrize("num_floats", [16, 1 << 20])
def test_memory_of_few_and_of_many_bytes_is_used_again_once_nobody_holds_it(num_floats: int) -> None:
    memory = native_memory.OutputMemory("y", np.float32)
    held, first = memory.taken((num_floats,))
    other, second = memory.taken((num_floats,))
    assert first != second
    del held
    assert memory.taken((num_floats // 2, 2))[1] == first
    assert other.shape == (num_floats,)


@pytest.mark.skipif(
    [int(part) for part in platform.release().split(".")[:2]] < [5, 14],
    reason="Linux before 5.14 gives pages one by one",
)
def test_large_memory_is_there_before_it_is_written() -> None:
    made, before = native_memory.aligned_zeros(2 << 20), resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    made[::4096] = 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 256  # of 512 pages


@pytest.mark.parametrize("form", ["strided", "float64", "unaligned"])
def test_inputs_may_lie_in_any_way(session: NativeSession, form: str) -> None:
    x = _x()
    raw = np.empty(x.nbytes + 1, np.uint8)[1:]
    unaligned = raw.view(np.float32).reshape(x.shape)
    unaligned[...] = x
    given = {"strided": np.repeat(x, 2, axis=3)[..., ::2], "float64": x.astype(np.float64), "unaligned": unaligned}[
        form
    ]
    _assert_right(x, session.run({"x": given})["y"])


def test_closed_session_is_an_error(artifact: Artifact) -> None:
    session = opened(artifact)
    session.close()
    with pytest.raises(UsageError):
        session.run({"x": _x()})


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 4), (2, 3, 4, 5)])
@pytest.mark.parametrize("dtype", [np.float32, np.uint16, np.uint8])
def test_the_fast_way_to_an_address_gives_what_numpy_says(shape: tuple[int, ...], dtype: type) -> None:
    whole = np.ones(shape, dtype)
    for array in (whole, whole.T, whole[..., :1] if shape else whole, whole.reshape(-1)[1:]):
        assert native_memory.address_of(array) == array.__array_interface__["data"][0]


def test_another_interpreter_asks_numpy_for_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_memory.sys.implementation, "name", "pypy")
    assert native_memory._address_reader() is native_memory._address_by_interface
