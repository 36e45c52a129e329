# SPDX-License-Identifier: Apache-2.0
"""Files of the other families in half precision, by the converters that people use."""

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
from exporting.graphs import Inputs, Scale, graph
from onnxconverter_common import float16
from onnxruntime.transformers.float16 import convert_float_to_float16


def _source(path: Path, name: str) -> tuple[onnx.ModelProto, Inputs]:
    with np.load(path.parent / "inputs" / f"{name}.npz") as arrays:
        inputs = {key: arrays[key] for key in arrays.files}
    return onnx.load(path.parent / f"{name}.onnx"), inputs


def _halved(inputs: Inputs) -> Inputs:
    return {name: array.astype(np.float16) if array.dtype == np.float32 else array for name, array in inputs.items()}


def _sorted(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with its nodes in order: the converters append casts where they please."""
    inner = ir.from_proto(model)
    inner.graph.sort()
    return ir.to_proto(inner)


def _enter(name: str, source: str, *, keep_io: bool, tools: str = "onnxconverter-common") -> None:
    borders = "float32 borders" if keep_io else "float16 borders"

    @graph(name, f"{source} in float16", f"{tools}, {borders}", after=(source,))
    def make(path: Path, scale: Scale) -> Inputs:
        model, inputs = _source(path, source)
        if tools == "onnxconverter-common":
            halved = float16.convert_float_to_float16(model, keep_io_types=keep_io)
        else:
            halved = convert_float_to_float16(model, keep_io_types=keep_io)
        onnx.save(_sorted(halved), path)
        return inputs if keep_io else _halved(inputs)


_enter("yolov8n_fp16", "yolov8n", keep_io=True, tools="onnxruntime.transformers")
_enter("yolov8n_fp16_io", "yolov8n", keep_io=False, tools="onnxruntime.transformers")
_enter("bert_fp16", "bert_fixed", keep_io=True, tools="onnxruntime.transformers")
_enter("resnet18_fp16", "resnet18", keep_io=False, tools="onnxruntime.transformers")
_enter("mobilenet_v2_fp16", "mobilenet_v2", keep_io=True)
_enter("distilbert_fp16", "distilbert_fixed", keep_io=True, tools="onnxruntime.transformers")
_enter("vgg_like_fp16", "vgg_like", keep_io=False)
