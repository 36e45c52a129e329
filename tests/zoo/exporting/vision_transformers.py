# SPDX-License-Identifier: Apache-2.0
"""Image classifiers with attention, of torchvision and timm."""

from collections.abc import Callable
from pathlib import Path

import timm
import torchvision.models as tv
from exporting.classifiers import written
from exporting.from_torch import Axes
from exporting.graphs import Inputs, Scale, graph
from torch import nn

_BATCH: Axes = {"image": {0: "batch"}, "logits": {0: "batch"}}


def _enter(
    name: str,
    full: Callable[[], nn.Module],
    size: int,
    *,
    dynamo: bool,
    axes: Axes | None = None,
    small: Callable[[], nn.Module] | None = None,
    small_size: int = 32,
) -> None:
    exporter = f"torch {'dynamo' if dynamo else 'script'}, {'fixed' if axes is None else 'dynamic batch'}"

    @graph(name, "classifier with attention", exporter)
    def make(path: Path, scale: Scale) -> Inputs:
        module = scale.of(full, small or full)()
        return written(path, module, scale.of(size, small_size), dynamo=dynamo, axes=axes)


def _torchvision_vit() -> nn.Module:
    return tv.VisionTransformer(128, 16, 4, 4, 192, 512, num_classes=100)


_enter("vit_tv", _torchvision_vit, 128, dynamo=False)
_enter(
    "vit", lambda: timm.create_model("vit_tiny_patch16_224", num_classes=100, img_size=160, depth=8), 160, dynamo=True,
    axes=_BATCH,
    small=lambda: timm.models.VisionTransformer(32, 8, embed_dim=16, depth=2, num_heads=2, num_classes=10),
)  # fmt: skip
_enter("deit", lambda: timm.create_model("deit_tiny_patch16_224", num_classes=100, depth=6), 224, dynamo=False)
_enter(
    "deit_distilled", lambda: timm.create_model("deit_tiny_distilled_patch16_224", num_classes=100, depth=6), 224,
    dynamo=True,
)  # fmt: skip
_enter(
    "swin", lambda: tv.SwinTransformer([4, 4], 48, [2, 2, 2], [3, 6, 12], [7, 7], num_classes=100), 224, dynamo=False,
)  # fmt: skip
_enter(
    "swin_dynamo",
    lambda: timm.create_model(
        "swin_tiny_patch4_window7_224", num_classes=100, embed_dim=48, depths=(2, 2, 2), num_heads=(3, 6, 12)
    ),
    224, dynamo=True,
)  # fmt: skip
_enter("mobilevit", lambda: timm.create_model("mobilevit_xxs", num_classes=100), 192, dynamo=True)
_enter("mixer", lambda: timm.models.MlpMixer(num_classes=100, img_size=128, num_blocks=6, embed_dim=192), 128,
       dynamo=False, axes=_BATCH)  # fmt: skip
_enter("efficientformer", lambda: timm.create_model("efficientformer_l1", num_classes=100, depths=(2, 2, 2, 2)), 224,
       dynamo=False)  # fmt: skip
_enter("levit", lambda: timm.create_model("levit_128s", num_classes=100), 224, dynamo=True)
