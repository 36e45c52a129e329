# SPDX-License-Identifier: Apache-2.0
"""Sessions of the same files share one model: its weights are read and packed once, and freed with the last of them."""

import gc
import json
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from bundled_files import Files
from native_models import built, model_of, reals
from nndeploy_native import opened_model as module
from nndeploy_native.session import NativeSession, open_session

from nndeploy.bundle.manifest import Manifest, NamedType, Submodel, Variant
from nndeploy.bundle.writer import write_bundle
from nndeploy.errors import BundleError
from nndeploy.plugin.interface import Artifact, OpenOptions
from nndeploy.values.types import TensorType

TEXT = "g (float[3,40] x) => (float[3,50] y) { a = MatMul(x, w) y = Relu(a) }"
X = reals(3, 40, seed=1)


def artifact_of(seed: int) -> Artifact:
    return built(model_of(TEXT, {"w": reals(40, 50, seed=seed)}))


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    return artifact_of(2)


def session_of(files: Mapping[str, memoryview], artifact: Artifact, threads: int = 1) -> NativeSession:
    return open_session(files, artifact.metadata, OpenOptions(threads=threads))


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


LARGE = """g (float[4,500] x) => (float[4,500] y, float[4,500] z) {
    a = MatMul(x, w) b = MatMul(a, v) c = Add(b, row) d = Gemm<transB=1>(c, t) e = MatMul(d, w) f = Mul(e, row)
    g1 = MatMul(f, u) y = Relu(g1) h = Reshape(f, images) i = Conv(h, k) j = Reshape(i, rows) z = MatMul(j, same) }"""


def large_weights() -> dict[str, np.ndarray]:
    """Some are read by two steps, or are the bytes of another in another shape: their pages stay, all others go."""
    w = reals(500, 500, seed=1) / 20
    return {
        "w": w, "v": reals(500, 500, seed=2) / 20, "t": reals(500, 500, seed=3) / 20, "u": reals(500, 500, seed=4) / 20,
        "row": reals(500, seed=5), "k": reals(500, 500, 1, 1, seed=6) / 20, "same": w.reshape(1, 500, 500)[0],
        "images": np.array([4, 500, 1, 1]), "rows": np.array([4, 500]),
    }  # fmt: skip


@pytest.mark.parametrize("threads", [1, 3])
def test_weights_that_are_given_away_are_packed_before(threads: int) -> None:
    artifact, x = built(model_of(LARGE, large_weights())), reals(4, 500, seed=7)
    plain = {name: memoryview(data) for name, data in artifact.files.items()}
    kept = session_of(plain, artifact, threads).run({"x": x})
    files = Files(artifact.files)
    session = session_of(files, artifact, threads)
    given = session.run({"x": x})
    for name, wanted in kept.items():
        assert np.abs(wanted).max() > 0.1
        assert np.array_equal(given[name], wanted), name
    pages = session._model._weights.reshape(-1)[: len(artifact.files["weights.bin"]) // 4096 * 4096].reshape(-1, 4096)
    share_gone = (~pages.any(axis=1)).mean()
    assert 0.5 < share_gone < 0.9


def test_weights_that_overlap_stay() -> None:
    artifact = built(model_of(TEXT.replace("40", "400").replace("50", "300"), {"w": reals(400, 300, seed=1)}))
    words = np.frombuffer(artifact.files["plan.bin"], np.int64).tolist()
    at = 5 + 3 * words[4]  # the number of weights is behind the rules
    one = [0, 0, 2, 400, 300]
    assert words[at : at + 6] == [1, *one]
    overlapping = [*words[:at], 2, *one, 0, 1200, 2, 399, 300, *words[at + 6 :]]
    overlapping[2] = len(overlapping)
    wanted = np.maximum(reals(3, 400, seed=3) @ reals(400, 300, seed=1), 0)
    for plan, is_there in ((words, False), (overlapping, True)):
        files = Files({**artifact.files, "plan.bin": np.array(plan, np.int64).tobytes()})
        session = session_of(files, artifact)
        assert session._model._weights[8 * 4096 : 9 * 4096].any() == is_there
        np.testing.assert_allclose(session.run({"x": reals(3, 400, seed=3)})["y"], wanted, rtol=1e-4, atol=1e-4)


PEAK = """
import json, sys
from pathlib import Path
import numpy as np
import nndeploy

def status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(field))) << 10

x, small = np.ones((1, 1500), np.float32), sys.argv[2]
with nndeploy.load_bundle(small, nndeploy.LoadOptions(threads=2)) as program:  # what any load takes
    program.run({"x": np.ones((3, 40), np.float32)})
before = status("VmRSS")
with nndeploy.load_bundle(sys.argv[1], nndeploy.LoadOptions(threads=2)) as program:
    program.run({"x": x})
    print(json.dumps([status("VmHWM") - before, status("VmRSS") - before]))
"""


def bundle_of(path: Path, artifact: Artifact, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> Path:
    """A bundle of one submodel, x -> y, of an artifact of native."""
    names = {name: f"submodels/a/v/{name}" for name in artifact.files}
    variant = Variant("v", "native", "any", names, artifact.metadata, {})
    types = dict(zip("xy", (TensorType("float32", shape) for shape in shapes), strict=True))
    manifest = Manifest(
        "m", "0" * 64, (NamedType("x", types["x"]),), (NamedType("y", types["y"]),),
        (Submodel("a", ("x",), ("y",), (variant,)),), types,
    )  # fmt: skip
    write_bundle(path, manifest, {names[name]: data for name, data in artifact.files.items()}, {})
    return path


def test_plain_and_packed_weights_are_not_both_in_memory(tmp_path: Path, artifact: Artifact) -> None:
    size = 1500
    text = "g (float[1,1500] x) => (float[1,1500] y) { a = MatMul(x, w0) b = MatMul(a, w1) c = MatMul(b, w2) "
    text += "d = MatMul(c, w3) e = MatMul(d, w4) y = MatMul(e, w5) }"
    large = built(model_of(text, {f"w{i}": reals(size, size, seed=i) for i in range(6)}))
    bundle = bundle_of(tmp_path / "large.nnd", large, ((1, size), (1, size)))
    small = bundle_of(tmp_path / "small.nnd", artifact, ((3, 40), (3, 50)))
    command = [sys.executable, "-c", PEAK, str(bundle), str(small)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    peak, held = json.loads(done.stdout)
    weights = 6 * 4 * size * size
    assert weights < peak < 1.45 * weights  # both of one or two of the six, and what a call takes
    assert held < 1.15 * weights
