# SPDX-License-Identifier: Apache-2.0
"""Networks that label every pixel: torchvision's and a U-Net."""

from collections.abc import Callable
from pathlib import Path

import torch
import torchvision.models as tv
from exporting.from_torch import Axes, export, settled
from exporting.graphs import Inputs, Scale, graph
from torch import Tensor, nn
from torchvision.models import segmentation as tvs
from torchvision.models._utils import IntermediateLayerGetter

_IMAGE: Axes = {"image": {0: "batch", 2: "height", 3: "width"}, "masks": {0: "batch", 2: "height", 3: "width"}}
_BATCH: Axes = {"image": {0: "batch"}, "masks": {0: "batch"}}


class OnlyOut(nn.Module):
    """A segmenter of torchvision that returns its main output."""

    def __init__(self, segmenter: nn.Module) -> None:
        super().__init__()
        self.segmenter = segmenter

    def forward(self, image: Tensor) -> Tensor:
        return self.segmenter(image)["out"]


class UNet(nn.Module):
    """The U of two convolutions a level; upwards by transposed convolution or by resizing."""

    def __init__(self, widths: list[int], transposed: bool) -> None:
        super().__init__()
        pairs = list(zip([3, *widths], widths, strict=False))
        self.down = nn.ModuleList(_twice(inputs, outputs) for inputs, outputs in pairs)
        rising = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.up = nn.ModuleList(_raised(inputs, outputs, transposed) for inputs, outputs in rising)
        self.join = nn.ModuleList(_twice(2 * outputs, outputs) for _, outputs in rising)
        self.head = nn.Conv2d(widths[0], 3, 1)

    def forward(self, image: Tensor) -> Tensor:
        kept: list[Tensor] = []
        for number, level in enumerate(self.down):
            image = level(image if number == 0 else nn.functional.max_pool2d(image, 2))
            kept.append(image)
        for raise_, join, beside in zip(self.up, self.join, kept[-2::-1], strict=True):
            image = join(torch.cat([beside, raise_(image)], 1))
        return self.head(image).softmax(1)


def _twice(inputs: int, outputs: int) -> nn.Module:
    layers = [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    layers += [nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


def _raised(inputs: int, outputs: int, transposed: bool) -> nn.Module:
    if transposed:
        return nn.ConvTranspose2d(inputs, outputs, 2, 2)
    resize = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
    return nn.Sequential(resize, nn.Conv2d(inputs, outputs, 1))


def _enter(
    name: str, full: Callable[[], nn.Module], size: int, *, dynamo: bool, axes: Axes | None = None,
    small: Callable[[], nn.Module] | None = None,
) -> None:  # fmt: skip
    shapes = "fixed" if axes is None else "dynamic " + ", ".join(axes["image"].values())

    @graph(name, "segmenter", f"torch {'dynamo' if dynamo else 'script'}, {shapes}")
    def make(path: Path, scale: Scale) -> Inputs:
        pixels = scale.of(size, 32)
        image = torch.randn(1, 3, pixels, pixels)
        module = settled(scale.of(full, small or full)(), image)
        return export(module, {"image": image}, path, dynamo=dynamo, outputs=["masks"], axes=axes)


def _fcn() -> nn.Module:
    backbone = IntermediateLayerGetter(
        tv.resnet.ResNet(tv.resnet.BasicBlock, [1, 1, 1, 1]), return_layers={"layer3": "out"}
    )
    return OnlyOut(tvs.FCN(backbone, tvs.fcn.FCNHead(256, 5)))


def _deeplab_small() -> nn.Module:
    backbone = IntermediateLayerGetter(UNetStem(), return_layers={"last": "out"})
    head = tvs.deeplabv3.DeepLabHead.__new__(tvs.deeplabv3.DeepLabHead)
    nn.Sequential.__init__(
        head, tvs.deeplabv3.ASPP(16, [2, 3], 8), nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8),
        nn.ReLU(), nn.Conv2d(8, 4, 1),
    )  # fmt: skip
    return OnlyOut(tvs.DeepLabV3(backbone, head))


class UNetStem(nn.Sequential):
    """Two convolutions that halve the picture."""

    def __init__(self) -> None:
        super().__init__()
        self.add_module("first", nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU()))
        self.add_module("last", nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU()))


_enter(
    "deeplabv3", lambda: OnlyOut(tvs.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)),
    192, dynamo=False, axes=_BATCH, small=_deeplab_small,
)  # fmt: skip
_enter(
    "lraspp", lambda: OnlyOut(tvs.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)), 256,
    dynamo=True,
)  # fmt: skip
_enter("fcn", _fcn, 128, dynamo=False, axes=_IMAGE)
_enter("unet", lambda: UNet([16, 32, 64, 128], True), 128, dynamo=True, small=lambda: UNet([4, 8, 12], True))
_enter("unet_resize", lambda: UNet([16, 32, 64], False), 128, dynamo=False, axes=_IMAGE,
       small=lambda: UNet([4, 8], False))  # fmt: skip
