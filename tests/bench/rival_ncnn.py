# SPDX-License-Identifier: Apache-2.0
"""ncnn, made inside a child of `interleaved`: converted by pnnx, float32, its other defaults.

It has no axis of the batch, which must be 1, and gets integers in 32 bits.
"""

from pathlib import Path

import numpy as np
import rival_models
from interleaved import Array, EngineRefusedError, Inputs, Ready

KINDS = {np.dtype(np.float32): "f32", np.dtype(np.int32): "i32", np.dtype(np.int64): "i64"}


def ready(inputs: Inputs, model: str, folder: str, threads: int, outputs: dict[str, list[int]]) -> Ready:
    import ncnn

    if any(array.dtype not in KINDS or array.ndim < 2 or array.shape[0] != 1 for array in inputs.values()):
        raise EngineRefusedError("an input that is not float32 or an integer with a batch of one")
    pnnx = Path(ncnn.__file__).parents[1] / "pnnx" / "pnnx"  # its command needs torch, the program does not
    shapes = ",".join(f"[{','.join(map(str, array.shape))}]{KINDS[array.dtype]}" for array in inputs.values())

    def convert(source: Path, made: Path) -> None:
        copy = made / "model.onnx"  # pnnx writes beside what it reads
        copy.symlink_to(source)
        rival_models.converted([pnnx, copy, f"inputshape={shapes}", "fp16=0"], copy.with_suffix(".ncnn.param"), made)

    made = rival_models.kept(folder, f"ncnn {ncnn.__version__}", model, convert)
    network = ncnn.Net()
    options = network.opt
    options.num_threads, options.use_vulkan_compute, options.use_bf16_storage = threads, False, False
    options.use_fp16_packed = options.use_fp16_storage = options.use_fp16_arithmetic = False
    if network.load_param(str(made / "model.ncnn.param")) or network.load_model(str(made / "model.ncnn.bin")):
        raise EngineRefusedError("it does not load what pnnx wrote")
    if len(network.input_names()) != len(inputs) or len(network.output_names()) != len(outputs):
        raise EngineRefusedError(f"it has {len(network.input_names())} inputs, {len(network.output_names())} outputs")
    names = [f"out{number}" for number in range(len(outputs))]  # output_names() has them in another order
    rows = [array[0].astype(np.int32) if array.dtype == np.int64 else array[0] for array in inputs.values()]
    arrays = [np.ascontiguousarray(row) for row in rows]

    def call() -> list[Array]:
        run = network.create_extractor()
        for number, array in enumerate(arrays):
            run.input(f"in{number}", ncnn.Mat(array))
        return [np.asarray(run.extract(name)[1]) for name in names]

    return Ready(call, lambda found: [np.array(one)[None] for one in found], ncnn.__version__)
