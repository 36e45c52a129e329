# SPDX-License-Identifier: Apache-2.0
"""Builds the npm package that runs bundles in browsers and Node: `python -m nndeploy_kernels.build_web`.

    runtime/*.c and the kernels, with web/platform.c in the place of the system, for each level
      -> lib/runtime-wasm32/nndeploy-LEVEL.wasm, nndeploy-LEVEL-threads.wasm
    web/*, LICENSE -> beside them

Law: as of `nndeploy_kernels.build`, the same sources give the same bytes. A module imports nothing; that with threads
imports its memory, and whether it may wait.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from nndeploy_kernels.build import FLAGS, LIBRARIES, SOURCES, compiled, units
from nndeploy_kernels.build_runtime import RUNTIME, made
from nndeploy_kernels.levels import WASM_LEVELS, WEB_ARCH, Level, runner, wasm_module

WEB = SOURCES.with_name("web")
PACKAGE_FILES = ("nndeploy.mjs", "nndeploy.d.ts", "package.json", "README.md")
LICENSE = SOURCES.parents[2] / "LICENSE"
TARGET = "wasm32-wasi"
STACK_BYTES = 1 << 20
_SHARING = "+atomics+bulk_memory"
_SHARED = (
    "-Wl,--import-memory", "-Wl,--shared-memory", f"-Wl,--initial-memory={4 << 20}", f"-Wl,--max-memory={1 << 31}",
)  # fmt: skip
"""The memory that nndeploy.mjs makes."""
_NOT_HERE = ("-fPIC", "-pthread")
_NAMES = [f"-Dnnd_{name}=nnd_kernel_{name}" for name in ("run", "level")]
"""Names of the kernels that the runtime has too."""
_FOR_SPEED = ("call.c", "halves.c", "hashes.c", "image.c", "inflate.c")
"""Sources of the runtime that go over whole values and members; by the others bundles are opened and texts handled,
which takes no time worth twice their size."""

_FOR_SIZE = (
    "kernels/suppress.c", "model/ends.c", "model/reader.c", "model/table.c", "ops/append.c", "ops/arg.c",
    "ops/conv_record.c", "ops/cumulate.c", "ops/double_product.c", "ops/gather.c", "ops/indices.c", "ops/int8_record.c",
    "ops/lrn.c", "ops/one_hot.c", "ops/pad.c", "ops/pairwise_shares.c", "ops/resize_table.c", "ops/reverse_sequence.c",
    "ops/scatter.c", "ops/text_grams.c", "ops/tf_idf.c", "ops/top_places.c", "ops/triangle.c",
)  # fmt: skip
"""Sources of kernels that read plans and make tables, copy and pick elements, or that networks in browsers rarely have:
smaller without unrolled loops."""


def build_package() -> list[Path]:
    """Returns the files of the package, which lie in one folder, made where they are not up to date.

    Raises:
        RuntimeError: as of `build_module`.
    """
    modules = [build_module(level, threads=threads) for level in WASM_LEVELS for threads in (False, True)]
    plain = [*(WEB / name for name in PACKAGE_FILES), LICENSE]
    return [*modules, *(Path(shutil.copyfile(one, LIBRARIES / runner(WEB_ARCH) / one.name)) for one in plain)]


def build_module(level: Level, *, threads: bool = False) -> Path:
    """Returns the WebAssembly module of a level, made where it is not up to date; with `threads` its memory is shared.

    Raises:
        RuntimeError: the compiler refuses a source, or kernels and runtime have a name in common.
    """
    usual = [flag for flag in FLAGS if flag not in _NOT_HERE]
    cpu = f"-mcpu={level.zig_cpu}{_SHARING if threads else ''}"
    arguments = ["-target", TARGET, cpu, *usual, "-I", ".."]
    folder = LIBRARIES / "objects" / (f"{level.name}-threads" if threads else level.name)
    kernels = [*arguments, f'-DNND_LEVEL="{level.name}"', *_NAMES]
    table = ("../runtime/level.c", ("-DNND_NAMES_OF_LEVEL", "-DNND_TABLE=nndeploy_kernels_wasm32"))
    of_kernels = [(name, (*flags, "-Os") if name in _FOR_SIZE else flags) for name, flags in units()]
    objects = [*compiled(of_kernels, kernels, folder), *compiled([table], kernels, folder / "table")]
    names = [*_runtime_sources(), *(["../web/threads.c"] if threads else [])]
    sources = [(name, () if Path(name).name in _FOR_SPEED else ("-Os",)) for name in names]
    objects += compiled(sources, arguments, folder / "runtime")
    exported = ["malloc", "free", *re.findall(r"nnd_\w+", (RUNTIME / "exports.txt").read_text(encoding="ascii"))]
    exported += ["nnd_web_begin", "nnd_web_work", "__stack_pointer"] if threads else []
    flags = [
        "-target", TARGET, cpu, *(_SHARED if threads else ()), "-mexec-model=reactor", "-s", "-Wl,--gc-sections",
        f"-Wl,-z,stack-size={STACK_BYTES}", *(f"-Wl,--export={name}" for name in exported),
    ]  # fmt: skip
    return made(LIBRARIES / runner(WEB_ARCH) / wasm_module(level, threads=threads), "cc", flags, objects)


def _runtime_sources() -> Sequence[str]:
    """Returns the sources of the runtime, from the folder of the kernels."""
    not_here = ("decisions.c", "level.c", "platform.c", "platform_linux.c")
    names = [path.name for path in sorted(RUNTIME.glob("*.c")) if path.name not in not_here]
    return [*(f"../runtime/{name}" for name in names), "../web/decisions.c", "../web/platform.c"]


if __name__ == "__main__":
    build_package()
