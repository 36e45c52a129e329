# SPDX-License-Identifier: Apache-2.0
"""What it costs that long operators of ONNX Runtime are cut into parts for pacing.

    python tests/bench/bench_pace_cuts.py [MODEL ...] [--runs 60]

A model as it is, with its long operators cut, and as it is once more, run in turn on one thread: medians of the
processor time of a run. The third is the noise. Outputs are compared bit by bit.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from native_engines import machine_line
from nndeploy_onnxruntime.cut_operators import cut_operators
from real_models import MODELS, real_model

NAMES = ("magika_standard_v3_3", "basic_pitch", "ppocr_det_mobile_v2", "unet_stress_field")


def main() -> None:
    """Prints a row for each model."""
    parser = argparse.ArgumentParser(description="what cutting costs")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--runs", type=int, default=60)
    options = parser.parse_args()
    if not MODELS.exists():
        sys.exit("this needs ../shared/models")
    print(machine_line(), end="\n\n")
    print("| model | ms | cut | with parts | none again | same bytes |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    for name in options.models or NAMES:
        _row(name, options.runs)


def _row(name: str, num_runs: int) -> None:
    real = real_model(MODELS, name)
    model = onnx.load(real.path)
    for given in model.graph.input:
        for dim, size in zip(given.type.tensor_type.shape.dim, np.shape(real.inputs[given.name]), strict=True):
            dim.dim_value = size
    model = _folded(model)
    parts = ir.from_proto(model)
    count = cut_operators(parts)
    whole, cut, again = (_session(one) for one in (model, ir.to_proto(parts), model))
    is_same = all(
        np.array_equal(a, b) for a, b in zip(whole.run(None, real.inputs), cut.run(None, real.inputs), strict=True)
    )
    used = np.array([[_used_ns(one, real.inputs) for one in (whole, cut, again)] for _ in range(num_runs)])
    first, with_parts, noise = np.median(used, 0)
    print(
        f"| {name} | {first / 1e6:.2f} | {count} | {with_parts / first - 1:+.1%} | {noise / first - 1:+.1%} "
        f"| {'yes' if is_same else 'no'} |",
        flush=True,
    )


def _folded(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with its constants folded, as a compile does before it cuts."""
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = f"{folder}/model.onnx"
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.shape_inference.infer_shapes(onnx.load(options.optimized_model_filepath))


def _session(model: onnx.ModelProto) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _used_ns(session: Any, inputs: Mapping[str, Any]) -> int:
    before = time.thread_time_ns()
    session.run(None, inputs)
    return time.thread_time_ns() - before


if __name__ == "__main__":
    main()
