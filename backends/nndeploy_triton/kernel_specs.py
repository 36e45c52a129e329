# SPDX-License-Identifier: Apache-2.0
"""Requests -> kernel specifications: what to compile, under which name, and what each launch passes.

A size of 0 or 1 is compiled in, a size or address that is a multiple of 16 is said to be so: both let the compiler
read and write in wide pieces. Of one that depends on the inputs it is said only where it holds at every size. Launches
whose specification is equal share one kernel, whatever their other sizes.
Law: equal requests have equal names; different kernels have different names.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace

from nndeploy.values.size import Dim
from nndeploy_triton.plan import Place
from nndeploy_triton.steps.step import Constant, GridAxis, Request
from nndeploy_triton.views import DTYPE_BYTES, View

KERNEL_MODULES = {
    "convolution": "convolution", "depthwise": "depthwise", "elementwise": "elementwise", "gather": "gathering",
    "interpolate": "gathering", "lstm": "recurrent", "matmul": "matmul", "normalization": "reduction",
    "pooling": "pooling", "reduction": "reduction", "resize": "gathering", "separable": "separable",
    "softmax": "reduction",
}  # fmt: skip
"""Kernel -> the module of `nndeploy_triton.kernels` that holds the function of the same name."""

TRITON_TYPES = {
    "float16": "fp16", "float32": "fp32", "float64": "fp64", "bfloat16": "bf16", "bool": "u8", "uint8": "u8",
    "int8": "i8", "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64",
}  # fmt: skip
SHORT_TYPES = {"float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16", "bool": "b8"}
COPY_TYPES = {1: "u8", 2: "i16", 4: "i32", 8: "i64"}
MAX_LABELS = 3
WIDE = 16


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """A kernel to compile: function, types of the parameters that stay, constants, and how a block is run.

    A parameter is "name" or "name.i.j" for an item of a tuple. `wide` are the parameters that are multiples of 16.
    """

    name: str
    function: str
    tensors: tuple[tuple[str, str], ...]
    sizes: tuple[str, ...]
    wide: tuple[str, ...]
    constants: tuple[tuple[str, Constant], ...]
    num_warps: int
    num_stages: int


@dataclass(frozen=True, slots=True)
class Planned:
    """A request as a specification, and what its launch passes."""

    spec: KernelSpec
    grid: tuple[GridAxis, GridAxis, GridAxis]
    tensors: tuple[tuple[str, Place], ...]
    sizes: tuple[tuple[str, Dim], ...]


def planned(request: Request, roots: Mapping[str, Place]) -> Planned:
    """Returns the specification and the launch of a request; `roots` says where each value lies."""
    places = tuple((name, _place(view, roots)) for name, view in request.tensors)
    sizes = [(name, size) for name, size in request.sizes if name not in request.grid_only]
    compiled_in = {name: size for name, size in sizes if isinstance(size, int) and size in (0, 1)}
    runtime = {name: size for name, size in sizes if name not in compiled_in}
    wide = [name for name, place in places if place.offset % WIDE == 0]
    wide += [name for name, size in runtime.items() if size % WIDE == 0]
    tensors = tuple((name, f"*{_type(request, view)}") for name, view in request.tensors)
    spec = KernelSpec(
        name="",
        function=request.kernel,
        tensors=tensors,
        sizes=tuple(runtime),
        wide=tuple(wide),
        constants=(*request.constants, *compiled_in.items()),
        num_warps=request.tile.num_warps,
        num_stages=request.tile.num_stages,
    )
    return Planned(replace(spec, name=_name(request, spec)), request.grid, places, request.sizes)


def _place(view: View, roots: Mapping[str, Place]) -> Place:
    root = roots[view.name]
    return Place(root.memory, root.offset + view.offset * DTYPE_BYTES[view.dtype])


def _type(request: Request, view: View) -> str:
    """Returns the type that a tensor is read as; what is only copied is read as whole numbers of its width."""
    is_copy = request.kernel == "gather" or request.labels == ("copy",)
    dtypes = {one.dtype for name, one in request.tensors if name in ("out", "x", "inputs.0")}
    if is_copy and len(dtypes) == 1 and view.dtype in dtypes and view.dtype not in ("float16", "float32"):
        return COPY_TYPES[DTYPE_BYTES[view.dtype]]
    return TRITON_TYPES[view.dtype]


def _name(request: Request, spec: KernelSpec) -> str:
    """Returns the kernel's name; docs/internals/kernels.md defines its fields."""
    dtype = dict(request.tensors)[request.written].dtype
    labels = request.labels if len(request.labels) <= MAX_LABELS else (f"chain{len(request.labels)}",)
    fused = "_".join((request.kernel, *labels))
    digest = hashlib.sha256(json.dumps(astuple(spec)).encode()).hexdigest()
    return f"nnd_{SHORT_TYPES.get(dtype, dtype)}_{fused}_{request.layout}__triton_{request.tile}_{digest[:8]}"
