# SPDX-License-Identifier: Apache-2.0
"""Two Relu or Clip in a row become one."""

import numpy as np
import onnx_ir as ir
from passes_harness import GraphBuilder, rewritten

NAME = "merge-clips"


def test_bound_that_is_no_number_stays() -> None:
    build = GraphBuilder(17, np.float32)
    x = build.input([2])
    y = build.node("Clip", build.node("Relu", x), build.constant(np.nan))
    assert rewritten(NAME, ir.from_proto(build.model(y))) == 0
