# SPDX-License-Identifier: Apache-2.0
"""Which nodes cuDNN takes: each is lowered by itself, and cuDNN asked for the plans that it would need.

A node that only relabels elements costs a copy when it stands alone and mostly nothing in company; it is taken.
"""

import onnx_ir as ir

from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import TAKEN, BuildOptions, Support
from nndeploy.query import one_line_reason
from nndeploy.target import Target
from nndeploy_cudnn.build import NO_GPU
from nndeploy_cudnn.lowering import refusal_of
from nndeploy_cudnn.planner import planner_for


def supports(model: ir.Model, target: Target, options: BuildOptions) -> list[Support]:
    """Returns cuDNN's answer for each node of the main graph."""
    if not target.gpus:
        return [Support(False, NO_GPU)] * len(model.graph)
    try:
        with planner_for(target.gpus[0]) as planner:
            reasons = [refusal_of(node, planner, options.ranges) for node in model.graph]
    except UnavailableError as err:
        return [Support(False, one_line_reason(str(err)))] * len(model.graph)
    return [Support(False, one_line_reason(reason)) if reason else TAKEN for reason in reasons]
