# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime as a reference: a model's outputs as the file says, without optimisation, on one thread.

There are three exceptions. Where products of integers would saturate, what keeps them from that (`EXACT_PRODUCTS`) is
an optimisation of the second level. Some operators have kernels only as the optimised model has them: a Gather of
4-bit weights that are dequantised behind it. And Sigmoid is computed by its definition (`defined_sigmoid`).
"""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.values.types import Value
from nndeploy_onnxruntime.defined_sigmoid import with_defined_sigmoid
from nndeploy_onnxruntime.library import onnxruntime, saturates, session_options, without_packing
from nndeploy_onnxruntime.mapped_weights import session_with_weights
from nndeploy_onnxruntime.model_bytes import bytes_for_onnxruntime
from nndeploy_onnxruntime.reason import reason_of
from nndeploy_onnxruntime.session import session_over


def evaluate(model: bytes, samples: Sequence[Mapping[str, Value]], libraries: Sequence[str]) -> list[dict[str, Value]]:
    """Returns all outputs for each sample; `libraries` hold custom operators.

    Raises:
        BuildRefusedError: the library cannot run the model, or not on these values.
    """
    try:
        weights, library_session = _session(model, libraries)
        session = session_over(library_session, weights)
        return [session.run(sample) for sample in samples]
    except BuildRefusedError:
        raise
    except Exception as err:  # the library's way to say no has many classes
        raise BuildRefusedError(reason_of(err)) from err


_INTEGER_PRODUCTS = (
    b"MatMulInteger", b"ConvInteger", b"QLinearMatMul", b"QLinearConv", b"QGemm", b"DynamicQuantizeMatMul",
    b"QAttention", b"DynamicQuantizeLSTM",
)  # fmt: skip


def _has_integer_products(model: bytes) -> bool:
    """Returns whether a model may have such an operator; a weight that holds the name does no harm."""
    return any(name in model for name in _INTEGER_PRODUCTS)


def _session(model: bytes, libraries: Sequence[str]) -> tuple[object, Any]:
    """Returns a session over the model as it is or, where the library does not know its versions, over older ones.

    Before it comes what must stay as long as it.
    """
    if (defined := with_defined_sigmoid(model)) is not model:
        with contextlib.suppress(Exception):  # of float64 it has no Softplus
            return _session_at_some_level(defined, libraries)
    try:
        return _session_at_some_level(model, libraries)
    except Exception as err:
        try:
            older = bytes_for_onnxruntime(ir.from_proto(onnx.load_from_string(model)))
        except Exception:  # onnx_ir does not read every model
            raise err from None
        return _session_at_some_level(older, libraries)


def _session_at_some_level(model: bytes, libraries: Sequence[str]) -> tuple[object, Any]:
    levels = onnxruntime().GraphOptimizationLevel
    first, second = levels.ORT_DISABLE_ALL, levels.ORT_ENABLE_EXTENDED
    if saturates() and _has_integer_products(model):
        first, second = second, first
    packs = _ACCURACY_LEVEL in model
    try:
        return session_with_weights(model, _options(first, libraries, packs=packs))
    except Exception as err:
        if not any(words in str(err) for words in _NO_KERNEL):
            raise
    return session_with_weights(model, _options(second, libraries, packs=packs))


_ACCURACY_LEVEL = b"accuracy_level"
"""The attribute by which a product of packed weights may round its activations: the library only does if it packs."""
_NO_KERNEL = ("Could not find an implementation", "Failed to find kernel")


def _options(level: Any, libraries: Sequence[str], *, packs: bool) -> Any:
    options = session_options(1, libraries)
    if not packs:
        without_packing(options)
    options.graph_optimization_level = level
    return options
