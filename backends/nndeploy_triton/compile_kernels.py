# SPDX-License-Identifier: Apache-2.0
"""Kernel specifications -> cubins, with Triton's compiler; no GPU and no driver is needed.

Law: the same specification, Triton and architecture give the same bytes, in every process. Therefore no line
information (it holds the path of our sources), and a cache folder of our own that is thrown away.
Source: triton.compiler.compile, ASTSource; triton/backends/nvidia/driver.py for what a launch passes.
"""

import importlib
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from nndeploy.errors import BuildRefusedError, one_line
from nndeploy_triton.gpu import GpuFacts
from nndeploy_triton.kernel_specs import KERNEL_MODULES, KernelSpec

WARP_SIZE = 32
MAX_REASON = 200
_PARAMETER = re.compile(r"\.param\s")
_compiling = threading.Lock()  # Triton's settings belong to the process


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A cubin: its function's symbol, the shared memory it needs, its parameters in order, null pointers after them."""

    cubin: bytes
    symbol: str
    shared_bytes: int
    parameters: tuple[tuple[str, str], ...]
    num_null: int


Compiler: TypeAlias = Callable[[KernelSpec, GpuFacts], CompiledKernel]


def compile_kernel(spec: KernelSpec, gpu: GpuFacts) -> CompiledKernel:
    """Returns the cubin of a kernel for one kind of GPU.

    Raises:
        BuildRefusedError: Triton will not compile it, or it needs more shared memory than the GPU has.
    """
    try:
        with _quiet_settings():
            compiled = _compiled(spec, gpu.arch)
    except Exception as err:  # the compiler's way to say no has many classes
        raise BuildRefusedError(f"{spec.name}: {_innermost_reason(err)}") from err
    metadata, parameters = compiled.metadata, runtime_parameters(spec)
    if metadata.shared > gpu.shared_bytes:
        raise BuildRefusedError(
            f"{spec.name} needs {metadata.shared} bytes of shared memory, the GPU has {gpu.shared_bytes}"
        )
    if metadata.global_scratch_size or metadata.profile_scratch_size:
        raise BuildRefusedError(f"{spec.name} needs scratch memory, which no launch provides")
    num_null = _num_parameters(compiled.asm["ptx"]) - len(parameters)
    return CompiledKernel(compiled.asm["cubin"], metadata.name, metadata.shared, parameters, num_null)


def _innermost_reason(error: BaseException) -> str:
    """Returns what went wrong at the bottom of a chain of errors; what comes before its last line quotes the source."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).splitlines()
    return one_line(lines[-1])[:MAX_REASON] if lines else type(error).__name__


def runtime_parameters(spec: KernelSpec) -> tuple[tuple[str, str], ...]:
    """Returns (name, kind) of what a launch passes, in the order of the kernel's parameters."""
    kinds = {**dict.fromkeys((name for name, _ in spec.tensors), "tensor"), **dict.fromkeys(spec.sizes, "i32")}
    order = {name: number for number, name in enumerate(kernel_function(spec.function).arg_names)}
    return tuple((name, kinds[name]) for name in sorted(kinds, key=lambda name: _sort_key(name, order)))


def kernel_function(name: str) -> Any:
    """Returns the Triton function called `name`; imports Triton."""
    return getattr(importlib.import_module(f"nndeploy_triton.kernels.{KERNEL_MODULES[name]}"), name)


@contextmanager
def _quiet_settings() -> Iterator[None]:
    from triton import knobs

    folder = tempfile.TemporaryDirectory(prefix="nndeploy-triton-")
    with _compiling, folder as path, knobs.cache.scope(), knobs.compilation.scope():
        knobs.cache.dir = path
        knobs.compilation.disable_line_info = True
        yield


def _compiled(spec: KernelSpec, arch: int) -> Any:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = kernel_function(spec.function)
    types = {
        **dict(spec.tensors),
        **dict.fromkeys(spec.sizes, "i32"),
        **dict.fromkeys(dict(spec.constants), "constexpr"),
    }
    signature = {name: _nested(types, name) for name in function.arg_names}
    paths = {name: _path(name, function.arg_names) for name in types}
    constants = {paths[name]: _with_wrapped_texts(value) for name, value in spec.constants}
    attributes = {paths[name]: [["tt.divisibility", 16]] for name in spec.wide}
    source = ASTSource(function, signature, constants, attributes)
    options = {"num_warps": spec.num_warps, "num_stages": spec.num_stages, "enable_fp_fusion": True}
    return triton.compile(source, target=GPUTarget("cuda", arch, WARP_SIZE), options=options)


def _with_wrapped_texts(value: Any) -> Any:
    """Returns a constant in which texts inside tuples are constants of their own: Triton 3.6 takes no others."""
    from triton.language import constexpr

    if not isinstance(value, tuple):
        return value
    return tuple(constexpr(item) if isinstance(item, str) else _with_wrapped_texts(item) for item in value)


def _nested(types: dict[str, str], name: str) -> Any:
    """Returns the type of a parameter, or the tuple of its items' types ("name.0", "name.1", ...)."""
    if name in types:
        return types[name]
    items: list[Any] = []
    while any(other == f"{name}.{len(items)}" or other.startswith(f"{name}.{len(items)}.") for other in types):
        items.append(_nested(types, f"{name}.{len(items)}"))
    return tuple(items)


def _path(name: str, arguments: Sequence[str]) -> tuple[int, ...]:
    first, *rest = name.split(".")
    return arguments.index(first), *(int(item) for item in rest)


def _sort_key(name: str, order: dict[str, int]) -> tuple[int, ...]:
    first, *rest = name.split(".")
    return order[first], *(int(item) for item in rest)


def _num_parameters(ptx: str) -> int:
    entry = ptx[ptx.index(".entry") :]
    return len(_PARAMETER.findall(entry[: entry.index(")")]))
