# SPDX-License-Identifier: Apache-2.0
"""Artifact -> running session: the engine is deserialized on one GPU; the run half of the backend, without onnx.

An engine fits one version of one library, and the compute capabilities that it was built for; all that is checked
before the library sees the bytes. With TensorRT-RTX the GPU compiles the engine's kernels here, and what it compiled
is kept in `OpenOptions.cache_dir` for the next start (see `runtime_cache.py`).

Source: TensorRT-RTX 1.7, IRuntime, ICudaEngine, IRuntimeConfig; "Engine Compatibility".
"""

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

from nndeploy.cuda import Device, device, gpu_number
from nndeploy.errors import BundleError, UnavailableError, UsageError
from nndeploy.plugin.cache_file import read_cache, write_cache
from nndeploy.plugin.interface import Json, OpenOptions, Session
from nndeploy.target.target import capability_number
from nndeploy.values.types import Value
from nndeploy_tensorrt.artifact_facts import PORTABLE_FROM, Binding, EngineFacts, facts_from_metadata
from nndeploy_tensorrt.contexts import Contexts
from nndeploy_tensorrt.files import ENGINE_FILE
from nndeploy_tensorrt.library import LIBRARIES, RTX, Log, TensorRt, loaded, log_of
from nndeploy_tensorrt.reason import library_reason
from nndeploy_tensorrt.runner import Runner
from nndeploy_tensorrt.runtime_cache import MAX_BYTES, PREFIX, cache_path
from nndeploy_tensorrt.tensor_types import dtype_name


def open_session(files: Mapping[str, memoryview], metadata: Mapping[str, Json], options: OpenOptions) -> Session:
    """Returns a session over an artifact on the GPU that `options.device` names.

    Raises:
        UnavailableError: there is no such GPU, it is none that the engine was built for, or the library or its
            version is not here.
        BundleError: the artifact has no engine, or the engine is not what the artifact says of it.
    """
    facts = facts_from_metadata(metadata)
    if ENGINE_FILE not in files:
        raise BundleError(f"the artifact has no {ENGINE_FILE}")
    number = gpu_number(options.device)
    if number is None:
        raise UnavailableError(f"TensorRT runs on a GPU, not on {options.device!r}", hint="--device cuda:0")
    gpu = device(number)
    _check_capability(facts, gpu)
    library = _library_of(facts)
    engine = files[ENGINE_FILE]
    cache = None
    if facts.library == RTX.flavour and options.cache_dir:
        cache = cache_path(options.cache_dir, engine, facts.version, gpu.compute_capability)
    with gpu.entered():
        return TensorRtSession(library, engine, facts, gpu, cache)


class TensorRtSession:
    """An engine on one GPU; `run` takes host arrays or arrays of that GPU, and returns arrays of that GPU."""

    def __init__(
        self, library: TensorRt, engine: memoryview, facts: EngineFacts, gpu: Device, cache: Path | None
    ) -> None:
        self.device = gpu.name
        self._gpu = gpu
        log = log_of(facts.library)
        self._runtime = _runtime(library, log)
        self._engine = _deserialized(library, self._runtime, engine, log)
        _check_bindings(self._engine, facts)
        self._cache = _KernelCache(self._engine, cache) if facts.library == RTX.flavour else None
        dynamic = [binding.name for binding in facts.inputs if binding.is_dynamic]
        contexts = Contexts(self._engine, dynamic, gpu.stream.handle, lambda: self._new_context(log))
        self._runner: Runner | None = Runner(library, contexts, facts, gpu, log.last_error)

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name; nothing waits for the GPU."""
        runner = self._runner
        if runner is None:
            raise UsageError("the session is closed")
        outputs = runner.run(inputs)
        if self._cache is not None and runner.num_runs == 1:
            self._cache.keep()  # a box is switched off, not closed
        return outputs

    def close(self) -> None:
        """Frees what the session holds on the GPU; a second call does nothing."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        self._gpu.synchronize()
        with self._gpu.entered():
            if self._cache is not None:
                self._cache.keep()
            runner.close()
            self._cache = None
            self._engine = None
            self._runtime = None

    def _new_context(self, log: Log) -> TensorRt:
        engine, cache = self._engine, self._cache
        found = engine.create_execution_context(*([] if cache is None else [cache.config]))
        if found is None:
            raise UnavailableError(f"no execution context: {library_reason(log.last_error())}", where=self.device)
        return found


class _KernelCache:
    """The library's cache of compiled kernels for one engine, and the file that it comes from and goes to."""

    def __init__(self, engine: TensorRt, path: Path | None) -> None:
        self.config = engine.create_runtime_config()
        self._path = path
        self._kept = b""
        if path is None:
            return
        self._cache = self.config.create_runtime_cache()
        data = read_cache(path, MAX_BYTES)
        if data and self._cache.deserialize(data):
            self._kept = data
        self.config.set_runtime_cache(self._cache)

    def keep(self) -> None:
        """Writes the cache where it holds something that the file does not."""
        if self._path is None:
            return
        serialized = self._cache.serialize()
        data = b"" if serialized is None else bytes(serialized)
        if data and data != self._kept and write_cache(self._path, data, PREFIX):
            self._kept = data


def _check_capability(facts: EngineFacts, gpu: Device) -> None:
    have = gpu.compute_capability
    if facts.capabilities and have not in facts.capabilities:
        wanted = " or ".join(facts.capabilities)
        raise UnavailableError(f"the engine is for compute capability {wanted}, {gpu.name} has {have}")
    if not facts.capabilities and capability_number(have) < capability_number(PORTABLE_FROM):
        raise UnavailableError(f"the engine is for compute capability {PORTABLE_FROM} or later, {gpu.name} has {have}")


def _library_of(facts: EngineFacts) -> TensorRt:
    library, known = loaded(facts.library), LIBRARIES[facts.library]
    if library.__version__ != facts.version:
        raise UnavailableError(
            f"the engine is for {known.title} {facts.version}, here is {library.__version__}",
            hint=f"pip install {known.package}=={facts.version}",
        )
    return library


def _runtime(library: TensorRt, log: Log) -> TensorRt:
    """Returns a runtime that loads no host code and writes no file."""
    runtime = library.Runtime(log.logger)
    if runtime is None:
        raise UnavailableError(f"TensorRT does not start: {library_reason(log.last_error())}")
    runtime.engine_host_code_allowed = False
    with contextlib.suppress(AttributeError):
        runtime.tempfile_control_flags = 1 << int(library.TempfileControlFlag.ALLOW_IN_MEMORY_FILES)
    return runtime


def _deserialized(library: TensorRt, runtime: TensorRt, engine: memoryview, log: Log) -> TensorRt:
    if why := _invalidity(library, runtime, engine, log):
        raise UnavailableError(f"TensorRT cannot use the engine here: {why}")
    found = runtime.deserialize_cuda_engine(engine)
    if found is None:
        raise UnavailableError(f"TensorRT cannot load the engine: {library_reason(log.last_error())}")
    return found


def _invalidity(library: TensorRt, runtime: TensorRt, engine: memoryview, log: Log) -> str:
    """Returns what the library holds against the engine's header, ""; the classic library is not asked."""
    ask: Callable[[memoryview], tuple[TensorRt, int]] | None = getattr(runtime, "get_engine_validity", None)
    if ask is None:
        return ""
    validity, bits = ask(engine[: runtime.engine_header_size])
    if validity != library.EngineValidity.INVALID:
        return ""
    causes = library.EngineInvalidityDiagnostics.__members__
    named = [name.lower().replace("_", " ") for name, cause in causes.items() if int(bits) & int(cause)]
    return ", ".join(named) or library_reason(log.last_error())


def _check_bindings(engine: TensorRt, facts: EngineFacts) -> None:
    """Refuses an engine whose inputs and outputs are not those that the artifact lists.

    Raises:
        BundleError: a name, element type or shape differs, or one of them lives on the host.
    """
    names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
    kinds = {name: engine.get_tensor_mode(name).name for name in names}
    said = {b.name: "INPUT" for b in facts.inputs} | {b.name: "OUTPUT" for b in facts.outputs}
    if kinds != said:
        raise BundleError(f"the engine has other inputs and outputs than the bundle says: {sorted(kinds)!r:.120}")
    for binding in (*facts.inputs, *facts.outputs):
        found = Binding(
            binding.name,
            dtype_name(engine.get_tensor_dtype(binding.name)),
            tuple(engine.get_tensor_shape(binding.name)),
        )
        if found != binding:
            raise BundleError(f"the engine has {found}, the bundle says {binding}")
        if engine.get_tensor_location(binding.name).name != "DEVICE":
            raise BundleError(f"the engine wants {binding.name!r} in host memory")
