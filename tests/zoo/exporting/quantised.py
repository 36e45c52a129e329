# SPDX-License-Identifier: Apache-2.0
"""Files of the other families quantised by ONNX Runtime's own tools.

Calibration pictures are drawn from a seed, as the inputs are: what is calibrated on and what is run look alike.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from exporting.feed import session_of
from exporting.graphs import Inputs, Scale, graph
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quant_pre_process,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

_CALIBRATING = 4


class Drawn(CalibrationDataReader):
    """A few noisy variants of one set of inputs."""

    def __init__(self, inputs: Inputs) -> None:
        random = np.random.default_rng(7)
        self._left: Iterator[dict[str, np.ndarray]] = iter(
            [
                {
                    name: array + random.standard_normal(array.shape).astype(array.dtype) * array.dtype.type(0.3)
                    for name, array in inputs.items()
                }
                for _ in range(_CALIBRATING)
            ]
        )

    def get_next(self) -> dict[str, np.ndarray] | None:
        """Returns the next variant, or None behind the last."""
        return next(self._left, None)


def _source(path: Path, name: str) -> tuple[Path, Inputs]:
    """Returns the file of another graph beside this one, and its inputs."""
    with np.load(path.parent / "inputs" / f"{name}.npz") as arrays:
        return path.parent / f"{name}.onnx", {key: arrays[key] for key in arrays.files}


def _enter_static(
    name: str, source: str, *, per_channel: bool, form: QuantFormat = QuantFormat.QDQ,
    activations: QuantType = QuantType.QUInt8, symmetric: bool = False,
) -> None:  # fmt: skip
    how = f"{form.name}, per {'channel' if per_channel else 'tensor'}, {activations.name[1:]} activations"

    @graph(name, f"{source} quantised: static", f"onnxruntime.quantization, {how}", after=(source,))
    def make(path: Path, scale: Scale) -> Inputs:
        model, inputs = _source(path, source)
        prepared = path.with_suffix(".prepared")
        try:
            quant_pre_process(str(model), str(prepared), skip_symbolic_shape=True)
            quantize_static(
                str(prepared), str(path), Drawn(inputs), quant_format=form, per_channel=per_channel,
                activation_type=activations, weight_type=QuantType.QInt8,
                extra_options={"ActivationSymmetric": symmetric, "WeightSymmetric": True},
            )  # fmt: skip
        finally:
            prepared.unlink(missing_ok=True)
        return inputs


_enter_static("resnet18_qdq_tensor", "resnet18", per_channel=False)
_enter_static("resnet18_qdq_channel", "resnet18", per_channel=True, activations=QuantType.QInt8, symmetric=True)
_enter_static("mobilenet_v2_qdq_tensor", "mobilenet_v2", per_channel=False)
_enter_static("mobilenet_v2_qdq_channel", "mobilenet_v2", per_channel=True)
_enter_static("vit_qdq_tensor", "vit", per_channel=False)
_enter_static("vit_qdq_channel", "vit_tv", per_channel=True, activations=QuantType.QInt8)
_enter_static("yolov8n_qdq_tensor", "yolov8n", per_channel=False)
_enter_static("yolov8n_qdq_channel", "yolov8n", per_channel=True)
_enter_static("unet_qdq_channel", "unet", per_channel=True)
_enter_static("resnet18_qoperator", "resnet18", per_channel=False, form=QuantFormat.QOperator)
_enter_static("mobilenet_v2_qoperator", "mobilenet_v2", per_channel=True, form=QuantFormat.QOperator)
_enter_static("word_spotter_qdq", "word_spotter", per_channel=True)


def _enter_dynamic(name: str, source: str, *, per_channel: bool = False) -> None:
    @graph(name, f"{source} quantised: dynamic int8", "onnxruntime.quantization, dynamic", after=(source,))
    def make(path: Path, scale: Scale) -> Inputs:
        model, inputs = _source(path, source)
        quantize_dynamic(str(model), str(path), weight_type=QuantType.QInt8, per_channel=per_channel)
        return inputs


_enter_dynamic("bert_dynamic_int8", "bert")
_enter_dynamic("distilbert_dynamic_int8", "distilbert", per_channel=True)
_enter_dynamic("lstm_tagger_dynamic_int8", "lstm_tagger")
_enter_dynamic("gpt2_dynamic_int8", "gpt2")


def _enter_4_bits(name: str, source: str, form: QuantFormat, *, accuracy: int | None) -> None:
    how = "MatMulNBits" if form is QuantFormat.QOperator else "DequantizeLinear by blocks"

    @graph(name, f"{source} quantised: 4-bit weights", f"onnxruntime.quantization, {how}", after=(source,))
    def make(path: Path, scale: Scale) -> Inputs:
        model, inputs = _source(path, source)
        config = DefaultWeightOnlyQuantConfig(
            block_size=32,
            is_symmetric=True,
            accuracy_level=accuracy,
            quant_format=form,
            op_types_to_quantize=("MatMul",),
        )
        quantizer = MatMulNBitsQuantizer(onnx.load(model), algo_config=config)
        quantizer.process()
        onnx.save(quantizer.model.model, path)
        session_of(path)
        return inputs


_enter_4_bits("llama_int4", "llama", QuantFormat.QOperator, accuracy=None)
_enter_4_bits("llama_int4_int8_products", "llama", QuantFormat.QOperator, accuracy=4)
_enter_4_bits("llama_int4_qdq", "llama", QuantFormat.QDQ, accuracy=None)
_enter_4_bits("qwen2_int4", "qwen2", QuantFormat.QOperator, accuracy=None)
