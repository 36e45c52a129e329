# SPDX-License-Identifier: Apache-2.0
"""Which nodes the kernels take: each node is lowered on its own, by the same rules that the build uses."""

from collections.abc import Mapping

import onnx_ir as ir

from nndeploy.backend_kit.gpu_probe import NO_GPU
from nndeploy.errors import one_line
from nndeploy.plugin.interface import TAKEN, Support
from nndeploy.target.target import Target
from nndeploy.values.types import DimRange
from nndeploy_triton.lowering.table import refusal_of


def supports(model: ir.Model, target: Target, ranges: Mapping[str, DimRange]) -> list[Support]:
    """Returns the answer for each node of the main graph."""
    if not target.gpus:
        return [Support(False, NO_GPU) for _ in model.graph]
    return [_support(refusal_of(node, model, ranges)) for node in model.graph]


def _support(reason: str) -> Support:
    return Support(False, one_line(reason)) if reason else TAKEN
