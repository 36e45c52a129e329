# SPDX-License-Identifier: Apache-2.0
"""Which nodes OpenVINO takes: the whole model, or each node, is converted and compiled for this machine's CPU."""

from collections.abc import Mapping

import onnx_ir as ir

from nndeploy.backend_kit.query import supported_nodes
from nndeploy.errors import BuildRefusedError
from nndeploy.plugin.interface import Support
from nndeploy.values.types import DimRange
from nndeploy_openvino.conversion import convert
from nndeploy_openvino.export_process import stand_by
from nndeploy_openvino.library import DEVICE, configuration, core
from nndeploy_openvino.reason import reason_of
from nndeploy_openvino.rules import Rules


def supports(model: ir.Model, ranges: Mapping[str, DimRange]) -> list[Support]:
    """Returns the library's answer for each node of the main graph."""
    stand_by()  # before the library is used: a build may follow in this process
    return supported_nodes(model, lambda asked: refusal(asked, ranges), Rules(ranges))


def refusal(model: ir.Model, ranges: Mapping[str, DimRange]) -> str:
    """Returns why OpenVINO does not convert or compile a model, or ""."""
    try:
        converted = convert(model, ranges)
        core().compile_model(converted.model, DEVICE, configuration(None))
    except BuildRefusedError as err:
        return str(err)
    except Exception as err:  # the library's way to say no has many classes
        return reason_of(err)
    return ""
