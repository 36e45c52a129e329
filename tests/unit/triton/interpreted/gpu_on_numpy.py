# SPDX-License-Identifier: Apache-2.0
"""A GPU whose kernels run in Triton's interpreter, on numpy: the whole way of a model but for the compiler.

model -> lowering, fusion, plan -> session over `HostDriver` -> each launch runs the kernel's Python over host memory.
`TRITON_INTERPRET=1` must be set before Triton is imported, so these tests run in a process of their own
(test_triton_interpreter.py starts it).
"""

import ctypes
import inspect
import os
import struct
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from hypothesis import Phase, settings
from nndeploy_triton.autotune import tile_of_table
from nndeploy_triton.build import build
from nndeploy_triton.compile_kernels import CompiledKernel, kernel_function, runtime_parameters
from nndeploy_triton.gpu import GpuFacts
from nndeploy_triton.kernel_specs import KernelSpec
from nndeploy_triton.session import TritonSession, open_session
from nndeploy_triton.steps.step import Tile, TritonStep
from onnx import shape_inference
from triton.language.core import is_builtin
from triton.runtime import interpreter

from nndeploy.cuda.current_driver import injected_driver
from nndeploy.plugin.interface import Artifact, OpenOptions
from nndeploy.target.target import Gpu, Target
from nndeploy.testing.host_driver import HostDriver, HostGpu, Launch
from nndeploy.values.types import DimRange

NUM_EXAMPLES = os.environ.get("NNDEPLOY_EXAMPLES", "")  # set: as many random ones; not set: always the same few
settings.register_profile(
    "checks", max_examples=int(NUM_EXAMPLES or 20), deadline=None, derandomize=not NUM_EXAMPLES, database=None,
    phases=(Phase.explicit, Phase.generate),  # to shrink a failure takes minutes here
)  # fmt: skip
settings.load_profile("checks")

BOX = Target("box", "x86_64", gpus=(Gpu("Pretended GPU", "8.9"),))
POINTER_TYPES = {
    "*fp16": "fp16", "*fp32": "fp32", "*fp64": "fp64", "*u8": "u8", "*i8": "i8", "*i16": "i16", "*u16": "u16",
    "*i32": "i32", "*u32": "u32", "*i64": "i64", "*u64": "u64", "*bf16": "bf16",
}  # fmt: skip


@cache
def builtin_names(owner: Any) -> list[str]:
    """Returns the names of Triton's builtins in a module or class, asked for before anything is patched there."""
    return [name for name, member in inspect.getmembers(owner) if is_builtin(member)]


def patch_builtins(owner: Any, builder: Any, scope: Any) -> None:
    """Does what Triton's `_patch_builtin` does; that one looks at each member of Triton in each call of a function."""
    for name in builtin_names(owner):
        member = getattr(owner, name)
        if is_builtin(member):
            interpreter._patch_attr(owner, name, member, builder, scope)


interpreter._patch_builtin = patch_builtins


class Memory:
    """An address with an element type, which the interpreter takes for a tensor."""

    def __init__(self, address: int, dtype: str) -> None:
        self.address, self.dtype = address, dtype

    def data_ptr(self) -> int:
        return self.address

    def untyped_storage(self) -> "Memory":
        return self

    def cpu(self) -> "Memory":
        return self

    def copy_(self, other: "Memory") -> None:
        assert other.address == self.address

    def new_empty(self, *_: Any, **__: Any) -> "Memory":
        return Memory(self.address, self.dtype)

    def set_(self, *_: Any) -> None: ...

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[()]:
        return ()

    def stride(self) -> tuple[()]:
        return ()


class Interpreter:
    """Stands in for the compiler (remembers each specification) and for the GPU (runs it)."""

    def __init__(self, tiny_tiles: bool = False) -> None:
        self.specs: dict[str, KernelSpec] = {}
        self.tiny_tiles = tiny_tiles
        self.num_launches = 0

    def compile(self, spec: KernelSpec, gpu: GpuFacts) -> CompiledKernel:
        self.specs[spec.name] = spec
        return CompiledKernel(f"cubin of {spec.name}".encode(), spec.name, 0, runtime_parameters(spec), 2)

    def choose_tile(self, step: TritonStep, gpu: GpuFacts) -> Tile:
        return (
            min(step.tiles(gpu), key=lambda tile: sum(size for _, size in tile.blocks))
            if self.tiny_tiles
            else (tile_of_table(step, gpu))
        )

    def run(self, launch: Launch) -> None:
        self.num_launches += 1
        spec = self.specs[launch.kernel]
        assert launch.args[-2:] == (b"\0" * 8,) * 2
        types = {**dict(spec.tensors), **dict.fromkeys(spec.sizes, "i32")}
        values: dict[str, Any] = dict(spec.constants)
        for (name, _), data in zip(runtime_parameters(spec), launch.args[:-2], strict=True):
            values[name] = _value(types[name], data)
        function = kernel_function(spec.function)
        arguments = {name: _nested(values, name) for name in function.arg_names}
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of maxima over what is not a number
            function[launch.grid](**arguments)


def _value(kind: str, data: bytes) -> Any:
    if kind == "i32":
        return struct.unpack("<i", data)[0]
    return Memory(struct.unpack("<Q", data)[0], POINTER_TYPES[kind])


def _nested(values: Mapping[str, Any], name: str) -> Any:
    if name in values:
        return values[name]
    items: list[Any] = []
    while any(other == f"{name}.{len(items)}" or other.startswith(f"{name}.{len(items)}.") for other in values):
        items.append(_nested(values, f"{name}.{len(items)}"))
    return tuple(items)


def model_of(text: str, constants: Mapping[str, np.ndarray] | None = None) -> ir.Model:
    """Returns a model from ONNX text; `constants` give the data of inputs that are constants."""
    proto = onnx.parser.parse_model(text)
    found = dict(constants or {})
    for value in list(proto.graph.input):
        if value.name in found:
            proto.graph.input.remove(value)
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in found.items())
    return ir.from_proto(shape_inference.infer_shapes(proto, strict_mode=True))


class NanDriver(HostDriver):
    """Memory that nobody wrote is not a number: what a kernel reads beside its tensors shows."""

    def allocate(self, num_bytes: int, stream: int) -> int:
        pointer = super().allocate(num_bytes, stream)
        ctypes.memset(pointer, 0xFF, num_bytes)
        return pointer


@contextmanager
def session_on_gpu(
    model: ir.Model, interpreter: Interpreter, ranges: Mapping[str, DimRange] | None = None
) -> Iterator[TritonSession]:
    """A session over a model, built as for a GPU and run by the interpreter."""
    artifact = build(model, BOX, ranges or {}, interpreter.compile, interpreter.choose_tile)
    driver = NanDriver([HostGpu(memory_bytes=1 << 30)], interpreter.run)
    with injected_driver(driver):
        session = open_session(files_of(artifact), artifact.metadata, OpenOptions(device="cuda:0"))
        yield session
        session.close()


def run_on_gpu(
    model: ir.Model, inputs: Mapping[str, np.ndarray], *, tiny_tiles: bool = False, num_launches: int | None = None
) -> dict[str, np.ndarray]:
    """Returns the outputs of a model, built and run as on a GPU; `num_launches` is how many it must take."""
    interpreter = Interpreter(tiny_tiles)
    with session_on_gpu(model, interpreter) as session:
        warm = interpreter.num_launches
        outputs = {name: value.numpy() for name, value in session.run(inputs).items()}
        ran = interpreter.num_launches - warm
    assert num_launches is None or ran == num_launches, sorted(spec.name for spec in interpreter.specs.values())
    return outputs


def files_of(artifact: Artifact) -> dict[str, memoryview]:
    return {name: memoryview(data) for name, data in artifact.files.items()}
