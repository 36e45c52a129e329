# SPDX-License-Identifier: Apache-2.0
"""The original's outputs on made-up inputs: what runs first is taken, and what is said where nothing runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx.parser

from nndeploy.checking.drawn_sizes import affordable_sizes
from nndeploy.checking.engines import EVALUATOR, Engines
from nndeploy.checking.original import MAX_EVALUATED, Original, original_outputs, samples_of_other_sizes
from nndeploy.checking.reference import Reference
from nndeploy.errors import BuildRefusedError
from nndeploy.frontend.load import LoadedModel, load_model
from nndeploy.jobs.workers import InProcessWorkers
from nndeploy.plugin.interface import BuildOptions
from nndeploy.target.target import host_target
from nndeploy.values.types import Value

TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N,3,H,W] images) => (float[N,3,H,W] y) { y = Relu(images) }'


@dataclass
class Workers(InProcessWorkers):
    """Evaluates by hand; refuses inputs of other heights than `height`, and counts who was asked."""

    height: int
    asked: list[str] = field(default_factory=list)

    def evaluate(  # type: ignore[override]
        self, name: str, _model: bytes, samples: Sequence[Mapping[str, Value]], *_: Any
    ) -> list[dict[str, Value]]:
        self.asked += [name] * len(samples)
        for sample in samples:
            if sample["images"].shape[2] != self.height:
                raise BuildRefusedError("Conv 'first': no such height")
        return [{"y": np.maximum(sample["images"], 0)} for sample in samples]


def loaded() -> LoadedModel:
    return load_model(onnx.parser.parse_model(TEXT))


def found(workers: Workers, *engines: str) -> Original:
    model = loaded()
    return original_outputs(model, reference_of(workers, *engines), None, affordable_sizes(model.model, {}))


def reference_of(workers: Workers, *order: str) -> Reference:
    return Reference(Engines(workers, host_target(), BuildOptions()), order, has_soon_evaluator=EVALUATOR in order)


def test_the_second_sample_has_the_sizes_at_which_the_first_ran() -> None:
    workers = Workers(320)
    original = found(workers, "onnxruntime")
    assert [sample["images"].shape for sample in original.samples] == [(1, 3, 320, 320)] * 2
    assert not np.array_equal(original.samples[0]["images"], original.samples[1]["images"])
    assert len(workers.asked) == 4  # 224, 64, 320, and once more


def test_where_nothing_runs_the_sizes_the_reason_and_the_option_are_said() -> None:
    original = found(Workers(0), "onnxruntime")
    assert original.outputs == ()
    (warning,) = original.warnings
    assert "N = 1, H = 224, W = 224" in warning
    assert "'first'" in warning
    assert "--shape images=1,3,224,224" in original.hint


def test_a_slow_evaluator_is_asked_about_few_inputs_that_the_library_refused() -> None:
    workers = Workers(0)
    assert found(workers, "onnxruntime", EVALUATOR).outputs == ()
    assert workers.asked.count(EVALUATOR) <= 2 * MAX_EVALUATED


def test_sizes_around_are_those_that_run_too() -> None:
    workers, model = Workers(224), loaded()
    original = found(workers, "onnxruntime")
    reference = reference_of(workers, "onnxruntime", EVALUATOR)
    workers.asked.clear()
    assert samples_of_other_sizes(model, reference, original) == []
    workers.height = 448
    (larger,) = samples_of_other_sizes(model, reference, original)
    assert larger["images"].shape == (1, 3, 448, 448)
    assert EVALUATOR not in workers.asked
