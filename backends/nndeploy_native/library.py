# SPDX-License-Identifier: Apache-2.0
"""The compiler `ziglang`: whether it is here, and C sources -> shared library for any CPU of an architecture.

Law: the same sources and architecture give the same bytes: no path and no clock goes into the library. What does not
depend on the sources (start-up code, stubs of the C library) is kept in the account's cache folder.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from nndeploy.errors import BuildRefusedError, one_line
from nndeploy.files.account_folders import own_cache_folder
from nndeploy_native import kernel_library

HINT = "pip install 'nndeploy-toolchain[pacing]'"
SOURCES = Path(__file__).with_name("c")
COMPILE_SECONDS = 600
FLAGS = (
    "-O3", "-std=gnu11", "-shared", "-fPIC", "-pthread", "-fvisibility=hidden", "-ffp-contract=fast", "-fno-math-errno",
    "-fno-trapping-math", "-fno-strict-aliasing", "-fno-sanitize=all", "-g0", "-s", "-Wl,--build-id=none", "-Wall",
    "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-unused-parameter",
)  # fmt: skip
_ANY_CPU = {"x86_64": "x86_64", "aarch64": "generic"}


def zig_missing() -> str:
    """Returns why nothing can be built here, or ""."""
    return "" if find_spec("ziglang") is not None else "ziglang is not installed"


def zig_version() -> str:
    """Returns the version of the installed package, "" where it says none."""
    try:
        return version("ziglang")
    except PackageNotFoundError:
        return ""


def library_from_source(sources: Sequence[str], arch: str, workdir: Path) -> bytes:
    """Returns the shared library of C files, which may include those of `c/` and headers of the kernel library.

    `workdir` is private.

    Raises:
        BuildRefusedError: there is no compiler, it is for no such architecture, or it refuses the sources.
    """
    if missing := zig_missing():
        raise BuildRefusedError(f"{missing}: {HINT}")
    if not kernel_library.is_installed():
        raise BuildRefusedError(f"the headers of nndeploy-kernels are not installed: {kernel_library.HINT}")
    from nndeploy_kernels import HEADERS
    from nndeploy_kernels.levels import LEVELS

    level = next((level for level in LEVELS if level.arch == arch), None)
    if level is None:
        raise BuildRefusedError(f"nothing is known of {arch}")
    files = {f"source{number}.c": text for number, text in enumerate(sources)}
    for name, text in files.items():
        (workdir / name).write_text(text, encoding="utf-8")
    command = [
        sys.executable, "-m", "ziglang", "cc", "-target", level.zig_target, f"-mcpu={_ANY_CPU[arch]}", *FLAGS,
        "-I", str(SOURCES), "-I", str(HEADERS), *files, "-o", "library.so",
    ]  # fmt: skip
    _run(command, workdir)
    return (workdir / "library.so").read_bytes()


def _run(command: Sequence[str], workdir: Path) -> None:
    kept = own_cache_folder(f"zig-{zig_version()}")  # what C needs takes longer than a source
    caches = {"ZIG_LOCAL_CACHE_DIR": str(workdir / "zig-cache")}
    caches |= {"ZIG_GLOBAL_CACHE_DIR": str(kept)} if kept else {}
    try:
        done = subprocess.run(
            command,
            cwd=workdir,
            env={**os.environ, **caches},
            capture_output=True,
            text=True,
            timeout=COMPILE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as err:
        raise BuildRefusedError(f"the compiler did not end within {COMPILE_SECONDS} s") from err
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        raise BuildRefusedError(f"the compiler refuses a source: {one_line(errors[0] if errors else done.stderr)}")
