# SPDX-License-Identifier: Apache-2.0
"""Messages as the library writes them -> one line."""

import pytest
from nndeploy_tensorrt.reason import library_reason, parser_reason

from nndeploy.backend_kit.reasons import MAX_REASON

NO_DRIVER = (
    "\n[checkMacros.cpp::catchCudaError::250] Error Code 1: Cuda Runtime (In catchCudaError at "
    "/_src/common/dispatch/checkMacros.cpp:250 (cudaError 35: CUDA driver version is insufficient))"
)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ('(antialias == 0) && "Antialiasing is not supported currently."', "Antialiasing is not supported currently."),
        (
            'creator && "Plugin not found, are the plugin name, version, and namespace correct?"',
            "TensorRT has no Thing",
        ),
        ("creator && getPluginCreatorVersion(creator) == V3ONE: failed to load Thing plugin", "TensorRT has no Thing"),
        ("false", "TensorRT has no Thing"),
        (
            "Assertion failed: shiftIsAllZeros(zeroPoint): Non-zero zero point is not supported.",
            "Non-zero zero point is not supported",
        ),
        ("Assertion failed: rank == 2", "rank == 2"),
        (
            "Invalid Node - node 7\nITensor::getDimensions: Error Code 4: API Usage Error (node 7: input has type "
            "Int32 but must have type Int8. In checkType at /_src/optimizer/common/nodeBase.cpp:456)" + NO_DRIVER,
            "input has type Int32 but must have type Int8",
        ),
        ("Unsupported data type for the Cast operator!", "Unsupported data type for the Cast operator!"),
    ],
)
def test_parser_says_it_in_one_line(said: str, line: str) -> None:
    assert parser_reason(said, "Thing", "node 7") == line.rstrip(".")


def test_parser_that_says_nothing_of_a_node_still_gives_a_reason() -> None:
    assert parser_reason("", "", "") == "TensorRT cannot parse it"


@pytest.mark.parametrize(("said", "line"), [
    ("IBuilder::buildSerializedNetwork: Error Code 4: API Usage Error (IShuffleLayer Reshape_18: reshape "
     "wildcard -1 has no solution. Reshaping [0,1] to [0,-1]. In operator() at /_src/shapeContext.cpp:4633 In "
     "analyzeShapes at /_src/graphShapeAnalyzer.cpp:2825)",
     "IShuffleLayer Reshape_18: reshape wildcard -1 has no solution. Reshaping [0,1] to [0,-1]"),
    ("[graphScope.cpp::analyze::471] Error Code 2: Internal Error (Assertion t != kUNDEFINED failed.  In "
     "analyze at /_src/optimizer/common/graphScope.cpp:471)",
     "Assertion t != kUNDEFINED failed"),
    ("IBuilder::buildSerializedNetwork: Error Code 1: Myelin ([myelin_graph.h:1295: attach] "
     "MyelinCheckException: decompose_composite_ops.cpp:59: CHECK(op->is_decomposable()) failed. Attention)",
     "CHECK(op->is_decomposable()) failed. Attention"),
    ("", "it gave no reason"),
    ("Error reading CUDA GPU properties: In getCurrentCC at /_src/planHeaders.cpp:130 (cudaError 35: CUDA "
     "driver version is insufficient for CUDA runtime version) Ensure that the GPU driver is installed.",
     "Error reading CUDA GPU properties"),
])  # fmt: skip
def test_builder_says_it_in_one_line(said: str, line: str) -> None:
    assert library_reason(said) == line


def test_reason_is_one_short_line_whatever_a_name_holds() -> None:
    found = parser_reason("Invalid Node - a\nb\x1b[2J " + "x" * 500, "Thing", "")
    assert len(found) <= MAX_REASON
    assert found.isprintable()
