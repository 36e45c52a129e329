# SPDX-License-Identifier: Apache-2.0
"""Engines that decode: a call is some steps of one token each, every cache given back as the next step's past.

Each is made inside a child of `interleaved`; the inputs are those of the first step, with a past of some length. The
outputs are the logits of all steps.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from interleaved import Array, EngineRefusedError, Ready
from native_engines import Inputs

Step = Callable[[Mapping[str, Array]], Mapping[str, Any]]


def caches_of(inputs: Mapping[str, object]) -> dict[str, str]:
    """Returns the output that each cache is carried from, by the input's name."""
    return {name: name.replace("past_key_values", "present") for name in inputs if name.startswith("past")}


def native(inputs: Inputs, model: str, threads: int, steps: int) -> Ready:
    """Our own kernels, of any sizes."""
    from native_engines import native_session

    loaded, session, _ = native_session(inputs, model, threads, knows_sizes=False)
    names = [one.name for one in loaded.inputs]
    return _ready(inputs, steps, lambda feed: session.run({name: feed[name] for name in names}))


def onnxruntime(inputs: Inputs, model: str, threads: int, steps: int) -> Ready:
    """ONNX Runtime with all its optimisations; caches stay its own values from step to step."""
    import onnxruntime as library

    settings = library.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
    settings.log_severity_level = 3
    session = library.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    outputs = [one.name for one in session.get_outputs()]
    of_numpy = library.OrtValue.ortvalue_from_numpy

    def step(feed: Mapping[str, Any]) -> Mapping[str, Any]:
        values = {name: of_numpy(one) if isinstance(one, np.ndarray) else one for name, one in feed.items()}
        return dict(zip(outputs, session.run_with_ort_values(outputs, values), strict=True))

    return _ready(inputs, steps, step)


def openvino(inputs: Inputs, model: str, threads: int, steps: int) -> Ready:
    """OpenVINO with the caches as its own state, as its makers run decoders."""
    import openvino as library
    from openvino._offline_transformations import apply_make_stateful_transformation

    core = library.Core()
    settings = {
        "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0, "KV_CACHE_PRECISION": "f32",
    }  # fmt: skip
    caches = caches_of(inputs)
    try:
        read = core.read_model(model)
        apply_make_stateful_transformation(read, caches)
        compiled = core.compile_model(read, "CPU", settings)
    except RuntimeError as err:
        raise EngineRefusedError(" ".join(str(err).split())[-200:]) from err
    request = compiled.create_infer_request()
    first = {f"{name}{output}": inputs[name] for name, output in caches.items()}

    def call() -> list[Array]:
        for state in request.query_state():
            state.state = library.Tensor(np.ascontiguousarray(first[state.name]))
        found = []
        for feed in _feeds(inputs, steps):
            rest = {name: one for name, one in feed.items() if name not in caches}
            found.append(request.infer(rest)[0].copy())
        return found

    return Ready(call, list, library.__version__)


def memory(inputs: Inputs, megabytes: float, threads: int) -> Ready:  # as all engines are made
    """Reads so many bytes once, by all threads: what a step would take that computes nothing."""
    parts = [np.ones(int(megabytes * 1e6) // (8 * threads), np.float32) for _ in range(2 * threads)]

    def call(pool: ThreadPoolExecutor | None) -> float:
        if pool is None:
            return float(np.dot(*parts))
        return sum(pool.map(np.dot, parts[::2], parts[1::2]))

    pool = ThreadPoolExecutor(threads) if threads > 1 else None
    return Ready(lambda: call(pool), lambda found: [np.asarray(found)])


def _ready(inputs: Inputs, steps: int, step: Step) -> Ready:
    caches = caches_of(inputs)

    def call() -> list[Any]:
        carried, found = {name: inputs[name] for name in caches}, []
        for feed in _feeds(inputs, steps):
            outputs = step({**feed, **carried})
            carried = {name: outputs[output] for name, output in caches.items()}
            found.append(outputs["logits"])
        return found

    return Ready(call, lambda found: [np.asarray(one if isinstance(one, np.ndarray) else one.numpy()) for one in found])


def _feeds(inputs: Inputs, steps: int) -> Iterator[dict[str, Array]]:
    """Yields the inputs of each step: masks grow by one, positions move on, tokens are the next ones."""
    caches = caches_of(inputs)
    fixed = {name: one for name, one in inputs.items() if name not in caches}
    for number in range(steps):
        feed = dict(fixed)
        for name, one in fixed.items():
            if "mask" in name:
                feed[name] = np.ones((one.shape[0], one.shape[1] + number), one.dtype)
            elif "position" in name or name == "input_ids":
                feed[name] = one + number
        yield feed
