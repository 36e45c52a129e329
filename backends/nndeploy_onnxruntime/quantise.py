# SPDX-License-Identifier: Apache-2.0
"""Quantised models, made by `onnxruntime.quantization` of float32 models.

    static    x, Conv(x, w), y   ->   Q, DQ, Conv(DQ, DQ(w as int8)), Q, DQ
    dynamic   MatMul(x, w)       ->   DynamicQuantizeLinear(x), MatMulInteger, scaled
    blocks    MatMul(x, w)       ->   MatMulNBits(x, w in 4 bits): com.microsoft

Law: the same model and recipe give the same bytes.
"""

import contextlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from nndeploy.backend_kit.opset import converted
from nndeploy.errors import BuildRefusedError
from nndeploy.plugin.interface import QuantiseRecipe, Ranges
from nndeploy_onnxruntime.library import quantization

OLDEST_OPSET = 13
"""Before it a tensor has one scale, not one for each channel."""
BLOCK_SIZE = 32
FLOAT_ACTIVATIONS = 1
"""`accuracy_level` of MatMulNBits: products are computed in float32."""


def quantise(model: bytes, recipe: QuantiseRecipe, workdir: Path) -> bytes:
    """Returns the model with the nodes of `recipe` quantised.

    Raises:
        BuildRefusedError: the library cannot.
    """
    if not recipe.nodes:
        return model
    proto = _in_usable_opset(onnx.load_from_string(model))
    with contextlib.redirect_stdout(sys.stderr):  # the library prints what it is at
        made = _FORMS[recipe.form](_with_shapes(proto, workdir), recipe)
        made.topological_sort()
    quantised: onnx.ModelProto = made.model
    del quantised.metadata_props[:]  # marks that the library leaves for itself
    return bytes(quantised.SerializeToString(deterministic=True))


def _in_usable_opset(proto: onnx.ModelProto) -> onnx.ModelProto:
    version = next((opset.version for opset in proto.opset_import if opset.domain in ("", "ai.onnx")), OLDEST_OPSET)
    if version >= OLDEST_OPSET:
        return proto
    conversion = converted(proto, OLDEST_OPSET)
    if conversion.model is None:
        raise BuildRefusedError(f"the model is not converted to opset {OLDEST_OPSET}: {conversion.reason}")
    return conversion.model


def _with_shapes(proto: onnx.ModelProto, workdir: Path) -> onnx.ModelProto:
    (workdir / "float.onnx").write_bytes(proto.SerializeToString())
    return quantization("quant_utils").load_model_with_shape_infer(workdir / "float.onnx")  # type: ignore[no-any-return]


def _static(proto: onnx.ModelProto, recipe: QuantiseRecipe) -> Any:
    kinds = quantization("quant_utils").QuantType
    quantiser = quantization("qdq_quantizer").QDQQuantizer(
        proto,
        per_channel=True,
        reduce_range=False,
        weight_qType=kinds.QInt8,
        activation_qType=kinds.QUInt8,
        tensors_range=_tensors_data(recipe.ranges),
        nodes_to_quantize=list(recipe.nodes),
        nodes_to_exclude=[],
        op_types_to_quantize=_kinds_of(proto, recipe),
        extra_options={"ForceQuantizeNoInputCheck": False},
    )
    quantiser.quantize_model()
    return quantiser.model


def _tensors_data(ranges: Ranges) -> Any:
    calibrate = quantization("calibrate")
    data: Mapping[str, Any] = {
        name: (np.array(least, np.float32), np.array(most, np.float32)) for name, (least, most) in ranges.items()
    }
    return calibrate.TensorsData(calibrate.CalibrationMethod.MinMax, data)


def _dynamic(proto: onnx.ModelProto, recipe: QuantiseRecipe) -> Any:
    del proto.graph.value_info[:]  # the library turns Gemm into MatMul, and with it the shapes of weights
    kinds = quantization("quant_utils")
    quantiser = quantization("onnx_quantizer").ONNXQuantizer(
        proto,
        per_channel=True,
        reduce_range=False,
        mode=kinds.QuantizationMode.IntegerOps,
        static=False,
        weight_qType=kinds.QuantType.QInt8,
        activation_qType=kinds.QuantType.QUInt8,
        tensors_range=None,
        nodes_to_quantize=list(recipe.nodes),
        nodes_to_exclude=[],
        op_types_to_quantize=_kinds_of(proto, recipe),
        extra_options={"MatMulConstBOnly": True},
    )
    quantiser.quantize_model()
    return quantiser.model


def _in_blocks(proto: onnx.ModelProto, recipe: QuantiseRecipe) -> Any:
    others = [node.name for node in proto.graph.node if node.op_type == "MatMul" and node.name not in recipe.nodes]
    quantiser = quantization("matmul_nbits_quantizer").MatMulNBitsQuantizer(
        proto, bits=4, block_size=BLOCK_SIZE, is_symmetric=False, accuracy_level=FLOAT_ACTIVATIONS,
        nodes_to_exclude=others,
    )  # fmt: skip
    quantiser.process()
    return quantiser.model


def _kinds_of(proto: onnx.ModelProto, recipe: QuantiseRecipe) -> list[str]:
    wanted = frozenset(recipe.nodes)
    return sorted({node.op_type for node in proto.graph.node if node.name in wanted})


# Each returns the library's own class, which holds the model.
_FORMS: Mapping[str, Callable[[onnx.ModelProto, QuantiseRecipe], Any]] = {
    "static": _static,
    "dynamic": _dynamic,
    "blocks": _in_blocks,
}
