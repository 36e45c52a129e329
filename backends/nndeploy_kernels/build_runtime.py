# SPDX-License-Identifier: Apache-2.0
"""Builds what runs bundles without Python: `python -m nndeploy_kernels.build_runtime [ARCHITECTURE ...]`.

    runtime/*.c, and for each level the objects of its library under names of that level
      -> lib/runtime-ARCH/nndeploy-run        one static program (musl)
      -> lib/runtime-ARCH/libnndeploy.a, .so  for other programs (glibc)

Law: as of `nndeploy_kernels.build`, the same sources give the same bytes.
"""

import hashlib
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from nndeploy_kernels.build import FLAGS, LIBRARIES, SOURCES, compiled, level_arguments, units, zig
from nndeploy_kernels.levels import GLIBC, LEVELS, Level, runner
from nndeploy_kernels.symbol_names import renamed

RUNTIME = SOURCES.with_name("runtime")
_CPU = {"x86_64": "x86_64", "aarch64": "generic"}


def build_runner(arch: str) -> Path:
    """Returns `nndeploy-run` for an architecture, made where it is not up to date.

    Raises:
        RuntimeError: the compiler refuses a source.
    """
    target = f"{arch}-linux-musl"
    objects = _objects(arch, target, ["*.c", "command/*.c"])
    return _made(LIBRARIES / runner(arch), "cc", ["-target", target, "-static", "-s"], objects)


def build_libraries(arch: str) -> tuple[Path, Path]:
    """Returns the static and the shared library for an architecture, made where they are not up to date.

    Raises:
        RuntimeError: the compiler refuses a source.
    """
    target, folder = f"{arch}-linux-gnu.{GLIBC}", (LIBRARIES / runner(arch)).parent
    objects = _objects(arch, target, ["*.c"])
    flags = [
        "-target", target, "-shared", "-pthread", "-s", "-Wl,--build-id=none", "-Wl,-soname,libnndeploy.so",
        f"-Wl,--version-script={RUNTIME / 'exports.txt'}",
    ]  # fmt: skip
    return _made(folder / "libnndeploy.a", "ar", [], objects), _made(folder / "libnndeploy.so", "cc", flags, objects)


def _objects(arch: str, target: str, patterns: Sequence[str]) -> list[Path]:
    """Returns the objects of the runtime for a target, and one of the kernels of each level.

    The kernels are those of the shared libraries: they ask the system for nothing of which two C libraries differ.
    """
    sources = [path for pattern in patterns for path in sorted(RUNTIME.glob(pattern)) if path.name != "level.c"]
    names = [f"../runtime/{path.relative_to(RUNTIME).as_posix()}" for path in sources]
    arguments = ["-target", target, f"-mcpu={_CPU[arch]}", *FLAGS, "-I", ".."]
    found = compiled([(name, ()) for name in names], arguments, LIBRARIES / "objects" / f"runtime-{target}")
    return [*found, *build_levels(arch)]


def build_levels(arch: str) -> list[Path]:
    """Returns for each level of an architecture one object with its kernels, made where it is not up to date.

    Raises:
        RuntimeError: the compiler refuses a source.
    """
    return [_of_level(level) for level in LEVELS if level.arch == arch]


def _of_level(level: Level) -> Path:
    """Returns the kernels of a level under its names.

    They are one object, for of an archive a linker takes objects that are named, and some kernels only register
    themselves.
    """
    short = level.name.removeprefix("x86-64-").replace("-", "_")
    folder, arguments = LIBRARIES / "objects" / level.name, level_arguments(level)
    flags = ("-DNND_NAMES_OF_LEVEL", f"-DNND_TABLE=nndeploy_kernels_{short}", "-I", "..")
    table = compiled([("../runtime/level.c", flags)], arguments, folder / "runtime")
    kernels = [
        renamed(path, folder / "runtime", "nnd_", f"{short}_")
        for path in (*compiled(units(), arguments, folder), *table)
    ]
    digest = hashlib.sha256(repr([path.name for path in kernels]).encode()).hexdigest()[:32]
    return _made(
        folder / "runtime" / f"{short}-{digest}.o", "cc", ["-target", level.zig_target, "-r", "-nostdlib"], kernels
    )


def _made(path: Path, tool: str, flags: Sequence[str], objects: Sequence[Path]) -> Path:
    """Returns a file that is linked or collected of objects, made where these or the flags are others than before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256(repr((tool, flags, [one.name for one in objects])).encode()).hexdigest()
    stamp = path.with_name(f".{path.name}.key")
    if path.exists() and stamp.exists() and stamp.read_text(encoding="ascii") == key:
        return path
    staged = path.with_name(f".{path.name}.{os.getpid()}")
    files = [str(one) for one in objects]
    zig(tool, ["rcsD", str(staged), *files] if tool == "ar" else [*flags, *files, "-o", str(staged)])
    stamp.unlink(missing_ok=True)
    staged.replace(path)
    stamp.write_text(key, encoding="ascii")
    return path


def main(architectures: Sequence[str]) -> None:
    """Builds the runtime of architectures, of this machine's where none is named."""
    known = sorted({level.arch for level in LEVELS})
    if others := sorted(set(architectures) - set(known)):
        sys.exit(f"no architecture is called {others[0]!r}; known: {', '.join(known)}")
    for arch in architectures or [platform.machine()]:
        build_runner(arch)
        build_libraries(arch)


if __name__ == "__main__":
    main(sys.argv[1:])
