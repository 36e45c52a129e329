# SPDX-License-Identifier: Apache-2.0
"""ONNX's own cases of operators on images, through the rules and the kernel library.

The first input of a case is one of the model, or those that are named here; the others are constants, as they are in
models.
"""

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from native_models import FLOAT_LEVELS, built, run
from onnx_node_cases import node_cases

from nndeploy.passes import optimise

NAMES = {"affinegrid": "affine_grid", "conv": "(basic_)?conv"}
"""What the names of the cases of a module begin with, where that is not its name."""
MODULES = (
    "affinegrid", "averagepool", "conv", "convtranspose", "globalaveragepool", "globalmaxpool", "gridsample", "lppool",
    "maxpool", "maxunpool", "resize", "roialign", "upsample",
)  # fmt: skip
GIVEN = {"gridsample": ("Grid",), "maxunpool": ("xI",), "roialign": ("rois", "batch_indices")}
"""Inputs beside the first one that come with a call, by the name of the case."""


@pytest.mark.parametrize("module", MODULES)
def test_cases_of_onnx(module: str) -> None:
    cases = node_cases(f"test_{NAMES.get(module, module)}(_|$)", module)
    assert cases
    for name, case in cases.items():
        assert_case(name, case)


def assert_case(name: str, case: Any) -> None:
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
            assert found[info.name].dtype == wanted.dtype, name
            np.testing.assert_allclose(found[info.name], wanted, rtol=1e-3, atol=1e-5, err_msg=name)
