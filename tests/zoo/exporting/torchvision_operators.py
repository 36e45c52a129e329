# SPDX-License-Identifier: Apache-2.0
"""torchvision's operators where its compiled half does not load: the wheel wants a torch with CUDA, ours has none.

Import this before torchvision. `nms` and `roi_align` are declared and computed in Python, which is enough for a
tracer: torch records the operator, not what computes it.
"""

import ctypes
import importlib.util
import sys
from pathlib import Path

import torch
from torch import Tensor, nn

_DECLARATIONS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align": (
        "(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
        "int sampling_ratio, bool aligned) -> Tensor"
    ),
}


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Returns the indices of the boxes that are kept, best score first."""
    order = scores.argsort(descending=True, stable=True).tolist()
    kept: list[int] = []
    x1, y1, x2, y2 = dets.unbind(1)
    areas = (x2 - x1) * (y2 - y1)
    dead = torch.zeros(len(scores), dtype=torch.bool)
    for index in order:
        if dead[index]:
            continue
        kept.append(index)
        width = (torch.minimum(x2, x2[index]) - torch.maximum(x1, x1[index])).clamp(min=0)
        height = (torch.minimum(y2, y2[index]) - torch.maximum(y1, y1[index])).clamp(min=0)
        shared = width * height
        dead |= shared / (areas + areas[index] - shared) > iou_threshold
    return torch.tensor(kept, dtype=torch.long)


def roi_align(
    input: Tensor,  # noqa: A002 -- the operator's own name
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """Returns the mean of the bilinear samples of every cell, `sampling_ratio` squared of them, four by default."""
    each = max(sampling_ratio, 1) if sampling_ratio > 0 else 2
    height, width = input.shape[2:]
    found = []
    for roi in rois:
        x1, y1, x2, y2 = (roi[1:] * spatial_scale - (0.5 if aligned else 0.0)).tolist()
        across = x1 + (torch.arange(pooled_width * each) + 0.5) * (max(x2 - x1, 1.0) / (pooled_width * each))
        down = y1 + (torch.arange(pooled_height * each) + 0.5) * (max(y2 - y1, 1.0) / (pooled_height * each))
        rows, columns = torch.meshgrid(down / (height - 1) * 2 - 1, across / (width - 1) * 2 - 1, indexing="ij")
        grid = torch.stack([columns, rows], -1)[None]
        samples = nn.functional.grid_sample(input[int(roi[0])][None], grid, padding_mode="border", align_corners=True)
        found.append(nn.functional.avg_pool2d(samples, each))
    return torch.cat(found) if found else input.new_zeros((0, input.shape[1], pooled_height, pooled_width))


def declare_where_missing() -> None:
    """Declares the operators in Python unless torchvision's own library loads."""
    if _library_loads():
        return
    library = torch.library.Library("torchvision", "DEF")
    for name, schema in _DECLARATIONS.items():
        library.define(name + schema)
    library.impl("nms", nms, "CPU")
    library.impl("roi_align", roi_align, "CPU")
    _KEPT.append(library)
    import torchvision.extension

    torchvision.extension._has_ops = _has_ops
    sys.modules["torchvision.ops.roi_align"]._has_ops = _has_ops  # its name in the package is the function's


def _has_ops() -> bool:
    return True


_KEPT: list[torch.library.Library] = []
"""A library is taken back when nothing refers to it."""


def _library_loads() -> bool:
    found = importlib.util.find_spec("torchvision")
    assert found is not None
    assert found.origin is not None
    try:
        ctypes.CDLL(str(Path(found.origin).parent / "_C.so"))
    except OSError:
        return False
    return True


declare_where_missing()
