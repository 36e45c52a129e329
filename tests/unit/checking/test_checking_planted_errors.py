# SPDX-License-Identifier: Apache-2.0
"""Rounding is told from error: right engines pass on every kind of network, planted errors are all found."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from planted_errors import ERRORS, KINDS, model_of, sample, with_error

from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.report import CheckReport
from nndeploy.checking.check import compare_outputs, is_quantised, tolerances
from nndeploy.checking.engines import Engines
from nndeploy.checking.reference import Reference
from nndeploy.checking.right_engines import RightEngines
from nndeploy.cli.main import run_command
from nndeploy.comparison.judge import judge
from nndeploy.compiler.flow import compile_model
from nndeploy.compiler.options import CompileOptions
from nndeploy.graph.onnx_types import value_type_from_onnx
from nndeploy.jobs.messages import model_bytes
from nndeploy.jobs.workers import InProcessWorkers
from nndeploy.plugin.interface import BuildOptions
from nndeploy.target.target import host_target
from nndeploy.values.types import ValueType

WORKERS, OPTIONS = InProcessWorkers(), BuildOptions(threads=1)
SAMPLES = [sample(100)]


@cache
def reference_of(kind: str) -> Reference:
    quantised = is_quantised(ir.from_proto(model_of(kind)).graph)
    engines = Engines(WORKERS, host_target(), OPTIONS)
    return Reference(engines, ("onnxruntime",), RightEngines(engines, "onnxruntime", False, quantised))


@cache
def wanted(kind: str) -> list[dict[str, Any]]:
    return reference_of(kind).evaluate(model_of(kind).SerializeToString(), SAMPLES)


def types_of(model: onnx.ModelProto) -> dict[str, ValueType]:
    return {value.name: value_type_from_onnx(value.type) for value in model.graph.output}


def judged(kind: str, got: list[Mapping[str, Any]]) -> list[CheckReport]:
    """Returns the comparisons of outputs with those of a kind's model, as a compile makes them."""
    model, reference = ir.from_proto(model_of(kind)), reference_of(kind)
    quantised = is_quantised(model.graph)
    limits = tolerances(None, None, quantised, has_limits=True)
    types = types_of(model_of(kind))
    want = wanted(kind)
    return compare_outputs(
        "s0", "b", got, want, types, limits, {}, lambda: reference.limits(model, SAMPLES, want, types, limits)
    )


def optimised(model: onnx.ModelProto) -> list[Mapping[str, Any]]:
    """Returns what ONNX Runtime gives with all its optimisations: another engine that is right."""
    return list(WORKERS.build("onnxruntime", ir.from_proto(model), host_target(), OPTIONS, SAMPLES).outputs)


@pytest.mark.parametrize("kind", KINDS)
def test_an_engine_that_is_right_passes(kind: str) -> None:
    assert [check for check in judged(kind, optimised(model_of(kind))) if not check.ok] == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", ERRORS)
def test_a_planted_error_is_found(kind: str, error: str) -> None:
    changed = with_error(model_of(kind), error)
    if changed is None:
        pytest.skip(f"{kind} has no place for {error}")
    wrong = optimised(changed)
    assert [check for check in judged(kind, wrong) if not check.ok], judged(kind, wrong)


def test_the_model_s_bytes_are_not_changed_by_asking_how_far_right_engines_differ() -> None:
    model = ir.from_proto(model_of("qlinear"))
    before = model_bytes(model)
    types = types_of(model_of("qlinear"))
    reference_of("qlinear").limits(
        model, SAMPLES, wanted("qlinear"), types, tolerances(None, None, True, has_limits=True)
    )
    assert model_bytes(model) == before


def test_limits_travel_in_the_bundle_and_verify_judges_by_them(tmp_path: Path) -> None:
    """One step of the output, which the tolerance refuses, is within the limits; nine steps are not."""
    bundle = tmp_path / "m.nnd"
    compile_model(
        model_of("qdq"),
        bundle,
        CompileOptions(samples=SAMPLES, backends=("onnxruntime",), keep_fallback=False, objective="priority"),
        workers=WORKERS,
    )
    with open_bundle(bundle) as opened:
        manifest = opened.manifest
        (golden,) = manifest.goldens
        want = opened.values(golden.outputs)["y"]
    limits = golden.limits["y"]
    assert 0 < limits.rms < limits.max_abs < np.ptp(want)
    assert run_command(["verify", str(bundle)]) == 0
    types = {named.name: named.type for named in manifest.outputs}
    for steps, is_right in ((1, True), (9, False)):
        got = want.copy()
        got[0, 3] += steps * np.abs(want).max() / 255
        assert judge({"y": got}, {"y": want}, types, manifest.tolerances)["y"].ok is False
        assert judge({"y": got}, {"y": want}, types, manifest.tolerances, lambda: golden.limits)["y"].ok is is_right
