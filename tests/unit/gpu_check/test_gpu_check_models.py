# SPDX-License-Identifier: Apache-2.0
"""The models of the check: ONNX Runtime takes each, and none hides an error behind outputs that are all alike."""

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from gpucheck import kernel_models, light_networks, operator_models
from gpucheck.reference import cuda_session, outputs_of, random_inputs, session_of


@pytest.mark.parametrize("name", operator_models.names())
def test_operator_model_runs_and_its_outputs_vary(name: str) -> None:
    session = session_of(operator_models.model(name))
    outputs = [outputs_of(session, random_inputs(session, seed)) for seed in (0, 1)]
    assert all(np.isfinite(value.astype(np.float64)).all() for found in outputs for value in found.values())
    assert any(not np.array_equal(outputs[0][key], outputs[1][key]) for key in outputs[0])


def test_problems_have_names_of_their_own_and_load() -> None:
    problems = kernel_models.problems()
    assert len(problems) == len({problem.name for problem in problems.values()}) > 40
    for problem in problems.values():
        assert session_of(problem.proto()).get_outputs()[0].name == "y"


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet", "resnet50"])
def test_light_network_gets_weights_that_show_errors(name: str) -> None:
    session = session_of(light_networks.light_network(name))
    found = outputs_of(session, random_inputs(session))
    logits = list(found.values())[-1]
    assert np.isfinite(logits).all()
    assert np.unique(logits).size > 500


def test_light_network_is_the_same_every_time() -> None:
    first, second = (light_networks.light_network("squeezenet").SerializeToString() for _ in range(2))
    assert first == second


def test_no_cuda_provider_is_a_reason() -> None:
    session, why = cuda_session(operator_models.model("gelu/float32"))
    assert (session is None) == bool(why)
