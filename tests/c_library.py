# SPDX-License-Identifier: Apache-2.0
"""Shared libraries that tests make of C sources, which may include those of the kernel library."""

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from nndeploy_kernels.build import FLAGS, SOURCES
from nndeploy_kernels.levels import zig_target

from nndeploy.target.target import host_target


def zig_missing() -> str:
    """Returns why nothing can be compiled here, "" where it can."""
    return "" if find_spec("ziglang") is not None else "ziglang is not installed"


def library_from_source(sources: Sequence[str], workdir: Path) -> Path:
    """Returns the library of C texts for any CPU of this architecture, made in `workdir`, which is the caller's."""
    files = [f"source{number}.c" for number in range(len(sources))]
    for name, text in zip(files, sources, strict=True):
        (workdir / name).write_text(text, encoding="utf-8")
    arch = host_target().arch
    command = [
        sys.executable, "-m", "ziglang", "cc", "-target", zig_target(arch), *FLAGS, "-shared", "-s", "-I", str(SOURCES),
        *files, "-o", "library.so",
    ]  # fmt: skip
    subprocess.run(command, cwd=workdir, check=True)
    return workdir / "library.so"
