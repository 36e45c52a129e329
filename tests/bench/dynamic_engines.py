# SPDX-License-Identifier: Apache-2.0
"""Engines that take any shape, each made inside a child of `interleaved`, with many shapes of one network to run.

The inputs are `<shape's number>/<input>`; one call is a pass over all shapes. Each pass appends a line to the file
`record`: the CPU seconds of each shape, null where the engine refuses it. The first line is of shapes never seen.
"""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from interleaved import Array, Ready

Inputs = Mapping[str, Array]
Run = Callable[[Inputs], list[Array]]


def bundle(inputs: Inputs, path: str, record: str, outputs: list[str]) -> Ready:
    """A compiled bundle through the runtime."""
    import nndeploy

    program = nndeploy.load_bundle(path, nndeploy.LoadOptions(threads=1, device="cpu", cache_dir=""))

    def run(feed: Inputs) -> list[Array]:
        found = program.run(feed)
        return [found[name] for name in outputs]

    return _passes(run, inputs, record)


def onnxruntime(inputs: Inputs, model: str, record: str) -> Ready:
    """ONNX Runtime's CPU provider over the model as it is, with its dynamic shapes."""
    import onnxruntime as library

    settings = library.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = 1, 1
    settings.log_severity_level = 4
    session = library.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    return _passes(lambda feed: session.run(None, dict(feed)), inputs, record)


def openvino(inputs: Inputs, model: str, record: str) -> Ready:
    """OpenVINO on the CPU over the model as it is, with its dynamic shapes, in float32."""
    import openvino as library

    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY"}
    compiled = library.Core().compile_model(model, "CPU", settings)
    request, count = compiled.create_infer_request(), len(compiled.outputs)

    def run(feed: Inputs) -> list[Array]:
        found = request.infer(dict(feed), share_inputs=True)
        return [found[i] for i in range(count)]

    return _passes(run, inputs, record)


def feeds(inputs: Inputs) -> list[dict[str, Array]]:
    """Returns the inputs of each shape, by number."""
    found: dict[int, dict[str, Array]] = {}
    for key, value in inputs.items():
        number, _, name = key.partition("/")
        found.setdefault(int(number), {})[name] = value
    return [found[number] for number in sorted(found)]


def _passes(run: Run, inputs: Inputs, record: str) -> Ready:
    every = feeds(inputs)

    def call() -> list[list[Array]]:
        results: list[list[Array]] = []
        seconds: list[float | None] = []
        for feed in every:
            began = time.process_time()
            try:
                found = run(feed)
            except Exception:  # each library has its own way to say no; what counts is at which shapes
                results.append([])
                seconds.append(None)
            else:
                seconds.append(time.process_time() - began)
                results.append([np.array(array) for array in found])
        with Path(record).open("a") as lines:
            lines.write(json.dumps(seconds) + "\n")
        return results

    return Ready(call, lambda results: [array for found in results for array in (np.int64(len(found)), *found)])
