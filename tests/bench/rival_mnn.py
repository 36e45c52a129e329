# SPDX-License-Identifier: Apache-2.0
"""MNN, made inside a child of `interleaved`: float32, its other defaults, values as its own host tensors.

It computes integers in 32 bits and gets inputs of 64 as these.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import rival_models
from interleaved import EngineRefusedError, Inputs, Ready


def ready(inputs: Inputs, model: str, folder: str, threads: int, outputs: dict[str, list[int]]) -> Ready:
    import MNN

    arrays = {name: one.astype(np.int32) if one.dtype == np.int64 else one for name, one in inputs.items()}
    if other := {str(array.dtype) for array in arrays.values() if array.dtype not in (np.float32, np.int32)}:
        raise EngineRefusedError(f"inputs of {', '.join(sorted(other))}")
    kinds = {np.dtype(np.float32): MNN.Halide_Type_Float, np.dtype(np.int32): MNN.Halide_Type_Int}
    network = MNN.Interpreter(str(rival_models.kept(folder, f"mnn {MNN.version()}", model, _convert) / "model.mnn"))
    session = network.createSession({"backend": "CPU", "numThread": threads, "precision": "high"})
    tensors = network.getSessionInputAll(session)
    if set(tensors) != set(inputs):
        raise EngineRefusedError(f"its inputs are {', '.join(sorted(tensors))}")
    for name, tensor in tensors.items():
        network.resizeTensor(tensor, inputs[name].shape)
    network.resizeSession(session)
    layout = MNN.Tensor_DimensionType_Caffe
    results = network.getSessionOutputAll(session)
    if set(results) != set(outputs):
        raise EngineRefusedError(f"its outputs are {', '.join(sorted(results))}")
    given = {name: MNN.Tensor(array.shape, kinds[array.dtype], array, layout) for name, array in arrays.items()}
    taken = {
        name: MNN.Tensor(one.getShape(), MNN.Halide_Type_Float, np.empty(one.getShape(), np.float32), layout)
        for name, one in results.items()
    }

    def call() -> Any:
        for name, tensor in tensors.items():
            tensor.copyFrom(given[name])
        network.runSession(session)
        for name, result in results.items():
            result.copyToHostTensor(taken[name])
        return taken

    return Ready(call, lambda found: [np.array(found[name].getNumpyData()) for name in outputs], str(MNN.version()))


def _convert(source: Path, folder: Path) -> None:
    made = folder / "model.mnn"
    command = [Path(sys.executable).with_name("mnnconvert"), "-f", "ONNX", "--modelFile", source, "--MNNModel", made]
    rival_models.converted([*command, "--bizCode", "bench"], made, folder)
