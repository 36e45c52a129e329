# SPDX-License-Identifier: Apache-2.0
"""Inputs that nobody gave and that only ONNX's evaluator computes with decide nothing: other sizes are tried.

A reflecting Pad is the example: by its definition it reflects what is not wider than the input, ONNX Runtime refuses
the rest, and numpy reflects it again and again.
"""

from pathlib import Path

import onnx
import onnx.parser
import pytest
from compile_with import compile_with

from nndeploy.bundle.report import Report
from nndeploy.compiler.ground_truth import SMALL_NODES
from nndeploy.errors import CheckError
from nndeploy.jobs.workers import InProcessWorkers

FEW, MANY = 1, SMALL_NODES + 1
"""Of so many nodes ONNX's evaluator has a vote before the compile, or has none."""


def reflecting(width: int, num_nodes: int) -> onnx.ModelProto:
    """Returns a model that reflects `width` samples at both ends."""
    signs = "".join(f"h{i + 1} = Neg(h{i})\n" for i in range(num_nodes))
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[1, samples] h0) => (float[1, padded] y) <int64[4] pads = {{0, {width}, 0, {width}}}> {{
            {signs} y = Pad<mode = "reflect">(h{num_nodes}, pads)
        }}""")


def compiled(model: onnx.ModelProto, path: Path) -> Report:
    return compile_with(
        model, path, backends=("onnxruntime", "reference"), optimise=False, keep_fallback=False,
        workers=InProcessWorkers(),
    )  # fmt: skip


@pytest.mark.parametrize(("width", "num_nodes"), [(100, FEW), (1000, MANY), (30000, FEW), (30000, MANY)])
def test_sizes_that_a_library_refuses_are_tried_no_further(width, num_nodes, tmp_path) -> None:
    report = compiled(reflecting(width, num_nodes), tmp_path / "m.nnd")
    assert {node.backend for node in report.nodes} == {"onnxruntime"}
    assert not any("lost" in warning for warning in report.warnings)
    assert any(check.was_made for check in report.checks)


def test_model_that_loads_and_runs_on_no_size_that_is_tried_is_not_given_to_the_evaluator(tmp_path) -> None:
    with pytest.raises(CheckError) as caught:
        compiled(reflecting(300_000_000, MANY), tmp_path / "m.nnd")
    assert "--samples" in str(caught.value.hint)
    assert not (tmp_path / "m.nnd").exists()
