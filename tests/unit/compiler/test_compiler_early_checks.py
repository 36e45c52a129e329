# SPDX-License-Identifier: Apache-2.0
"""What no compile can do is refused before a process is started for it, and before a library is loaded."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest

from nndeploy.cli.main import run_command
from nndeploy.compiler import cached_compile
from nndeploy.compiler.early_checks import check_early
from nndeploy.errors import ModelError, UsageError
from nndeploy.frontend.declared_inputs import DeclaredInput, check_shape_names, declared_inputs
from nndeploy.frontend.shape_texts import parse_shape_options

MODEL = """<ir_version: 8, opset_import: ["": 18]>
g (float[N,3,?] x, float y, seq(float[K]) s, float[] z) => (float[N,3,?] o) <float[2] w = {1,2}> { o = Relu(x) }"""
INPUTS = {
    "x": DeclaredInput(("N", "3", "?")), "y": DeclaredInput(()), "s": DeclaredInput(None), "z": DeclaredInput(None),
}  # fmt: skip


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    found = onnx.parser.parse_model(MODEL)
    found.graph.input[3].type.tensor_type.ClearField("shape")
    Path("m.onnx").write_bytes(found.SerializeToString())
    return "m.onnx"


def test_inputs_are_read_as_the_file_declares_them(model: str) -> None:
    assert declared_inputs(Path(model).read_bytes()) == INPUTS


@pytest.mark.parametrize(("option", "value"), [
    *(("--time-limit", text) for text in ("0", "-0.0", "-1", "nan", "inf", "x")),
    *(("--total-time-limit", text) for text in ("0", "-1", "nan", "inf")),
    *(("--shape", text) for text in ("q=1", "x=1,3", "y=1", "x=a,", "x", "N=1..0", "x=-4,3,1")),
    ("--max-shapes", "x:1x3x4"), ("--jobs", "0"), ("--memory-limit", "0"), ("--rtol", "nan"), ("--atol", "inf"),
    ("--quantise-tolerance", "nan"), *(("--backends", text) for text in ("nowhere", "native,nowhere", ",")),
    ("--without", "nowhere"), ("--pin", "Relu=nowhere"), ("--require", "nowhere=1%"), ("--target", "nowhere"),
    ("--place", "moon=1GiB"), ("--objective", "fun"),
])  # fmt: skip
def test_what_has_no_meaning_starts_nothing(model, monkeypatch, capsys, option, value) -> None:
    def started(*_: Any, **__: Any) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(cached_compile, "compile_in_child", started)
    assert run_command(["compile", model, "-o", "m.nnd", "--no-cache", option, value]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    "texts", [("x=1,3,4",), ("x=1,3,4:1,3,4",), ("N=4",), ("x=b,3,4", "b=1..8"), ("s=1,2",), ("z=1,2,3,4",), ("y=",)]
)
def test_what_may_have_a_meaning_is_for_the_compile_to_judge(texts: tuple[str, ...]) -> None:
    check_shape_names(parse_shape_options(texts), INPUTS)


def test_a_name_that_is_near_is_told() -> None:
    with pytest.raises(UsageError) as error:
        check_shape_names(parse_shape_options(["X=1"]), INPUTS)
    assert "'x'" in error.value.hint


@pytest.mark.parametrize("data", [b"", b"\xff" * 9, b"PK\x03\x04"])
def test_what_is_no_model_is_for_the_compile_to_tell(model: str, data: bytes) -> None:
    with pytest.raises(ModelError):
        declared_inputs(data)
    Path(model).write_bytes(data)
    check_early(Path(model), {"shapes": ["q=1"]})


def test_nothing_that_parses_models_is_loaded(model: str) -> None:
    code = (
        "import sys; from nndeploy.cli.main import run_command;"
        "assert run_command(['compile', 'm.onnx', '-o', 'm.nnd', '--no-cache', '--shape', 'q=1']) == 2;"
        "print(*sorted(m for m in ('onnx', 'onnx_ir', 'onnxruntime', 'google') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
