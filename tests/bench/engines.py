# SPDX-License-Identifier: Apache-2.0
"""Our kernels, bundles, ONNX Runtime and OpenVINO, each opened inside a child of `interleaved`.

A library is opened as a `Session` by `opened`; `whole`, `any_shape` and `steps` say what one timed call of it is.
Libraries are imported where they are used: an engine's process has no other.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from interleaved import Array, EngineRefusedError, Inputs, Ready

PRECISIONS = {"fp32": "f32", "bf16": "bf16"}


@dataclass(frozen=True)
class Session:
    """A model ready to run: `run(feed)`, and its result as arrays in the model's order. `note` says what was opened."""

    run: Callable[[Inputs], Any]
    arrays_of: Callable[[Any], list[Array]]
    note: str = ""


def whole(inputs: Inputs, engine: str, **how: Any) -> Ready:
    session, feed = opened(engine, inputs, **how), dict(inputs)
    return Ready(lambda: session.run(feed), session.arrays_of, session.note)


def opened(engine: str, inputs: Inputs, **how: Any) -> Session:
    """Returns a session of an engine."""
    return _OPENERS[engine](inputs, **how)


def _native(
    inputs: Inputs, model: str, threads: int = 1, precision: str = "fp32", knows_sizes: bool = True, exact: bool = True
) -> Session:
    """Our kernels: the optimised model built whole by `native`, for the inputs' sizes where it `knows_sizes`."""
    from nndeploy_native.plugin import Plugin

    from nndeploy.frontend.load import load_model
    from nndeploy.passes import optimise
    from nndeploy.plugin.interface import BuildOptions
    from nndeploy.target.target import host_target

    plugin, target = Plugin(), host_target()
    loaded = load_model(Path(model), shapes={key: one.shape for key, one in inputs.items()} if knows_sizes else None)
    optimise(loaded.model)
    options = BuildOptions(threads=threads, ranges=loaded.ranges, precision=precision)
    refused = {node for node, one in _answers(plugin, loaded.model, target, options) if not one.ok}
    for transform in plugin.transforms(target):
        transform(loaded.model, refused.__contains__)
    reasons = [one.reason for _, one in _answers(plugin, loaded.model, target, options) if not one.ok]
    if reasons:
        raise EngineRefusedError(f"{len(reasons)} nodes have no kernel; the first: {reasons[0]}")
    return _built(plugin, loaded, options)


def _bundled_onnxruntime(inputs: Inputs, model: str, threads: int = 1, precision: str = "fp32") -> Session:
    """ONNX Runtime as a bundle has it: the artifact of the whole model, opened by our backend."""
    from nndeploy_onnxruntime.plugin import Plugin

    from nndeploy.frontend.load import load_model
    from nndeploy.plugin.interface import BuildOptions

    plugin = Plugin()
    loaded = load_model(Path(model), extra_domains=frozenset(plugin.extra_domains))
    return _built(plugin, loaded, BuildOptions(threads=threads))


def _built(plugin: Any, loaded: Any, options: Any) -> Session:
    from nndeploy.plugin.interface import OpenOptions
    from nndeploy.target.target import host_target

    with tempfile.TemporaryDirectory() as folder:
        artifact = plugin.build(loaded.model, host_target(), options, Path(folder))
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    session = plugin.open(files, artifact.metadata, OpenOptions(threads=options.threads))
    given, names = [one.name for one in loaded.inputs], [one.name for one in loaded.outputs]
    return Session(
        lambda feed: session.run({name: feed[name] for name in given}),
        lambda found: [found[name] for name in names],
        artifact.log.split("\n")[0],
    )


def _answers(plugin: Any, model: Any, target: Any, options: Any) -> list[tuple[Any, Any]]:
    return list(zip(model.graph, plugin.supports(model, target, options), strict=True))


def _bundle(inputs: Inputs, model: str, threads: int = 1, outputs: Sequence[str] = ()) -> Session:
    import nndeploy

    program = nndeploy.load_bundle(model, nndeploy.LoadOptions(threads=threads, device="cpu", cache_dir=""))
    names = list(outputs) or [one.name for one in program.outputs]
    return Session(program.run, lambda found: arrays(found[name] for name in names))


def _c_runtime(inputs: Inputs, model: str, threads: int = 1) -> Session:
    from libnndeploy_call import Call

    call = Call(model, inputs, threads)
    return Session(lambda feed: call.run(), lambda found: call.outputs())


def ort_session(
    model: str | bytes, threads: int = 0, config: Mapping[str, str] | None = None, *, optimised: bool = True
) -> Any:
    """Returns a session of ONNX Runtime's CPU provider; `config` are its entries, 0 threads is its own number."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
    settings.log_severity_level = 4
    if not optimised:
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    for key, value in (config or {}).items():
        if key.startswith("dim:"):
            settings.add_free_dimension_override_by_name(key.removeprefix("dim:"), int(value))
        else:
            settings.add_session_config_entry(key, value)
    return onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])


def _onnxruntime(
    inputs: Inputs, model: str, threads: int = 1, knows_sizes: bool = True, exact: bool = False, precision: str = "fp32"
) -> Session:
    """ONNX Runtime in float32; free dimensions fixed where it `knows_sizes`.

    With `exact` it trades no numbers for speed, as in our bundles: by default 8-bit products saturate where the
    processor has no VNNI. Where it cannot (a tensor that several nodes share) it runs as it is.
    """
    import onnxruntime

    config = _fixed_sizes(model, inputs) if knows_sizes else {}
    try:
        session = ort_session(model, threads, {**config, **(_exact() if exact else {})})
    except Exception:  # ONNX Runtime has its own kinds
        if not exact:
            raise
        session = ort_session(model, threads, config)
    return Session(lambda feed: session.run(None, feed), arrays, onnxruntime.__version__)


def _fixed_sizes(model: str, inputs: Inputs) -> dict[str, str]:
    import onnx  # only where it is wanted: it takes memory

    return {
        f"dim:{size.dim_param}": str(inputs[value.name].shape[axis])
        for value in onnx.load(model, load_external_data=False).graph.input
        for axis, size in enumerate(value.type.tensor_type.shape.dim)
        if size.dim_param and value.name in inputs
    }


def _exact() -> Mapping[str, str]:
    from nndeploy_onnxruntime.library import exact_settings

    return exact_settings()


def _as_written(inputs: Inputs, model: str) -> Session:
    session = ort_session(model, 0, optimised=False)
    return Session(lambda feed: session.run(None, feed), arrays)


def _reference(inputs: Inputs, model: str) -> Session:
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)
    return Session(lambda feed: evaluator.run(None, dict(feed)), arrays)


def openvino_compiled(
    model: str,
    threads: int,
    precision: str = "fp32",
    change: Callable[[Any], None] = lambda model: None,
    **settings: Any,
) -> Any:
    """Returns OpenVINO's compiled model on the CPU; `change` may edit what it read.

    Its precision is said (its default is bf16 where there is hardware), and activations are not quantised where weights
    are compressed: both are other computations.
    """
    import openvino

    told = {
        "INFERENCE_PRECISION_HINT": PRECISIONS[precision], "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0, **settings,
    }  # fmt: skip
    core = openvino.Core()
    try:
        read = core.read_model(model)
        change(read)
        return core.compile_model(read, "CPU", told)
    except (RuntimeError, TypeError, ValueError) as err:
        raise EngineRefusedError(" ".join(str(err).split())[-200:]) from err


def _openvino(
    inputs: Inputs, model: str, threads: int = 1, precision: str = "fp32", knows_sizes: bool = True, exact: bool = False
) -> Session:
    """OpenVINO on the CPU, compiled for the inputs' sizes where it `knows_sizes`."""
    import openvino

    def fix(read: Any) -> None:
        if knows_sizes and any(port.get_partial_shape().is_dynamic for port in read.inputs):
            read.reshape({name: list(array.shape) for name, array in inputs.items()})

    compiled = openvino_compiled(model, threads, precision, fix)
    request, count = compiled.create_infer_request(), len(compiled.outputs)
    return Session(
        lambda feed: request.infer(feed, share_inputs=True, share_outputs=True),
        lambda found: arrays(found[i] for i in range(count)),
        openvino.__version__,
    )


_OPENERS: dict[str, Callable[..., Session]] = {
    "native": _native, "bundle": _bundle, "C runtime": _c_runtime, "onnxruntime": _onnxruntime, "openvino": _openvino,
    "as written": _as_written, "bundled onnxruntime": _bundled_onnxruntime, "reference": _reference,
}  # fmt: skip


def arrays(values: Any) -> list[Array]:
    """Returns the arrays among values: what is none (a list of maps, as ZipMap gives) does not cross processes."""
    found = [np.asarray(one) for one in values if isinstance(one, np.ndarray | np.generic)]
    return [one.astype(np.str_) if one.dtype == object else one for one in found]


# Many shapes of one network: the inputs are "<number of the shape>/<input>", a call is a pass over all shapes


def any_shape(inputs: Inputs, engine: str, record: str, **how: Any) -> Ready:
    """A call is a run at every shape; it appends a line to `record`: CPU seconds by shape, null where refused."""
    feeds = feeds_of(inputs)
    session = opened(engine, feeds[0], **how)

    def call() -> list[list[Array]]:
        results, seconds = list[list[Array]](), list[float | None]()
        for feed in feeds:
            began = time.process_time()
            try:
                found = session.run(feed)
            except Exception:  # each library has its own way to say no; what counts is at which shapes
                results.append([])
                seconds.append(None)
            else:
                seconds.append(time.process_time() - began)
                results.append([np.array(array) for array in session.arrays_of(found)])
        with Path(record).open("a") as lines:
            lines.write(json.dumps(seconds) + "\n")
        return results

    return Ready(call, lambda results: [array for found in results for array in (np.int64(len(found)), *found)])


def feeds_of(inputs: Inputs) -> list[dict[str, Array]]:
    found: dict[int, dict[str, Array]] = {}
    for key, value in inputs.items():
        number, _, name = key.partition("/")
        found.setdefault(int(number), {})[name] = value
    return [found[number] for number in sorted(found)]


# Decoders: a call is some steps of one token each, every cache given back as the next step's past


def steps(inputs: Inputs, engine: str, model: str, threads: int, steps: int) -> Ready:
    """A call is `steps` steps; the outputs are the logits of all."""
    caches = {name: name.replace("past_key_values", "present") for name in inputs if name.startswith("past")}
    if engine == "openvino":
        return _stateful_openvino(inputs, model, threads, steps, caches)
    step = {"native": _native_step, "onnxruntime": _onnxruntime_step}[engine](inputs, model, threads)

    def call() -> list[Any]:
        carried, found = {name: inputs[name] for name in caches}, []
        for feed in _feeds(inputs, steps, caches):
            outputs = step({**feed, **carried})
            carried = {name: outputs[output] for name, output in caches.items()}
            found.append(outputs["logits"])
        return found

    return Ready(call, lambda found: [np.asarray(one if isinstance(one, np.ndarray) else one.numpy()) for one in found])


def _native_step(inputs: Inputs, model: str, threads: int) -> Callable[[Inputs], Mapping[str, Any]]:
    return _native(inputs, model, threads, knows_sizes=False).run


def _onnxruntime_step(inputs: Inputs, model: str, threads: int) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    from onnxruntime import OrtValue

    session = ort_session(model, threads)
    outputs = [one.name for one in session.get_outputs()]

    def step(feed: Mapping[str, Any]) -> Mapping[str, Any]:
        made = OrtValue.ortvalue_from_numpy
        values = {name: made(one) if isinstance(one, np.ndarray) else one for name, one in feed.items()}
        return dict(zip(outputs, session.run_with_ort_values(outputs, values), strict=True))

    return step


def _stateful_openvino(inputs: Inputs, model: str, threads: int, steps: int, caches: Mapping[str, str]) -> Ready:
    import openvino
    from openvino._offline_transformations import apply_make_stateful_transformation

    change = partial(lambda read: apply_make_stateful_transformation(read, dict(caches)))
    request = openvino_compiled(model, threads, change=change, KV_CACHE_PRECISION="f32").create_infer_request()
    first = {f"{name}{output}": inputs[name] for name, output in caches.items()}

    def call() -> list[Array]:
        for state in request.query_state():
            state.state = openvino.Tensor(np.ascontiguousarray(first[state.name]))
        return [request.infer(feed)[0].copy() for feed in _feeds(inputs, steps, caches)]

    return Ready(call, list, openvino.__version__)


def _feeds(inputs: Inputs, steps: int, caches: Mapping[str, str]) -> Iterator[dict[str, Array]]:
    """Yields the inputs of each step but the caches: masks grow by one, positions move on, tokens are the next ones."""
    fixed = {name: one for name, one in inputs.items() if name not in caches}
    for number in range(steps):
        feed = dict(fixed)
        for name, one in fixed.items():
            if "mask" in name:
                feed[name] = np.ones((one.shape[0], one.shape[1] + number), one.dtype)
            elif "position" in name or name == "input_ids":
                feed[name] = one + number
        yield feed


def memory(inputs: Inputs, megabytes: float, threads: int) -> Ready:
    """Reads so many bytes once, by all threads: what a step would take that computes nothing."""
    parts = [np.ones(int(megabytes * 1e6) // (8 * threads), np.float32) for _ in range(2 * threads)]
    pool = ThreadPoolExecutor(threads)

    def call() -> float:
        return float(np.dot(*parts)) if threads == 1 else sum(pool.map(np.dot, parts[::2], parts[1::2]))

    return Ready(call, lambda found: [np.asarray(found)])
