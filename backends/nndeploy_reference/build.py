# SPDX-License-Identifier: Apache-2.0
"""The compile half: which operators ONNX's evaluator has, the artifact (the model itself), and the reference."""

from collections.abc import Mapping, Sequence

import onnx
import onnx_ir as ir

from nndeploy.backend_kit.query import bytes_of, supported_nodes
from nndeploy.backend_kit.reasons import one_line_reason
from nndeploy.errors import BuildRefusedError
from nndeploy.plugin.interface import Artifact, Support
from nndeploy.values.types import Value
from nndeploy_reference.rules import refusal_of
from nndeploy_reference.session import MODEL_FILE, EvaluatorSession, evaluator_of


def supports(model: ir.Model) -> list[Support]:
    """Returns for each node of the main graph whether the evaluator has its operator."""
    return supported_nodes(model, _refusal, needs_types=False)


def build(submodel: ir.Model) -> Artifact:
    """Returns the submodel as it is.

    Raises:
        BuildRefusedError: an operator has no implementation or a wrong one, or the model is larger than 2 GiB.
    """
    if reason := _refusal(submodel):
        raise BuildRefusedError(reason)
    return Artifact(files={MODEL_FILE: bytes_of(ir.to_proto(submodel))})


def evaluate(model: bytes, samples: Sequence[Mapping[str, Value]]) -> list[dict[str, Value]]:
    """Returns all outputs of a model for each sample.

    Raises:
        BuildRefusedError: an operator has no implementation or a wrong one, or none for these values.
    """
    proto = onnx.load_from_string(model)
    if reason := refusal_of(proto):
        raise BuildRefusedError(reason)
    try:
        session = EvaluatorSession(proto)
        return [session.run(sample) for sample in samples]
    except Exception as err:  # operators fail in their own ways
        raise BuildRefusedError(_reason(err)) from err


def _refusal(model: ir.Model) -> str:
    proto = ir.to_proto(model)
    if reason := refusal_of(proto):
        return reason
    try:
        evaluator_of(proto)
    except Exception as err:  # the evaluator says no in many classes
        return _reason(err)
    return ""


def _reason(error: Exception) -> str:
    return one_line_reason(str(error)) or type(error).__name__
