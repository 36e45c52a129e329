# SPDX-License-Identifier: Apache-2.0
"""Where programs and libraries lie that every process of ours may read, and what none gets to see.

Law: a folder that a user named is opened as a whole only if it holds neither the account's home, nor the folder of
temporary files, nor the folder of its keys: of those that do, the files beside the named one that are not hidden. A
private key that lies there or in a folder there, as `nndeploy key new` leaves it, is opened in no case.
"""

import contextlib
import os
import pwd
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from nndeploy.errors import DataError, InputOutputError, MissingInputError
from nndeploy.files.whole_files import read_regular

MAX_KEY_BYTES = 64 << 10
SYSTEM = (
    "/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/opt", "/nix/store", "/gnu/store",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime",
    "/etc/OpenCL", "/etc/nv_tegra_release",
)  # fmt: skip
KERNEL = (
    "/proc", "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage", "/sys/bus/pci",
    "/dev/random", "/dev/urandom", "/dev/zero", "/dev/full",
)  # fmt: skip
"""What the kernel says of the machine. Landlock refuses memory, environment and files of other processes in /proc."""
NULL = ("/dev/null",)
_GPU_NODES = (
    "nvidia*", "nvidia-caps/*", "nvhost*", "nvmap", "nvgpu/*", "dri", "kfd", "dxg"
)  # fmt: skip
_GPU_KERNEL = ("/sys/bus", "/sys/class", "/sys/module", "/sys/devices")


def programs(hidden: Sequence[str] = ()) -> Iterator[str]:
    """Yields what may be read and executed: this Python, all that it imports from, and the system's own.

    Nothing in the folders `hidden` and those of this account's keys is, nor are folders in which these lie listed.
    """
    kept = [*(Path(path) for path in hidden), *key_folders()]
    python = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)
    imported = [one for path in dict.fromkeys((*python, *sys.path, *_editable_folders())) for one in beside(path)]
    for path in (*SYSTEM, *imported):
        yield from map(str, _but_for(kept, Path(path)))
    yield str(Path(sys.executable).resolve())


def _editable_folders() -> Iterator[str]:
    """Yields where packages lie that were installed to be edited, which a finder of their own knows."""
    for name, module in list(sys.modules.items()):
        if name.startswith("__editable__"):
            yield from getattr(module, "MAPPING", {}).values()


def gpu_nodes() -> list[str]:
    """Returns the devices of GPUs, [] where there is none."""
    return [str(path) for pattern in _GPU_NODES for path in Path("/dev").glob(pattern)]


def kernel_files() -> tuple[str, ...]:
    """Returns what may be read of the kernel's own files."""
    buses = map(str, Path("/sys/devices").glob("pci*"))
    return (*KERNEL, *buses, *(_GPU_KERNEL if gpu_nodes() else ()))


def named(path: str) -> Iterator[str]:
    """Yields what may be read for a user who names a file or folder: it, and what lies beside a file.

    A model names files beside itself, a pipeline its labels, a library others. Where a link leads the same holds.
    """
    for place in dict.fromkeys((Path(path).absolute(), Path(path).resolve())):
        folder = place if place.is_dir() else place.parent
        if folder != place:
            yield str(place)
        keys = list(_private_keys(folder))
        for path in beside(str(folder)):
            yield from map(str, _but_for(keys, Path(path)))


def _private_keys(folder: Path) -> Iterator[Path]:
    """Yields the private keys in a folder and in the folders in it, as far as they can be read."""
    for pattern in ("*.key", "*/*.key"):
        for path in folder.glob(pattern):
            with contextlib.suppress(OSError, DataError, MissingInputError, InputOutputError):
                if b"PRIVATE KEY" in read_regular(path, MAX_KEY_BYTES):
                    yield path.resolve()


def beside(folder: str) -> Iterator[str]:
    """Yields the folder, or what of it may be read where it holds what nobody may."""
    real = Path(folder).resolve()
    if any(real.is_relative_to(keys) for keys in key_folders()):
        return
    if not any(private.is_relative_to(real) for private in _private_folders()):
        yield folder
        return
    try:
        entries = list(os.scandir(real))
    except OSError:
        return
    for entry in entries:
        if not entry.name.startswith(".") and entry.is_file(follow_symlinks=False):
            yield entry.path


def _homes() -> set[Path]:
    """Returns the home of the account, and what is said to be it: that of a job is a folder of its own."""
    homes = {Path(said)} if (said := os.environ.get("HOME", "")) else set[Path]()
    try:
        return homes | {Path(pwd.getpwuid(os.getuid()).pw_dir)}
    except KeyError:  # an account without an entry
        return homes


def key_folders() -> list[Path]:
    """Returns where nndeploy keeps the keys that bundles are signed with."""
    said = os.environ.get("XDG_CONFIG_HOME", "")
    folders = {home / ".config" for home in _homes()} | ({Path(said)} if said.startswith("/") else set())
    return [(folder / "nndeploy").resolve() for folder in folders]


def _private_folders() -> list[Path]:
    temporary = map(Path, ("/tmp", "/var/tmp", tempfile.gettempdir()))  # noqa: S108 - nothing is made there
    return [*key_folders(), *(path.resolve() for path in (*_homes(), *temporary))]


def _but_for(kept: Sequence[Path], path: Path) -> Iterator[Path]:
    """Yields a path, or what is in it but for the folders `kept`."""
    real = path.resolve()
    if any(real.is_relative_to(one) for one in kept):
        return
    if not any(one.is_relative_to(real) for one in kept):
        yield path
    elif real.is_dir():
        for entry in real.iterdir():
            yield from _but_for(kept, entry)
