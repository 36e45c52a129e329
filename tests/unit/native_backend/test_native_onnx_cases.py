# SPDX-License-Identifier: Apache-2.0
"""ONNX's own cases of operators on images, through the rules and the kernel library.

The first input of a case is one of the model, or those that are named here; the others are constants, as they are in
models.
"""

import re
import warnings
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from native_models import FLOAT_LEVELS, built, run
from onnx.backend.test.loader import load_model_tests

from nndeploy.passes import optimise

OPERATORS = re.compile(
    "test_(affine_grid|averagepool|basic_conv|conv|convtranspose|globalaveragepool|globalmaxpool|gridsample|lppool|"
    "maxpool|maxunpool|resize|roialign|upsample)(_|$)"
)
GIVEN = {"gridsample": ("Grid",), "maxunpool": ("xI",), "roialign": ("rois", "batch_indices")}
"""Inputs beside the first one that come with a call, by the name of the case."""


@cache
def cases() -> dict[str, Any]:
    """Returns the cases by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite overflows on purpose while it makes its data
        return {case.name: case for case in load_model_tests(kind="node") if OPERATORS.match(case.name)}


@pytest.mark.parametrize("name", sorted(cases()))
def test_case_of_onnx(name: str) -> None:
    case = cases()[name]
    given = next((inputs for start, inputs in GIVEN.items() if name.startswith(f"test_{start}")), ())
    for inputs, outputs in case.data_sets:
        proto, feed = onnx.ModelProto(), {}
        proto.CopyFrom(case.model)
        for number, (info, array) in enumerate(zip(list(proto.graph.input), inputs, strict=False)):
            if number == 0 or info.name in given:
                feed[info.name] = np.asarray(array)
            else:
                proto.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), info.name))
                proto.graph.input.remove(info)
        model = ir.from_proto(onnx.shape_inference.infer_shapes(proto, data_prop=True))
        optimise(model, {})
        for value, wanted in zip(model.graph.outputs, outputs, strict=True):
            value.shape = ir.Shape(wanted.shape)
        found = run(built(model), feed, FLOAT_LEVELS[-1])
        for info, wanted in zip(case.model.graph.output, outputs, strict=True):
            assert found[info.name].dtype == wanted.dtype
            np.testing.assert_allclose(found[info.name], wanted, rtol=1e-3, atol=1e-5)
