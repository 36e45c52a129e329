# SPDX-License-Identifier: Apache-2.0
"""A process of `bench_decoders`: opens a language model in one engine, runs a prompt and steps, tells times, waits."""

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Arrays = Mapping[str, Any]
Run = Callable[[Arrays], Arrays]


def _nndeploy(path: str, threads: int) -> Run:
    from nndeploy import LoadOptions, load_bundle

    return load_bundle(path, LoadOptions(threads=threads)).run


def _onnxruntime(path: str, threads: int) -> Run:
    from engines import ort_session

    session = ort_session(path, threads)
    names = [one.name for one in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(None, dict(inputs)), strict=True))


def _openvino(path: str, threads: int) -> Run:
    from engines import openvino_compiled

    compiled = openvino_compiled(path, threads, KV_CACHE_PRECISION="f32")
    request, names = compiled.create_infer_request(), [port.get_any_name() for port in compiled.outputs]

    def run(inputs: Arrays) -> Arrays:
        request.infer(dict(inputs), share_inputs=True)
        return {name: request.get_output_tensor(i).data.copy() for i, name in enumerate(names)}

    return run


ENGINES = {"nndeploy": _nndeploy, "onnxruntime": _onnxruntime, "openvino": _openvino}


def main() -> None:
    engine, path, inputs, out, steps, threads = sys.argv[1:]
    with np.load(inputs) as arrays:
        prompt = {name: arrays[name] for name in arrays.files}
    clock = time.process_time if threads == "1" else time.perf_counter  # others may be at work beside it
    times = [time.perf_counter()]
    run = ENGINES[engine](path, int(threads))
    times.append(time.perf_counter())
    run(prompt)
    start = clock()
    outputs = run(prompt)
    prefill = clock() - start
    np.save(out, outputs["logits"])
    start = clock()
    for _ in range(int(steps)):
        outputs = run(_next(prompt, outputs))
    decode = (clock() - start) / int(steps)
    length = prompt["input_ids"].shape[1]
    told = {"load": times[1] - times[0], "prefill": length / prefill, "decode": 1 / decode}
    sys.stdout.write(f"{json.dumps(told)}\n")
    sys.stdout.flush()
    sys.stdin.readline()


def _next(prompt: Arrays, outputs: Arrays) -> dict[str, Any]:
    """Returns the inputs of one more token behind the caches that the last call left."""
    found = {name.replace("present", "past_key_values"): value for name, value in outputs.items() if name != "logits"}
    past = next(iter(found.values())).shape[2]
    rows = prompt["input_ids"].shape[0]
    found["input_ids"] = prompt["input_ids"][:, :1]
    found["attention_mask"] = np.ones((rows, past + 1), np.int64)
    found["position_ids"] = np.full((rows, 1), past)
    return found


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
