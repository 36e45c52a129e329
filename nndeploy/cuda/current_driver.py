# SPDX-License-Identifier: Apache-2.0
"""Which driver this process has: NVIDIA's, loaded when it is first asked for, or one that a test put in its place."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from nndeploy.cuda.driver import Driver
from nndeploy.errors import UnavailableError

_injected: list[Driver] = []


class NoDriverError(UnavailableError):
    """NVIDIA's driver is not installed."""


def current_driver() -> Driver:
    """Returns the driver of this process: the injected one, or the real one.

    Raises:
        NoDriverError: there is no NVIDIA driver.
        UnavailableError: cuda-bindings is not installed.
    """
    return _injected[-1] if _injected else _real_driver()


@contextmanager
def injected_driver(driver: Driver) -> Iterator[None]:
    """Makes `driver` the one of this process, for tests."""
    _injected.append(driver)
    try:
        yield
    finally:
        _injected.remove(driver)


@cache
def _real_driver() -> Driver:
    try:
        ctypes.CDLL("libcuda.so.1")  # costs nothing where there is none; the package costs 0.2 s to import
    except OSError as err:
        raise NoDriverError(
            "no NVIDIA driver on this machine: libcuda.so.1 was not found", hint="install NVIDIA's driver"
        ) from err
    try:
        from nndeploy.cuda.bindings_driver import BindingsDriver
    except ImportError as err:
        raise UnavailableError(
            "there is an NVIDIA driver, but the package cuda-bindings is not installed",
            hint="pip install cuda-bindings",
        ) from err
    return BindingsDriver()
