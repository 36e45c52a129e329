# SPDX-License-Identifier: Apache-2.0
"""The engines that are raced, each made inside a child of `interleaved`, which is where its library is imported.

Each function takes the inputs by name and plain arguments and returns what to call. `note` says what was built.
"""

import json
import os
import platform
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interleaved import Array, EngineRefusedError, Ready

if TYPE_CHECKING:
    import onnx_ir as ir

    from nndeploy.plugin.interface import Support

Inputs = Mapping[str, Array]
OPENVINO_PRECISIONS = {"fp32": "f32", "bf16": "bf16"}


def native(inputs: Inputs, model: str, threads: int, precision: str = "fp32", *, knows_sizes: bool = True) -> Ready:
    """Our own kernels: the optimised model built whole by `native`, for the inputs' sizes where it `knows_sizes`."""
    loaded, session, note = native_session(inputs, model, threads, precision, knows_sizes=knows_sizes)
    feed = dict(zip((one.name for one in loaded.inputs), inputs.values(), strict=True))
    names = [one.name for one in loaded.outputs]
    return Ready(lambda: session.run(feed), lambda found: [found[name] for name in names], note)


def native_session(
    inputs: Inputs, model: str, threads: int, precision: str = "fp32", *, knows_sizes: bool
) -> tuple[Any, Any, str]:
    """Returns the loaded model, a session of our own kernels, and what was built.

    Raises:
        EngineRefusedError: a node has no kernel, or the machine no library.
    """
    from nndeploy_native.plugin import Plugin

    from nndeploy.frontend.load import load_model
    from nndeploy.passes import optimise
    from nndeploy.plugin.interface import BuildOptions, OpenOptions
    from nndeploy.target.target import host_target

    shapes = {name: array.shape for name, array in inputs.items()} if knows_sizes else None
    plugin, target = Plugin(), host_target()
    loaded = load_model(Path(model), shapes=shapes)
    optimise(loaded.model)
    options = BuildOptions(threads=threads, ranges=loaded.ranges, precision=precision)
    probe = plugin.probe(target)
    if not (probe.can_build and probe.can_run):
        raise EngineRefusedError(probe.reason)
    with_own_transforms(loaded.model, plugin.supports(loaded.model, target, options))
    answers = plugin.supports(loaded.model, target, options)
    if refused := [answer.reason for answer in answers if not answer.ok]:
        raise EngineRefusedError(f"{len(refused)} of {len(answers)} nodes have no kernel; the first: {refused[0]}")
    with tempfile.TemporaryDirectory() as folder:
        artifact = plugin.build(loaded.model, target, options, Path(folder))
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    return loaded, plugin.open(files, artifact.metadata, OpenOptions(threads=threads)), artifact.log.split("\n")[0]


def with_own_transforms(model: "ir.Model", answers: Sequence["Support"]) -> None:
    """Makes, in place, of nodes that native refuses others that it takes, as the compiler lets it."""
    from nndeploy_native.plugin import Plugin

    from nndeploy.target.target import host_target

    refused = {node for node, answer in zip(model.graph, answers, strict=True) if not answer.ok}
    for transform in Plugin().transforms(host_target()):
        transform(model, refused.__contains__)


def bundle(inputs: Inputs, path: str, threads: int, outputs: list[str]) -> Ready:
    """A compiled bundle through the runtime."""
    import nndeploy

    program = nndeploy.load_bundle(path, nndeploy.LoadOptions(threads=threads, device="cpu", cache_dir=""))
    return Ready(lambda: program.run(inputs), lambda found: [found[name] for name in outputs])


def onnxruntime(inputs: Inputs, model: str, threads: int, knows_sizes: bool = True, exact: bool = False) -> Ready:
    """ONNX Runtime's CPU provider, all its optimisations; free dimensions fixed where it `knows_sizes`.

    With `exact` it trades no numbers for speed, as our bundles have it: by default 8-bit products saturate where the
    processor has no VNNI.
    """
    import onnx
    import onnxruntime as library

    settings = library.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
    settings.log_severity_level = 3
    if exact:
        from nndeploy_onnxruntime.library import exact_settings

        for key, text in exact_settings().items():
            settings.add_session_config_entry(key, text)
    for value in onnx.load(model, load_external_data=False).graph.input if knows_sizes else ():
        for axis, size in enumerate(value.type.tensor_type.shape.dim):
            if size.dim_param and value.name in inputs:
                settings.add_free_dimension_override_by_name(size.dim_param, inputs[value.name].shape[axis])
    session = library.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    feed = dict(inputs)
    return Ready(lambda: session.run(None, feed), list, library.__version__)


def bundled_onnxruntime(inputs: Inputs, model: str, threads: int) -> Ready:
    """The same library as a bundle has it: the artifact of the whole model, opened by our backend."""
    from nndeploy_onnxruntime.plugin import Plugin

    from nndeploy.frontend.load import load_model
    from nndeploy.plugin.interface import BuildOptions, OpenOptions
    from nndeploy.target.target import host_target

    plugin = Plugin()
    loaded = load_model(Path(model), extra_domains=frozenset(plugin.extra_domains))
    with tempfile.TemporaryDirectory() as folder:
        artifact = plugin.build(loaded.model, host_target(), BuildOptions(threads=threads), Path(folder))
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    session = plugin.open(files, artifact.metadata, OpenOptions(threads=threads))
    feed, names = dict(inputs), [one.name for one in loaded.outputs]
    return Ready(lambda: session.run(feed), lambda found: [found[name] for name in names])


def openvino(inputs: Inputs, model: str, threads: int, precision: str = "fp32", knows_sizes: bool = True) -> Ready:
    """OpenVINO on the CPU at a precision that is said (bf16 is its default where there is hardware for it).

    Where it `knows_sizes` it is compiled for those. It would also quantise activations where weights are compressed;
    that is another computation, and left out.
    """
    import openvino as library

    core = library.Core()
    settings = {
        "INFERENCE_PRECISION_HINT": OPENVINO_PRECISIONS[precision],
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
    }
    try:
        read = core.read_model(model)
        if knows_sizes and any(port.get_partial_shape().is_dynamic for port in read.inputs):
            read.reshape({name: list(array.shape) for name, array in inputs.items()})
        compiled = core.compile_model(read, "CPU", settings)
    except RuntimeError as err:
        raise EngineRefusedError(" ".join(str(err).split())[-200:]) from err
    request, feed, count = compiled.create_infer_request(), dict(inputs), len(compiled.outputs)

    def call() -> Any:
        return request.infer(feed, share_inputs=True, share_outputs=True)

    return Ready(call, lambda found: [found[i] for i in range(count)], library.__version__)


def machine_line() -> str:
    """Returns the machine, its load and the libraries in one line."""
    from importlib.metadata import version

    from nndeploy.target.target import host_target

    target = host_target()
    caches = json.dumps(dict(target.caches)).replace('"', "")
    libraries = ", ".join(f"{name} {version(name)}" for name in ("onnxruntime", "openvino", "ziglang", "numpy"))
    load = os.getloadavg()[0]
    return (
        f"{time.strftime('%Y-%m-%d')}: {_cpu_name()}, {target.num_cores} cores, {caches}, load {load:.1f}; {libraries}"
    )


def machine_name() -> str:
    """Returns the processor and its cores, as the header of a figure names them."""
    return f"{_cpu_name()}, {os.cpu_count()} cores"


def _cpu_name() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
