# SPDX-License-Identifier: Apache-2.0
"""The vote on which engines are right: majority, inferred shapes, the specification; none is trusted alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from nndeploy.checking.vote import Differs, verdict_of
from nndeploy.compiler import ground_truth
from nndeploy.compiler.flow import compile_model
from nndeploy.compiler.options import CompileOptions
from nndeploy.jobs import tasks
from nndeploy.jobs.workers import InProcessWorkers
from nndeploy.runtime.program import load_bundle

ORT, OPENVINO, NATIVE, EVALUATOR = "onnxruntime", "openvino", "native", "reference"
WRONG_SHAPE = "another shape"


@pytest.mark.parametrize(("ballots", "right"), [
    ({ORT: 1, EVALUATOR: 1}, {ORT, EVALUATOR}), ({ORT: 1}, {ORT}),
    ({ORT: 2, EVALUATOR: 1, NATIVE: 1}, {EVALUATOR, NATIVE}),
    ({ORT: 1, EVALUATOR: 2, NATIVE: 1, OPENVINO: 1}, {ORT, NATIVE, OPENVINO}),
    # the specification decides
    ({ORT: 1, EVALUATOR: 2}, {EVALUATOR}), ({ORT: 1, EVALUATOR: 2, NATIVE: 1, OPENVINO: 2}, {EVALUATOR, OPENVINO}),
    ({ORT: 1, NATIVE: 2}, {ORT}),
    # the shapes that ONNX infers are a vote
    ({ORT: 1, EVALUATOR: WRONG_SHAPE}, {ORT}),
    ({ORT: WRONG_SHAPE, EVALUATOR: WRONG_SHAPE, NATIVE: 1}, {ORT, EVALUATOR}),
])  # fmt: skip
def test_the_largest_camp_is_right(ballots: dict[str, Any], right: set[str]) -> None:
    verdict = verdict_of(
        {engine: [{"y": gives}] for engine, gives in ballots.items()},
        [lambda got, want: "" if got == want else "differs"], lambda outputs: outputs["y"] != WRONG_SHAPE, EVALUATOR,
    )  # fmt: skip
    assert set(verdict.right) == right
    assert verdict.wrong.keys() == ballots.keys() - right
    assert verdict.outputs[0]["y"] == ballots[verdict.right[0]]


def test_where_no_engines_agree_strictly_those_that_nearly_do_are_right() -> None:
    ballots = {engine: [{"y": gives}] for engine, gives in {ORT: 1.0, EVALUATOR: 2.0, NATIVE: 1.001}.items()}

    def apart(most: float) -> Differs:
        return lambda got, want: "differs" if abs(got[0]["y"] - want[0]["y"]) > most else ""

    assert verdict_of(ballots, [apart(0.0), apart(0.1)], lambda _: True, EVALUATOR).right == (ORT, NATIVE)


class LyingWorkers(InProcessWorkers):
    """Workers under which one engine adds 1 to the first output of every reference run."""

    def __init__(self, liar: str) -> None:
        self.liar = liar

    def evaluate(  # type: ignore[override]
        self, name: str, model: bytes, samples: Sequence[Mapping[str, Any]], options: Any, _seconds: float | None = None
    ) -> list[dict[str, Any]]:
        outputs = tasks.evaluate(name, model, samples, options)
        return [{k: v + np.float32(name == self.liar) for k, v in of.items()} for of in outputs]


MODEL = """<ir_version: 8, opset_import: ["": 18]> g (float[2, 3] x) => (float[2, 3] y) { a = Exp(x) y = Tanh(a) }"""
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("is_small", [True, False])
@pytest.mark.parametrize("liar", [ORT, EVALUATOR])
def test_an_engine_that_is_wrong_decides_nothing(
    liar: str, is_small: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ground_truth, "SMALL_NODES", 64 if is_small else 0)
    source = onnx.parser.parse_model(MODEL)
    report = compile_model(
        source, tmp_path / "m.nnd", CompileOptions(backends=(NATIVE, ORT)), workers=LyingWorkers(liar)
    )
    assert all(check.ok and check.max_abs < 1e-5 for check in report.checks if check.max_abs is not None)
    with load_bundle(tmp_path / "m.nnd", trusted=True) as program:
        np.testing.assert_allclose(program.run({"x": X})["y"], np.tanh(np.exp(X.astype(np.float64))), rtol=1e-5)
        golden = program.manifest.goldens[0]
        want = np.tanh(np.exp(program.bundle.values(golden.inputs)["x"].astype(np.float64)))
        np.testing.assert_allclose(program.bundle.values(golden.outputs)["y"], want, rtol=1e-5)
    assert any(liar in warning for warning in report.warnings) == (is_small or liar == ORT)
