# SPDX-License-Identifier: Apache-2.0
"""Bundles of our own CPU kernels on machines that lack their instructions, and compiles without their compiler."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import nndeploy_native.probe
import nndeploy_native.session
import numpy as np
import onnx.reference
import pytest
from separable_model import needs_native, separable_model

import nndeploy
from nndeploy.bundle.reader import open_bundle
from nndeploy.cli.main import run_command
from nndeploy.errors import CheckError, UnavailableError
from nndeploy.runtime import places
from nndeploy.target.known_targets import target_of
from nndeploy.target.target import X86_64_LEVELS, Target, host_target

V2 = X86_64_LEVELS["x86-64-v2"]
V3 = (*V2, *X86_64_LEVELS["x86-64-v3"])
OLD = Target("old", "x86_64", cpu_features=V2)
INPUT = {"x": np.ones((1, 32, 24, 24), np.float32)}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    needs_native()
    if host_target().arch != "x86_64":
        pytest.skip("this machine is no x86-64")
    return separable_model(tmp_path / "separable.onnx")


def compiled(model: Path, **options: Any) -> Path:
    out = model.with_suffix(".nnd")
    nndeploy.compile_model(
        model,
        out,
        nndeploy.CompileOptions(**{"backends": ("native", "onnxruntime"), "objective": "priority", **options}),
    )
    return out


def pretend(monkeypatch: pytest.MonkeyPatch, *features: str) -> None:
    """Makes bundles believe that this machine has these CPU features alone."""
    host = replace(host_target(), cpu_features=features, gpus=())
    for module in (places, nndeploy_native.session, nndeploy_native.probe):
        monkeypatch.setattr(module, "host_target", lambda: host)


def variants(bundle: Path) -> list[tuple[str, str]]:
    """Returns (backend, instruction set) of the variants of the only submodel, best first."""
    with open_bundle(bundle) as opened:
        (submodel,) = opened.manifest.submodels
        return [(variant.backend, variant.metadata.get("isa", "")) for variant in submodel.variants]


def taken(bundle: Path) -> str:
    """Returns what a machine takes of a bundle, after a run of it that gave the right numbers."""
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=1)) as program:
        got = program.run(INPUT)["y"]
        (choice,) = program.choices
    with open_bundle(bundle) as opened:
        (submodel,) = opened.manifest.submodels
        found = next(variant for variant in submodel.variants if variant.id == choice.variant)
    (want,) = onnx.reference.ReferenceEvaluator(str(bundle.with_suffix(".onnx"))).run(None, INPUT)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    return f"{found.backend} {found.metadata.get('isa', '')}".strip()


def test_each_machine_takes_the_widest_kernels_that_it_has(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = compiled(model, targets=(target_of("x86-64-v3"), target_of("x86-64-v4")), keep_fallback=False)
    # this machine's own caches may give it other windows than a target without caches, and so a variant of its own
    assert list(dict.fromkeys(variants(bundle))) == [("native", "x86-64-v4"), ("native", "x86-64-v3")]
    pretend(monkeypatch, *V3)
    assert taken(bundle) == "native x86-64-v3"


def test_machine_without_the_instructions_takes_the_fallback(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = compiled(model)
    pretend(monkeypatch, *V2)
    assert taken(bundle) == "onnxruntime"


def test_machine_without_the_instructions_and_no_other_variant_gets_one_error(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle, arrays = compiled(model, keep_fallback=False), model.with_suffix(".npz")
    np.savez(arrays, **INPUT)
    pretend(monkeypatch, *V2)
    with pytest.raises(UnavailableError, match=r"native: needs CPU features this machine lacks: .*avx2"):
        nndeploy.load_bundle(bundle)
    assert run_command(["run", str(bundle), "--input", str(arrays)]) == 69
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("nndeploy: error[unavailable]: ")
    assert "avx2" in line


def test_target_that_is_too_old_gets_the_variant_of_a_library_that_it_has(model: Path) -> None:
    with_library = replace(OLD, libraries=(("onnxruntime", ""),))
    bundle = compiled(model, targets=(with_library,), keep_fallback=False)
    assert [backend for backend, _ in variants(bundle)] == ["native", "onnxruntime"]


@pytest.mark.parametrize("backends", [("native",), ("native", "onnxruntime")], ids=" ".join)
def test_target_that_nobody_builds_for_is_one_line(model: Path, backends: tuple[str, ...]) -> None:
    with pytest.raises(CheckError, match=r"old lacks s0 \(native: the target lacks .*avx2") as caught:
        compiled(model, backends=backends, targets=(OLD,))
    assert "\n" not in str(caught.value)
    assert not model.with_suffix(".nnd").exists()


def test_missing_compiler_is_one_line_with_the_extra(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ziglang", None)
    with pytest.raises(UnavailableError, match="native cannot build here for host: ziglang is not installed") as caught:
        compiled(model)
    assert caught.value.hint == "install the extra: nndeploy-toolchain[native]"
    assert caught.value.exit_code == 69


def test_compile_goes_on_without_the_compiler_where_native_was_not_named(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ziglang", None)
    report = nndeploy.compile_model(
        model, model.with_suffix(".nnd"), nndeploy.CompileOptions(without=("openvino",), objective="priority")
    )
    assert [submodel.backend for submodel in report.submodels] == ["onnxruntime"]
    (line,) = [line for line in report.warnings if "native" in line]
    assert line == "native is left out: ziglang is not installed; install the extra: nndeploy-toolchain[native]"


def test_bundle_runs_where_the_compiler_is_not(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = compiled(model, keep_fallback=False)
    monkeypatch.setitem(sys.modules, "ziglang", None)
    assert taken(bundle).startswith("native ")
