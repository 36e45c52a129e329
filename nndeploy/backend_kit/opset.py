# SPDX-License-Identifier: Apache-2.0
"""Conversion of a model to another version of ONNX's operator set, for backends that want one.

A conversion that is not possible is a reason, not an error: the nodes go to the next backend.
"""

from dataclasses import dataclass

import onnx
import onnx.checker
import onnx.version_converter

from nndeploy.errors import one_line
from nndeploy.graph.operator_rules import OPSETS, normal_domain


@dataclass(frozen=True, slots=True)
class Conversion:
    """The converted model, or None and why there is none."""

    model: onnx.ModelProto | None
    reason: str = ""


def converted(model: onnx.ModelProto, target_version: int) -> Conversion:
    """Returns the model with version `target_version` of the operator set "ai.onnx"; itself where it has that already.

    What the converter returns is checked, because it can drop what it does not know.
    """
    version = next((o.version for o in model.opset_import if not normal_domain(o.domain)), None)
    if version is None:
        return Conversion(None, "the model imports no operator set ai.onnx")
    if version == target_version:
        return Conversion(model)
    if target_version not in OPSETS[""]:
        return Conversion(None, f"there is no version {target_version} of ai.onnx")
    try:
        result = onnx.version_converter.convert_version(model, target_version)
        for opset in result.opset_import:
            opset.domain = normal_domain(opset.domain)
        onnx.checker.check_model(result)
    except Exception as err:  # the converter throws whatever its C++ throws
        return Conversion(None, f"from version {version} to {target_version}: {one_line(str(err)):.300}")
    return Conversion(result)
