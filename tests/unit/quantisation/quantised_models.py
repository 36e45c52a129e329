# SPDX-License-Identifier: Apache-2.0
"""Models to quantise and samples for them, and a compile of one in this process."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser

import nndeploy
from nndeploy.bundle.report import Report
from nndeploy.jobs.workers import InProcessWorkers

ZOO = Path(__file__).resolve().parents[2] / "zoo/graphs"
Sample = Mapping[str, Any]

CHANNELS = 64
OUTLIER = 3000.0


def zoo_samples(name: str, num: int) -> list[Sample]:
    """Returns inputs like the one that came with a graph."""
    with np.load(ZOO / "inputs" / f"{name}.npz") as arrays:
        first = {key: arrays[key] for key in arrays.files}
    return [{key: _like(value, seed) for key, value in first.items()} for seed in range(num)]


def _like(value: "np.ndarray[Any, Any]", seed: int) -> "np.ndarray[Any, Any]":
    random = np.random.default_rng(seed)
    if value.dtype.kind == "f":
        return (value * random.uniform(0.8, 1.2) + random.normal(0, 0.1, value.shape)).astype(value.dtype)
    return random.permuted(value, axis=-1) if value.size > 1 else value


def images(num: int, size: int = 16) -> list[Sample]:
    """Returns samples of the network of convolutions."""
    random = np.random.default_rng(1)
    return [{"image": random.normal(0, 1, (1, 3, size, size)).astype(np.float32)} for _ in range(num)]


def convolutions(num: int = 5, *, outlier_behind: int | None = None) -> onnx.ModelProto:
    """Returns a chain of convolutions and Relu, named `c0`, `c1`, ...; it ends in a mean and a Gemm.

    One channel behind the convolution `outlier_behind` is `OUTLIER` times as large, and what reads it as much smaller:
    the network computes the same, but that channel leaves no steps for the others.
    """
    random = np.random.default_rng(0)
    sizes = [3, *[CHANNELS] * num]
    weights = {
        f"w{i}": random.normal(0, (2 / (9 * sizes[i])) ** 0.5, (sizes[i + 1], sizes[i], 3, 3)) for i in range(num)
    }
    if outlier_behind is not None:
        weights[f"w{outlier_behind}"][7] *= OUTLIER
        weights[f"w{outlier_behind + 1}"][:, 7] /= OUTLIER
    weights["g"] = random.normal(0, CHANNELS**-0.5, (CHANNELS, 10))
    chain, value = "", "image"
    for i in range(num):
        chain += f"[c{i}] y{i} = Conv <pads = [1, 1, 1, 1]> ({value}, w{i}) [r{i}] z{i} = Relu (y{i}) "
        value = f"z{i}"
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[1, 3, 16, 16] image) => (float[1, 10] scores) {{ {chain}'
        f"m = GlobalAveragePool ({value}) f = Flatten (m) [last] scores = Gemm (f, g) }}"
    )
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()
    )
    return model


def compiled(source: Any, out: Path, samples: Sequence[Sample] | None, **options: Any) -> Report:
    """Returns the report of a compile for ONNX Runtime in this process, by the order of tiers."""
    usual = {"objective": "priority", "backends": ("onnxruntime",), "keep_fallback": False}
    asked = nndeploy.CompileOptions(samples=samples, **usual | options)
    return nndeploy.compile_model(source, out, asked, workers=InProcessWorkers())
