# SPDX-License-Identifier: Apache-2.0
"""What a model holds is told before anything is compiled, and without a library that parses models."""

import subprocess
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest

from nndeploy.errors import MissingInputError, ModelError
from nndeploy.frontend.model_overview import overview_of

MODEL = """<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1]>
g (float[N,3,K] x, float[N] y, seq(int64[K]) s, optional(float16[2]) o, float[2] w, string[?] t)
  => (float[N,3,K] a, bool[N] b) <float[2] w = {1,2}>
{ a1 = Relu(x)  a2 = Relu(a1)  a = com.microsoft.Gelu(a2)  b = IsNaN(y) }"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(onnx.parser.parse_model(MODEL).SerializeToString())
    return path


def test_a_model_is_told_as_its_file_has_it(model: Path) -> None:
    found = overview_of(model)
    assert [(one.name, one.type) for one in found.inputs] == [
        ("x", "float32[N,3,K]"), ("y", "float32[N]"), ("s", "sequence(int64[K])"), ("o", "optional(float16[2])"),
        ("t", "string[?]"),
    ]  # fmt: skip
    assert [(one.name, one.type) for one in found.outputs] == [("a", "float32[N,3,K]"), ("b", "bool[N]")]
    assert found.symbols == {"N": ("x[0]", "y[0]"), "K": ("x[2]",)}
    assert next(iter(found.operators.items())) == ("Relu", 2)
    assert sum(found.operators.values()) == found.num_nodes == 4
    assert found.opsets == {"ai.onnx": 18, "com.microsoft": 1}
    assert (found.ir_version, found.weight_bytes, found.size_bytes) == (8, 8, model.stat().st_size)
    assert not found.has_external_data


def test_what_is_no_model_is_refused_with_its_name(model: Path) -> None:
    model.write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(ModelError, match=r"m\.onnx: not an ONNX model .*GGUF"):
        overview_of(model)
    with pytest.raises(MissingInputError, match=r"none\.onnx"):
        overview_of(model.with_name("none.onnx"))


def test_no_library_that_parses_models_is_loaded(model: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from nndeploy.frontend.model_overview import overview_of;"
        f"overview_of(Path({str(model)!r}));"
        "print(*sorted(m for m in ('onnx', 'onnx_ir', 'onnxruntime', 'google') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
