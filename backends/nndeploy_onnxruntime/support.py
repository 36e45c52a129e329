# SPDX-License-Identifier: Apache-2.0
"""Which nodes ONNX Runtime takes: a session is made of the whole model, or of each node, and not optimised.

That finds what the library finds at load: operators and element types without a kernel, and attributes that a kernel
refuses. Every element type that it computes with can also cross the border (see `session.py`).
"""

from collections.abc import Sequence

import onnx_ir as ir

from nndeploy.backend_kit.query import supported_nodes
from nndeploy.errors import BuildRefusedError, NndeployError
from nndeploy.plugin.interface import Support
from nndeploy_onnxruntime.library import onnxruntime, session_options, without_packing
from nndeploy_onnxruntime.mapped_weights import session_with_weights
from nndeploy_onnxruntime.model_bytes import bytes_for_onnxruntime
from nndeploy_onnxruntime.reason import reason_of
from nndeploy_onnxruntime.rules import rule


def supports(model: ir.Model, libraries: Sequence[str]) -> list[Support]:
    """Returns the library's answer for each node of the main graph; `libraries` hold custom operators."""

    def refusal(part: ir.Model) -> str:
        try:
            options = without_packing(session_options(1, libraries))
            options.graph_optimization_level = onnxruntime().GraphOptimizationLevel.ORT_DISABLE_ALL
            session_with_weights(bytes_for_onnxruntime(part), options)
        except (BuildRefusedError, NndeployError) as err:
            return str(err)
        except Exception as err:  # the library's way to say no has many classes
            return reason_of(err)
        return ""

    return supported_nodes(model, refusal, rule)
