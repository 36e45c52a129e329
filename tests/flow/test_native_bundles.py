# SPDX-License-Identifier: Apache-2.0
"""Bundles of our own CPU kernels on machines that lack their instructions, and compiles without their compiler."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import nndeploy_native.kernel_library
import numpy as np
import onnx.parser
import onnx.reference
import pytest
from compile_with import compiled_once
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
OLD = Target("old", "x86_64", cpu_features=("sse2",))
INPUT = {"x": np.ones((1, 32, 24, 24), np.float32)}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    needs_native()
    if host_target().arch != "x86_64":
        pytest.skip("this machine is no x86-64")
    return separable_model(tmp_path / "separable.onnx")


def compiled(model: Path, **options: Any) -> Path:
    return compiled_once(model, model.with_suffix(".nnd"), **{"backends": ("native", "onnxruntime"), **options})


def pretend(monkeypatch: pytest.MonkeyPatch, *features: str) -> None:
    """Makes bundles believe that this machine has these CPU features alone."""
    host = replace(host_target(), cpu_features=features, gpus=())
    for module in (places, nndeploy_native.kernel_library):
        monkeypatch.setattr(module, "host_target", lambda: host)


def taken(bundle: Path) -> str:
    """Returns the backend that a machine takes of a bundle, after a run of it that gave the right numbers."""
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=1)) as program:
        got = program.run(INPUT)["y"]
        (choice,) = program.choices
    with open_bundle(bundle) as opened:
        (submodel,) = opened.manifest.submodels
        found = next(variant for variant in submodel.variants if variant.id == choice.variant)
    (want,) = onnx.reference.ReferenceEvaluator(str(bundle.with_suffix(".onnx"))).run(None, INPUT)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    return found.backend


@pytest.mark.parametrize("features", [V2, V3], ids=["x86-64-v2", "x86-64-v3"])
def test_one_variant_serves_every_machine(model, features, monkeypatch) -> None:
    targets = (target_of("x86-64-v3"), target_of("x86-64-v4"), target_of("raspberry-pi-5"))
    bundle = compiled(model, targets=targets, keep_fallback=False, backends=("native",))
    with open_bundle(bundle) as opened:
        chains = [opened.manifest.submodels, *(chain.submodels for chain in opened.manifest.target_chains)]
        files = {tuple(sorted(one.files.values())) for chain in chains for part in chain for one in part.variants}
    assert len(files) == 1
    pretend(monkeypatch, *features)
    assert taken(bundle) == "native"


def test_machine_without_the_instructions_and_no_other_variant_gets_one_error(model, monkeypatch, capsys) -> None:
    bundle, arrays = compiled(model, keep_fallback=False), model.with_suffix(".npz")
    np.savez(arrays, **INPUT)
    pretend(monkeypatch, "sse2")
    with pytest.raises(UnavailableError, match=r"native: needs CPU features this machine lacks: .*sse4_1"):
        nndeploy.load_bundle(bundle)
    assert run_command(["run", str(bundle), "--input", str(arrays)]) == 69
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("nndeploy: error[unavailable]: ")
    assert "sse4_1" in line


@pytest.mark.parametrize("backends", [("native",), ("native", "onnxruntime")], ids=" ".join)
def test_target_that_nobody_builds_for_is_one_line(model, backends) -> None:
    with pytest.raises(CheckError, match=r"old lacks s0 \(native: the target lacks .*sse4_1") as caught:
        compiled(model, backends=backends, targets=(OLD,))
    assert "\n" not in str(caught.value)
    assert not model.with_suffix(".nnd").exists()


def test_machine_without_the_instructions_takes_the_fallback(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = compiled(model)
    pretend(monkeypatch, "sse2")
    assert taken(bundle) == "onnxruntime"
