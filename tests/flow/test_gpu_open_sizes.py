# SPDX-License-Identifier: Apache-2.0
"""Models with open sizes on boxes with GPUs: chains for usual sizes, and what becomes of a call with another."""

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from compile_with import compile_with, compiled_once
from faulty_backends import Install, good_backend
from nndeploy_cudnn import session
from oracle.in_float64 import outputs_in_float64
from pretended_gpus import box, gpu_backend, machine_with

import nndeploy
from nndeploy.bundle.reader import open_bundle
from nndeploy.cli.main import run_command
from nndeploy.errors import InputError, UnavailableError
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.plugin.interface import Support
from nndeploy.plugin.registry import backend
from nndeploy.runtime.batching import JoinedCalls
from nndeploy.target.known_targets import target_of
from nndeploy.values.types import DimRange

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "cudnn"))
from cudnn_interpreter import InterpretedHandle

T4 = box("t4 box", "7.5")
WEIGHTS = np.random.default_rng(0).standard_normal((64, 10)).astype(np.float32)


def model(rows: str = "N") -> onnx.ModelProto:
    found = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
    digits (float[{rows},64] x) => (float[{rows},10] y) {{ a = MatMul(x, w)  y = Tanh(a) }}""")
    found.graph.initializer.append(onnx.numpy_helper.from_array(WEIGHTS, "w"))
    if rows == "?":
        for value in (*found.graph.input, *found.graph.output):
            value.type.tensor_type.shape.dim[0].ClearField("dim_param")
    return found


@pytest.fixture
def gpu(install: Install) -> Any:
    """A backend for GPUs that takes what has ranges for all of its sizes, as those do that build for ranges."""

    class Bounded(gpu_backend("gpu", "MatMul", "Tanh")):  # type: ignore[misc]
        def supports(self, model: Any, target: Any, options: Any) -> list[Support]:
            shapes = [value.shape for value in model.graph.inputs]
            dims = {dim for shape in shapes for dim in shape or () if not isinstance(dim, int)}
            if None in shapes or any(dim.value not in options.ranges for dim in dims):
                return [Support(False, "a size has no range")] * len(model.graph)
            return super().supports(model, target, options)

    install(Bounded)
    return Bounded


ASKED = {"backends": ("gpu", "native", "onnxruntime", "reference"), "targets": (T4,), "objective": "priority"}


def compiled(path: Path, rows: str = "N", **options: Any) -> Any:
    with machine_with():
        return compile_with(model(rows), path, **{**ASKED, **options})


def bundle_of(path: Path, rows: str = "N") -> Path:
    """Writes the bundle of what no option changes; returns its path."""
    onnx.save(model(rows), path.with_suffix(".onnx"))
    with machine_with():
        return compiled_once(path.with_suffix(".onnx"), path, **ASKED)


def inputs(rows: int) -> dict[str, Any]:
    return {"x": np.linspace(-1, 1, rows * 64, dtype=np.float32).reshape(rows, 64)}


def assert_right(outputs: dict[str, Any], rows: int) -> None:
    np.testing.assert_allclose(outputs["y"], np.tanh(inputs(rows)["x"] @ WEIGHTS), rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("rows", "symbol"), [("N", "N"), ("?", "x.0")])
def test_an_open_batch_gets_a_chain_for_usual_sizes_that_the_manifest_names(tmp_path, rows, symbol) -> None:
    report = compiled(tmp_path / "m.nnd", rows)
    (chain,) = report.used_chains
    assert chain.ranges == {symbol: "1..8"}
    assert not any(found.idle_gpu for found in report.target_chains)
    with open_bundle(tmp_path / "m.nnd") as bundle:
        assert bundle.manifest.ranges == {}
        assert bundle.manifest.target_chains[0].ranges == {symbol: DimRange(1, 8, 1)}


@pytest.mark.usefixtures("gpu")
def test_inspect_and_diff_show_the_ranges_of_a_chain(tmp_path, capsys) -> None:
    bundle_of(tmp_path / "m.nnd")
    compiled(tmp_path / "n.nnd", samples=[inputs(9)])
    assert run_command(["inspect", str(tmp_path / "m.nnd")]) == 0
    assert re.search(r"t4-box +N +1\.\.8", capsys.readouterr().out)
    assert run_command(["diff", str(tmp_path / "m.nnd"), str(tmp_path / "n.nnd")]) == 1
    assert "N 1..9" in capsys.readouterr().out


@pytest.mark.parametrize("rows", ["N", "?"])
def test_calls_of_any_size_are_right_and_those_outside_run_on_the_portable_chain(gpu, tmp_path, rows) -> None:
    bundle_of(tmp_path / "m.nnd", rows)
    with machine_with("7.5") as driver:
        with nndeploy.load_bundle(tmp_path / "m.nnd") as program:
            assert (program.chain.id, program.outside_note) == ("t4-box", "")
            for size in (1, 2, 7, 8, 9, 64, 3):
                gpu.events.clear()
                assert_right(program.run(inputs(size)), size)
                assert bool(gpu.events) == (size <= 8)
            assert "is 9, outside 1..8" in program.outside_note
        assert driver.live_bytes == 0


@pytest.mark.usefixtures("gpu")
def test_a_size_that_gets_no_range_leaves_the_gpu_idle(tmp_path) -> None:
    unranked = model()
    unranked.graph.input[0].type.tensor_type.ClearField("shape")
    unranked.graph.output[0].type.tensor_type.ClearField("shape")
    with machine_with():
        report = compile_with(
            unranked, tmp_path / "m.nnd", targets=(replace(T4, libraries=(("onnxruntime", ""),)),),
            backends=("gpu", "onnxruntime"), samples=[inputs(2)],
        )  # fmt: skip
    assert (report.used_chains, [bool(chain.idle_gpu) for chain in report.target_chains]) == ([], [True])


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("options", [{"strict": True}, {"device": "cuda:0"}], ids=str)
def test_who_must_use_the_gpu_gets_an_error_with_the_range(tmp_path, options) -> None:
    bundle_of(tmp_path / "m.nnd")
    with machine_with("7.5"), nndeploy.load_bundle(tmp_path / "m.nnd", nndeploy.LoadOptions(**options)) as program:
        assert_right(program.run(inputs(8)), 8)
        for _ in range(2):
            with pytest.raises(InputError, match=r"'x': axis 0 \(N\) is 9, outside 1\.\.8.*--shape"):
                program.run(inputs(9))
        assert_right(program.run(inputs(2)), 2)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("target", "is_warned"), [(T4, True), (replace(T4, libraries=(("onnxruntime", ""),)), False)])
def test_a_target_that_lacks_what_runs_other_sizes_is_named(tmp_path, target, is_warned) -> None:
    report = compiled(tmp_path / "m.nnd", targets=(target,), backends=("gpu", "onnxruntime", "reference"))
    assert report.used_chains
    assert any(line.startswith("t4 box: calls with sizes") for line in report.all_warnings()) == is_warned


@pytest.mark.usefixtures("gpu")
def test_where_nothing_runs_other_sizes_a_call_says_so(tmp_path, monkeypatch) -> None:
    compiled(tmp_path / "m.nnd", backends=("gpu", "onnxruntime", "reference"), keep_fallback=False)

    def gone(*_: Any) -> Any:
        raise UnavailableError("onnxruntime is not here")

    with machine_with("7.5"), nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        monkeypatch.setattr(good_backend(), "open", gone)
        with pytest.raises(InputError, match=r"is 9, outside 1\.\.8 .*onnxruntime is not here.*--shape"):
            program.run(inputs(9))
        assert_right(program.run(inputs(8)), 8)


@pytest.mark.usefixtures("gpu")
def test_a_declared_range_is_that_of_all_chains(tmp_path) -> None:
    report = compiled(tmp_path / "m.nnd", shapes={"x": "1..32,64"})
    assert report.used_chains[0].ranges == {}
    with open_bundle(tmp_path / "m.nnd") as bundle:
        assert bundle.manifest.ranges["N"].max == 32
        assert bundle.manifest.target_chains[0].ranges == {}


@pytest.mark.usefixtures("gpu")
def test_samples_are_inside_the_range(tmp_path) -> None:
    compiled(tmp_path / "m.nnd", samples=[inputs(20), inputs(3)])
    with open_bundle(tmp_path / "m.nnd") as bundle:
        assert bundle.manifest.target_chains[0].ranges == {"N": DimRange(1, 20, 20)}


@pytest.mark.usefixtures("gpu")
def test_run_says_once_with_v_which_calls_are_not_on_the_gpu(tmp_path, capsys) -> None:
    bundle_of(tmp_path / "m.nnd")
    files = []
    for size in (2, 9, 10):
        files.append(str(tmp_path / f"{size}.npz"))
        np.savez(files[-1], **inputs(size))
    given = [argument for file in files for argument in ("--input", file)]
    with machine_with("7.5"):
        assert run_command(["run", str(tmp_path / "m.nnd"), "-v", *given]) == 0
        said = capsys.readouterr().err
        assert run_command(["run", str(tmp_path / "m.nnd"), *given]) == 0
    assert said.count("outside 1..8") == 1
    assert "outside" not in capsys.readouterr().err


@pytest.mark.usefixtures("gpu")
def test_joined_calls_stay_on_the_gpu(tmp_path) -> None:
    bundle_of(tmp_path / "m.nnd")
    with machine_with("7.5"), nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        assert JoinedCalls(program).most_rows == 8
    with machine_with(), nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        assert JoinedCalls(program).most_rows > 8


@pytest.mark.usefixtures("gpu")
def test_a_paced_program_takes_the_chain_for_all_sizes(tmp_path) -> None:
    compiled(tmp_path / "m.nnd", pace=True)
    with machine_with("7.5"), nndeploy.load_bundle(tmp_path / "m.nnd", pace=PaceGoal(cpu_limit=0.9)) as program:
        assert program.chain.id == "portable"
        assert "N 1..8" in program.warnings[0]
        assert_right(program.run(inputs(9)), 9)


def digits() -> onnx.ModelProto:
    found = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
    digits (float[N,1,8,8] image) => (float[N,10] scores)
    { a = Conv<pads=[1,1,1,1]>(image, w)  b = Relu(a)  p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(b)  f = Flatten(p)
      scores = Gemm(f, v) }""")
    dice = np.random.default_rng(0)
    for name, shape in {"w": (4, 1, 3, 3), "v": (64, 10)}.items():
        weights = dice.standard_normal(shape).astype(np.float32) / 4
        found.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    return found


@pytest.fixture(scope="module")
def for_t4(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Any, Path]]:
    """Returns a function: backend for GPUs -> the report and the bundle of the digits, compiled once."""
    folder = tmp_path_factory.mktemp("digits")

    @cache
    def compiled_for(name: str) -> tuple[Any, Path]:
        if not backend(name).probe(target_of("t4")).can_build:
            pytest.skip(f"{name} is not installed")
        with machine_with():
            report = compile_with(
                digits(), folder / f"{name}.nnd", targets=(target_of("t4"),), backends=(name, "native", "onnxruntime"),
                strict_targets=True,
            )  # fmt: skip
        return report, folder / f"{name}.nnd"

    return compiled_for


@pytest.mark.parametrize("name", ["tensorrt", "cudnn", "triton"])
def test_each_backend_for_gpus_takes_an_open_batch_whole(name, for_t4) -> None:
    (chain,) = for_t4(name)[0].used_chains
    assert (chain.ranges, chain.share_of(name)) == ({"N": "1..8"}, pytest.approx(1.0))


def test_calls_of_any_size_are_right_on_plans_of_cudnn_and_outside(for_t4, monkeypatch) -> None:
    path = for_t4("cudnn")[1]
    with open_bundle(path) as bundle:
        version = bundle.manifest.target_chains[0].submodels[0].variants[0].metadata["cudnn_version"]
    monkeypatch.setattr(session, "Handle", lambda _library: InterpretedHandle())
    monkeypatch.setattr(session, "cudnn_library", lambda: SimpleNamespace(version=version))
    with machine_with("7.5"), nndeploy.load_bundle(path) as program:
        assert program.chain.id == "t4"
        for rows in (1, 3, 4, 7, 8, 9, 2):
            images = np.random.default_rng(rows).standard_normal((rows, 1, 8, 8)).astype(np.float32)
            want = outputs_in_float64(digits(), {"image": images})["scores"]
            np.testing.assert_allclose(program.run({"image": images})["scores"], want, rtol=1e-4, atol=1e-5)
        assert "is 9" in program.outside_note
