# SPDX-License-Identifier: Apache-2.0
"""Which nodes the kernels take: each node is lowered on its own, by the same rules that the build uses."""

import onnx_ir as ir

from nndeploy.errors import one_line
from nndeploy.plugin.interface import TAKEN, BuildOptions, Support
from nndeploy.target.target import Target
from nndeploy_native.kernel_library import no_kernels
from nndeploy_native.lowering.courses import is_beside_plans, refusal_of_course
from nndeploy_native.lowering.table import refusal_of


def supports(model: ir.Model, target: Target, options: BuildOptions) -> list[Support]:
    """Returns the answer for each node of the main graph."""
    if why := no_kernels(target, options.precision):
        return [Support(False, why) for _ in model.graph]
    return [
        _support((refusal_of_course if is_beside_plans(node) else refusal_of)(node, model, options.ranges))
        for node in model.graph
    ]


def _support(reason: str) -> Support:
    return Support(False, one_line(reason)) if reason else TAKEN
