# SPDX-License-Identifier: Apache-2.0
"""Builds libcuda_stub.c, once for each content, into the cache folder of the account.

    <cache>/nndeploy/libcuda-stub/<hash of source, compiler version and machine>/libcuda.so.1

The compiler is `ziglang` from the package index: it needs nothing else on the machine. Law: a folder is either whole
or absent (it is made under another name and renamed), belongs to this account, and nobody else may write to it.
"""

import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from nndeploy.errors import UnavailableError, one_line
from nndeploy.files.account_folders import cache_folder

SOURCE = Path(__file__).with_name("libcuda_stub.c")
LIBRARY = "libcuda.so.1"
OLDEST_GLIBC = "2.17"
HINT = "pip install 'nndeploy-toolchain[cudnn]'"
COMPILE_SECONDS = 120


def stub_folder() -> Path:
    """Returns the folder that holds the built library.

    Raises:
        UnavailableError: there is no compiler, it fails, or the cache folder cannot be used.
    """
    folder = cache_folder() / "nndeploy" / "libcuda-stub" / _key()
    if not (folder / LIBRARY).is_file():
        _build_into(folder)
    _check_owner(folder)
    return folder


def _key() -> str:
    parts = (SOURCE.read_bytes(), _compiler_version().encode(), _target().encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


def _compiler_version() -> str:
    try:
        return version("ziglang")
    except PackageNotFoundError as err:
        raise UnavailableError(
            "there is no NVIDIA driver here, and without the package ziglang its stand-in cannot be built", hint=HINT
        ) from err


def _target() -> str:
    return f"{platform.machine()}-linux-gnu.{OLDEST_GLIBC}"


def _build_into(folder: Path) -> None:
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".build-"))
    except OSError as err:
        raise UnavailableError(f"the cache folder cannot be written: {err}", where=str(folder.parent)) from err
    try:
        _compile(made)
        made.rename(folder)
    except OSError as err:
        if not (folder / LIBRARY).is_file():  # unless somebody else was faster
            raise UnavailableError(f"the stand-in for libcuda.so.1 cannot be kept: {err}", where=str(folder)) from err
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _compile(folder: Path) -> None:
    caches = {name: str(folder / "zig") for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")}
    command = [
        sys.executable, "-I", "-m", "ziglang", "cc", "-shared", "-fPIC", "-Os", "-s", "-pthread",
        "-fno-stack-protector", "-target", _target(),
        f"-Wl,-soname,{LIBRARY}", "-o", str(folder / LIBRARY), str(SOURCE),
    ]  # fmt: skip
    environment = {"PATH": os.defpath, "HOME": str(folder), "LANG": "C.UTF-8", **caches}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=COMPILE_SECONDS, check=False)
    except subprocess.TimeoutExpired as err:
        raise UnavailableError("ziglang did not finish", where=SOURCE.name) from err
    shutil.rmtree(folder / "zig", ignore_errors=True)
    if done.returncode:
        said = one_line(done.stderr.decode("utf-8", "replace"))[:200]
        raise UnavailableError(f"ziglang cannot build it: {said}", where=SOURCE.name)


def _check_owner(folder: Path) -> None:
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UnavailableError("the folder of the stand-in for libcuda.so.1 is not ours alone", where=str(folder))
