# SPDX-License-Identifier: Apache-2.0
"""The compiler `ziglang`: whether it is here, and C source -> shared library for any instruction set.

Law: the same source and instruction set give the same bytes: no path and no clock goes into the library. What was
made once is kept in the account's cache folder: what does not depend on a model (start-up code, stubs of the C
library), some MB for each instruction set, and the libraries (library_cache.py).
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from nndeploy.errors import BuildRefusedError, one_line
from nndeploy.files.account_cache import own_cache_folder
from nndeploy_native.isa import Isa
from nndeploy_native.library_cache import keep_library, kept_library, library_key

HINT = "install the extra: nndeploy-toolchain[native]"
HEADERS = Path(__file__).with_name("c")
COMPILE_SECONDS = 600
FLAGS = (
    "-O3", "-std=gnu11", "-shared", "-fPIC", "-pthread", "-fvisibility=hidden", "-ffp-contract=fast", "-fno-math-errno",
    "-fno-trapping-math", "-fno-strict-aliasing", "-fno-sanitize=all", "-g0", "-s", "-Wl,--build-id=none", "-Wall",
    "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-unused-parameter",
)  # fmt: skip


def zig_missing() -> str:
    """Returns why nothing can be built here, or ""."""
    return "" if find_spec("ziglang") is not None else "ziglang is not installed"


def zig_version() -> str:
    """Returns the version of the installed package, "" where it says none."""
    try:
        return version("ziglang")
    except PackageNotFoundError:
        return ""


def library_from_source(source: str | Sequence[str], isa: Isa, workdir: Path) -> bytes:
    """Returns the shared library of C files that include the headers of `c/`; `workdir` is private.

    Raises:
        BuildRefusedError: there is no compiler, or it refuses the source.
    """
    if missing := zig_missing():
        raise BuildRefusedError(f"{missing}: {HINT}")
    sources = [source] if isinstance(source, str) else list(source)
    arguments = [
        "-target", isa.zig_target, f"-mcpu={isa.zig_cpu}", *FLAGS, *(["-DNND_BF16"] if isa.precision == "bf16" else []),
    ]  # fmt: skip
    key = library_key(zig_version(), arguments, sources, HEADERS)
    library = kept_library(key)
    if not library:
        library = _compiled(sources, arguments, workdir)
        keep_library(key, library)
    return library


def _compiled(sources: Sequence[str], arguments: Sequence[str], workdir: Path) -> bytes:
    files = {f"kernels{number or ''}.c": text for number, text in enumerate(sources)}
    for name, text in files.items():
        (workdir / name).write_text(text, encoding="utf-8")
    compiler = [sys.executable, "-m", "ziglang", "cc"]
    command = [*compiler, *arguments, "-I", str(HEADERS), *files, "-o", "kernels.so"]
    kept = own_cache_folder(f"zig-{zig_version()}")  # what C needs takes longer than a kernel
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
        raise BuildRefusedError(f"the compiler refuses the kernels: {one_line(errors[0] if errors else done.stderr)}")
    return (workdir / "kernels.so").read_bytes()
