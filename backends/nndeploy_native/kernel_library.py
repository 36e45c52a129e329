# SPDX-License-Identifier: Apache-2.0
"""The kernel library of this machine, which the wheel of its architecture brings."""

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from nndeploy_kernels import loading

from nndeploy.errors import UnavailableError
from nndeploy.target.target import Target, host_target
from nndeploy.version import WHEEL_HINT

if TYPE_CHECKING:
    from nndeploy_kernels.levels import Level


def no_kernels(target: Target, precision: str = "fp32") -> str:
    """Returns why there are no kernels for a target, in one line; "" where there are some."""
    return loading.missing(target.arch, target.cpu_features, precision)


def level_here(precision: str = "fp32") -> "Level":
    """Returns the level of the library that this machine runs: of a precision where there is one, else of float32.

    Raises:
        UnavailableError: there is none.
    """
    host = host_target()
    if why := no_kernels(host):
        raise UnavailableError(why)
    level = loading.installed(host.arch, host.cpu_features, precision)
    if level is None:
        raise UnavailableError(f"no kernel library for {host.arch} is installed", hint=WHEEL_HINT)
    return level


def pace_library() -> Path:
    """Returns the library of delays for this machine.

    Raises:
        UnavailableError: it is not installed.
    """
    arch = host_target().arch
    if (path := loading.pace_library_for(arch)) is not None:
        return path
    raise UnavailableError(f"no library of delays for {arch} is installed", hint=WHEEL_HINT)


def kernel_library(precision: str) -> ctypes.CDLL:
    """Returns the library of `level_here`.

    Raises:
        UnavailableError: there is none, or it cannot be loaded.
    """
    level = level_here(precision)
    try:
        return loading.load(level)
    except OSError as err:
        raise UnavailableError(f"the kernel library cannot be loaded: {err}", hint=WHEEL_HINT) from err
