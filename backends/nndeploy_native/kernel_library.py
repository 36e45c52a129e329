# SPDX-License-Identifier: Apache-2.0
"""The kernel library of this machine. It comes in a distribution of its own, nndeploy-kernels, which a box may lack."""

import ctypes
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from nndeploy.errors import UnavailableError
from nndeploy.target.target import Target, host_target

if TYPE_CHECKING:
    from nndeploy_kernels.levels import Level

API_VERSION = 3
"""The version of nndeploy_kernels.h that sessions speak."""
HINT = "pip install nndeploy-kernels"


def is_installed() -> bool:
    """Returns whether nndeploy-kernels is here, for whatever architecture."""
    return find_spec("nndeploy_kernels") is not None


def no_kernels(target: Target, precision: str = "fp32") -> str:
    """Returns why there are no kernels for a target, in one line; "" where there are some."""
    if not is_installed():
        return "nndeploy-kernels is not installed"
    from nndeploy_kernels.loading import missing

    return missing(target.arch, target.cpu_features, precision)


def level_here(precision: str = "fp32") -> "Level":
    """Returns the level of the library that this machine runs: of a precision where there is one, else of float32.

    Raises:
        UnavailableError: there is none, or it speaks another version of the interface.
    """
    host = host_target()
    if why := no_kernels(host):
        raise UnavailableError(why, hint="" if is_installed() else HINT)
    from nndeploy_kernels import loading

    if loading.API_VERSION != API_VERSION:
        versions = f"{loading.API_VERSION} of its interface, this nndeploy version {API_VERSION}"
        raise UnavailableError(f"nndeploy-kernels speaks version {versions}", hint="install matching versions")
    level = loading.installed(host.arch, host.cpu_features, precision)
    if level is None:
        raise UnavailableError(f"nndeploy-kernels has no library for this {host.arch} machine", hint=HINT)
    return level


def pace_library() -> Path:
    """Returns the library of delays for this machine.

    Raises:
        UnavailableError: it is not installed.
    """
    arch = host_target().arch
    if is_installed():
        from nndeploy_kernels.loading import pace_library_for

        if (path := pace_library_for(arch)) is not None:
            return path
    raise UnavailableError(f"nndeploy-kernels has no library of delays for {arch} here", hint=HINT)


def kernel_library(precision: str) -> ctypes.CDLL:
    """Returns the library of `level_here`.

    Raises:
        UnavailableError: there is none, or it cannot be loaded.
    """
    level = level_here(precision)
    from nndeploy_kernels.loading import load

    try:
        return load(level)
    except OSError as err:
        raise UnavailableError(f"the kernel library cannot be loaded: {err}", hint=HINT) from err
