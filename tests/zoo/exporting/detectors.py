# SPDX-License-Identifier: Apache-2.0
"""torchvision's detectors, whole: from the image to boxes, scores and classes, with NonMaxSuppression inside.

With random weights every class is as likely as another, so there are few classes, and the priors that keep scores of
a fresh head near zero are taken away: otherwise nothing would pass the threshold.
"""

from collections.abc import Callable
from pathlib import Path

import torch
import torchvision
from exporting.from_torch import export, settled
from exporting.graphs import Inputs, Scale, graph
from torch import Tensor, nn
from torchvision.models import MobileNet_V3_Large_Weights  # noqa: F401 -- makes the name known to the factories
from torchvision.models import detection as tvd

_CLASSES = 4
_BOX_LIMIT = 30


class OneImage(nn.Module):
    """A detector of lists of images as one of a single image."""

    def __init__(self, detector: nn.Module) -> None:
        super().__init__()
        self.detector = detector

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found = self.detector([image])[0]
        return found["boxes"], found["scores"], found["labels"]


def _enter(name: str, make_detector: Callable[[int], nn.Module], size: int) -> None:
    @graph(name, "detector with NonMaxSuppression", "torch script, dynamic number of boxes")
    def make(path: Path, scale: Scale) -> Inputs:
        return _written(path, make_detector(size), size)


def _written(path: Path, detector: nn.Module, size: int) -> Inputs:
    image = torch.rand(3, size, size)
    settled(detector, [image, torch.rand(3, size, size)])
    _spread(detector)
    axes = {name: {0: "boxes"} for name in ("boxes", "scores", "labels")}
    return export(OneImage(detector), {"image": image}, path, dynamo=False, outputs=list(axes), axes=axes)


@torch.no_grad()
def _spread(detector: nn.Module) -> None:
    """Makes scores differ from box to box, and takes away the prior that nothing is found."""
    for name, parameter in detector.named_parameters():
        if "cls_logits" in name or "cls_score" in name or "classification_head" in name:
            if name.endswith("bias"):
                parameter.zero_()
            elif parameter.ndim >= 2:
                parameter.mul_(3.0)


def _faster_rcnn(size: int) -> nn.Module:
    return tvd.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=_CLASSES, min_size=size, max_size=size,
        rpn_pre_nms_top_n_test=100, rpn_post_nms_top_n_test=40, box_detections_per_img=_BOX_LIMIT,
        trainable_backbone_layers=6,
    )  # fmt: skip


def _retinanet(size: int) -> nn.Module:
    from torchvision.models.detection.backbone_utils import _mobilenet_extractor
    from torchvision.models.mobilenetv3 import mobilenet_v3_large

    backbone = _mobilenet_extractor(mobilenet_v3_large(weights=None), True, 6)
    anchors = tvd.anchor_utils.AnchorGenerator(
        tuple((x, int(x * 1.26), int(x * 1.59)) for x in (32, 64, 128)), ((0.5, 1.0, 2.0),) * 3
    )
    return tvd.RetinaNet(
        backbone, _CLASSES, min_size=size, max_size=size, anchor_generator=anchors, detections_per_img=_BOX_LIMIT,
        topk_candidates=100,
    )  # fmt: skip


def _ssdlite(size: int) -> nn.Module:
    return tvd.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=_CLASSES, trainable_backbone_layers=6,
        detections_per_img=_BOX_LIMIT, topk_candidates=60, score_thresh=0.1,
    )  # fmt: skip


_enter("fasterrcnn", _faster_rcnn, 192)
_enter("retinanet", _retinanet, 192)
_enter("ssdlite", _ssdlite, 320)


class TopBoxes(nn.Module):
    """A one-stage detector: the best boxes of a grid by TopK, then NonMaxSuppression over them, or all of the best."""

    def __init__(self, width: int, best: int, suppress: bool) -> None:
        super().__init__()
        layers = [nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU()]
        self.features = nn.Sequential(*layers, nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.ReLU())
        self.scores, self.boxes = nn.Conv2d(2 * width, 3, 1), nn.Conv2d(2 * width, 4, 1)
        self.best, self.suppress = best, suppress

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        features = self.features(image)
        score, label = self.scores(features).flatten(2)[0].mul(8).sigmoid().max(0)
        score, index = score.topk(self.best)
        sides = self.boxes(features).flatten(2)[0].T[index].exp() * 6
        places = torch.stack([index % 8, index // 8], 1) * 4.0
        boxes = torch.cat([places - sides[:, :2], places + sides[:, 2:]], 1)
        label = label[index]
        if not self.suppress:
            return boxes, score, label
        kept = torchvision.ops.nms(boxes, score, 0.5)
        return boxes[kept], score[kept], label[kept]


def _enter_top_boxes(name: str, suppress: bool, dynamo: bool) -> None:
    shapes = "dynamic number of boxes" if suppress else "fixed"

    @graph(name, "detector with TopK", f"torch {'dynamo' if dynamo else 'script'}, {shapes}")
    def make(path: Path, scale: Scale) -> Inputs:
        image = torch.rand(1, 3, 32, 32)
        module = settled(TopBoxes(scale.of(32, 8), 20, suppress), image)
        names = ["boxes", "scores", "labels"]
        axes = None if dynamo or not suppress else {one: {0: "count"} for one in names}
        return export(module, {"image": image}, path, dynamo=dynamo, outputs=names, axes=axes)


_enter_top_boxes("top_boxes", suppress=False, dynamo=True)
_enter_top_boxes("kept_boxes", suppress=True, dynamo=False)
