# SPDX-License-Identifier: Apache-2.0
"""`inspect --tables --shape`: what each step would do at sizes that the user names, or at those of a stored sample."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest
from onnx import TensorProto, save
from separable_model import needs_native

from nndeploy.cli.main import run_command


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pair of convolutions whose height and width are open."""
    needs_native()
    dice = np.random.default_rng(0)
    weights = {"d": (16, 1, 3, 3), "p": (32, 16, 1, 1)}
    arrays = [onh.from_array(dice.random(shape, np.float32), name) for name, shape in weights.items()]
    nodes = [
        oh.make_node("Conv", ["x", "d"], ["a"], group=16, pads=[1, 1, 1, 1]),
        oh.make_node("Conv", ["a", "p"], ["y"]),
    ]
    inputs = [oh.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, "h", "w"])]
    outputs = [oh.make_tensor_value_info("y", TensorProto.FLOAT, [1, 32, "h", "w"])]
    opset = [oh.make_opsetid("", 17)]
    pair = oh.make_model(oh.make_graph(nodes, "pair", inputs, outputs, arrays), opset_imports=opset, ir_version=8)
    path = tmp_path_factory.mktemp("pair") / "pair.onnx"
    save(pair, path)
    return path


@pytest.fixture(scope="module")
def bundle(model: Path) -> str:
    return compiled(model)


def compiled(model: Path, *options: str) -> str:
    out = model.with_name(f"{len(options)}.nnd")
    assert run_command(["compile", str(model), "-o", str(out), "--backends", "native", *options]) == 0
    return str(out)


def told(capsys: pytest.CaptureFixture[str], bundle: str, *options: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run_command(["inspect", bundle, "--tables", "--json", *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "ranges"])
def test_steps_are_told_for_any_sizes(model: Path, bundle: str, capsys: pytest.CaptureFixture[str], is_open) -> None:
    path = bundle if is_open else compiled(model, "--shape", "x=1,16,8..128,8..512")
    for height, width in ((40, 24), (101, 500)):
        found = told(capsys, path, "--shape", f"x=1,16,{height},{width}")
        assert found["shapes"] == {"x": [1, 16, height, width]}
        (step,) = [one for one in found["tables"][0]["steps"] if one["windows"]]
        assert step["shape"] == [1, 32, height, width]
        cut = step["windows"]["rows"]
        assert (cut["parts"] > 1) == (height > 100)
        assert (cut["parts"] - 1) * cut["size"] + cut["last"] == height
        assert step["scratch_bytes"] > 0
        assert step["kept_bytes"] == 4 * 16 * height * width  # what lies between, which no step writes


def test_without_sizes_they_are_those_of_a_stored_sample(bundle: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, bundle)
    (shape,) = found["shapes"].values()
    assert found["tables"][0]["steps"][-1]["shape"][2:] == shape[2:]
    capsys.readouterr()
    assert run_command(["inspect", bundle, "--tables"]) == 0
    assert f"x[{','.join(map(str, shape))}]" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize(("shape", "code"), [
    ("x=1,15,8,8", 65), ("x=1,16,8", 65), ("z=1", 65), ("x=1,16,8,8,", 2),
    ("x=1,16,8..9,8", 2), ("1,2", 2),
])  # fmt: skip
def test_what_is_no_shape_of_an_input_is_refused(bundle: str, shape: str, code: int) -> None:
    assert run_command(["inspect", bundle, "--tables", "--shape", shape]) == code


def test_sizes_are_for_tables_alone(bundle: str) -> None:
    assert run_command(["inspect", bundle, "--shape", "x=1,16,8,8"]) == 2
