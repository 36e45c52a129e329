# SPDX-License-Identifier: Apache-2.0
"""MNN and ncnn, each made inside a child of `interleaved` that runs in their own environment, build/rivals-env.

Their converters are called on the model as it is; whatever they or the libraries refuse is a refusal with their last
words. Both compute in float32 with their other defaults, and get the sizes of the inputs.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from commands import ran
from interleaved import Array, EngineRefusedError, Inputs, Ready

CONVERT_SECONDS = 120.0


def mnn(inputs: Inputs, model: str, threads: int, outputs: list[str]) -> Ready:
    """MNN's session of a model; values cross as its own host tensors, as in its benchmarks."""
    import MNN

    if other := [name for name, array in inputs.items() if array.dtype not in (np.float32, np.int32)]:
        raise EngineRefusedError(f"inputs that are neither float32 nor int32: {', '.join(other)}")
    kinds = {np.dtype(np.float32): MNN.Halide_Type_Float, np.dtype(np.int32): MNN.Halide_Type_Int}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mnn"
        files = ["--modelFile", model, "--MNNModel", str(path)]
        converter = str(Path(sys.executable).with_name("mnnconvert"))
        _converted([converter, "-f", "ONNX", *files, "--bizCode", "bench"], path)
        network = MNN.Interpreter(str(path))
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
    given = {name: MNN.Tensor(array.shape, kinds[array.dtype], array, layout) for name, array in inputs.items()}
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


def ncnn(inputs: Inputs, model: str, threads: int, outputs: list[str]) -> Ready:
    """ncnn's network, converted by pnnx for these sizes; it has no axis of the batch, which must be 1."""
    import ncnn as library

    if any(array.dtype != np.float32 or array.ndim < 2 or array.shape[0] != 1 for array in inputs.values()):
        raise EngineRefusedError("an input that is not float32 with a batch of one")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "model.onnx"
        source.symlink_to(model)
        shapes = ",".join(f"[{','.join(map(str, array.shape))}]f32" for array in inputs.values())
        param, weights = source.with_suffix(".ncnn.param"), source.with_suffix(".ncnn.bin")
        pnnx = Path(library.__file__).parents[1] / "pnnx" / "pnnx"  # its command needs torch, the program does not
        _converted([str(pnnx), str(source), f"inputshape={shapes}", "fp16=0"], param)
        network = library.Net()
        options = network.opt
        options.num_threads, options.use_vulkan_compute, options.use_bf16_storage = threads, False, False
        options.use_fp16_packed = options.use_fp16_storage = options.use_fp16_arithmetic = False
        if network.load_param(str(param)) or network.load_model(str(weights)):
            raise EngineRefusedError("it does not load what pnnx wrote")
    names = network.output_names()
    if len(network.input_names()) != len(inputs) or len(names) != len(outputs):
        raise EngineRefusedError(f"it has {len(network.input_names())} inputs and {len(names)} outputs")
    arrays = [np.ascontiguousarray(array[0]) for array in inputs.values()]

    def call() -> list[Array]:
        run = network.create_extractor()
        for number, array in enumerate(arrays):
            run.input(f"in{number}", library.Mat(array))
        return [np.asarray(run.extract(name)[1]) for name in names]

    return Ready(call, lambda found: [np.array(one)[None] for one in found], library.__version__)


def _converted(command: list[str], made: Path) -> None:
    """Runs a converter of the environment."""
    done = ran(command, CONVERT_SECONDS)
    if done.code != 0 or not made.exists():
        raise EngineRefusedError(f"{done.name} ended with {done.code}: {done.last_words[:120]}")
