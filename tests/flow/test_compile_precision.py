# SPDX-License-Identifier: Apache-2.0
"""`compile --precision bf16`: who may compute in it, what is compared with which tolerance, and what is said of it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from compile_with import compile_with
from faulty_backends import ChangedSession, good_backend

from nndeploy.bundle.reader import open_bundle
from nndeploy.cli.main import run_command
from nndeploy.compiler import flow
from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import Artifact, OpenOptions, Session
from nndeploy.target.target import BF16_FEATURE, Target, has_bf16, host_target

TEXT = """<ir_version: 8, opset_import: ["": 18]>
network (float[2,4] x) => (float[2,4] y) { a = Relu(x) y = Add(a, x) }"""
HAS = (("rounding", ""),)
OLD = Target("old", "x86_64", libraries=HAS)
NEW = Target("new", "x86_64", cpu_features=(BF16_FEATURE,), libraries=HAS)


def model() -> onnx.ModelProto:
    return onnx.parser.parse_model(TEXT)


def rounding_backend(error: float, claims: str = "bf16") -> type:
    """Returns a good backend that is off by `error`, relative, where it was asked for bfloat16, and says `claims`."""

    class Rounding(good_backend()):
        def build(self, submodel: Any, target: Any, options: Any, workdir: Path) -> Artifact:
            artifact: Artifact = super().build(submodel, target, options, workdir)
            is_less = options.precision == "bf16"
            said = {"factor": 1 + error * is_less, "for": target.name}
            return replace(artifact, metadata=said, precision=claims if is_less else "fp32")

        def open(self, files: Any, metadata: Any, options: OpenOptions) -> Session:
            factor = np.float32(metadata["factor"])
            session = super().open(files, metadata, options)
            return ChangedSession(session, lambda outputs: {k: v * factor for k, v in outputs.items()})

    Rounding.name, Rounding.tier = "rounding", 0
    return Rounding


@pytest.fixture
def new_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine, as one that multiplies bfloat16."""
    features = tuple(sorted({*host_target().cpu_features, BF16_FEATURE}))
    monkeypatch.setattr(flow, "host_target", lambda: replace(host_target(), cpu_features=features, gpus=()))


@pytest.fixture
def old_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine, as one that does not."""
    features = tuple(feature for feature in host_target().cpu_features if feature != BF16_FEATURE)
    monkeypatch.setattr(flow, "host_target", lambda: replace(host_target(), cpu_features=features, gpus=()))


def compiled(path: Path, **options: Any) -> tuple[Any, list[float]]:
    """Returns the report, and the factors of the variants of the bundle."""
    report = compile_with(
        model(), path, backends=("rounding", "onnxruntime"), keep_fallback=False, objective="priority", **options
    )
    with open_bundle(path) as bundle:
        variants = [v for submodel in bundle.manifest.submodels for v in submodel.variants]
    return report, [variant.metadata["factor"] for variant in variants]


@pytest.mark.usefixtures("new_machine")
def test_results_of_bfloat16_are_compared_by_its_tolerance(tmp_path, install) -> None:
    install(rounding_backend(0.02))
    report, factors = compiled(tmp_path / "m.nnd", precision="bf16")
    assert factors == [1.02]
    assert {check.note for check in report.checks if check.scope in ("s0", "whole")} == {"computed in bf16"}
    assert report.warnings == ()
    with open_bundle(tmp_path / "m.nnd") as bundle:
        assert bundle.manifest.tolerances["float32"].rtol == 0.06
        assert bundle.manifest.provenance["options"]["precision"] == "bf16"


@pytest.mark.usefixtures("new_machine")
def test_wrong_numbers_in_bfloat16_mean_float32_and_one_line(tmp_path, install) -> None:
    install(rounding_backend(0.5))
    report, factors = compiled(tmp_path / "m.nnd", precision="bf16", targets=[NEW])
    assert factors == [1]
    (line,) = report.dropped
    assert line.startswith(
        "rounding computes 2 nodes in fp32, not in bf16: wrong numbers: output 'y' of sample 0 differs"
    )
    assert [s.backend for s in report.submodels] == ["rounding"]
    with open_bundle(tmp_path / "m.nnd") as bundle:
        assert bundle.manifest.tolerances["float32"].rtol == 1e-3


@pytest.mark.usefixtures("new_machine")
def test_the_user_s_own_tolerance_decides_where_there_is_one(tmp_path, install) -> None:
    install(rounding_backend(0.02))
    assert compiled(tmp_path / "m.nnd", precision="bf16", rtol=1e-3)[1] == [1]
    install(rounding_backend(0.5))
    assert compiled(tmp_path / "m.nnd", precision="bf16", rtol=0.6)[1] == [1.5]


@pytest.mark.usefixtures("old_machine")
def test_target_that_takes_float32_has_a_warning_that_says_so(tmp_path, install) -> None:
    install(rounding_backend(0.02))
    report, factors = compiled(tmp_path / "m.nnd", precision="bf16", targets=[NEW, OLD])
    assert factors == [1]
    assert report.warnings == (
        "host lacks avx512_bf16: fp32 is computed there, not bf16",
        "no backend computes in bf16 for new: fp32 is computed there",
        "old lacks avx512_bf16: fp32 is computed there, not bf16",
    )


def test_backend_may_not_claim_what_was_not_asked_for(tmp_path, install) -> None:
    class Claiming(rounding_backend(0.0)):
        def build(self, submodel: Any, target: Any, options: Any, workdir: Path) -> Artifact:
            return replace(super().build(submodel, target, options, workdir), precision="bf16")

    install(Claiming)
    with pytest.raises(UnavailableError, match="'rounding' computes in 'bf16', which was not asked for"):
        compiled(tmp_path / "m.nnd")


@pytest.mark.parametrize("backend", ["openvino", "native"])
def test_command_makes_a_bundle_in_bfloat16(tmp_path, capsys, backend) -> None:
    from separable_model import needs_native, separable_model

    if not has_bf16(host_target()):
        pytest.skip(f"this machine lacks {BF16_FEATURE}")
    if backend == "native":
        needs_native()
    source, out = separable_model(tmp_path / "m.onnx"), tmp_path / "m.nnd"
    options = ["--backends", f"{backend},onnxruntime", "--precision", "bf16", "--objective", "priority"]
    options += ["--target", f"x86-64-v3+{backend}+onnxruntime"]
    assert run_command(["compile", str(source), "-o", str(out), *options]) == 0
    said = capsys.readouterr()
    assert "computed in bf16" in said.out
    assert "warning: x86-64-v3 lacks avx512_bf16: fp32 is computed there, not bf16" in said.err
    assert run_command(["verify", str(out), "--strict", "--json"]) == 0
    (output,) = json.loads(capsys.readouterr().out)["outputs"]
    assert output["ok"]
    assert output["max_abs"] > 1e-4
