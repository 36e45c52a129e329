# SPDX-License-Identifier: Apache-2.0
"""The gate for the run half: an ONNX model from a bundle, which may come from anybody, before a library parses it."""

from nndeploy.errors import BundleError, ModelError
from nndeploy.graph.operator_rules import ANY_DOMAIN
from nndeploy.onnx_gate.gate import check_bytes
from nndeploy.onnx_gate.limits import PROTOBUF_MAX_BYTES, limits_within


def check_member(name: str, model: bytes, num_external_bytes: int = 0) -> None:
    """Passes a member that is a model, well formed and within the limits of the gate once its functions are inlined.

    `num_external_bytes` are the weights beside it.

    Raises:
        BundleError: it is not.
        PolicyError: it uses an operator that is not allowed.
    """
    try:
        check_bytes(model, limits_within(PROTOBUF_MAX_BYTES + num_external_bytes), ANY_DOMAIN)
    except ModelError as err:
        raise BundleError(err.what, where=f"{name}: {err.where}".rstrip(": "), hint="compile it again") from err
