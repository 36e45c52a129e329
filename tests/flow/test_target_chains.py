# SPDX-License-Identifier: Apache-2.0
"""One bundle for boxes with and without GPUs: what is built for whom, which chain a box takes, where values lie."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from compile_with import compile_with, compiled_once
from faulty_backends import Install
from pretended_gpus import box, gpu_backend, machine_with

import nndeploy
from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.report import Report
from nndeploy.cli.main import run_command
from nndeploy.errors import CheckError, UnavailableError, UsageError

NETWORK = """<ir_version: 8, opset_import: ["": 18]>
network (float[2,64] x) => (float[2,64] y, float[2,64] z)
<float[64,64] w> {
    [enter] a = MatMul(x, w)
    [middle] b = Sigmoid(a)
    [leave] y = MatMul(b, w)
    [aside] z = Tanh(a)
}"""
BACKENDS = ("gpu", "onnxruntime", "reference")
ADA, TURING = box("ada box", "8.9"), box("turing", "7.5")
PINS = [("enter", "gpu"), ("middle", "onnxruntime"), ("leave", "gpu"), ("aside", "gpu")]
"""So little would be merged into a neighbour otherwise."""

WEIGHTS = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32) / 8
SAMPLE = {"x": np.linspace(-2, 2, 128, dtype=np.float32).reshape(2, 64)}


def model() -> onnx.ModelProto:
    text = NETWORK.replace("<float[64,64] w>", "")
    found = onnx.parser.parse_model(text)
    found.graph.initializer.append(onnx.numpy_helper.from_array(WEIGHTS, "w"))
    return found


def compiled(path: Path, *targets: Any, **options: Any) -> Report:
    return compile_with(
        model(), path, **{"backends": BACKENDS, "targets": targets, "pins": PINS, "objective": "priority", **options}
    )


def assert_right(outputs: dict[str, Any]) -> None:
    a = SAMPLE["x"] @ WEIGHTS
    np.testing.assert_allclose(outputs["y"], 1 / (1 + np.exp(-a)) @ WEIGHTS, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(outputs["z"], np.tanh(a), rtol=1e-4, atol=1e-5)


@pytest.fixture
def gpu(install: Install) -> Any:
    """A backend for GPUs that has no Sigmoid."""
    found = gpu_backend("gpu", "MatMul", "Tanh")
    install(found)
    return found


@pytest.fixture
def bundle(gpu: Any, tmp_path: Path) -> Path:
    """Built for two boxes with GPUs, on a machine without one."""
    onnx.save(model(), tmp_path / "m.onnx")
    options = {"backends": BACKENDS, "pins": PINS, "objective": "priority"}
    with machine_with():
        return compiled_once(tmp_path / "m.onnx", tmp_path / "m.nnd", targets=(ADA, TURING), **options)


def test_each_target_gets_a_chain_with_the_reason_of_every_refusal(gpu, tmp_path) -> None:
    with machine_with():
        report = compiled(tmp_path / "m.nnd", ADA, TURING)
    assert {submodel.backend for submodel in report.submodels} == {"onnxruntime"}
    assert [(chain.id, chain.target) for chain in report.target_chains] == [
        ("ada-box", "ada box"),
        ("turing", "turing"),
    ]
    ada = report.target_chains[0]
    assert [(s.id, s.backend) for s in ada.submodels] == [
        ("ada-box.s0", "gpu"), ("ada-box.s1", "onnxruntime"), ("ada-box.s2", "gpu"),
    ]  # fmt: skip
    middle = next(node for node in ada.nodes if node.name == "middle")
    assert middle.refusals == {"gpu": "gpu has no Sigmoid"}
    assert any("GPU" in check.note for check in ada.checks if check.backend == "gpu")


def test_values_stay_on_the_gpu_and_are_copied_at_the_border(bundle, gpu) -> None:
    with machine_with("8.9") as driver:
        with nndeploy.load_bundle(bundle) as program:
            assert program.chain.id == "ada-box"
            assert [choice.device for choice in program.choices] == ["cuda:0", "cpu", "cuda:0"]
            assert program.warnings == ()
            for _ in range(3):
                gpu.events.clear()
                assert_right(program.run(SAMPLE))
                kinds = dict(gpu.events)
                assert kinds["x"] == "ndarray"
                assert kinds["b"] == "ndarray", "what the CPU computed is handed over as it is"
        assert driver.live_bytes == 0


def test_values_between_submodels_of_a_gpu_are_not_copied(install, tmp_path) -> None:
    first, second = gpu_backend("gpu", "MatMul", "Tanh"), gpu_backend("gpu2", "Sigmoid")
    install(first, second)
    options = {"backends": ("gpu", "gpu2", "onnxruntime"), "pins": (*PINS, ("middle", "gpu2"))}
    with machine_with("8.9"):
        report = compiled(tmp_path / "m.nnd", **options)
        assert [chain.id for chain in report.target_chains] == ["host"]
        assert all(check.ok for check in report.target_chains[0].checks)
        with nndeploy.load_bundle(tmp_path / "m.nnd") as program:
            first.events.clear()
            second.events.clear()
            assert_right(program.run(SAMPLE))
    assert second.events == [("a", "DeviceArray")]
    assert ("b", "DeviceArray") in first.events


def test_a_box_without_gpu_takes_the_portable_chain_and_says_why(bundle) -> None:
    with machine_with(), nndeploy.load_bundle(bundle) as program:
        assert program.chain.id == "portable"
        (line,) = program.warnings
        assert "ada-box: needs an NVIDIA GPU of compute capability 8.9, this machine has none" in line
        assert_right(program.run(SAMPLE))


@pytest.mark.parametrize("options", [{"strict": True}, {"device": "cuda:0"}], ids=str)
def test_a_box_that_must_use_a_gpu_and_cannot_is_an_error(bundle, options) -> None:
    with machine_with("9.0"), pytest.raises(UnavailableError, match=r"this machine has 9\.0") as caught:
        nndeploy.load_bundle(bundle, nndeploy.LoadOptions(**options))
    assert caught.value.exit_code == 69


def test_a_chain_for_another_gpu_is_no_loss(bundle) -> None:
    with machine_with("7.5"), nndeploy.load_bundle(bundle, nndeploy.LoadOptions(strict=True)) as program:
        assert (program.chain.id, program.warnings) == ("turing", ())
        assert [other.chain for other in program.chain.passed_over] == ["ada-box"]
        assert_right(program.run(SAMPLE))


def test_of_several_gpus_the_first_that_fits_the_best_chain_is_taken(bundle) -> None:
    with machine_with("7.5", "8.9"):
        with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(strict=True)) as program:
            assert (program.chain.id, program.chain.place.gpu) == ("ada-box", "cuda:1")
            assert program.chain.passed_over == ()
            assert_right(program.run(SAMPLE))
        with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(device="cuda:0")) as program:
            assert (program.chain.id, program.chain.place.gpu) == ("turing", "cuda:0")
            assert_right(program.run(SAMPLE))


def test_a_chain_that_does_not_open_is_a_loss(bundle, install) -> None:
    install(gpu_backend("gpu", opens=False))
    with machine_with("8.9"):
        with nndeploy.load_bundle(bundle) as program:
            assert program.chain.id == "portable"
            assert "the engine is for version 1, here is 2" in program.warnings[0]
            assert_right(program.run(SAMPLE))
        with pytest.raises(UnavailableError, match="here is 2"):
            nndeploy.load_bundle(bundle, nndeploy.LoadOptions(strict=True))


def test_with_strict_the_next_chain_is_not_taken_in_the_place_of_one_that_does_not_open(gpu, install, tmp_path) -> None:
    ada_too = replace(ADA, name="also ada")
    with machine_with():
        compiled(tmp_path / "m.nnd", ADA, ada_too)
    broken_once = [UnavailableError("no memory")]
    real = gpu.open

    def sometimes(self: Any, *arguments: Any) -> Any:
        if broken_once:
            raise broken_once.pop()
        return real(self, *arguments)

    gpu.open = sometimes
    with machine_with("8.9"), pytest.raises(UnavailableError, match="no memory"):
        nndeploy.load_bundle(tmp_path / "m.nnd", nndeploy.LoadOptions(strict=True))
    broken_once.append(UnavailableError("no memory"))
    with machine_with("8.9"), nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        assert program.chain.id == "also-ada"
        assert "no memory" in program.warnings[0]
        assert_right(program.run(SAMPLE))


def test_programs_on_one_gpu_have_streams_of_their_own(bundle) -> None:
    with machine_with("8.9"):
        with nndeploy.load_bundle(bundle) as one, nndeploy.load_bundle(bundle) as other:
            streams = [program._opened.gpu_streams.streams[0].handle for program in (one, other)]
            assert streams[0] != streams[1]
        with nndeploy.load_bundle(bundle) as again:
            assert again._opened.gpu_streams.streams[0].handle in streams, "streams are used again"


def test_a_target_that_no_gpu_backend_serves_is_served_by_the_portable_chain(install, tmp_path) -> None:
    install(gpu_backend("gpu"))
    box = replace(ADA, libraries=(("onnxruntime", ""),))
    with machine_with():
        report = compiled(tmp_path / "m.nnd", box, pins=())
        with pytest.raises(CheckError, match="ada box lacks s0"):
            compiled(tmp_path / "other.nnd", ADA, pins=())
        with pytest.raises(CheckError, match="the GPU of ada box"):
            compiled(tmp_path / "other.nnd", box, pins=(), strict_targets=True)
    (chain,) = report.target_chains
    assert chain.idle_gpu
    assert chain.idle_gpu in report.all_warnings()
    assert report.shares() == {"ada box": {"onnxruntime": pytest.approx(1.0)}}
    assert not (tmp_path / "other.nnd").exists()
    with open_bundle(tmp_path / "m.nnd") as opened:
        assert opened.manifest.target_chains == ()


@pytest.mark.usefixtures("gpu")
def test_backends_for_gpus_alone_are_not_enough(tmp_path) -> None:
    with machine_with():
        with pytest.raises(UnavailableError, match="no remaining backend builds for CPUs"):
            compiled(tmp_path / "m.nnd", ADA, backends=("gpu",), pins=())
        with pytest.raises(UnavailableError, match="gpu builds for NVIDIA GPUs, and no target has one"):
            compiled(tmp_path / "m.nnd", pins=())


@pytest.mark.usefixtures("gpu")
def test_gates_hold_for_the_chains_that_have_the_backend(tmp_path) -> None:
    with machine_with():
        compiled(tmp_path / "m.nnd", ADA, require={"gpu": 0.5})
        with pytest.raises(CheckError, match="gpu takes"):
            compiled(tmp_path / "m.nnd", ADA, require={"gpu": 1.0})
        with pytest.raises(UsageError, match="--require names the backend 'gpus'"):
            compiled(tmp_path / "m.nnd", ADA, require={"gpus": 0.5})


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = run_command([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_inspect_shows_each_chain_with_the_reason_of_every_refusal(bundle, capsys) -> None:
    code, out, _ = call(capsys, "inspect", bundle)
    assert code == 0
    for part in ("submodels of the chain portable", "submodels of the chain ada-box", "gpu has no Sigmoid", "7.5"):
        assert part in out
    code, out, _ = call(capsys, "inspect", bundle, "--chain", "turing")
    assert code == 0
    assert "turing.s0" in out
    assert "ada-box.s0" not in out
    code, _, err = call(capsys, "inspect", bundle, "--chain", "amper")
    assert (code, "it has portable, ada-box, turing" in err) == (2, True)
