# SPDX-License-Identifier: Apache-2.0
"""The oracle's cases through the whole list, with their inputs made constants: folding gives what is specified.

As they are the cases go through the list on their way to each backend.
"""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from oracle.cases import all_cases
from oracle.cases.case import Case
from oracle.compare import difference
from oracle.evaluator import evaluate
from oracle.registry import UnspecifiedError

from nndeploy.passes import optimise

ROUNDINGS = 100
"""How many steps apart numbers may be: of float16, folding rounds once where the oracle rounds at each operator."""
CASES = all_cases()


def of_constants(case: Case) -> tuple[onnx.ModelProto, dict[str, object]]:
    """Returns a case's model that holds the tensors among its inputs, and what is left of these."""
    proto, left = onnx.ModelProto(), dict(case.inputs)
    proto.CopyFrom(case.model)
    for value in list(proto.graph.input):
        array = left[value.name]
        if isinstance(array, np.ndarray) and array.dtype.kind not in "OSU":
            proto.graph.initializer.append(onnx.numpy_helper.from_array(left.pop(value.name), value.name))
            proto.graph.input.remove(value)
    return proto, left


@pytest.mark.parametrize("operator", sorted({case.operator for case in CASES.values()}))
def test_outputs_are_those_of_the_specification(operator: str) -> None:
    for name, case in CASES.items():
        if case.operator != operator:
            continue
        try:
            wanted = case.wanted
        except UnspecifiedError:
            continue
        if wanted is None:
            continue
        proto, inputs = of_constants(case)
        try:
            model = ir.from_proto(proto)
        except ir.serde.SerdeError:  # maps and sparse tensors, which the frontend takes out of a model
            continue
        optimise(model)
        assert not any(report.count for report in optimise(model)), f"{name}: a second optimise changed something"
        got = evaluate(ir.to_proto(model), inputs)
        assert difference(wanted, got, signed_zeros=case.signed_zeros, steps=ROUNDINGS * case.steps) == "", name
