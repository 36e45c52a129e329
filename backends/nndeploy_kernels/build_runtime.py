# SPDX-License-Identifier: Apache-2.0
"""Builds what runs bundles without Python.

    python -m nndeploy_kernels.build_runtime [--with-libcrypto] [ARCHITECTURE ...]

    runtime/*.c, and for each level the objects of its library under names of that level
      -> lib/runtime-ARCH/nndeploy-run        one static program (musl), with the levels for float32
      -> lib/runtime-ARCH/nndeploy-run-bf16   the same with all levels, where there are others
      -> lib/runtime-ARCH/libnndeploy.a, .so  for other programs (glibc)
      -> lib/runtime-ARCH/nndeploy-run-libcrypto   with --with-libcrypto: all levels, and signatures by the system's
                                                   OpenSSL, which is linked with the system's compiler

The architecture wasm32 is that of browsers and Node (`nndeploy_kernels.build_web`); x86_64-windows, aarch64-macos and
x86_64-macos are those of other systems (`nndeploy_kernels.build_systems`).

Law: as of `nndeploy_kernels.build`, the same sources give the same bytes.
"""

import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nndeploy_kernels.build import FLAGS, LIBRARIES, LINK_FLAGS, SOURCES, compiled, level_arguments, units, zig
from nndeploy_kernels.levels import GLIBC, LEVELS, WEB_ARCH, WINDOWS_ARCH, Level, precisions, runner
from nndeploy_kernels.symbol_names import renamed

RUNTIME = SOURCES.with_name("runtime")
_WITH_LIBCRYPTO = "--with-libcrypto"
_LEVELS_SOURCE = "../runtime/levels.c"
_CPU = {"x86_64": "x86_64", "aarch64": "generic"}


def build_runner(arch: str, precision: str = "fp32") -> Path:
    """Returns `nndeploy-run` for an architecture and plans of a precision, made where it is not up to date.

    Raises:
        RuntimeError: the compiler refuses a source.
    """
    objects = _objects(arch, f"{arch}-linux-musl", ["*.c", "command/*.c"], precision)
    return made(LIBRARIES / runner(arch, precision), "cc", _static(arch), objects)


def build_runners(arch: str) -> list[Path]:
    """Returns those for each precision that an architecture has."""
    return [build_runner(arch, precision) for precision in precisions(arch)]


def build_libraries(arch: str) -> tuple[Path, Path]:
    """Returns the static and the shared library for an architecture, made where they are not up to date.

    Raises:
        RuntimeError: the compiler refuses a source.
    """
    target, folder = f"{arch}-linux-gnu.{GLIBC}", (LIBRARIES / runner(arch)).parent
    objects = _objects(arch, target, ["*.c"], precisions(arch)[-1])
    flags = [
        "-target", target, "-shared", "-pthread", "-s", *LINK_FLAGS, "-Wl,-soname,libnndeploy.so",
        f"-Wl,--version-script={RUNTIME / 'exports.txt'}",
    ]  # fmt: skip
    return made(folder / "libnndeploy.a", "ar", [], objects), made(folder / "libnndeploy.so", "cc", flags, objects)


def build_verifying_runner() -> Path:
    """Returns `nndeploy-run` for this machine that checks signatures, made where it is not up to date.

    Raises:
        RuntimeError: there is no C compiler or no libcrypto of the system, or a compiler refuses a source.
    """
    arch = platform.machine()
    target, folder = f"{arch}-linux-gnu.{GLIBC}", (LIBRARIES / runner(arch)).parent
    patterns = ["*.c", "command/*.c"]
    objects = _objects(arch, target, patterns, precisions(arch)[-1], left_out=("level.c", "ed25519_absent.c"))
    libcrypto = [str(path) for path in sorted(RUNTIME.with_name("libcrypto").glob("*.c"))]
    program = folder / "nndeploy-run-libcrypto"
    flags = ["-O2", "-I", str(RUNTIME.parent), "-pthread", "-s", *LINK_FLAGS]
    compiler = shutil.which("cc")
    if compiler is None:
        raise RuntimeError("no C compiler: apt install gcc libssl-dev")
    command = [compiler, *flags, *libcrypto, *map(str, objects), "-lcrypto", "-lm", "-o", str(program)]
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{compiler} fails (does libssl-dev lack?): {done.stderr.strip()[:2000]}")
    return program


def _objects(
    arch: str, target: str, patterns: Sequence[str], precision: str, *, left_out: Sequence[str] = ("level.c",)
) -> list[Path]:
    """Returns the objects of the runtime for a target, and one of the kernels of each level for fp32 or a precision.

    The kernels are those of the shared libraries: they ask the system for nothing of which two C libraries differ.
    """
    sources = [path for pattern in patterns for path in sorted(RUNTIME.glob(pattern)) if path.name not in left_out]
    names = [f"../runtime/{path.relative_to(RUNTIME).as_posix()}" for path in sources]
    arguments = ["-target", target, f"-mcpu={_CPU[arch]}", *FLAGS, "-I", ".."]
    only_floats = ("-DNND_FLOAT32_LEVELS_ALONE",) if precision == "fp32" else ()
    units = [(name, only_floats if name == _LEVELS_SOURCE else ()) for name in names]
    found = compiled(units, arguments, LIBRARIES / "objects" / f"runtime-{target}")
    return [*found, *build_levels(arch, precision)]


def build_levels(arch: str, precision: str) -> list[Path]:
    """Returns for each level for fp32 or a precision one object with its kernels, made where it is not up to date.

    Raises:
        RuntimeError: the compiler refuses a source.
    """
    wanted = ("fp32", precision)
    return [_of_level(level) for level in LEVELS if level.arch == arch and level.precision in wanted]


def short_name(level: Level) -> str:
    """Returns what stands before the names of a level's kernels, in C."""
    return level.name.removeprefix("x86-64-").replace("-", "_")


def _of_level(level: Level) -> Path:
    """Returns the kernels of a level under its names.

    They are one object, for of an archive a linker takes objects that are named, and some kernels only register
    themselves.
    """
    short = short_name(level)
    folder, arguments = LIBRARIES / "objects" / level.name, level_arguments(level)
    flags = ("-DNND_NAMES_OF_LEVEL", f"-DNND_TABLE=nndeploy_kernels_{short}", "-I", "..")
    table = compiled([("../runtime/level.c", flags)], arguments, folder / "runtime")
    kernels = [
        renamed(path, folder / "runtime", "nnd_", f"{short}_")
        for path in (*compiled(units(), arguments, folder), *table)
    ]
    digest = hashlib.sha256(repr([path.name for path in kernels]).encode()).hexdigest()[:32]
    return made(
        folder / "runtime" / f"{short}-{digest}.o", "cc", ["-target", level.zig_target, "-r", "-nostdlib"], kernels
    )


def made(path: Path, tool: str, flags: Sequence[str], objects: Sequence[Path]) -> Path:
    """Returns a file that is linked or collected of objects, made where these or the flags are others than before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256(repr((tool, flags, [one.name for one in objects])).encode()).hexdigest()
    stamp = path.with_name(f".{path.name}.key")
    if path.exists() and stamp.exists() and stamp.read_text(encoding="ascii") == key:
        return path
    files = [str(one) for one in objects]
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        staged = Path(folder) / path.name  # a DLL holds its own name
        zig(tool, ["rcsD", str(staged), *files] if tool == "ar" else [*flags, *files, "-o", str(staged)])
        stamp.unlink(missing_ok=True)
        staged.replace(path)
    stamp.write_text(key, encoding="ascii")
    return path


def main(architectures: Sequence[str]) -> None:
    """Builds the runtime of architectures, of this machine's where none is named."""
    from nndeploy_kernels.build_systems import SYSTEMS, build_system_runner, build_windows_library
    from nndeploy_kernels.build_web import build_package

    systems = {system.arch: system for system in SYSTEMS}
    known = sorted({level.arch for level in LEVELS} | {WEB_ARCH, *systems})
    if others := sorted(set(architectures) - {*known, _WITH_LIBCRYPTO}):
        sys.exit(f"no architecture is called {others[0]!r}; known: {', '.join(known)}")
    wanted = set(architectures or [platform.machine()])
    if with_libcrypto := _WITH_LIBCRYPTO in wanted:
        wanted = wanted - {_WITH_LIBCRYPTO} or {platform.machine()}
    machines = sorted(wanted - {WEB_ARCH, *systems})
    with ThreadPoolExecutor() as pool:
        pool.map(_make_c_library, machines)
        if WEB_ARCH in wanted:
            build_package()
        if WINDOWS_ARCH in wanted:
            build_windows_library()
        for arch in sorted(wanted & {*systems}):
            build_system_runner(systems[arch])
        for arch in machines:
            build_libraries(arch)
            build_runners(arch)
        if with_libcrypto:
            build_verifying_runner()


def _make_c_library(arch: str) -> None:
    """Lets the compiler make the C library of static programs, once for a machine: it takes one core 40 seconds.

    Links of such programs wait for it.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "empty.c"
        source.write_text("int main(void) { return 0; }\n", encoding="ascii")
        zig("cc", [*_static(arch), str(source), "-o", str(source.with_suffix(""))])


def _static(arch: str) -> list[str]:
    return ["-target", f"{arch}-linux-musl", "-static", "-s", *LINK_FLAGS]


if __name__ == "__main__":
    main(sys.argv[1:])
