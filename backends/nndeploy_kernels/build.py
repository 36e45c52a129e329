# SPDX-License-Identifier: Apache-2.0
"""Builds the libraries with ziglang: `python -m nndeploy_kernels.build [here | ARCHITECTURE | LEVEL ...]`.

There is one of kernels for each level, and for each architecture the library of delays (`c/pacing/`) and the stand-in
for NVIDIA's driver (`c/driver/`).

Law: the same sources give the same bytes: no path and no clock goes into a library. A library whose sources, compiler
and flags are those of the last build is left as it is.
"""

import hashlib
import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from nndeploy_kernels.levels import LEVELS, Level, driver_stub, pace_library, zig_target

SOURCES = Path(__file__).with_name("c")
LIBRARIES = Path(__file__).with_name("lib")
TILES = "kernels/tile.c"
WAYS = 5
"""How often `TILES` is compiled, once for each way from pixel to pixel."""
FLAGS = (
    "-O3", "-std=gnu11", "-fPIC", "-pthread", "-fvisibility=hidden", "-ffp-contract=fast", "-fno-math-errno",
    "-fno-trapping-math", "-fno-strict-aliasing", "-fno-sanitize=all", "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables", "-g0", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function",
)  # fmt: skip

LINK_FLAGS = ("-Wl,--build-id=none", "-Wl,--gc-sections")
"""The second leaves out what the compiler's own library has and nobody calls."""
_ANY_CPU = {"x86_64": "x86_64", "aarch64": "generic"}
_APART = ("pacing", "driver")
"""Folders of sources that are libraries of their own."""


def build(level: Level) -> Path:
    """Returns the library of a level, made where it is not up to date.

    Raises:
        RuntimeError: the compiler refuses a source.
    """
    return _built(
        LIBRARIES / level.file_name, level.name, units(), level_arguments(level), ["-target", level.zig_target]
    )


def level_arguments(level: Level) -> list[str]:
    """Returns how the compiler is called for a level."""
    return [
        "-target", level.zig_target, f"-mcpu={level.zig_cpu}", f'-DNND_LEVEL="{level.name}"', *FLAGS,
        *(["-DNND_BF16"] if level.precision == "bf16" else []),
    ]  # fmt: skip


def build_pace(arch: str) -> Path:
    """Returns the library of delays for any CPU of an architecture, made where it is not up to date.

    Raises:
        RuntimeError: the compiler refuses a source.
    """
    return _built_apart(LIBRARIES / pace_library(arch), "pacing", arch)


def build_driver_stub(arch: str) -> Path:
    """Returns the stand-in for libcuda.so.1, made where it is not up to date; a folder of its own holds it.

    Raises:
        RuntimeError: the compiler refuses a source.
    """
    library = LIBRARIES / driver_stub(arch)
    library.parent.mkdir(parents=True, exist_ok=True)
    return _built_apart(library, "driver", arch, [f"-Wl,-soname,{library.name}"])


def build_all(arch: str) -> list[Path]:
    """Returns all libraries of an architecture."""
    return [*(build(level) for level in LEVELS if level.arch == arch), build_pace(arch), build_driver_stub(arch)]


def _built_apart(library: Path, sources: str, arch: str, link_flags: Sequence[str] = ()) -> Path:
    names = sorted(path.relative_to(SOURCES).as_posix() for path in (SOURCES / sources).glob("*.c"))
    target = ["-target", zig_target(arch), f"-mcpu={_ANY_CPU[arch]}"]
    return _built(
        library, f"{sources}-{arch}", [(name, ()) for name in names], [*target, *FLAGS], [*target, *link_flags]
    )


def _built(
    library: Path,
    name: str,
    sources: Sequence[tuple[str, tuple[str, ...]]],
    arguments: Sequence[str],
    link_arguments: Sequence[str],
) -> Path:
    """Returns a library of sources, each with flags of its own; its objects are kept under `name`."""
    objects = LIBRARIES / "objects" / name
    made = compiled(sources, arguments, objects)
    if library.exists() and _is_newer(library, made):
        return library
    staged = library.with_name(f".{library.name}.{os.getpid()}")
    flags = ["-shared", "-pthread", *([] if os.environ.get("NND_SYMBOLS") else ["-s"]), *LINK_FLAGS]
    zig("cc", [*link_arguments, *flags, *map(str, made), "-o", str(staged)])
    staged.replace(library)
    for old in set(objects.glob("*.o")) - set(made):
        old.unlink(missing_ok=True)
    return library


def _is_newer(library: Path, objects: Sequence[Path]) -> bool:
    """Whether a library was linked after all of its objects were made, and from no others."""
    since = library.stat().st_mtime_ns
    return all(one.stat().st_mtime_ns < since for one in objects) and {*objects} == {*objects[0].parent.glob("*.o")}


def units() -> list[tuple[str, tuple[str, ...]]]:
    """Returns each source of kernels with the flags that are its own, those that take longest first."""
    names = sorted(path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.c"))
    tiles: list[tuple[str, tuple[str, ...]]] = [(TILES, (f"-DNND_WAY={way}",)) for way in range(WAYS)]
    apart = (TILES, "kernels/depthwise.c")
    return [
        ("kernels/depthwise.c", ()),
        *tiles,
        *((name, ()) for name in names if name not in apart and not name.startswith(_APART)),
    ]


def compiled(sources: Sequence[tuple[str, tuple[str, ...]]], arguments: Sequence[str], folder: Path) -> list[Path]:
    """Returns the objects of sources, each with flags of its own, which are kept in a folder.

    Raises:
        RuntimeError: the compiler refuses a source.
    """
    folder.mkdir(parents=True, exist_ok=True)
    headers = _Headers()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda unit: _compiled(unit[0], unit[1], arguments, folder, headers), sources))


def _compiled(name: str, flags: Sequence[str], arguments: Sequence[str], folder: Path, headers: "_Headers") -> Path:
    """Returns the object of a source; it is kept for as long as neither this nor a header that it reads changes."""
    read = headers.read_by(name)
    key = hashlib.sha256(repr((version("ziglang"), name, flags, arguments, read)).encode()).hexdigest()[:32]
    made = folder / f"{key}.o"
    if not made.exists():
        staged = folder / f".{key}.{os.getpid()}.o"
        zig("cc", [*arguments, *flags, "-I", ".", "-c", name, "-o", str(staged)])
        staged.replace(made)
    return made


def zig(tool: str, arguments: Sequence[str]) -> None:
    """Runs a tool of zig's in the folder of the sources.

    Raises:
        RuntimeError: it fails.
    """
    program = files("ziglang").joinpath("zig")  # `python -m ziglang` starts an interpreter first
    done = subprocess.run([str(program), tool, *arguments], cwd=SOURCES, capture_output=True, text=True, check=False)
    if done.returncode or "warning:" in done.stderr:  # of two functions of one name a linker takes either, and warns
        raise RuntimeError(f"zig {tool} fails: {done.stderr.strip()[:2000]}")


class _Headers:
    """What sources include, by name from `SOURCES`, and the headers that these include."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def read_by(self, name: str) -> dict[str, str]:
        """Returns the text of a source and of all that it includes, by name."""
        found, waiting = dict[str, str](), [name]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found[one] = self._text(one)
                waiting += re.findall(r'^\s*#\s*include\s+"([^"]+)"', found[one], re.MULTILINE)
        return dict(sorted(found.items()))

    def _text(self, name: str) -> str:
        if name not in self._texts:
            path = SOURCES / name
            path = path if path.exists() else SOURCES.parent / name
            self._texts[name] = path.read_text(encoding="utf-8")
        return self._texts[name]


def level_here() -> Level:
    """Returns the widest float32 level of this machine.

    Raises:
        RuntimeError: it has none.
    """
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    flags = set(found[1].split()) if found else set[str]()
    fitting = [one for one in LEVELS if one.arch == platform.machine() and flags.issuperset(one.cpu_features)]
    fitting = [one for one in fitting if one.precision == "fp32"]
    if not fitting:
        raise RuntimeError("no level of the kernel library is for this machine")
    return fitting[-1]


def main(names: Sequence[str]) -> None:
    """Builds what the named levels need, "here" being that of this machine; all where none is named.

    An architecture stands for all of its levels; one without any needs nothing.
    """
    wanted = {level_here().name if name == "here" else name for name in names}
    levels = [level for level in LEVELS if not wanted or wanted & {level.name, level.arch}]
    for level in levels:
        build(level)
    for arch in dict.fromkeys(level.arch for level in levels):
        build_pace(arch)
        build_driver_stub(arch)


if __name__ == "__main__":
    main(sys.argv[1:])
