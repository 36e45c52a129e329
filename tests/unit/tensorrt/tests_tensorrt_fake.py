# SPDX-License-Identifier: Apache-2.0
"""A pretended TensorRT, as far as sessions use it: its engines are JSON, its kernels numpy on the host driver.

An engine says which `op` it runs: "double" gives 2 x, "positive" the elements above zero (so the size of its output
depends on values). It is as strict as the real one: an address that was not set, a size that was not given or lies
outside the range, or work during a capture that a capture cannot hold, fails.
"""

import ctypes
import json
from collections.abc import Mapping, Sequence
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import numpy as np
from nndeploy_tensorrt.tensor_types import NAME_OF

from nndeploy.testing.host_driver import HostDriver, Launch
from nndeploy.values.types import numpy_dtype

VERSION = "1.7.1.116"
ENUM_OF = {ours: theirs for theirs, ours in NAME_OF.items()}


class EngineValidity(IntEnum):
    VALID = 0
    INVALID = 2


class EngineInvalidityDiagnostics(IntEnum):
    VERSION_MISMATCH = 1
    UNSUPPORTED_CC = 2


class TempfileControlFlag(IntEnum):
    ALLOW_IN_MEMORY_FILES = 0
    ALLOW_TEMPORARY_FILES = 1


def engine_bytes(
    inputs: Sequence[Mapping[str, Any]], outputs: Sequence[Mapping[str, Any]], op: str = "double", **more: Any
) -> bytes:
    """Returns a pretended engine.

    `more` may hold `profiles`, each {input: [smallest, largest]}, `location`, `capturable`.
    """
    return json.dumps({"inputs": list(inputs), "outputs": list(outputs), "op": op, **more}).encode()


def run_kernel(launch: Launch) -> None:
    """Stands in for the GPU: y = 2 x over the addresses and the size in the launch's parameters."""
    source, target, count, kind = (arg.decode() for arg in launch.args)
    dtype = numpy_dtype(kind)
    values = _view(int(source), int(count), dtype)
    _view(int(target), int(count), dtype)[...] = values + values


def _view(address: int, count: int, dtype: "np.dtype[Any]") -> "np.ndarray[Any, Any]":
    buffer = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(buffer, dtype, count)


class FakeTensorRt:
    """The module; `caches` are the runtime caches that were made, `log` gets what the library would say."""

    __version__ = VERSION
    __spec__ = SimpleNamespace(name="tensorrt_rtx_bindings")
    EngineValidity = EngineValidity
    EngineInvalidityDiagnostics = EngineInvalidityDiagnostics
    TempfileControlFlag = TempfileControlFlag

    class ILogger:
        def __init__(self) -> None:
            pass

    class IOutputAllocator:
        def __init__(self) -> None:
            pass

    def __init__(self, driver: HostDriver) -> None:
        self.driver = driver
        self.diagnostics = 0
        self.runtimes: list[Runtime] = []
        self.caches: list[Cache] = []
        self.contexts: list[Context] = []
        self.no_context = False

    def Runtime(self, logger: Any) -> "Runtime":  # noqa: N802 - the library's name
        found = Runtime(self, logger)
        self.runtimes.append(found)
        return found


class Runtime:
    engine_header_size = 4

    def __init__(self, library: FakeTensorRt, logger: Any) -> None:
        self.library = library
        self.logger = logger
        self.engine_host_code_allowed = True
        self.tempfile_control_flags = 3

    def get_engine_validity(self, header: memoryview) -> tuple[EngineValidity, int]:
        assert len(header) == self.engine_header_size
        bits = self.library.diagnostics
        return (EngineValidity.INVALID if bits else EngineValidity.VALID), bits

    def deserialize_cuda_engine(self, data: memoryview) -> "Engine | None":
        try:
            return Engine(self.library, json.loads(bytes(data)))
        except ValueError:
            self.logger.log(SimpleNamespace(name="ERROR"), "IRuntime: Error Code 1: Serialization (no magic tag)")
            return None


class Engine:
    def __init__(self, library: FakeTensorRt, said: dict[str, Any]) -> None:
        self.library = library
        self.said = said
        self.bindings = {b["name"]: b for b in (*said["inputs"], *said["outputs"])}

    @property
    def num_io_tensors(self) -> int:
        return len(self.bindings)

    def get_tensor_name(self, index: int) -> str:
        return list(self.bindings)[index]

    def get_tensor_mode(self, name: str) -> SimpleNamespace:
        is_input = any(b["name"] == name for b in self.said["inputs"])
        return SimpleNamespace(name="INPUT" if is_input else "OUTPUT")

    def get_tensor_dtype(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(name=ENUM_OF[self.bindings[name]["dtype"]])

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.bindings[name]["shape"])

    def get_tensor_location(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(name=self.said.get("location", "DEVICE"))

    @property
    def num_optimization_profiles(self) -> int:
        return len(self.said.get("profiles", [{}]))

    def get_tensor_profile_shape(self, name: str, profile: int) -> list[list[int]]:
        anything = [[0] * len(self.bindings[name]["shape"]), [1 << 40] * len(self.bindings[name]["shape"])]
        least, most = self.said.get("profiles", [{}])[profile].get(name, anything)
        return [least, most, most]

    def create_runtime_config(self) -> "Config":
        return Config(self.library)

    def create_execution_context(self, config: "Config | None" = None) -> "Context | None":
        if self.library.no_context:
            return None
        found = Context(self, config)
        self.library.contexts.append(found)
        return found


class Config:
    def __init__(self, library: FakeTensorRt) -> None:
        self.library = library
        self.cache: Cache | None = None

    def create_runtime_cache(self) -> "Cache":
        found = Cache()
        self.library.caches.append(found)
        return found

    def set_runtime_cache(self, cache: "Cache") -> bool:
        self.cache = cache
        return True


class Cache:
    """What it was given and what it holds; a blob that does not start with "kernels" is refused."""

    def __init__(self) -> None:
        self.data = b""
        self.loaded = b""

    def deserialize(self, data: bytes) -> bool:
        if not data.startswith(b"kernels"):
            return False
        self.data = self.loaded = data
        return True

    def serialize(self) -> bytes:
        return self.data


class Context:
    def __init__(self, engine: Engine, config: Config | None) -> None:
        self.engine = engine
        self.config = config
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.addresses: dict[str, int] = {}
        self.allocators: dict[str, Any] = {}
        self.num_queued = 0
        self.profile = 0
        driver = engine.library.driver
        module = driver.load_module(b"double")
        self._function = driver.function(module, "double")

    def is_stream_capturable(self, _stream: int) -> bool:
        return bool(self.engine.said.get("capturable", True))

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        smallest, _, largest = self.engine.get_tensor_profile_shape(name, self.profile)
        self.shapes[name] = tuple(shape)
        return all(low <= size <= high for low, size, high in zip(smallest, shape, largest, strict=False))

    def set_optimization_profile_async(self, profile: int, _stream: int) -> bool:
        self.profile = profile
        return not self.engine.said.get("stuck")

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        declared = self.engine.get_tensor_shape(name)
        if -1 not in declared or self.engine.said["op"] == "positive":
            return declared
        return self._shape_of(self.engine.said["inputs"][0]["name"])

    def set_tensor_address(self, name: str, address: int) -> bool:
        assert address, "the real library wants an address for everything"
        self.addresses[name] = address
        return True

    def set_output_allocator(self, name: str, allocator: Any) -> bool:
        self.allocators[name] = allocator
        return True

    def execute_async_v3(self, stream: int) -> bool:
        self.num_queued += 1
        if self.engine.said.get("fails"):
            logger = self.engine.library.runtimes[-1].logger
            logger.log(SimpleNamespace(name="ERROR"), "IExecutionContext: Error Code 1: Myelin (no room)")
            return False
        if self.config is not None and self.config.cache is not None:
            self.config.cache.data = b"kernels for " + self.engine.said["op"].encode()
        name = self.engine.said["inputs"][0]["name"]
        return self._positive(name) if self.engine.said["op"] == "positive" else self._double(name, stream)

    def _double(self, name: str, stream: int) -> bool:
        count = int(np.prod(self._shape_of(name), dtype=np.int64))
        kind = self.engine.bindings[name]["dtype"]
        for output in self.engine.said["outputs"]:
            args = [str(self.addresses[name]), str(self.addresses[output["name"]]), str(count), kind]
            packed = [arg.encode() for arg in args]
            self.engine.library.driver.launch(self._function, (1, 1, 1), (1, 1, 1), 0, stream, packed)
        return True

    def _positive(self, name: str) -> bool:
        dtype = numpy_dtype(self.engine.bindings[name]["dtype"])
        values = _view(self.addresses[name], int(np.prod(self._shape_of(name))), dtype)
        found = values[values > 0]
        output = self.engine.said["outputs"][0]["name"]
        room = max(found.nbytes, 64)  # the real library asks for more than it fills
        address = self.allocators[output].reallocate_output_async(output, 0, room, 256, 0)
        if not address:
            return False
        _view(address, found.size, dtype)[...] = found
        self.allocators[output].notify_shape(output, found.shape)
        return True

    def _shape_of(self, name: str) -> tuple[int, ...]:
        declared = self.engine.get_tensor_shape(name)
        return self.shapes[name] if -1 in declared else declared
