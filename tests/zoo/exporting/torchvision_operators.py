# SPDX-License-Identifier: Apache-2.0
"""torchvision's operators where its compiled half does not load: the wheel wants a torch with CUDA, ours has none.

Import this before torchvision. `nms` and `roi_align` are declared and computed in Python, which is enough for a
tracer: torch records the operator, not what computes it.
"""

import ctypes
import importlib.util
from pathlib import Path

import torch
from torch import Tensor

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
    """Returns what torchvision's own Python form of the operator returns."""
    from torchvision.ops.roi_align import _roi_align

    return _roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned)


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
    import torchvision.ops.roi_align as module

    module._has_ops = _has_ops


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
