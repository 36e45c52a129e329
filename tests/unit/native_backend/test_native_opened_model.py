# SPDX-License-Identifier: Apache-2.0
"""Sessions of the same files share one model: its weights are read and packed once, and freed with the last of them."""

import ctypes
import gc
import hashlib
import json
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from native_models import built, model_of, reals
from nndeploy_native import opened_model as module
from nndeploy_native.session import NativeSession, open_session

from nndeploy.errors import BundleError
from nndeploy.plugin.interface import Artifact, BundledFiles, OpenOptions

TEXT = "g (float[3,40] x) => (float[3,50] y) { a = MatMul(x, w) y = Relu(a) }"
X = reals(3, 40, seed=1)
SHARING = """
import json, mmap, sys
from pathlib import Path
import numpy as np
from nndeploy.plugin.interface import OpenOptions
from nndeploy_native.session import open_session

def resident():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Rss:")) << 10

class Files(dict):
    def sha256(self, name):
        return name

def mapped(path):
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

folder = Path(sys.argv[1])
metadata = json.loads((folder / "metadata.json").read_text())
x, sessions, sizes = np.ones((1, 1500), np.float32), [], []
for _ in range(4):
    files = Files({path.name: mapped(path) for path in (folder / "files").iterdir()})
    sessions.append(open_session(files, metadata, OpenOptions(threads=1)))
    del files
    sessions[-1].run({"x": x})
    sizes.append(resident())
print(json.dumps([sizes[0], sizes[-1] - sizes[0]]))
"""


class Files(Mapping[str, memoryview]):
    """Files as those of a bundle: what they hold is known without reading them."""

    def __init__(self, files: Mapping[str, bytes | memoryview], sha256: Mapping[str, str] | None = None) -> None:
        self._files = dict(files)
        self._sha256 = dict(sha256 or {})
        self.read: list[str] = []

    def __getitem__(self, name: str) -> memoryview:
        self.read.append(name)
        return memoryview(self._files[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def __len__(self) -> int:
        return len(self._files)

    def sha256(self, name: str) -> str:
        return self._sha256.get(name) or hashlib.sha256(self._files[name]).hexdigest()


def artifact_of(seed: int) -> Artifact:
    return built(model_of(TEXT, {"w": reals(40, 50, seed=seed)}))


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    return artifact_of(2)


def session_of(files: Mapping[str, memoryview], artifact: Artifact, threads: int = 1) -> NativeSession:
    return open_session(files, artifact.metadata, OpenOptions(threads=threads))


def test_files_of_a_bundle_say_what_they_hold(artifact: Artifact) -> None:
    assert isinstance(Files(artifact.files), BundledFiles)
    assert not isinstance(dict(artifact.files), BundledFiles)


def test_sessions_of_the_same_files_share_a_model(artifact: Artifact) -> None:
    first, second = Files(artifact.files), Files(artifact.files)
    a, b = session_of(first, artifact), session_of(second, artifact)
    assert a._model is b._model
    assert "weights.bin" in first.read
    assert "weights.bin" not in second.read
    wanted = np.maximum(X @ reals(40, 50, seed=2), 0)
    a.close()
    np.testing.assert_allclose(b.run({"x": X})["y"], wanted, rtol=1e-5, atol=1e-5)


def test_a_model_goes_with_the_last_who_holds_it(artifact: Artifact) -> None:
    a, b = session_of(Files(artifact.files), artifact), session_of(Files(artifact.files), artifact)
    model, before = weakref.ref(a._model), len(module._places)
    del a
    gc.collect()
    assert model() is b._model
    del b
    gc.collect()
    assert model() is None
    assert len(module._places) == before - 1
    session_of(Files(artifact.files), artifact).run({"x": X})


def test_other_weights_threads_or_plans_are_not_shared(artifact: Artifact) -> None:
    other = artifact_of(3)
    assert other.files["plan.bin"] == artifact.files["plan.bin"]
    longer = built(model_of(TEXT.replace("Relu", "Tanh"), {"w": reals(40, 50, seed=2)}))
    assert longer.files["weights.bin"] == artifact.files["weights.bin"]
    sessions = [session_of(Files(one.files), one) for one in (artifact, other, longer)]
    sessions.append(session_of(Files(artifact.files), artifact, threads=2))
    assert len({id(session._model) for session in sessions}) == 4
    results = [session.run({"x": X})["y"] for session in sessions]
    assert not np.array_equal(results[0], results[1])
    assert not np.array_equal(results[0], results[2])
    assert np.array_equal(results[0], results[3])


def test_files_that_do_not_say_what_they_hold_are_not_shared(artifact: Artifact) -> None:
    a, b = (session_of({name: memoryview(data) for name, data in artifact.files.items()}, artifact) for _ in range(2))
    assert a._model is not b._model


def test_threads_that_open_at_once_read_the_weights_once(artifact: Artifact) -> None:
    everyone, opened = threading.Barrier(8), [Files(artifact.files) for _ in range(8)]

    def session(files: Files) -> NativeSession:
        everyone.wait()
        return session_of(files, artifact)

    with ThreadPoolExecutor(8) as pool:
        sessions = list(pool.map(session, opened))
    assert len({id(one._model) for one in sessions}) == 1
    assert sum(files.read.count("weights.bin") for files in opened) == 1


def test_what_is_refused_is_refused_again(artifact: Artifact) -> None:
    broken = {**artifact.files, "weights.bin": bytes(64)}
    for _ in range(2):
        with pytest.raises(BundleError, match="weight 0 is too large"):
            session_of(Files(broken), artifact)
    gc.collect()
    assert all(place.model is None or place.model() is not None for place in module._places.values())


def test_options_are_told_apart_by_their_bytes() -> None:
    assert bytes(module.Options(1, 2, 3)) != bytes(module.Options(1, 2, 4))
    assert len(bytes(module.Options(1, 2, 3))) == ctypes.sizeof(module.Options)


def test_memory_does_not_grow_with_sessions(tmp_path: Path) -> None:
    size = 1500
    weights = {f"w{i}": reals(size, size, seed=i) for i in range(3)}
    text = f"g (float[1,{size}] x) => (float[1,{size}] y) {{ a = MatMul(x, w0) b = MatMul(a, w1) y = MatMul(b, w2) }}"
    artifact = built(model_of(text, weights))
    (tmp_path / "files").mkdir()
    for name, data in artifact.files.items():
        (tmp_path / "files" / name).write_bytes(data)
    (tmp_path / "metadata.json").write_text(json.dumps(dict(artifact.metadata)), encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", SHARING, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, more = json.loads(done.stdout)
    assert first > 3 * 4 * size * size
    assert more < 4 * size * size // 2  # of three more sessions: half a matrix at most
