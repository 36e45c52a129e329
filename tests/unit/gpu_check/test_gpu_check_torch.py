# SPDX-License-Identifier: Apache-2.0
"""torch as a peer computes the same problem; checked on the CPU where torch, which is not in the lock, is installed."""

import pytest

pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)

import onnx
import torch
from gpucheck.agreement import agreement
from gpucheck.kernel_models import Separable, problems
from gpucheck.reference import outputs_of, random_inputs, session_of
from gpucheck.torch_peers import work_of

PROBLEMS = [
    Separable("v1", 2, 9, 8, 6, 1, "float32"),
    Separable("v1", 1, 8, 8, 6, 2, "float32"),
    Separable("v2", 1, 8, 8, 6, 2, "float32"),
    *(problem for name, problem in problems().items() if "float32" in name and not isinstance(problem, Separable)),
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_torch_computes_the_same(problem: object) -> None:
    proto = problem.proto()
    session = session_of(proto)
    inputs = random_inputs(session)
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    values = {name: torch.from_numpy(value.copy()) for name, value in {**inputs, **constants}.items()}
    with torch.inference_mode():
        found = work_of(problem, torch)(values).numpy()
    assert agreement({"y": found}, outputs_of(session, inputs)).ok
