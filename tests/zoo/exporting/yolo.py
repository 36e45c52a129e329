# SPDX-License-Identifier: Apache-2.0
"""Detectors of ultralytics from their own descriptions, written by their own exporter."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from exporting.from_torch import settled
from exporting.graphs import Inputs, Scale, graph
from ultralytics import YOLO


def _enter(name: str, description: str, size: int, *, dynamic: bool = False) -> None:
    shapes = "dynamic batch, height, width" if dynamic else "fixed"

    @graph(name, "one-stage detector", f"ultralytics, {shapes}")
    def make(path: Path, scale: Scale) -> Inputs:
        return written(path, description, scale.of(size, 64), dynamic=dynamic)


def written(path: Path, description: str, size: int, *, dynamic: bool = False) -> Inputs:
    """Writes the network of a description (yolov8n.yaml); returns its inputs."""
    detector = YOLO(description, verbose=False)
    image = torch.rand(1, 3, size, size)
    settled(detector.model, image)
    with tempfile.TemporaryDirectory() as folder:
        detector.model.pt_path = str(Path(folder) / "network.pt")
        detector.model.yaml_file = str(Path(folder) / "network.yaml")
        detector.ckpt_path = str(Path(folder) / "network.pt")
        made = detector.export(
            format="onnx", imgsz=size, dynamic=dynamic, simplify=False, opset=17, nms=False, verbose=False
        )
        shutil.move(made, path)
    return {"images": image.numpy().astype(np.float32)}


_enter("yolov8n", "yolov8n.yaml", 256)
_enter("yolov8n_dynamic", "yolov8n.yaml", 192, dynamic=True)
_enter("yolov10n", "yolov10n.yaml", 256)
_enter("yolov8n_seg", "yolov8n-seg.yaml", 192)
_enter("yolov8n_pose", "yolov8n-pose.yaml", 160)
_enter("yolo11n", "yolo11n.yaml", 224)
