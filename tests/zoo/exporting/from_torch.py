# SPDX-License-Identifier: Apache-2.0
"""PyTorch modules with random weights to ONNX, by either of torch's exporters.

A fresh module may compute nothing worth comparing: heads of zeros, branches scaled by 1e-6, statistics of
normalisations that fit no data. `settled` mends that, so that outputs are finite and depend on the inputs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from exporting.graphs import Inputs
from torch import Tensor, nn

OPSET = 18
Axes = Mapping[str, Mapping[int, str]]
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_FAINT = 1e-3
_SETTLING_PASSES = 3


def export(
    module: nn.Module,
    example: Mapping[str, Tensor],
    path: Path,
    *,
    dynamo: bool,
    outputs: Sequence[str] = ("output",),
    axes: Axes | None = None,
    opset: int = OPSET,
) -> Inputs:
    """Writes the module in eval mode to `path`; returns the example as arrays by name.

    `axes` names the dynamic axes by tensor name; outputs' axes count for the older exporter only.
    """
    names = list(example)
    dynamic = axes or {}
    if dynamo:
        options = {"dynamic_shapes": tuple(dict(dynamic.get(name, {})) for name in names), "external_data": False}
        if not dynamic:
            del options["dynamic_shapes"]
    else:
        options = {"dynamic_axes": {name: dict(of) for name, of in dynamic.items()} or None}
    torch.onnx.export(
        module.eval(),
        tuple(example.values()),
        str(path),
        dynamo=dynamo,
        input_names=names,
        output_names=list(outputs),
        opset_version=opset,
        **options,
    )
    return {name: tensor.numpy() for name, tensor in example.items()}


@torch.no_grad()
def settled(module: nn.Module, *example: object) -> nn.Module:
    """Returns the module itself, in eval mode: no weight is all zero, norms have the statistics of noisy examples."""
    for name, parameter in module.named_parameters():
        _stir(name, parameter)
    module.eval()
    norms = [one for one in module.modules() if isinstance(one, _BATCH_NORMS)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
        norm.train()
    if norms and example:
        for _ in range(_SETTLING_PASSES):
            module(*map(_noisy, example))
    return module.eval()


def _stir(name: str, parameter: nn.Parameter) -> None:
    faint = float(parameter.abs().max()) < _FAINT if parameter.numel() else False
    if faint and parameter.ndim >= 2:
        parameter.normal_(0.0, 0.05)
    elif faint and not name.endswith("bias"):
        parameter.uniform_(0.05, 0.15)


def _noisy(value: object) -> object:
    """Returns four noisy copies of a batch, so that norms over single pixels have something to count."""
    if isinstance(value, list | tuple):
        return type(value)(one + torch.rand_like(one) * 0.5 for one in value)
    if isinstance(value, Tensor) and value.is_floating_point():
        return torch.cat([value + torch.randn_like(value) * 0.5 for _ in range(4)])
    return value
