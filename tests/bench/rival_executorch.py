# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch with XNNPACK, made inside a child of `interleaved`.

`python rival_executorch.py MODEL.onnx MADE.pte` converts: onnx2torch makes a module of PyTorch, torch.export traces it,
and XNNPACK gets all that it takes; portable kernels run the rest.
"""

import sys
import types
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import rival_models
from interleaved import Inputs, Ready

OPERATOR_SET = 17
"""The newest of which onnx2torch knows most operators."""


def ready(inputs: Inputs, model: str, folder: str, threads: int, outputs: dict[str, list[int]]) -> Ready:
    release = version("executorch")
    made = rival_models.kept(folder, f"executorch {release}", model, _convert)
    import torch
    from executorch.extension.pybindings.portable_lib import _unsafe_reset_threadpool
    from executorch.runtime import Runtime

    _unsafe_reset_threadpool(threads)
    method = Runtime.get().load_program(made / "model.pte").load_method("forward")
    given = [torch.from_numpy(np.array(array)) for array in inputs.values()]
    return Ready(lambda: method.execute(given), lambda found: [np.array(one) for one in found], release)


def _convert(source: Path, folder: Path) -> None:
    made = folder / "model.pte"
    rival_models.converted([sys.executable, "-W", "ignore", __file__, source, made], made, folder)


def main(source: str, made: str) -> None:
    torchvision: Any = types.ModuleType("torchvision")  # onnx2torch wants it for operators that are not used here
    torchvision.ops = types.ModuleType("torchvision.ops")
    torchvision.ops.roi_align = None
    sys.modules.update({"torchvision": torchvision, "torchvision.ops": torchvision.ops})
    import onnx.version_converter
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower
    from onnx.helper import tensor_dtype_to_np_dtype as dtype_of
    from onnx2torch import convert

    model = onnx.load(source)
    if max(one.version for one in model.opset_import if one.domain in ("", "ai.onnx")) > OPERATOR_SET:
        model = onnx.version_converter.convert_version(model, OPERATOR_SET)
    kinds = [one.type.tensor_type for one in model.graph.input]
    given = tuple(
        torch.from_numpy(np.zeros([size.dim_value for size in one.shape.dim], dtype_of(one.elem_type))) for one in kinds
    )
    with torch.no_grad():
        exported = torch.export.export(convert(model).eval(), given)
        lowered = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    Path(made).write_bytes(lowered.to_executorch().buffer)


if __name__ == "__main__":
    main(*sys.argv[1:])
