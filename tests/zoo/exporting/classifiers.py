# SPDX-License-Identifier: Apache-2.0
"""Convolutional image classifiers of torchvision and timm, and a plain one of our own."""

from collections.abc import Callable
from pathlib import Path

import timm
import torch
import torchvision.models as tv
from exporting.from_torch import Axes, export, settled
from exporting.graphs import Inputs, Scale, graph
from torch import nn

_BATCH: Axes = {"image": {0: "batch"}, "logits": {0: "batch"}}
_IMAGE: Axes = {"image": {0: "batch", 2: "height", 3: "width"}, "logits": {0: "batch"}}


def written(
    path: Path, module: nn.Module, size: int, *, dynamo: bool, axes: Axes | None = None, batch: int = 1
) -> Inputs:
    """Writes a classifier of square images of `size` pixels; returns its inputs."""
    image = torch.randn(batch, 3, size, size)
    settled(module, image)
    return export(module, {"image": image}, path, dynamo=dynamo, outputs=["logits"], axes=axes)


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
    shapes = "fixed" if axes is None else "dynamic " + ", ".join(axes["image"].values())
    exporter = f"torch {'dynamo' if dynamo else 'script'}, {shapes}"

    @graph(name, "classifier", exporter)
    def make(path: Path, scale: Scale) -> Inputs:
        module = scale.of(full, small or full)()
        return written(path, module, scale.of(size, small_size), dynamo=dynamo, axes=axes)


def _resnet(blocks: list[int], width: int) -> tv.ResNet:
    """Returns a resnet of basic blocks whose four stages have `width` times 1, 2, 4 and 8 channels."""
    module = tv.ResNet(tv.resnet.BasicBlock, blocks, num_classes=10)
    return _narrowed(module, 64 // width)


def _narrowed(module: nn.Module, by: int) -> nn.Module:
    """Returns the module with all its channels but those of the image and the classes divided by `by`."""
    for name, one in list(module.named_modules()):
        parent = module.get_submodule(name.rpartition(".")[0]) if "." in name else module
        last = name.rpartition(".")[2]
        if isinstance(one, nn.Conv2d):
            inputs = one.in_channels if one.in_channels == 3 else one.in_channels // by
            groups = max(1, one.groups // by) if one.groups > 1 else 1
            setattr(
                parent,
                last,
                nn.Conv2d(
                    inputs, one.out_channels // by, one.kernel_size, one.stride, one.padding, one.dilation, groups,
                    one.bias is not None,
                ),
            )  # fmt: skip
        elif isinstance(one, nn.BatchNorm2d):
            setattr(parent, last, nn.BatchNorm2d(one.num_features // by))
        elif isinstance(one, nn.Linear):
            setattr(parent, last, nn.Linear(one.in_features // by, one.out_features))
    return module


class PlainNet(nn.Sequential):
    """Convolutions of 3x3 with biases and pooling, then two large products: VGG's shape."""

    def __init__(self, widths: list[int], hidden: int, cells: int) -> None:
        layers: list[nn.Module] = []
        last = 3
        for width in widths:
            layers += [nn.Conv2d(last, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
            last = width
        super().__init__(
            *layers, nn.Flatten(), nn.Linear(last * cells, hidden), nn.ReLU(), nn.Dropout(), nn.Linear(hidden, 10)
        )


def _timm(name: str, **options: object) -> Callable[[], nn.Module]:
    return lambda: timm.create_model(name, num_classes=100, **options)


_enter("resnet18", lambda: tv.resnet18(num_classes=100), 128, dynamo=True, small=lambda: _resnet([1, 1, 1, 1], 2))
_enter("resnet18_dynamic", lambda: tv.resnet18(num_classes=100), 96, dynamo=False, axes=_IMAGE)
_enter("resnet50", lambda: tv.resnet50(num_classes=100), 96, dynamo=False, axes=_BATCH)
_enter(
    "mobilenet_v2", lambda: tv.mobilenet_v2(num_classes=100), 224, dynamo=False,
    small=lambda: _small_mobilenet_v2(),
)  # fmt: skip
_enter("mobilenet_v2_batch", lambda: tv.mobilenet_v2(num_classes=100), 128, dynamo=True, axes=_BATCH)
_enter("mobilenet_v3_large", lambda: tv.mobilenet_v3_large(num_classes=100), 224, dynamo=False)
_enter("mobilenet_v3_large_dynamo", lambda: tv.mobilenet_v3_large(num_classes=100), 160, dynamo=True)
_enter(
    "mobilenet_v3_small", lambda: tv.mobilenet_v3_small(num_classes=100), 160, dynamo=False, axes=_BATCH,
    small=lambda: _small_mobilenet_v3(),
)  # fmt: skip
_enter("efficientnet_b0", lambda: tv.efficientnet_b0(num_classes=100), 160, dynamo=True)
_enter("efficientnet_lite0", _timm("efficientnet_lite0"), 160, dynamo=False, axes=_BATCH)
_enter("mnasnet", lambda: tv.mnasnet0_5(num_classes=100), 160, dynamo=False)
_enter(
    "convnext", _timm("convnext_atto"), 160, dynamo=True,
    small=lambda: timm.models.ConvNeXt(num_classes=10, depths=(1, 1, 1, 1), dims=(8, 12, 16, 24)),
)  # fmt: skip
_enter(
    "densenet", lambda: tv.densenet121(num_classes=100), 128, dynamo=False, axes=_BATCH,
    small=lambda: tv.DenseNet(4, (2, 2, 2), 8, num_classes=10),
)  # fmt: skip
_enter(
    "shufflenet_v2", lambda: tv.shufflenet_v2_x1_0(num_classes=100), 224, dynamo=False,
    small=lambda: tv.ShuffleNetV2([2, 2, 2], [8, 16, 24, 32, 32], num_classes=10),
)  # fmt: skip
_enter("shufflenet_v2_dynamic", lambda: tv.shufflenet_v2_x0_5(num_classes=100), 160, dynamo=True, axes=_BATCH)
_enter("regnet_y", lambda: tv.regnet_y_400mf(num_classes=100), 160, dynamo=True)
_enter("regnet_x", lambda: tv.regnet_x_400mf(num_classes=100), 160, dynamo=False)
_enter(
    "vgg_like", lambda: PlainNet([32, 64, 128, 256], 256, 64), 128, dynamo=False,
    small=lambda: PlainNet([8, 12, 16], 24, 16),
)  # fmt: skip
_enter("vgg11_bn", lambda: _narrowed_vgg(), 96, dynamo=True, axes=_BATCH)
_enter(
    "squeezenet", lambda: tv.squeezenet1_1(num_classes=100), 160, dynamo=True,
)  # fmt: skip
_enter("googlenet", lambda: tv.googlenet(num_classes=100, aux_logits=False, init_weights=False), 160, dynamo=False)
_enter("ghostnet", _timm("ghostnet_050"), 160, dynamo=False)
_enter("repvgg", _timm("repvgg_a0"), 96, dynamo=False)
_enter("edgenext", _timm("edgenext_xx_small"), 160, dynamo=True)
_enter("mobileone", _timm("mobileone_s0"), 128, dynamo=False, axes=_BATCH)


def _narrowed_vgg() -> nn.Module:
    module = tv.vgg11_bn(num_classes=100)
    module.avgpool = nn.AdaptiveAvgPool2d(1)
    module.classifier = nn.Linear(512, 100)
    return module


def _small_mobilenet_v2() -> nn.Module:
    module = tv.mobilenet_v2(
        num_classes=10, width_mult=0.1, inverted_residual_setting=[[1, 16, 1, 1], [4, 24, 2, 2], [4, 32, 1, 2]]
    )
    module.features[-1] = tv.mobilenetv2.Conv2dNormActivation(8, 24, 1, activation_layer=nn.ReLU6)
    module.classifier[-1] = nn.Linear(24, 10)
    return module


def _small_mobilenet_v3() -> nn.Module:
    rows = [(8, 3, 16, 8, True, "RE", 2), (8, 3, 24, 12, False, "HS", 2), (12, 5, 24, 12, True, "HS", 1)]
    settings = [tv.mobilenetv3.InvertedResidualConfig(*row, 1, 1.0) for row in rows]
    return tv.MobileNetV3(settings, 24, num_classes=10)
