# SPDX-License-Identifier: Apache-2.0
"""Builds what runs bundles on Windows and macOS: `python -m nndeploy_kernels.build_runtime x86_64-windows`.

    runtime/*.c with windows/*.c or macos/*.c in the place of Linux's part, and the kernels of each level for float32
      -> lib/runtime-ARCH/nndeploy-run.exe, nndeploy-run
      -> lib/runtime-x86_64-windows/nndeploy.dll, nndeploy.lib   for other programs; the second is what they link

Law: as of `nndeploy_kernels.build`, the same sources give the same bytes. They need what every Windows 10 and macOS 13
have.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nndeploy_kernels.build import FLAGS, LIBRARIES, compiled, units
from nndeploy_kernels.build_runtime import RUNTIME, made, short_name
from nndeploy_kernels.levels import LEVELS, WINDOWS_ARCH, Level, runner
from nndeploy_kernels.symbol_names import renamed


class System(NamedTuple):
    """A system that is not Linux: the folder of its own sources, and which of the runtime's stand for Linux alone."""

    arch: str
    target: str
    folder: str
    linux_alone: tuple[str, ...]
    flags: tuple[str, ...] = FLAGS
    link_flags: tuple[str, ...] = ()

    @property
    def levels(self) -> list[Level]:
        """Those for float32."""
        arch = self.arch.partition("-")[0]
        return [level for level in LEVELS if level.arch == arch and level.precision == "fp32"]


_LINUX_ALONE = ("platform_linux.c", "command/system_linux.c")
_NOT_ON_WINDOWS = ("-fPIC", "-pthread", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
"""It finds who handles a fault by tables of all functions that called."""
WINDOWS = System(
    WINDOWS_ARCH, "x86_64-windows-gnu", "windows", (*_LINUX_ALONE, "platform.c", "command/system.c"),
    tuple(flag for flag in FLAGS if flag not in _NOT_ON_WINDOWS),
    ("-lapi-ms-win-core-synch-l1-2-0", "-Wl,/Brepro"),  # the second: a hash in the place of the time
)  # fmt: skip
_MACOS = ("macos", _LINUX_ALONE, (*FLAGS, "-isystem", "../macos"))
SYSTEMS = (
    WINDOWS,
    System("aarch64-macos", "aarch64-macos.13.0", *_MACOS),
    System("x86_64-macos", "x86_64-macos.13.0", *_MACOS),
)
_CPU = {"x86_64": "x86_64", "aarch64": "generic"}


def build_system_runner(system: System) -> Path:
    """Returns nndeploy-run for a system, made where it is not up to date.

    Raises:
        RuntimeError: the compiler refuses a source.
    """
    objects = [*_runtime(system, ["*.c", "command/*.c"], ["platform.c", "system.c"]), *_kernels(system)]
    return made(LIBRARIES / runner(system.arch), "cc", ["-target", system.target, "-s", *system.link_flags], objects)


def build_windows_library() -> tuple[Path, Path]:
    """Returns the DLL and its import library, made where they are not up to date.

    Raises:
        RuntimeError: the compiler refuses a source.
    """
    folder = (LIBRARIES / runner(WINDOWS_ARCH)).parent
    names = re.findall(r"nnd_\w+", (RUNTIME / "exports.txt").read_text(encoding="ascii"))
    exports, imports = folder / "nndeploy.def", folder / "nndeploy.lib"
    folder.mkdir(parents=True, exist_ok=True)
    exports.write_text("\n".join(["LIBRARY nndeploy.dll", "EXPORTS", *names, ""]), encoding="ascii")
    objects = [*_runtime(WINDOWS, ["*.c"], ["platform.c"]), *_kernels(WINDOWS)]
    flags = ["-target", WINDOWS.target, "-shared", "-s", str(exports), f"-Wl,--out-implib,{imports}"]
    return made(folder / "nndeploy.dll", "cc", [*flags, *WINDOWS.link_flags], objects), imports


def _runtime(system: System, patterns: Sequence[str], own: Sequence[str]) -> list[Path]:
    """Returns the objects of the runtime."""
    paths = [path.relative_to(RUNTIME).as_posix() for pattern in patterns for path in sorted(RUNTIME.glob(pattern))]
    names = [f"../runtime/{path}" for path in paths if path not in ("level.c", *system.linux_alone)]
    names += [f"../{system.folder}/{name}" for name in own]
    cpu = _CPU[system.arch.partition("-")[0]]
    arguments = ["-target", system.target, f"-mcpu={cpu}", *system.flags, "-DNND_FLOAT32_LEVELS_ALONE", "-I", ".."]
    return compiled([(name, ()) for name in names], arguments, LIBRARIES / "objects" / f"runtime-{system.target}")


def _kernels(system: System) -> list[Path]:
    """Returns the kernels of each level under its names."""
    return [path for level in system.levels for path in _of_level(system, level)]


def _of_level(system: System, level: Level) -> list[Path]:
    short, folder = short_name(level), LIBRARIES / "objects" / f"{level.name}-{system.target}"
    arguments = ["-target", system.target, f"-mcpu={level.zig_cpu}", f'-DNND_LEVEL="{level.name}"', *system.flags]
    table = ("../runtime/level.c", ("-DNND_NAMES_OF_LEVEL", f"-DNND_TABLE=nndeploy_kernels_{short}", "-I", ".."))
    objects = [*compiled(units(), arguments, folder), *compiled([table], arguments, folder / "runtime")]
    return [renamed(path, folder / "runtime", "nnd_", f"{short}_") for path in objects]
