# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch with XNNPACK, made inside a child of `interleaved`.

`python rival_executorch.py MODEL.onnx MADE.pte` converts: onnx2torch makes a module of PyTorch, torch.export traces it,
and XNNPACK gets all that it takes; portable kernels run the rest.
"""

import operator
import sys
import types
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import rival_models
from interleaved import Inputs, Ready

OPERATOR_SET = 17
"""The one of which onnx2torch knows most operators."""


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
    if any(one.domain in ("", "ai.onnx") and one.version != OPERATOR_SET for one in model.opset_import):
        model = onnx.version_converter.convert_version(model, OPERATOR_SET)
    kinds = [one.type.tensor_type for one in model.graph.input]
    given = tuple(
        torch.from_numpy(np.zeros([size.dim_value for size in one.shape.dim], dtype_of(one.elem_type))) for one in kinds
    )
    with torch.no_grad():
        exported = torch.export.export(_with_known_integers(convert(model).eval()), given)
        lowered = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    Path(made).write_bytes(lowered.to_executorch().buffer)


def _with_known_integers(module: Any) -> Any:
    """Makes constants of the integers that onnx2torch keeps as buffers: sizes and axes, which an export has to know."""
    import torch

    modules, told = dict(module.named_modules()), {"OnnxReshape": _reshaped, "OnnxExpand": _expanded}
    for node in [node for node in module.graph.nodes if node.op == "get_attr"]:
        value = operator.attrgetter(node.target)(module)
        if value.is_floating_point():
            continue
        for user in list(node.users):
            with module.graph.inserting_before(user):
                kind = type(modules[user.target]).__name__ if user.op == "call_module" else ""
                if kind in told:
                    known = module.graph.call_function(told[kind], (user.args[0], value.tolist()))
                    user.replace_all_uses_with(known)
                    module.graph.erase_node(user)
                else:
                    known = module.graph.call_function(torch.tensor, (value.tolist(),), {"dtype": value.dtype})
                    user.replace_input_with(node, known)
    module.recompile()
    return module


def _reshaped(x: Any, sizes: list[int]) -> Any:
    return x.reshape([x.shape[axis] if size == 0 else size for axis, size in enumerate(sizes)])


def _expanded(x: Any, sizes: list[int]) -> Any:
    import torch

    return x.expand(torch.broadcast_shapes(x.shape, sizes))


if __name__ == "__main__":
    main(*sys.argv[1:])
