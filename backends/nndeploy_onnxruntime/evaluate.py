# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime as a reference: a model's outputs as the file says, without optimisation, on one thread."""

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import onnx_ir as ir

from nndeploy.plugin.interface import BuildRefusedError
from nndeploy.value_types import Value
from nndeploy_onnxruntime.library import inference_session, onnxruntime, session_options
from nndeploy_onnxruntime.model_bytes import bytes_for_onnxruntime
from nndeploy_onnxruntime.reason import reason_of
from nndeploy_onnxruntime.session import session_over


def evaluate(model: bytes, samples: Sequence[Mapping[str, Value]], libraries: Sequence[str]) -> list[dict[str, Value]]:
    """Returns all outputs for each sample; `libraries` hold custom operators.

    Raises:
        BuildRefusedError: the library cannot run the model, or not on these values.
    """
    options = session_options(1, libraries)
    options.graph_optimization_level = onnxruntime().GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = session_over(_session(model, options), None)
        return [session.run(sample) for sample in samples]
    except BuildRefusedError:
        raise
    except Exception as err:  # the library's way to say no has many classes
        raise BuildRefusedError(reason_of(err)) from err


def _session(model: bytes, options: Any) -> Any:
    """Returns a session over the model as it is or, where the library does not know its versions, over older ones."""
    try:
        return inference_session(model, options)
    except Exception:
        return inference_session(bytes_for_onnxruntime(ir.from_proto(onnx.load_from_string(model))), options)
