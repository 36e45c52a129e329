# SPDX-License-Identifier: Apache-2.0
"""Transformers with random weights to ONNX, as `optimum-cli export onnx` writes them."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from optimum.exporters.onnx import onnx_export_from_model
from transformers import PreTrainedModel


def export(model: PreTrainedModel, task: str, files: Mapping[str, Path], **options: object) -> None:
    """Writes the files that are asked for, by the names that optimum gives them ("model.onnx")."""
    with tempfile.TemporaryDirectory() as folder:
        onnx_export_from_model(model.eval(), Path(folder), task=task, do_validation=False, **options)
        for name, path in files.items():
            shutil.copyfile(Path(folder) / name, path)
