# SPDX-License-Identifier: Apache-2.0
"""C text that includes the templates -> a shared library, by ziglang, for any of the instruction sets."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from nndeploy.errors import UnavailableError, one_line
from nndeploy_native.kernels.isa import Isa

HEADERS = Path(__file__).resolve().parents[1] / "c"
HINT = "install the extra: nndeploy-toolchain[native]"
COMPILE_SECONDS = 300
FLAGS = ("-std=gnu11", "-O3", "-g0", "-fPIC", "-fno-math-errno", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function")


def compiler_command(isa: Isa, source: Path, library: Path, extra: tuple[str, ...] = ()) -> list[str]:
    """Returns the command that compiles `source` to the shared library `library`."""
    return [
        sys.executable, "-I", "-m", "ziglang", "cc", "-target", isa.triple, f"-mcpu={isa.cpu}", *FLAGS,
        f"-I{HEADERS}", *extra, "-shared", "-o", str(library), str(source),
    ]  # fmt: skip


def compile_library(isa: Isa, source: Path, library: Path, extra: tuple[str, ...] = ()) -> None:
    """Compiles `source` to `library`.

    Raises:
        UnavailableError: ziglang is not installed, does not finish, or refuses the source.
    """
    if find_spec("ziglang") is None:
        raise UnavailableError("own kernels need the package ziglang to be built", hint=HINT)
    command = compiler_command(isa, source, library, extra)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False)
    except subprocess.TimeoutExpired as err:
        raise UnavailableError("ziglang did not finish", where=source.name) from err
    if done.returncode != 0:
        raise UnavailableError(f"ziglang cannot build it: {one_line(done.stderr)}", where=source.name)
