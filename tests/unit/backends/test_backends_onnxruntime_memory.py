# SPDX-License-Identifier: Apache-2.0
"""Weights of a bundle that ONNX Runtime runs are in memory once, and are right."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from nndeploy_onnxruntime import given_weights
from nndeploy_onnxruntime.given_weights import lendable

HEADER = '<ir_version: 8, opset_import: ["": 17]> g '
SIZE = 2048
WEIGHTS_BYTES = 4 * SIZE * SIZE * 4
MODELS = {
    "products": f"(float[n,{SIZE}] x) => (float[n,{SIZE}] y) "
    "{ a = MatMul(x, w0) b = MatMul(a, w1) c = Gemm(b, w2) y = Gemm <transB = 1> (c, w3) }",
    "rows": f"(int64[n] x) => (float[n,{SIZE}] y) "
    "{ a = Gather(w0, x) b = Gather(w1, x) c = Gather(w2, x) d = Gather(w3, x) y = Sum(a, b, c, d) }",
}
OPENED = """
import json, sys
from pathlib import Path
import numpy as np
from nndeploy_onnxruntime.plugin import Plugin
from nndeploy.files.huge_pages import memory_to_fill
from nndeploy.plugin.interface import OpenOptions

class Files(dict):
    def __getitem__(self, name):
        return memoryview((self.folder / name).read_bytes())
    def sha256(self, name):
        return name
    def taken(self, name):
        memory = memoryview(memory_to_fill((self.folder / name).stat().st_size))
        with (self.folder / name).open("rb") as file:
            file.readinto(memory)
        return memory

def opened(folder):
    files = Files.fromkeys(one.name for one in folder.iterdir())
    files.folder = folder
    return Plugin().open(files, {}, OpenOptions(threads=1))

def anonymous():
    told = Path("/proc/self/status").read_text()
    return int(told.partition("RssAnon:")[2].split()[0]) * 1024

folder, x = Path(sys.argv[1]), np.load(sys.argv[2])
opened(folder / "small").run({"x": x[..., :8]})
before = anonymous()
session = opened(folder / "large")
loaded = anonymous() - before
for _ in range(3):
    y = session.run({"x": x})["y"]
print(json.dumps([loaded, anonymous() - before, y.tolist()]))
"""


def external(text: str, num_weights: int, size: int = 2, overlap: int = 0) -> bytes:
    """Returns a model whose weights, float32[size,size], lie in the file one behind the other, or share some bytes."""
    made = onnx.parser.parse_model(HEADER + text)
    num_bytes = 4 * size * size
    for i in range(num_weights):
        tensor = onnx.TensorProto(name=f"w{i}", data_type=onnx.TensorProto.FLOAT, dims=[size, size])
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", "weights.bin"), ("offset", i * (num_bytes - overlap)), ("length", num_bytes)):
            tensor.external_data.add(key=key, value=str(value))
        made.graph.initializer.append(tensor)
    return made.SerializeToString()


@pytest.mark.parametrize("kind", MODELS)
def test_opened_weights_are_in_memory_once_and_right(kind: str, tmp_path: Path) -> None:
    dice = np.random.default_rng(0)
    weights = dice.standard_normal((4, SIZE, SIZE), np.float32) / np.float32(SIZE**0.5)
    for folder, size, given in ((tmp_path / "large", SIZE, weights), (tmp_path / "small", 8, weights[:, :8, :8])):
        folder.mkdir()
        (folder / "model.onnx").write_bytes(external(MODELS[kind].replace(str(SIZE), str(size)), 4, size))
        np.ascontiguousarray(given).tofile(folder / "weights.bin")
    x = np.array([5, 0, 7]) if kind == "rows" else dice.standard_normal((3, SIZE), np.float32)
    np.save(tmp_path / "x.npy", x)
    command = [sys.executable, "-c", OPENED, str(tmp_path), str(tmp_path / "x.npy")]
    loaded, after_runs, y = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert max(loaded, after_runs) < 1.25 * WEIGHTS_BYTES  # twice that, were the originals kept
    exact = weights.astype(np.float64)
    right = sum(one[x] for one in exact) if kind == "rows" else x @ exact[0] @ exact[1] @ exact[2] @ exact[3].T
    np.testing.assert_allclose(y, right, atol=1e-4)


def lent(text: str, num_weights: int = 1, num_bytes: int = 64) -> list[str]:
    return [one.name for one in lendable(external(text, num_weights), num_bytes)]


IO = "(float[2,2] x, bool c) => (float[2,2] y) "


def test_constants_are_lent_where_only_kernels_that_pack_them_or_take_rows_of_them_read_them() -> None:
    assert lent(IO + "{ a = MatMul(x, w0) y = Gemm(a, w0) }") == ["w0"]
    assert lent(IO + "{ a = MatMul(x, w0) y = Add(a, w0) }") == []
    assert lent(IO + "{ a = MatMul(x, w0) b = MatMul(a, w1) y = Mul(b, w2) }", 3) == ["w0", "w1"]
    assert lent("(float[2,2] x) => (float[2,2] y, float[2,2] w0) { y = MatMul(x, w0) }") == []


def test_constants_that_a_body_may_read_are_not_lent() -> None:
    bodies = (f"{name} = {name} () => (float[2,2] p) {{ p = Neg(w0) }}" for name in ("then_branch", "else_branch"))
    text = f"{{ a = If <{', '.join(bodies)}> (c) b = MatMul(a, w0) y = MatMul(b, w1) }}"
    assert lent(IO + text, 2) == ["w1"]


def test_constants_beyond_the_end_of_the_file_are_not_lent() -> None:
    assert lent(IO + "{ a = MatMul(x, w0) y = MatMul(a, w1) }", 2, num_bytes=31) == ["w0"]


def test_nothing_is_lent_where_constants_share_bytes() -> None:
    text = IO + "{ a = MatMul(x, w0) y = MatMul(a, w1) }"
    assert lendable(external(text, 2, overlap=4), 64) == []
    assert lendable(external(text, 2).replace(b"\x02\x31\x36", b"\x02\x31x"), 64) == []  # "1x" bytes, or there


def test_a_lent_constant_has_the_place_and_the_form_that_the_model_says() -> None:
    (_, second) = lendable(external(IO + "{ a = MatMul(x, w0) y = MatMul(a, w1) }", 2), 64)
    assert second == ("w1", "float32", (2, 2), 16, 32)


def test_nothing_is_lent_to_a_release_that_was_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    assert given_weights._is_lending_known()  # of the release that is locked
    monkeypatch.setattr(given_weights.onnxruntime(), "__version__", "1.99.0")
    assert not given_weights._is_lending_known()
